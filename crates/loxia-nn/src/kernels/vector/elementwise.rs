//! Elementary functions of a vector: the formulas and coefficients of [`math`], with fused multiply-adds.

use super::Simd;
use crate::Activation;
use crate::kernels::math;

/// A function of one value, lane by lane.
pub(super) trait Map: Copy {
    /// The function; implementations are `inline(always)`.
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector;
}

#[inline(always)]
fn polynomial<S: Simd, const N: usize>(simd: S, coefficients: [f32; N], x: S::Vector) -> S::Vector {
    let mut sum = simd.splat(coefficients[N - 1]);
    for power in (0..N - 1).rev() {
        sum = simd.mul_add(sum, x, simd.splat(coefficients[power]));
    }
    sum
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

/// `2^x` for `x` up to 127; below -126 it stays at the smallest normal number.
#[inline(always)]
pub(super) fn exp2<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    let round = simd.splat(12_582_912.0);
    // The constant comes first, so that NaN comes out.
    let clamped = simd.max(simd.splat(-126.0), x);
    let shifted = simd.add(clamped, round);
    let fraction = simd.sub(clamped, simd.sub(shifted, round));
    let rest = polynomial(simd, math::EXP2, fraction);
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
        let reach = simd.splat(math::PHI_REACH);
        // The constants come first, so that NaN comes out of both.
        let z = simd.min(reach, simd.max(simd.splat(-math::PHI_REACH), x));
        let square = simd.mul(z, z);
        let above = simd.mul(z, polynomial(simd, math::PHI_ABOVE, square));
        let above_half = simd.div(above, polynomial(simd, math::PHI_BELOW, square));
        let half = simd.splat(0.5);
        let above_half = simd.min(half, simd.max(simd.splat(-0.5), above_half));
        simd.mul(x, simd.add(half, above_half))
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

/// Applies an activation to `columns` of every row.
#[inline(always)]
pub(super) fn activate<S: Simd>(
    simd: S,
    activation: Activation,
    data: &mut [f32],
    row_width: usize,
    columns: std::ops::Range<usize>,
) {
    match activation {
        Activation::GeluErf => each(simd, GeluErf, data, row_width, columns),
        Activation::GeluTanh => each(simd, GeluTanh, data, row_width, columns),
        Activation::GeluQuick => {
            each(simd, Gated { slope: math::GELU_QUICK_SLOPE }, data, row_width, columns);
        }
        Activation::Relu => each(simd, Relu, data, row_width, columns),
        Activation::Silu => each(simd, Gated { slope: 1.0 }, data, row_width, columns),
        Activation::Tanh => each(simd, Tanh, data, row_width, columns),
        Activation::Sigmoid => each(simd, Sigmoid, data, row_width, columns),
        Activation::Identity => {}
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
    for row in data.chunks_exact_mut(row_width) {
        // Whole vectors by themselves: of them nobody need ask how long they are.
        let mut vectors = row[columns.clone()].chunks_exact_mut(S::LANES);
        for values in &mut vectors {
            let mapped = map.of(simd, simd.read(values));
            simd.write(values, mapped);
        }
        let rest = vectors.into_remainder();
        if !rest.is_empty() {
            let mapped = map.of(simd, simd.read(rest));
            simd.write(rest, mapped);
        }
    }
}
