//! In which numbers an encoder's products are computed.

use std::fmt;

/// Numbers of the matrix products. Norms and activations are always in `f32`; so is attention, but that of 8-bit
/// models on kernels that multiply bfloat16 ([`crate::Kernel::Avx512Bf16`], [`crate::Kernel::Amx`]).
///
/// ```
/// assert_eq!(loxia_nn::Precision::default(), loxia_nn::Precision::F32);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Precision {
    /// 32-bit floating point.
    #[default]
    F32,
    /// 8-bit integers: weights with one scale for each output, activations with a scale and a zero point for
    /// each token, exact integer sums. The portable kernel and VNNI use all of the 8 bits, the other vector kernels
    /// about a bit less on either side: codes, and with them results, are those of the kernel. The word table is kept in
    /// half precision, if its numbers are within that range.
    Int8,
}

impl Precision {
    /// Its name in flags and reports.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::Int8 => "int8",
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
