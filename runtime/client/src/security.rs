//! Whether parameters protect anything.

use fhe_bytecode::Params;

/// Why parameters are below the bar, if they are.
pub fn insecurity(params: &Params) -> Option<String> {
    let params = params.segments().find(|segment| !segment.is_secure_alone())?;
    Some(match params.security_cap() {
        None => format!("INSECURE: a toy ring of degree 2^{} protects nothing", params.log_n()),
        Some(cap) => format!(
            "INSECURE: log2(PQ) = {:.1} exceeds the 128-bit bound of {cap} at N = 2^{}",
            params.log2_pq(),
            params.log_n()
        ),
    })
}
