//! AVX-512: 16 lanes, 32 registers; with or without the 8-bit dot products of VNNI and those of bfloat16.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::*;
use std::mem::transmute;

use super::transpose::transpose8;
use super::{Reach, Simd, Task, instructions};

/// All lanes of a vector in one, halving in the order of [`Simd::sum`].
macro_rules! fold {
    ($vector:expr, $eight:ident, $four:ident) => {{
        let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd($vector)));
        let eight = $eight(_mm512_castps512_ps256($vector), upper);
        let four = $four(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
        let two = $four(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32($four(two, _mm_shuffle_ps::<1>(two, two)))
    }};
}

/// AVX-512F and BW.
pub(crate) const BASIC: u8 = 0;
/// And VNNI.
pub(crate) const VNNI: u8 = 1;
/// And dot products of bfloat16 numbers.
pub(crate) const HALVES: u8 = 2;

/// Proof that the machine has the instructions of a level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512<const LEVEL: u8>(());

impl<const LEVEL: u8> Avx512<LEVEL> {
    /// The proof, if it can be given.
    pub(in crate::kernels) fn new() -> Option<Self> {
        let basic = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        let vnni = LEVEL < VNNI || is_x86_feature_detected!("avx512vnni");
        let halves = LEVEL < HALVES || is_x86_feature_detected!("avx512bf16");
        (basic && vnni && halves).then_some(Avx512(()))
    }
}

impl<const LEVEL: u8> Simd for Avx512<LEVEL> {
    type Vector = __m512;
    type Ints = __m512i;
    const REACH: Reach = if LEVEL >= VNNI { Reach::WIDE } else { Reach::NARROW };
    const LANES: usize = 16;
    // 8 x 3 sums, 3 vectors of weights and 1 of input take 28 registers.
    const PANEL_VECTORS: usize = 3;
    const TILE_ROWS: usize = 8;
    const INT8_TILE_ROWS: usize = if LEVEL >= VNNI { 8 } else { 4 };
    const DEPTH: usize = 384;

    #[inline(always)]
    fn run<T: Task>(self, task: T) {
        #[target_feature(enable = "avx512f,avx512bw")]
        fn enabled<T: Task, const LEVEL: u8>(simd: Avx512<LEVEL>, task: T) {
            task.run(simd);
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        fn enabled_vnni<T: Task, const LEVEL: u8>(simd: Avx512<LEVEL>, task: T) {
            task.run(simd);
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx512bf16")]
        fn enabled_halves<T: Task, const LEVEL: u8>(simd: Avx512<LEVEL>, task: T) {
            task.run(simd);
        }
        // Never inlined, so that a task has the registers to itself; the compiler heeds this only in functions
        // without instructions of their own.
        #[inline(never)]
        fn apart<T: Task, const LEVEL: u8>(simd: Avx512<LEVEL>, task: T) {
            // SAFETY: `simd` exists only on a machine with these instructions.
            unsafe {
                match LEVEL {
                    BASIC => enabled(simd, task),
                    VNNI => enabled_vnni(simd, task),
                    _ => enabled_halves(simd, task),
                }
            }
        }
        apart(self, task);
    }

    instructions! { Vector:
        add(a, b) => _mm512_add_ps;
        sub(a, b) => _mm512_sub_ps;
        mul(a, b) => _mm512_mul_ps;
        div(a, b) => _mm512_div_ps;
        mul_add(a, b, c) => _mm512_fmadd_ps;
        max(a, b) => _mm512_max_ps;
        min(a, b) => _mm512_min_ps;
    }

    instructions! { Ints:
        sub_ints(a, b) => _mm512_sub_epi32;
        mul_ints(a, b) => _mm512_mullo_epi32;
    }

    #[inline(always)]
    fn prefetch(self, from: *const u8) {
        // SAFETY: a prefetch may be given any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
    }

    #[inline(always)]
    fn splat_ints(self, value: i32) -> __m512i {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { _mm512_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn load_ints(self, from: *const i32) -> __m512i {
        // SAFETY: the caller vouches for the pointer, `self` for the instruction.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    fn dot_add(self, sums: __m512i, codes: __m512i, weights: __m512i) -> __m512i {
        if LEVEL >= VNNI {
            // SAFETY: with VNNI, `self` exists only on a machine with this instruction.
            return unsafe { _mm512_dpbusd_epi32(sums, codes, weights) };
        }
        self.add_halves(sums, self.dot_add_halves(self.splat_ints(0), codes, weights))
    }

    #[inline(always)]
    fn dot_add_halves(self, halves: __m512i, codes: __m512i, weights: __m512i) -> __m512i {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { _mm512_add_epi16(halves, _mm512_maddubs_epi16(codes, weights)) }
    }

    #[inline(always)]
    fn add_halves(self, sums: __m512i, halves: __m512i) -> __m512i {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { _mm512_add_epi32(sums, _mm512_madd_epi16(halves, _mm512_set1_epi16(1))) }
    }

    #[inline(always)]
    fn to_floats(self, ints: __m512i) -> __m512 {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { _mm512_cvtepi32_ps(ints) }
    }

    #[inline(always)]
    unsafe fn store_codes(self, to: *mut u8, vectors: [__m512; 4]) {
        // SAFETY: the caller vouches for the pointer, `self` for the instructions.
        unsafe {
            let [a, b, c, d] = [
                _mm512_cvtps_epi32(vectors[0]),
                _mm512_cvtps_epi32(vectors[1]),
                _mm512_cvtps_epi32(vectors[2]),
                _mm512_cvtps_epi32(vectors[3]),
            ];
            // Either step cuts what does not fit, and works within quarters, which have to be put in order.
            let bytes = _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            _mm512_storeu_si512(to.cast(), _mm512_permutexvar_epi32(order, bytes));
        }
    }

    #[inline(always)]
    fn dot_pairs(self, sums: __m512, a: __m512i, b: __m512i) -> __m512 {
        if LEVEL >= HALVES {
            // SAFETY: with these, `self` exists only on a machine with this instruction; the types have the same bits.
            return unsafe {
                _mm512_dpbf16_ps(sums, transmute::<__m512i, __m512bh>(a), transmute::<__m512i, __m512bh>(b))
            };
        }
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe {
            let upper = _mm512_set1_epi32(0xffff_0000_u32 as i32);
            let low = |pairs| _mm512_castsi512_ps(_mm512_slli_epi32::<16>(pairs));
            let high = |pairs| _mm512_castsi512_ps(_mm512_and_si512(pairs, upper));
            _mm512_fmadd_ps(high(a), high(b), _mm512_fmadd_ps(low(a), low(b), sums))
        }
    }

    #[inline(always)]
    unsafe fn store_halves(self, to: *mut u16, vector: __m512) {
        if LEVEL >= HALVES {
            // SAFETY: the caller vouches for the pointer, `self` for the instruction; the types have the same bits.
            let halves = unsafe { _mm512_cvtneps_pbh(vector) };
            // SAFETY: as above.
            return unsafe { _mm256_storeu_si256(to.cast(), transmute::<__m256bh, __m256i>(halves)) };
        }
        // SAFETY: the caller vouches for the pointer, `self` for the instructions.
        unsafe {
            let rounded = _mm512_add_epi32(_mm512_castps_si512(vector), _mm512_set1_epi32(0x8000));
            _mm256_storeu_si256(to.cast(), _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(rounded)));
        }
    }

    #[inline(always)]
    unsafe fn store_pairs(self, to: *mut u32, low: __m512, high: __m512) {
        // SAFETY: the caller vouches for the pointer, `self` for the instructions.
        unsafe {
            let half = _mm512_set1_epi32(0x8000);
            let low = _mm512_srli_epi32::<16>(_mm512_add_epi32(_mm512_castps_si512(low), half));
            let high = _mm512_add_epi32(_mm512_castps_si512(high), half);
            let upper = _mm512_set1_epi32(0xffff_0000_u32 as i32);
            _mm512_storeu_si512(to.cast(), _mm512_or_si512(low, _mm512_and_si512(high, upper)));
        }
    }

    #[inline(always)]
    fn sum(self, vector: __m512) -> f32 {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { fold!(vector, _mm256_add_ps, _mm_add_ps) }
    }

    #[inline(always)]
    fn largest(self, vector: __m512) -> f32 {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe { fold!(vector, _mm256_max_ps, _mm_max_ps) }
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

    #[inline(always)]
    fn times_power_of_two(self, x: __m512, shifted: __m512) -> __m512 {
        // SAFETY: `self` exists only on a machine with these instructions.
        unsafe {
            let exponent = _mm512_slli_epi32::<23>(_mm512_castps_si512(shifted));
            _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x), exponent))
        }
    }

    #[inline(always)]
    unsafe fn transpose8(self, from: *const f32, stride: usize, to: *mut f32, to_stride: usize) {
        // SAFETY: the caller vouches for the pointers, `self` for the instructions.
        unsafe { transpose8(from, stride, to, to_stride) }
    }
}
