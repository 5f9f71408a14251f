//! The vector kernels, written once over a small set of vector instructions.
//!
//! [`Simd`] is the set; a value of an implementing type proves that the machine has the instructions, so
//! everything above it is safe code but for the inner loop of products, which reads by pointer. A kernel is a
//! [`Task`]: it runs inside one function compiled with the instructions enabled, into which everything is
//! inlined. That is why all functions here are `inline(always)`, and why functions to be inlined are passed as
//! types ([`elementwise::Map`]) and not as closures: a closure left out of line would lose the instructions.

mod attention;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod elementwise;
#[cfg(test)]
pub(super) mod emulated;
mod norm;
mod product;
mod tile;

pub(super) use attention::Attend;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
pub(super) use norm::AddNorm;
pub(super) use product::Product;

/// Most lanes of any implementation.
const MOST_LANES: usize = 16;

/// Vector instructions.
pub(super) trait Simd: Copy {
    /// A register of `LANES` values.
    type Vector: Copy;
    /// Values in a vector.
    const LANES: usize;
    /// Vectors side by side in a panel of packed weights.
    const PANEL_VECTORS: usize;
    /// Rows of a register tile: with a panel's vectors they fill the registers.
    const TILE_ROWS: usize;
    /// Inputs of a panel that stay in the first cache together with a tile's rows.
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
pub(super) fn panel_width<S: Simd>() -> usize {
    S::PANEL_VECTORS * S::LANES
}

/// Work to be done with some set of vector instructions.
pub(super) trait Task {
    /// Does it; implementations are `inline(always)`.
    fn run<S: Simd>(self, simd: S);
}

/// Functions of a trait implementation that are one instruction each.
#[cfg(target_arch = "x86_64")]
macro_rules! instructions {
    ($($name:ident($($argument:ident),*) => $instruction:ident;)*) => {$(
        #[inline(always)]
        fn $name(self, $($argument: Self::Vector),*) -> Self::Vector {
            // SAFETY: `self` exists only on a machine with these instructions.
            unsafe { $instruction($($argument),*) }
        }
    )*};
}
#[cfg(target_arch = "x86_64")]
use instructions;
