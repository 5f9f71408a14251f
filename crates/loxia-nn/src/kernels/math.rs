//! Elementary functions of one `f32`, from which the portable kernel is made, and the coefficients that the
//! vector kernels share with them.
//!
//! All are branch-free polynomials, so that loops over them vectorise and no result depends on the system's
//! libm. The coefficients are minimax fits; measured against `f64`:
//!
//! | function | error | how |
//! |---|---|---|
//! | `exp` | 1.2e-7, relative | `2^n · p(r)`, `r` in ±ln 2 / 2; below -87.3 it is 0 |
//! | `Φ` | 2e-7, absolute | `1/2 + x · P(x²) / Q(x²)` |
//! | `Φ`, short | 2e-4 of GELU, absolute | `1/2 + x · P(x²)` within ±4 |
//! | `tanh` | 3e-7, relative | odd polynomial below 0.625, else `1 - 2 / (exp(2x) + 1)` |
//!
//! `Φ` makes GELU, with the absolute error of `0.5 x (1 + erf)` in `f32`, the form of PyTorch.

/// Below it `exp` is 0 (the result would be subnormal).
pub(crate) const EXP_LOWEST: f32 = -87.3;
/// Above it `exp` stays at its value here, just under the largest `f32`.
pub(crate) const EXP_HIGHEST: f32 = 88.37;
/// `1 / ln 2`.
pub(crate) const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// `ln 2` in two parts; the first has few bits, so that `n · LN2_HIGH` is exact.
pub(crate) const LN2_HIGH: f32 = 0.693_359_4;
/// See [`LN2_HIGH`].
pub(crate) const LN2_LOW: f32 = -2.121_944_4e-4;
/// `(exp(r) - 1 - r) / r²`, lowest power first.
pub(crate) const EXP: [f32; 5] = [0.499_999_94, 0.166_665_21, 0.041_668_39, 0.008_368_716, 0.001_381_457_1];

/// Where the fraction of [`PHI_ABOVE`] and [`PHI_BELOW`] has passed 1/2 on every kernel; beyond 5.4 the normal
/// distribution function is 1 in single precision.
pub(crate) const PHI_REACH: f32 = 5.7;
/// Numerator of `(Φ(x) - 1/2) / x` in powers of `x²`, lowest first.
pub(crate) const PHI_ABOVE: [f32; 6] =
    [0.398_942_23, 0.033_852_97, 0.004_677_278_5, 1.688_287e-4, 6.352_112_5e-6, 2.274_897_6e-8];
/// Its denominator.
pub(crate) const PHI_BELOW: [f32; 6] =
    [1.0, 0.251_522_72, 0.028_646_052, 0.001_884_461_8, 7.364_834e-5, 1.197_492_2e-6];

/// Where the short `Φ` is 1.
pub(crate) const PHI_SHORT_REACH: f32 = 4.0;
/// `(Φ(x) - 1/2) / x` in powers of `x²`, lowest first, for what is rounded to 8 bits afterwards: without a division,
/// which would take as long as all the rest.
pub(crate) const PHI_SHORT: [f32; 7] = [
    0.397_883_4,
    -0.064_573_11,
    0.008_772_379,
    -8.140_132_4e-4,
    4.795_528_8e-5,
    -1.598_591_2e-6,
    2.278_123_5e-8,
];

/// `(2^f - 1) / f` for `f` in ±1/2, lowest power first.
#[cfg(any(test, target_arch = "x86_64"))]
#[expect(clippy::approx_constant, reason = "a minimax fit: near ln 2, and not ln 2")]
pub(crate) const EXP2: [f32; 5] = [0.693_147, 0.240_222_42, 0.055_507_336, 0.009_671_513, 0.001_326_472_4];

/// The same to 1e-4, for what is rounded to bfloat16 afterwards.
#[cfg(any(test, target_arch = "x86_64"))]
pub(crate) const EXP2_SHORT: [f32; 3] = [0.693_282_9, 0.242_210_97, 0.055_008_937];

/// Where `tanh` leaves its polynomial.
pub(crate) const TANH_SPLIT: f32 = 0.625;
/// `(tanh(x) - x) / x³` in powers of `x²`, lowest first.
pub(crate) const TANH: [f32; 5] = [-0.333_332_6, 0.133_308_29, -0.053_687_975, 0.020_469_258, -0.005_514_985];

/// `sqrt(2/π)`, of GELU's tanh form.
pub(crate) const GELU_TANH_SCALE: f32 = 0.797_884_6;
/// The cubic coefficient of GELU's tanh form.
pub(crate) const GELU_TANH_CUBIC: f32 = 0.044_715;
/// The slope of the quick GELU.
pub(crate) const GELU_QUICK_SLOPE: f32 = 1.702;

/// `c[0] + c[1] x + c[2] x² + ...`
#[inline(always)]
fn polynomial<const N: usize>(coefficients: [f32; N], x: f32) -> f32 {
    coefficients.iter().rev().fold(0.0, |sum, &c| sum * x + c)
}

#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Adding and subtracting 1.5 · 2^23 rounds to the nearest integer without a call.
    const ROUND: f32 = 12_582_912.0;
    let clamped = x.clamp(EXP_LOWEST, EXP_HIGHEST);
    let shifted = clamped * LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (clamped - n * LN2_HIGH) - n * LN2_LOW;
    let mantissa = 1.0 + (r + r * r * polynomial(EXP, r));
    // The low bits of the shifted sum are n already; biased and moved up they are the exponent of 2^n.
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    // NaN passes: clamp keeps it, and the comparison is false for it.
    if x < EXP_LOWEST { 0.0 } else { mantissa * power }
}

#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let t = x.abs();
    let square = x * x;
    let near = x + x * square * polynomial(TANH, square);
    let far = (1.0 - 2.0 / (exp(t + t) + 1.0)).copysign(x);
    if t < TANH_SPLIT { near } else { far }
}

#[inline(always)]
pub(crate) fn gelu_erf(x: f32) -> f32 {
    let z = x.clamp(-PHI_REACH, PHI_REACH);
    let square = z * z;
    let above_half = z * polynomial(PHI_ABOVE, square) / polynomial(PHI_BELOW, square);
    x * (0.5 + above_half.clamp(-0.5, 0.5))
}

/// The same to 2e-4.
#[inline(always)]
pub(crate) fn gelu_short(x: f32) -> f32 {
    let z = x.clamp(-PHI_SHORT_REACH, PHI_SHORT_REACH);
    let share = 0.5 + z * polynomial(PHI_SHORT, z * z);
    // Not `max`, which would hide NaN.
    x * if share < 0.0 { 0.0 } else { share }
}

#[inline(always)]
pub(crate) fn gelu_tanh(x: f32) -> f32 {
    // 0.5 (1 + tanh z) is σ(2z).
    let z = GELU_TANH_SCALE * (x + GELU_TANH_CUBIC * x * x * x);
    x * sigmoid(z + z)
}

#[inline(always)]
pub(crate) fn gelu_quick(x: f32) -> f32 {
    x * sigmoid(GELU_QUICK_SLOPE * x)
}

#[inline(always)]
pub(crate) fn relu(x: f32) -> f32 {
    // Not `max`: that would turn NaN into 0 and hide a broken model.
    if x < 0.0 { 0.0 } else { x }
}

#[inline(always)]
pub(crate) fn silu(x: f32) -> f32 {
    x * sigmoid(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(from: f32, to: f32) -> impl Iterator<Item = f32> {
        (0..=40_000).map(move |i| from + (to - from) * (i as f32 / 40_000.0))
    }

    #[test]
    fn exp_is_accurate_and_ends_well() {
        for x in grid(-87.2, 88.3) {
            let error = f64::from(exp(x)) / f64::from(x).exp() - 1.0;
            assert!(error.abs() < 1.5e-7, "exp({x}): {error:e}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-100.0), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert!(exp(1000.0).is_finite());
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn tanh_and_sigmoid_are_accurate() {
        for x in grid(-12.0, 12.0) {
            let exact = f64::from(x).tanh();
            assert!((f64::from(tanh(x)) - exact).abs() <= 3e-7 * exact.abs(), "tanh({x})");
            let exact = 1.0 / (1.0 + (-f64::from(x)).exp());
            assert!((f64::from(sigmoid(x)) / exact - 1.0).abs() < 3e-7, "sigmoid({x})");
        }
        assert_eq!((tanh(1e9), tanh(-1e9), tanh(0.0)), (1.0, -1.0, 0.0));
        assert!(sigmoid(1e9) == 1.0 && sigmoid(-1e9) < 1e-37);
    }

    #[test]
    fn the_short_gelu_is_near_the_long_one() {
        for x in grid(-12.0, 12.0) {
            let (short, long) = (gelu_short(x), gelu_erf(x));
            assert!((short - long).abs() < 2e-4, "{x}: {short}, {long}");
        }
        assert_eq!((gelu_short(0.0), gelu_short(-1e6)), (0.0, 0.0));
        assert!((gelu_short(1e6) / 1e6 - 1.0).abs() < 2e-5);
    }

    #[test]
    fn infinite_and_missing_values_pass_through_gelu() {
        assert_eq!(gelu_erf(50.0), 50.0);
        assert_eq!(gelu_erf(-50.0), 0.0);
        assert_eq!(gelu_erf(0.0), 0.0);
        for function in [gelu_erf, gelu_short, gelu_tanh, gelu_quick, relu, silu, tanh, sigmoid] {
            assert!(function(f32::NAN).is_nan());
        }
    }
}
