//! The vector kernels, written once over a small set of vector instructions.
//!
//! [`Simd`] is the set; a value of an implementing type proves that the machine has the instructions, so
//! everything above it is safe code but for the inner loop of products, which reads by pointer. A kernel is a
//! [`Task`]: it runs inside one function compiled with the instructions enabled, into which everything is
//! inlined. That is why all functions here are `inline(always)`, and why functions to be inlined are passed as
//! types ([`elementwise::Map`]) and not as closures: a closure left out of line would lose the instructions.

#[cfg(target_arch = "x86_64")]
mod amx;
mod attention;
mod attention_matrix;
mod attention_pairs;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod elementwise;
#[cfg(test)]
pub(super) mod emulated;
mod halves;
mod int8;
mod keep_pairs;
mod matrix;
mod norm;
mod product;
mod states_attention;
mod tile;
#[cfg(target_arch = "x86_64")]
mod transpose;

#[cfg(target_arch = "x86_64")]
pub(crate) use amx::Amx;
pub(super) use attention::Attend;
pub(super) use attention_matrix::AttendByMatrix;
pub(super) use attention_pairs::AttendInPairs;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::{Avx512, BASIC, HALVES, VNNI};
pub(super) use int8::{ProductInt8, Quantise};
pub(super) use keep_pairs::KeepPairs;
#[cfg(test)]
pub(super) use matrix::MatrixUnit;
pub(super) use matrix::{ProductByMatrix, REACH as MATRIX_REACH};
pub(super) use norm::AddNorm;
pub(super) use product::Product;
pub(super) use states_attention::AttendStates;

use super::int8::Reach;

/// Most lanes of any implementation.
const MOST_LANES: usize = 16;

/// Vector instructions.
pub(super) trait Simd: Copy {
    /// A register of `LANES` values.
    type Vector: Copy;
    /// A register of `LANES` 32-bit integers, or of as many words of smaller ones.
    type Ints: Copy;
    /// How far codes and weights of 8-bit products go.
    const REACH: Reach;
    /// Values in a vector.
    const LANES: usize;
    /// Vectors side by side in a panel of packed weights.
    const PANEL_VECTORS: usize;
    /// Rows of a register tile: with a panel's vectors they fill the registers.
    const TILE_ROWS: usize;
    /// The same for 8-bit products, whose sums of 16 bits take registers as well.
    const INT8_TILE_ROWS: usize;
    /// Inputs of a panel that are used with all rows before the next ones: they should stay in a near cache.
    const DEPTH: usize;

    /// Runs a task with the instructions enabled.
    fn run<T: Task>(self, task: T);

    /// The same value in all lanes.
    fn splat(self, value: f32) -> Self::Vector;

    /// Reads a vector.
    ///
    /// # Safety
    /// `from` must be valid for reading `LANES` values.
    unsafe fn load(self, from: *const f32) -> Self::Vector;

    /// Writes a vector.
    ///
    /// # Safety
    /// `to` must be valid for writing `LANES` values.
    unsafe fn store(self, to: *mut f32, vector: Self::Vector);

    /// `a + b`
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a - b`
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a · b`
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a / b`
    fn div(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a · b + c`, rounded once
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// The larger one; `b` where one of them is NaN.
    fn max(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The smaller one; `b` where one of them is NaN.
    fn min(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `yes` where `a < b`, else `no`.
    fn select_less(
        self,
        a: Self::Vector,
        b: Self::Vector,
        yes: Self::Vector,
        no: Self::Vector,
    ) -> Self::Vector;
    /// `2^n` where the lowest bits of `shifted` hold the integer `n`, as after adding `1.5 · 2^23`.
    fn power_of_two(self, shifted: Self::Vector) -> Self::Vector;

    /// `x · 2^n` where the lowest bits of `shifted` hold the integer `n`; the result must be a normal number.
    fn times_power_of_two(self, x: Self::Vector, shifted: Self::Vector) -> Self::Vector;

    /// Transposes a block of 8 rows of 8 values.
    ///
    /// # Safety
    /// 8 rows of 8 values must be readable from `from`, `stride` apart, and writable at `to`, `to_stride`
    /// apart.
    unsafe fn transpose8(self, from: *const f32, stride: usize, to: *mut f32, to_stride: usize);

    /// Asks for the cache line of an address that will be read soon.
    fn prefetch(self, from: *const u8);

    /// The same integer in all lanes.
    fn splat_ints(self, value: i32) -> Self::Ints;

    /// Reads a vector of integers.
    ///
    /// # Safety
    /// `from` must be valid for reading `LANES` integers.
    unsafe fn load_ints(self, from: *const i32) -> Self::Ints;

    /// `a - b`
    fn sub_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// `a · b`, the low 32 bits
    fn mul_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// Adds to each lane the products of the values of its words, if the fold of `REACH` is 1.
    fn dot_add(self, sums: Self::Ints, codes: Self::Ints, weights: Self::Ints) -> Self::Ints;
    /// Adds to either half of each lane, 16 bits, the products of that half of the words, if the fold of `REACH`
    /// is not 1.
    fn dot_add_halves(self, halves: Self::Ints, codes: Self::Ints, weights: Self::Ints) -> Self::Ints;
    /// Adds to each lane the two halves of another one.
    fn add_halves(self, sums: Self::Ints, halves: Self::Ints) -> Self::Ints;
    /// The nearest floats.
    fn to_floats(self, ints: Self::Ints) -> Self::Vector;

    /// Rounds values up to 255 to the nearest integers and writes them as bytes; those below 0, and NaN, become 0.
    ///
    /// # Safety
    /// `to` must be valid for writing four times `LANES` bytes.
    unsafe fn store_codes(self, to: *mut u8, vectors: [Self::Vector; 4]);

    /// Writes the vector rounded to bfloat16; a number halfway between two goes away from 0.
    ///
    /// # Safety
    /// `to` must be valid for writing `LANES` numbers.
    #[inline(always)]
    unsafe fn store_halves(self, to: *mut u16, vector: Self::Vector) {
        for (lane, value) in self.lanes(vector)[..Self::LANES].iter().enumerate() {
            // SAFETY: the caller vouches for so many numbers.
            unsafe { *to.add(lane) = (value.to_bits().wrapping_add(0x8000) >> 16) as u16 };
        }
    }

    /// Writes pairs of the lanes of two vectors, rounded as in `store_halves`: the first in the lower half.
    ///
    /// # Safety
    /// `to` must be valid for writing `LANES` pairs.
    #[inline(always)]
    unsafe fn store_pairs(self, to: *mut u32, low: Self::Vector, high: Self::Vector) {
        let [low, high] =
            [low, high].map(|vector| self.lanes(vector).map(|x| x.to_bits().wrapping_add(0x8000)));
        for lane in 0..Self::LANES {
            // SAFETY: the caller vouches for so many pairs.
            unsafe { *to.add(lane) = low[lane] >> 16 | high[lane] & 0xffff_0000 };
        }
    }

    /// Adds to each lane the products of two pairs of bfloat16 numbers, of the lower halves first.
    #[inline(always)]
    fn dot_pairs(self, sums: Self::Vector, a: Self::Ints, b: Self::Ints) -> Self::Vector {
        let mut sums = self.lanes(sums);
        let (a, b) = (self.int_lanes(a), self.int_lanes(b));
        for (sum, (a, b)) in sums.iter_mut().zip(a.into_iter().zip(b)) {
            let float = |half: i32| f32::from_bits((half as u32) << 16);
            *sum = float(a).mul_add(float(b), *sum);
            *sum = float(a >> 16).mul_add(float(b >> 16), *sum);
        }
        self.read(&sums)
    }

    /// The first `LANES` integers of a slice.
    #[inline(always)]
    fn read_ints(self, from: &[i32]) -> Self::Ints {
        assert!(from.len() >= Self::LANES);
        // SAFETY: the slice is long enough.
        unsafe { self.load_ints(from.as_ptr()) }
    }

    /// The first `LANES` values of a slice; lanes beyond its end are 0.
    #[inline(always)]
    fn read(self, from: &[f32]) -> Self::Vector {
        if from.len() >= Self::LANES {
            // SAFETY: the slice is long enough.
            return unsafe { self.load(from.as_ptr()) };
        }
        let mut lanes = [0.0; MOST_LANES];
        lanes[..from.len()].copy_from_slice(from);
        // SAFETY: the array holds the lanes of every implementation.
        unsafe { self.load(lanes.as_ptr()) }
    }

    /// Writes the lanes that the slice has room for.
    #[inline(always)]
    fn write(self, to: &mut [f32], vector: Self::Vector) {
        if to.len() >= Self::LANES {
            // SAFETY: the slice is long enough.
            return unsafe { self.store(to.as_mut_ptr(), vector) };
        }
        let lanes = self.lanes(vector);
        to.copy_from_slice(&lanes[..to.len()]);
    }

    /// The lanes as an array; those beyond `LANES` are 0.
    #[inline(always)]
    fn lanes(self, vector: Self::Vector) -> [f32; MOST_LANES] {
        let mut lanes = [0.0; MOST_LANES];
        // SAFETY: the array holds the lanes of every implementation.
        unsafe { self.store(lanes.as_mut_ptr(), vector) };
        lanes
    }

    /// The integers as an array; those beyond `LANES` are 0.
    #[inline(always)]
    fn int_lanes(self, ints: Self::Ints) -> [i32; MOST_LANES] {
        const { assert!(size_of::<Self::Ints>() == 4 * Self::LANES) };
        let mut lanes = [0; MOST_LANES];
        // SAFETY: integers are plain numbers, as many as there are lanes, and the array holds as many.
        unsafe { std::ptr::from_ref(&ints).cast::<i32>().copy_to(lanes.as_mut_ptr(), Self::LANES) };
        lanes
    }

    /// Sum of the lanes, halving in a fixed order.
    #[inline(always)]
    fn sum(self, vector: Self::Vector) -> f32 {
        let mut lanes = self.lanes(vector);
        let mut width = Self::LANES;
        while width > 1 {
            width /= 2;
            for lane in 0..width {
                lanes[lane] += lanes[lane + width];
            }
        }
        lanes[0]
    }

    /// The largest lane.
    #[inline(always)]
    fn largest(self, vector: Self::Vector) -> f32 {
        let lanes = self.lanes(vector);
        let mut largest = lanes[0];
        for &lane in &lanes[1..Self::LANES] {
            largest = if lane > largest { lane } else { largest };
        }
        largest
    }
}

/// Values in a panel of packed weights.
pub(super) fn panel_width<S: Simd>(_simd: S) -> usize {
    S::PANEL_VECTORS * S::LANES
}

/// How far codes and weights of 8-bit products go.
pub(super) fn reach<S: Simd>(_simd: S) -> Reach {
    S::REACH
}

/// Work to be done with some set of vector instructions.
pub(super) trait Task {
    /// Does it; implementations are `inline(always)`.
    fn run<S: Simd>(self, simd: S);
}

/// Functions of a trait implementation that are one instruction each.
#[cfg(target_arch = "x86_64")]
macro_rules! instructions {
    ($kind:ident: $($name:ident($($argument:ident),*) => $instruction:ident;)*) => {$(
        #[inline(always)]
        fn $name(self, $($argument: Self::$kind),*) -> Self::$kind {
            // SAFETY: `self` exists only on a machine with these instructions.
            unsafe { $instruction($($argument),*) }
        }
    )*};
}
#[cfg(target_arch = "x86_64")]
use instructions;
