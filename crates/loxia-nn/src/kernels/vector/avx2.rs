//! AVX2 with FMA: 8 lanes, 16 registers.

use std::arch::x86_64::*;
use std::arch::{asm, is_x86_feature_detected};

use super::transpose::transpose8;
use super::{Reach, Simd, Task, instructions};

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
    type Ints = __m256i;
    const REACH: Reach = Reach::NARROW;
    const LANES: usize = 8;
    // 6 x 2 sums, 2 vectors of weights and 1 of input take 15 registers.
    const PANEL_VECTORS: usize = 2;
    const TILE_ROWS: usize = 6;
    // 3 x 2 sums of 32 bits and of 16, 2 vectors of weights, 1 of codes and 1 of products take 16.
    const INT8_TILE_ROWS: usize = 3;
    // 48 KiB of a panel. A part that fits the first cache is no faster: its loop is interrupted more often, and
    // reading ahead in the second cache keeps up with 12 sums.
    const DEPTH: usize = 768;

    #[inline(always)]
    fn run<T: Task>(self, task: T) {
        #[target_feature(enable = "avx2,fma")]
        fn enabled<T: Task>(simd: Avx2, task: T) {
            task.run(simd);
        }
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { enabled(self, task) }
    }

    instructions! { Vector:
        add(a, b) => _mm256_add_ps;
        sub(a, b) => _mm256_sub_ps;
        mul(a, b) => _mm256_mul_ps;
        div(a, b) => _mm256_div_ps;
        mul_add(a, b, c) => _mm256_fmadd_ps;
        max(a, b) => _mm256_max_ps;
        min(a, b) => _mm256_min_ps;
    }

    instructions! { Ints:
        sub_ints(a, b) => _mm256_sub_epi32;
        mul_ints(a, b) => _mm256_mullo_epi32;
    }

    #[inline(always)]
    fn prefetch(self, from: *const u8) {
        // SAFETY: a prefetch may be given any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
    }

    #[inline(always)]
    fn splat_ints(self, value: i32) -> __m256i {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { _mm256_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn load_ints(self, from: *const i32) -> __m256i {
        // SAFETY: the caller vouches for the pointer, `self` for the instruction.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    fn dot_add(self, sums: __m256i, codes: __m256i, weights: __m256i) -> __m256i {
        self.add_halves(sums, self.dot_add_halves(self.splat_ints(0), codes, weights))
    }

    #[inline(always)]
    fn dot_add_halves(self, halves: __m256i, codes: __m256i, weights: __m256i) -> __m256i {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { in_order(_mm256_add_epi16(halves, _mm256_maddubs_epi16(codes, weights))) }
    }

    #[inline(always)]
    fn add_halves(self, sums: __m256i, halves: __m256i) -> __m256i {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(halves, _mm256_set1_epi16(1))) }
    }

    #[inline(always)]
    fn to_floats(self, ints: __m256i) -> __m256 {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { _mm256_cvtepi32_ps(ints) }
    }

    #[inline(always)]
    unsafe fn store_codes(self, to: *mut u8, vectors: [__m256; 4]) {
        // SAFETY: the caller vouches for the pointer, `self` for the instructions.
        unsafe {
            let [a, b, c, d] = [
                _mm256_cvtps_epi32(vectors[0]),
                _mm256_cvtps_epi32(vectors[1]),
                _mm256_cvtps_epi32(vectors[2]),
                _mm256_cvtps_epi32(vectors[3]),
            ];
            // Either step cuts what does not fit, and works within halves, which have to be put in order.
            let bytes = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            _mm256_storeu_si256(to.cast(), _mm256_permutevar8x32_epi32(bytes, order));
        }
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

    #[inline(always)]
    fn times_power_of_two(self, x: __m256, shifted: __m256) -> __m256 {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe {
            let exponent = _mm256_slli_epi32::<23>(_mm256_castps_si256(shifted));
            _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), exponent))
        }
    }

    #[inline(always)]
    unsafe fn transpose8(self, from: *const f32, stride: usize, to: *mut f32, to_stride: usize) {
        // SAFETY: the caller vouches for the pointers, `self` for the instructions.
        unsafe { transpose8(from, stride, to, to_stride) }
    }
}

/// A sum as it is, made before what is added to it later.
///
/// Left to itself the compiler adds up products in pairs, for which the registers of a tile do not suffice: sums go
/// to the stack and back all the time, and where the stack happens to lie such that they straddle cache lines, a
/// product takes twice as long.
#[inline]
#[target_feature(enable = "avx2")]
fn in_order(mut sum: __m256i) -> __m256i {
    // SAFETY: there is no instruction in it.
    unsafe { asm!("/* {0} */", inout(ymm_reg) sum, options(pure, nomem, nostack, preserves_flags)) };
    sum
}
