//! AVX-512F: 16 lanes, 32 registers.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::*;

use super::{Simd, Task, instructions};

/// Proof that the machine has AVX-512F.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// The proof, if it can be given.
    pub(in crate::kernels) fn new() -> Option<Self> {
        is_x86_feature_detected!("avx512f").then_some(Avx512(()))
    }
}

impl Simd for Avx512 {
    type Vector = __m512;
    const LANES: usize = 16;
    // 8 x 3 sums, 3 vectors of weights and 1 of input take 28 registers.
    const PANEL_VECTORS: usize = 3;
    const TILE_ROWS: usize = 8;
    const DEPTH: usize = 192;

    #[inline(always)]
    fn run<T: Task>(self, task: T) {
        // Never inlined, so that a task has the registers to itself.
        #[inline(never)]
        #[target_feature(enable = "avx512f")]
        fn enabled<T: Task>(simd: Avx512, task: T) {
            task.run(simd);
        }
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { enabled(self, task) }
    }

    instructions! {
        add(a, b) => _mm512_add_ps;
        sub(a, b) => _mm512_sub_ps;
        mul(a, b) => _mm512_mul_ps;
        div(a, b) => _mm512_div_ps;
        mul_add(a, b, c) => _mm512_fmadd_ps;
        max(a, b) => _mm512_max_ps;
        min(a, b) => _mm512_min_ps;
    }

    #[inline(always)]
    fn splat(self, value: f32) -> __m512 {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m512 {
        // SAFETY: the caller vouches for the pointer, `self` for the instruction.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, vector: __m512) {
        // SAFETY: the caller vouches for the pointer, `self` for the instruction.
        unsafe { _mm512_storeu_ps(to, vector) }
    }

    #[inline(always)]
    fn select_less(self, a: __m512, b: __m512, yes: __m512, no: __m512) -> __m512 {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b), no, yes) }
    }

    #[inline(always)]
    fn power_of_two(self, shifted: __m512) -> __m512 {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe {
            let biased = _mm512_add_epi32(_mm512_castps_si512(shifted), _mm512_set1_epi32(127));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(biased))
        }
    }
}
