//! What may stand in the place of an operator or of what a function computes.

use syn::{Attribute, BinOp, Expr, ExprBinary, Type};

/// Operators that may stand in the place of one.
pub fn operators(expr: &ExprBinary) -> &'static [&'static str] {
    match expr.op {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["<=", "==", ">"],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "==", "<"],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::And(_) if has_let(expr) => &[],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) => &["+", "/"],
        BinOp::Mul(_) => &["+", "/"],
        BinOp::Div(_) => &["*", "%"],
        BinOp::Rem(_) => &["/", "+"],
        BinOp::BitAnd(_) => &["|", "^"],
        BinOp::BitOr(_) => &["&", "^"],
        BinOp::BitXor(_) => &["|", "&"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::AddAssign(_) => &["-=", "*="],
        BinOp::SubAssign(_) => &["+=", "/="],
        BinOp::BitOrAssign(_) => &["&="],
        BinOp::ShrAssign(_) => &["<<="],
        BinOp::ShlAssign(_) => &[">>="],
        _ => &[],
    }
}

/// Whether something is for tests alone.
pub fn is_test(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| {
        attr.path().is_ident("test")
            || (attr.path().is_ident("cfg")
                && attr.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test"))
    })
}

/// Whether a chain of conditions binds names.
fn has_let(expr: &ExprBinary) -> bool {
    [&expr.left, &expr.right].into_iter().any(|side| match &**side {
        Expr::Let(_) => true,
        Expr::Binary(inner) => matches!(inner.op, BinOp::And(_)) && has_let(inner),
        _ => false,
    })
}

/// Values of a type that any function may give.
pub fn values(output: &Type) -> Vec<String> {
    let Type::Path(path) = output else {
        return match output {
            Type::Tuple(tuple) if tuple.elems.is_empty() => vec!["()".to_owned()],
            _ => Vec::new(),
        };
    };
    let Some(last) = path.path.segments.last() else { return Vec::new() };
    let inner = || match &last.arguments {
        syn::PathArguments::AngleBracketed(args) => args.args.iter().find_map(|arg| match arg {
            syn::GenericArgument::Type(inner) => Some(values(inner)),
            _ => None,
        }),
        _ => None,
    };
    let strings = |of: &[&str]| of.iter().map(|&value| value.to_owned()).collect::<Vec<_>>();
    match last.ident.to_string().as_str() {
        "bool" => strings(&["true", "false"]),
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i32" | "i64" => strings(&["0", "1"]),
        "f32" | "f64" => strings(&["0.0", "1.0", "-1.0"]),
        "String" => strings(&["String::new()"]),
        "Vec" => strings(&["Vec::new()"]),
        "Result" => inner().unwrap_or_default().into_iter().map(|value| format!("Ok({value})")).collect(),
        "Option" => {
            let some = inner().unwrap_or_default().into_iter().map(|value| format!("Some({value})"));
            strings(&["None"]).into_iter().chain(some).collect()
        }
        _ => Vec::new(),
    }
}
