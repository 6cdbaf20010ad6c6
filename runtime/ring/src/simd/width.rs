//! The choice of a vector width, made at run time.

#[cfg(target_arch = "x86_64")]
use super::lanes::{Avx2, Avx512};

/// A width that the CPU has.
#[derive(Clone, Copy, Debug)]
pub enum Width {
    /// Four lanes.
    #[cfg(target_arch = "x86_64")]
    Four(Avx2),
    /// Eight lanes.
    #[cfg(target_arch = "x86_64")]
    Eight(Avx512),
}

impl Width {
    /// The widest vectors that the CPU has.
    pub fn detect() -> Option<Self> {
        Self::eight().or_else(Self::four)
    }

    /// Four lanes, if the CPU has them.
    pub fn four() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        return Avx2::detect().map(Self::Four);
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// Eight lanes, if the CPU has them.
    pub fn eight() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        return Avx512::detect().map(Self::Eight);
        #[cfg(not(target_arch = "x86_64"))]
        None
    }
}

/// Calls a function with the token of a width.
#[cfg(target_arch = "x86_64")]
macro_rules! with_width {
    ($width:expr, $s:ident => $call:expr) => {
        match $width {
            $crate::simd::Width::Four($s) => $call,
            $crate::simd::Width::Eight($s) => $call,
        }
    };
}

#[cfg(target_arch = "x86_64")]
pub(crate) use with_width;
