//! Choosing the instructions to compute with.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Precision, Result};

/// A set of compute kernels.
///
/// Kernels differ in the last bits of their results; within one, results depend on the input alone.
///
/// ```
/// use loxia_nn::Kernel;
/// assert!(Kernel::available().contains(&Kernel::Portable));
/// assert_eq!("avx2".parse(), Ok(Kernel::Avx2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kernel {
    /// Plain Rust: the reference, and what every machine can run.
    Portable,
    /// x86-64 with AVX2 and FMA, 8 lanes.
    Avx2,
    /// x86-64 with AVX-512F and BW, 16 lanes.
    Avx512,
    /// The same with VNNI: 8-bit products in one instruction. In `f32` it is [`Kernel::Avx512`].
    Avx512Vnni,
    /// The same with dot products of bfloat16 numbers: attention of 8-bit models. In `f32` it is [`Kernel::Avx512`].
    Avx512Bf16,
    /// VNNI with AMX: 8-bit products of whole matrices in one instruction, and attention of 8-bit models in
    /// bfloat16. In `f32` it is [`Kernel::Avx512`].
    Amx,
}

impl Kernel {
    /// Environment variable that forces a kernel.
    pub const VARIABLE: &'static str = "LOXIA_KERNEL";

    const ALL: [Kernel; 6] =
        [Kernel::Portable, Kernel::Avx2, Kernel::Avx512, Kernel::Avx512Vnni, Kernel::Avx512Bf16, Kernel::Amx];

    /// The kernel of this process: the one `LOXIA_KERNEL` names, else the fastest this machine has.
    pub fn detect() -> Result<Kernel> {
        match std::env::var_os(Self::VARIABLE) {
            Some(name) if !name.is_empty() => Self::named(&name.to_string_lossy()),
            _ => Ok(Self::available().pop().unwrap_or(Kernel::Portable)),
        }
    }

    /// The kernel of a name, if this machine can run it.
    pub fn named(name: &str) -> Result<Kernel> {
        let kernel: Kernel = name.parse()?;
        kernel.check()?;
        Ok(kernel)
    }

    /// The kernels this machine can run, slowest first.
    pub fn available() -> Vec<Kernel> {
        Self::ALL.into_iter().filter(|kernel| kernel.is_available()).collect()
    }

    /// Whether this machine can run it.
    pub fn is_available(self) -> bool {
        crate::kernels::Isa::of(self).is_some()
    }

    /// Its name in flags and reports.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Portable => "portable",
            Kernel::Avx2 => "avx2",
            Kernel::Avx512 => "avx512",
            Kernel::Avx512Vnni => "avx512vnni",
            Kernel::Avx512Bf16 => "avx512bf16",
            Kernel::Amx => "amx",
        }
    }

    /// The first kernel that computes the same bits in a precision: what was computed with one may be gone on with by
    /// the other.
    ///
    /// ```
    /// use loxia_nn::{Kernel, Precision};
    /// assert_eq!(Kernel::Amx.same_bits(Precision::F32), Kernel::Avx512);
    /// assert_eq!(Kernel::Amx.same_bits(Precision::Int8), Kernel::Amx);
    /// ```
    pub fn same_bits(self, precision: Precision) -> Kernel {
        match (self, precision) {
            (Kernel::Avx512Vnni | Kernel::Avx512Bf16 | Kernel::Amx, Precision::F32) => Kernel::Avx512,
            (kernel, _) => kernel,
        }
    }

    /// Vector extensions of this machine that kernels use now or may use.
    #[cfg(target_arch = "x86_64")]
    pub fn features() -> Vec<&'static str> {
        macro_rules! present {
            ($($name:tt),*) => {
                [$(($name, std::arch::is_x86_feature_detected!($name))),*]
            };
        }
        let features = present!(
            "sse4.1",
            "avx",
            "avx2",
            "fma",
            "f16c",
            "avxvnni",
            "avx512f",
            "avx512bw",
            "avx512vl",
            "avx512vnni",
            "avx512bf16"
        );
        let amx = [("amx", Kernel::Amx.is_available())];
        features.into_iter().chain(amx).filter_map(|(name, found)| found.then_some(name)).collect()
    }

    /// Vector extensions of this machine that kernels use now or may use.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn features() -> Vec<&'static str> {
        Vec::new()
    }

    /// An error unless this machine can run it.
    pub(crate) fn check(self) -> Result<crate::kernels::Isa> {
        crate::kernels::Isa::of(self).ok_or_else(|| refused(self.name(), "not supported here"))
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kernel {
    type Err = Error;

    fn from_str(name: &str) -> Result<Kernel> {
        Self::ALL.into_iter().find(|kernel| kernel.name() == name).ok_or_else(|| refused(name, "unknown"))
    }
}

fn refused(requested: &str, problem: &'static str) -> Error {
    let names: Vec<&str> = Kernel::available().into_iter().map(Kernel::name).collect();
    Error::Kernel { requested: requested.to_owned(), problem, available: names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_kernels_are_refused_with_what_there_is() {
        let message = Kernel::named("sse9").unwrap_err().to_string();
        assert!(message.starts_with("kernel \"sse9\" is unknown; this machine has portable"), "{message}");
    }

    #[test]
    fn kernels_of_other_machines_are_refused_and_not_run() {
        for kernel in Kernel::ALL.into_iter().filter(|kernel| !kernel.is_available()) {
            let message = Kernel::named(kernel.name()).unwrap_err().to_string();
            assert!(message.contains("is not supported here; this machine has portable"), "{message}");
        }
    }

    #[test]
    fn every_available_kernel_is_found_by_its_name() {
        for kernel in Kernel::available() {
            assert_eq!(Kernel::named(kernel.name()), Ok(kernel));
        }
    }
}
