//! AVX2 with FMA: 8 lanes, 16 registers.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::*;

use super::{Simd, Task, instructions};

/// Proof that the machine has AVX2 and FMA.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The proof, if it can be given.
    pub(in crate::kernels) fn new() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Avx2(()))
    }
}

impl Simd for Avx2 {
    type Vector = __m256;
    const LANES: usize = 8;
    // 6 x 2 sums, 2 vectors of weights and 1 of input take 15 registers.
    const PANEL_VECTORS: usize = 2;
    const TILE_ROWS: usize = 6;
    const DEPTH: usize = 384;

    #[inline(always)]
    fn run<T: Task>(self, task: T) {
        // Never inlined, so that a task has the registers to itself.
        #[inline(never)]
        #[target_feature(enable = "avx2,fma")]
        fn enabled<T: Task>(simd: Avx2, task: T) {
            task.run(simd);
        }
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { enabled(self, task) }
    }

    instructions! {
        add(a, b) => _mm256_add_ps;
        sub(a, b) => _mm256_sub_ps;
        mul(a, b) => _mm256_mul_ps;
        div(a, b) => _mm256_div_ps;
        mul_add(a, b, c) => _mm256_fmadd_ps;
        max(a, b) => _mm256_max_ps;
        min(a, b) => _mm256_min_ps;
    }

    #[inline(always)]
    fn splat(self, value: f32) -> __m256 {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m256 {
        // SAFETY: the caller vouches for the pointer, `self` for the instruction.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, vector: __m256) {
        // SAFETY: the caller vouches for the pointer, `self` for the instruction.
        unsafe { _mm256_storeu_ps(to, vector) }
    }

    #[inline(always)]
    fn select_less(self, a: __m256, b: __m256, yes: __m256, no: __m256) -> __m256 {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { _mm256_blendv_ps(no, yes, _mm256_cmp_ps::<_CMP_LT_OQ>(a, b)) }
    }

    #[inline(always)]
    fn power_of_two(self, shifted: __m256) -> __m256 {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe {
            let biased = _mm256_add_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased))
        }
    }
}
