//! What the machine could compute: chains of multiply-adds that touch no memory, on every thread at once.
//!
//! The figure is measured and not looked up, because clock rates depend on the instructions, on the cores in
//! use and on the neighbours. On a busy machine it comes out too low, as does everything else.

use std::hint::black_box;
use std::time::{Duration, Instant};

use loxia::model::Precision;
use loxia::nn::Kernel;

/// The best of so many samples counts, one right after the other. They are short, so that on a machine with other work
/// some are not disturbed.
const SAMPLES: usize = 20;
const SAMPLE: Duration = Duration::from_millis(3);
/// Rounds between two looks at the clock: far more work than a look, far less than a sample.
const ROUNDS: u64 = 2048;

/// A measured peak.
pub(super) struct Peak {
    /// The instructions it was measured with.
    pub(super) instructions: &'static str,
    /// Operations a second of all threads; a multiply-add is two.
    pub(super) rate: f64,
}

/// A loop of multiply-adds: runs so many rounds and tells how many operations that were.
type Chains = fn(u64) -> f64;

/// Measures the peak of the instructions that a kernel computes with, on the threads of the current pool.
pub(super) fn measure(kernel: Kernel, precision: Precision) -> Peak {
    let (instructions, chains) = chains_of(kernel, precision != Precision::F32);
    let started = Instant::now();
    let of_threads = rayon::broadcast(|_| operations_of_samples(chains, started));
    let together = (0..SAMPLES).map(|sample| of_threads.iter().map(|of_one| of_one[sample]).sum());
    Peak { instructions, rate: together.fold(0.0, f64::max) / SAMPLE.as_secs_f64() }
}

/// The operations that this thread does in each sample.
fn operations_of_samples(chains: Chains, started: Instant) -> [f64; SAMPLES] {
    let mut operations = [0.0; SAMPLES];
    loop {
        let done = chains(ROUNDS);
        let sample = (started.elapsed().as_nanos() / SAMPLE.as_nanos()) as usize;
        let Some(of_sample) = operations.get_mut(sample) else { return operations };
        *of_sample += done;
    }
}

#[cfg(target_arch = "x86_64")]
fn chains_of(kernel: Kernel, integers: bool) -> (&'static str, Chains) {
    macro_rules! present {
        ($chains:path) => {
            |rounds| {
                // SAFETY: handed out below only after its kernel, which has its instructions, was found to run here.
                unsafe { $chains(rounds) }
            }
        };
    }
    match (kernel, integers) {
        (kernel, _) if !kernel.is_available() => ("plain Rust, f32", portable),
        (Kernel::Avx2, false) => ("AVX2 FMA, f32", present!(x86::f32_256)),
        (Kernel::Avx2, true) => ("AVX2, int8", present!(x86::int8_256)),
        (Kernel::Avx512 | Kernel::Avx512Vnni | Kernel::Avx512Bf16 | Kernel::Amx, false) => {
            ("AVX-512 FMA, f32", present!(x86::f32_512))
        }
        (Kernel::Avx512, true) => ("AVX-512BW, int8", present!(x86::int8_512)),
        (Kernel::Avx512Vnni | Kernel::Avx512Bf16, true) => ("AVX-512 VNNI, int8", present!(x86::vnni_512)),
        (Kernel::Amx, true) => ("AMX, int8", present!(x86::amx)),
        _ => ("plain Rust, f32", portable),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn chains_of(_kernel: Kernel, _integers: bool) -> (&'static str, Chains) {
    ("plain Rust, f32", portable)
}

/// Independent sums: more than latency times instructions a cycle, few enough for the registers.
const CHAINS: usize = 12;

fn portable(rounds: u64) -> f64 {
    const LANES: usize = 4;
    let factor = black_box([1.000_001_f32; LANES]);
    let mut sums = [[0.5_f32; LANES]; CHAINS];
    for _ in 0..rounds {
        for sum in &mut sums {
            for (sum, factor) in sum.iter_mut().zip(factor) {
                *sum = *sum * factor + factor;
            }
        }
    }
    black_box(sums);
    (rounds * (2 * LANES * CHAINS) as u64) as f64
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::*;
    use std::hint::black_box;

    use super::CHAINS;

    /// Products of 8 bits that are added in 16 before they go on in 32, as in the kernels without VNNI.
    const FOLD: usize = 4;
    /// Chains of those: fewer, since the factors need registers too.
    const FOLDED_CHAINS: usize = 8;

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn f32_256(rounds: u64) -> f64 {
        let factor = black_box(_mm256_set1_ps(0.999));
        let mut sums = [_mm256_set1_ps(0.5); CHAINS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(*sum, factor, factor);
            }
        }
        black_box(sums);
        (rounds * (2 * 8 * CHAINS) as u64) as f64
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn f32_512(rounds: u64) -> f64 {
        let factor = black_box(_mm512_set1_ps(0.999));
        let mut sums = [_mm512_set1_ps(0.5); CHAINS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(*sum, factor, factor);
            }
        }
        black_box(sums);
        (rounds * (2 * 16 * CHAINS) as u64) as f64
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn int8_256(rounds: u64) -> f64 {
        let (ones, factors) = (_mm256_set1_epi16(1), black_box([_mm256_set1_epi8(3); FOLD]));
        let mut sums = [_mm256_setzero_si256(); FOLDED_CHAINS];
        for _ in 0..rounds {
            for sum in &mut sums {
                let mut pairs = _mm256_maddubs_epi16(*sum, factors[0]);
                for &factor in &factors[1..] {
                    pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(*sum, factor));
                }
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, ones));
            }
        }
        black_box(sums);
        (rounds * (2 * 32 * FOLD * FOLDED_CHAINS) as u64) as f64
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn int8_512(rounds: u64) -> f64 {
        let (ones, factors) = (_mm512_set1_epi16(1), black_box([_mm512_set1_epi8(3); FOLD]));
        let mut sums = [_mm512_setzero_si512(); FOLDED_CHAINS];
        for _ in 0..rounds {
            for sum in &mut sums {
                let mut pairs = _mm512_maddubs_epi16(*sum, factors[0]);
                for &factor in &factors[1..] {
                    pairs = _mm512_add_epi16(pairs, _mm512_maddubs_epi16(*sum, factor));
                }
                *sum = _mm512_add_epi32(*sum, _mm512_madd_epi16(pairs, ones));
            }
        }
        black_box(sums);
        (rounds * (2 * 64 * FOLD * FOLDED_CHAINS) as u64) as f64
    }

    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) fn vnni_512(rounds: u64) -> f64 {
        let factor = black_box(_mm512_set1_epi8(3));
        let mut sums = [_mm512_setzero_si512(); CHAINS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = _mm512_dpbusd_epi32(*sum, factor, factor);
            }
        }
        black_box(sums);
        (rounds * (2 * 64 * CHAINS) as u64) as f64
    }

    /// # Safety
    /// The processor must have AMX with 8-bit products, and the system must let this process use it.
    pub(super) unsafe fn amx(rounds: u64) -> f64 {
        const REGISTERS: usize = 8;
        const SUMS: u64 = 4;
        // Palette 1; every register has 16 rows of 64 bytes.
        let mut configuration = [0_u8; 64];
        configuration[0] = 1;
        configuration[16..16 + 2 * REGISTERS].chunks_exact_mut(2).for_each(|bytes| bytes[0] = 64);
        configuration[48..48 + REGISTERS].fill(16);
        // SAFETY: the caller vouches for the instructions; only registers are written, which nothing else uses.
        unsafe {
            asm!(
                "ldtilecfg [{configuration}]",
                "2:",
                "tdpbusd tmm0, tmm4, tmm6",
                "tdpbusd tmm1, tmm4, tmm7",
                "tdpbusd tmm2, tmm5, tmm6",
                "tdpbusd tmm3, tmm5, tmm7",
                "dec {rounds}",
                "jnz 2b",
                "tilerelease",
                configuration = in(reg) &configuration,
                rounds = inout(reg) rounds.max(1) => _,
                options(nostack, readonly),
            );
        }
        (rounds.max(1) * 2 * SUMS * 16 * 16 * 64) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loop_of_this_machine_runs() {
        for kernel in Kernel::available() {
            for integers in [false, true] {
                let (name, chains) = chains_of(kernel, integers);
                assert!(chains(10) >= 960.0, "{name}");
            }
        }
    }

    #[test]
    fn a_peak_is_measured_in_samples() {
        let started = Instant::now();
        let peak = measure(Kernel::Portable, Precision::F32);
        assert!(peak.rate > 0.0);
        assert!(started.elapsed() >= SAMPLE * SAMPLES as u32);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_kernel_is_measured_with_its_own_instructions() {
        for kernel in Kernel::available() {
            let expected = match kernel {
                Kernel::Avx2 => "AVX2, int8",
                Kernel::Avx512 => "AVX-512BW, int8",
                Kernel::Avx512Vnni | Kernel::Avx512Bf16 => "AVX-512 VNNI, int8",
                Kernel::Amx => "AMX, int8",
                _ => "plain Rust, f32",
            };
            assert_eq!(chains_of(kernel, true).0, expected);
        }
    }
}
