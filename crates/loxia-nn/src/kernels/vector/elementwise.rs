//! Elementary functions of a vector: the formulas and coefficients of [`math`], with fused multiply-adds.

use super::Simd;
use crate::Activation;
use crate::kernels::math;

/// Rows that go through a formula together, step by step: one after the other, each step would wait for the one
/// before it.
const TOGETHER: usize = 3;

/// A function of one value, lane by lane.
pub(super) trait Map: Copy {
    /// The function; implementations are `inline(always)`.
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector;

    /// The function of some vectors, the same for each.
    #[inline(always)]
    fn of_all<S: Simd, const N: usize>(self, simd: S, mut x: [S::Vector; N]) -> [S::Vector; N] {
        for x in &mut x {
            *x = self.of(simd, *x);
        }
        x
    }
}

#[inline(always)]
fn polynomial<S: Simd, const TERMS: usize>(simd: S, coefficients: [f32; TERMS], x: S::Vector) -> S::Vector {
    polynomials(simd, coefficients, [x])[0]
}

#[inline(always)]
fn polynomials<S: Simd, const TERMS: usize, const N: usize>(
    simd: S,
    coefficients: [f32; TERMS],
    x: [S::Vector; N],
) -> [S::Vector; N] {
    let mut sums = [simd.splat(coefficients[TERMS - 1]); N];
    for power in (0..TERMS - 1).rev() {
        for (sum, &x) in sums.iter_mut().zip(&x) {
            *sum = simd.mul_add(*sum, x, simd.splat(coefficients[power]));
        }
    }
    sums
}

#[inline(always)]
pub(super) fn exp<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    let round = simd.splat(12_582_912.0);
    let lowest = simd.splat(math::EXP_LOWEST);
    // The constants come first, so that NaN comes out of both.
    let clamped = simd.min(simd.splat(math::EXP_HIGHEST), simd.max(lowest, x));
    let shifted = simd.mul_add(clamped, simd.splat(math::LOG2_E), round);
    let n = simd.sub(shifted, round);
    let r = simd.mul_add(n, simd.splat(-math::LN2_HIGH), clamped);
    let r = simd.mul_add(n, simd.splat(-math::LN2_LOW), r);
    let rest = simd.mul_add(simd.mul(r, r), polynomial(simd, math::EXP, r), r);
    let power = simd.power_of_two(shifted);
    let result = simd.mul_add(rest, power, power);
    simd.select_less(x, lowest, simd.splat(0.0), result)
}

/// `2^x` for `x` up to 127; below -100 it stays as it is there. Smaller ones would be nothing beside a 1 either, and their
/// products with other numbers would be denormal, for which some processors take a hundred times as long.
#[inline(always)]
pub(super) fn exp2<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    exp2_by(simd, math::EXP2, x)
}

/// The same to 1e-4.
#[inline(always)]
pub(super) fn short_exp2<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    exp2_by(simd, math::EXP2_SHORT, x)
}

#[inline(always)]
fn exp2_by<S: Simd, const TERMS: usize>(simd: S, terms: [f32; TERMS], x: S::Vector) -> S::Vector {
    let round = simd.splat(12_582_912.0);
    // The constant comes first, so that NaN comes out.
    let clamped = simd.max(simd.splat(-100.0), x);
    let shifted = simd.add(clamped, round);
    let fraction = simd.sub(clamped, simd.sub(shifted, round));
    let rest = polynomial(simd, terms, fraction);
    simd.times_power_of_two(simd.mul_add(rest, fraction, simd.splat(1.0)), shifted)
}

#[inline(always)]
fn magnitude<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    simd.max(simd.sub(simd.splat(0.0), x), x)
}

#[derive(Clone, Copy)]
struct Sigmoid;

impl Map for Sigmoid {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector {
        let one = simd.splat(1.0);
        simd.div(one, simd.add(one, exp(simd, simd.sub(simd.splat(0.0), x))))
    }
}

#[derive(Clone, Copy)]
struct Tanh;

impl Map for Tanh {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector {
        let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
        let t = magnitude(simd, x);
        let square = simd.mul(x, x);
        let near = simd.mul_add(simd.mul(x, square), polynomial(simd, math::TANH, square), x);
        let ratio = simd.div(simd.splat(2.0), simd.add(exp(simd, simd.add(t, t)), one));
        let far = simd.sub(one, ratio);
        let far = simd.select_less(x, zero, simd.sub(zero, far), far);
        simd.select_less(t, simd.splat(math::TANH_SPLIT), near, far)
    }
}

#[derive(Clone, Copy)]
struct GeluErf;

impl Map for GeluErf {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector {
        self.of_all(simd, [x])[0]
    }

    #[inline(always)]
    fn of_all<S: Simd, const N: usize>(self, simd: S, mut x: [S::Vector; N]) -> [S::Vector; N] {
        let (reach, half) = (simd.splat(math::PHI_REACH), simd.splat(0.5));
        let mut z = x;
        let mut squares = x;
        for (z, square) in z.iter_mut().zip(&mut squares) {
            // The constants come first, so that NaN comes out of both.
            *z = simd.min(reach, simd.max(simd.splat(-math::PHI_REACH), *z));
            *square = simd.mul(*z, *z);
        }
        let above = polynomials(simd, math::PHI_ABOVE, squares);
        let below = polynomials(simd, math::PHI_BELOW, squares);
        for (index, x) in x.iter_mut().enumerate() {
            let above_half = simd.div(simd.mul(z[index], above[index]), below[index]);
            let above_half = simd.min(half, simd.max(simd.splat(-0.5), above_half));
            *x = simd.mul(*x, simd.add(half, above_half));
        }
        x
    }
}

/// The same to 2e-4.
#[derive(Clone, Copy)]
pub(super) struct GeluShort;

impl Map for GeluShort {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector {
        self.of_all(simd, [x])[0]
    }

    #[inline(always)]
    fn of_all<S: Simd, const N: usize>(self, simd: S, mut x: [S::Vector; N]) -> [S::Vector; N] {
        let reach = simd.splat(math::PHI_SHORT_REACH);
        let mut z = x;
        let mut squares = x;
        for (z, square) in z.iter_mut().zip(&mut squares) {
            // The constants come first, so that NaN comes out of both.
            *z = simd.min(reach, simd.max(simd.splat(-math::PHI_SHORT_REACH), *z));
            *square = simd.mul(*z, *z);
        }
        let above = polynomials(simd, math::PHI_SHORT, squares);
        for (index, x) in x.iter_mut().enumerate() {
            let share = simd.mul_add(z[index], above[index], simd.splat(0.5));
            *x = simd.mul(*x, simd.max(simd.splat(0.0), share));
        }
        x
    }
}

#[derive(Clone, Copy)]
struct GeluTanh;

impl Map for GeluTanh {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector {
        let cube = simd.mul(simd.mul(x, x), x);
        let z = simd.mul_add(simd.splat(math::GELU_TANH_CUBIC), cube, x);
        let z = simd.mul(simd.splat(math::GELU_TANH_SCALE), z);
        simd.mul(x, Sigmoid.of(simd, simd.add(z, z)))
    }
}

/// `x σ(slope · x)`: SiLU and the quick GELU.
#[derive(Clone, Copy)]
struct Gated {
    slope: f32,
}

impl Map for Gated {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector {
        simd.mul(x, Sigmoid.of(simd, simd.mul(simd.splat(self.slope), x)))
    }
}

#[derive(Clone, Copy)]
struct Relu;

impl Map for Relu {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector {
        let zero = simd.splat(0.0);
        simd.select_less(x, zero, zero, x)
    }
}

/// The values themselves.
#[derive(Clone, Copy)]
pub(super) struct Same;

impl Map for Same {
    #[inline(always)]
    fn of<S: Simd>(self, _simd: S, x: S::Vector) -> S::Vector {
        x
    }
}

/// Something to be done with whatever function an activation is.
pub(super) trait WithMap {
    /// Does it; implementations are `inline(always)`.
    fn run(self, map: impl Map);
}

/// Does something with the function of an activation.
#[inline(always)]
pub(super) fn with_map(activation: Activation, work: impl WithMap) {
    match activation {
        Activation::GeluErf => work.run(GeluErf),
        Activation::GeluTanh => work.run(GeluTanh),
        Activation::GeluQuick => work.run(Gated { slope: math::GELU_QUICK_SLOPE }),
        Activation::Relu => work.run(Relu),
        Activation::Silu => work.run(Gated { slope: 1.0 }),
        Activation::Tanh => work.run(Tanh),
        Activation::Sigmoid => work.run(Sigmoid),
        Activation::Identity => work.run(Same),
    }
}

/// The same, of an 8-bit model, whose numbers are rounded to 8 bits afterwards.
#[inline(always)]
pub(super) fn with_short_map(activation: Activation, work: impl WithMap) {
    match activation {
        Activation::GeluErf => work.run(GeluShort),
        other => with_map(other, work),
    }
}

/// Applies an activation to `columns` of every row, as an 8-bit model does.
#[inline(always)]
pub(super) fn activate_short<S: Simd>(
    simd: S,
    activation: Activation,
    data: &mut [f32],
    row_width: usize,
    columns: std::ops::Range<usize>,
) {
    if activation != Activation::Identity {
        with_short_map(activation, Each { simd, data, row_width, columns });
    }
}

/// Applies an activation to `columns` of every row.
#[inline(always)]
pub(super) fn activate<S: Simd>(
    simd: S,
    activation: Activation,
    data: &mut [f32],
    row_width: usize,
    columns: std::ops::Range<usize>,
) {
    if activation != Activation::Identity {
        with_map(activation, Each { simd, data, row_width, columns });
    }
}

struct Each<'a, S> {
    simd: S,
    data: &'a mut [f32],
    row_width: usize,
    columns: std::ops::Range<usize>,
}

impl<S: Simd> WithMap for Each<'_, S> {
    #[inline(always)]
    fn run(self, map: impl Map) {
        each(self.simd, map, self.data, self.row_width, self.columns);
    }
}

#[inline(always)]
fn each<S: Simd>(
    simd: S,
    map: impl Map,
    data: &mut [f32],
    row_width: usize,
    columns: std::ops::Range<usize>,
) {
    let mut groups = data.chunks_exact_mut(TOGETHER * row_width);
    for rows in &mut groups {
        each_of::<S, TOGETHER>(simd, map, rows, row_width, columns.clone());
    }
    for row in groups.into_remainder().chunks_exact_mut(row_width) {
        each_of::<S, 1>(simd, map, row, row_width, columns.clone());
    }
}

/// The same for `N` rows.
#[inline(always)]
fn each_of<S: Simd, const N: usize>(
    simd: S,
    map: impl Map,
    rows: &mut [f32],
    row_width: usize,
    columns: std::ops::Range<usize>,
) {
    assert!(columns.end <= row_width && rows.len() >= N * row_width);
    let whole = columns.len() - columns.len() % S::LANES;
    for column in (columns.start..columns.start + whole).step_by(S::LANES) {
        let mut values = [simd.splat(0.0); N];
        for (row, value) in values.iter_mut().enumerate() {
            // SAFETY: row < N, and a whole vector of the row's columns is left: the assertion covers both.
            *value = unsafe { simd.load(rows.as_ptr().add(row * row_width + column)) };
        }
        for (row, value) in map.of_all(simd, values).into_iter().enumerate() {
            // SAFETY: as for reading.
            unsafe { simd.store(rows.as_mut_ptr().add(row * row_width + column), value) };
        }
    }
    if whole < columns.len() {
        for row in rows.chunks_exact_mut(row_width) {
            let rest = &mut row[columns.start + whole..columns.end];
            let mapped = map.of(simd, simd.read(rest));
            simd.write(rest, mapped);
        }
    }
}
