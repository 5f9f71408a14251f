//! Activation functions.

use crate::kernels::math;

/// An activation function, applied element by element.
///
/// ```
/// use loxia_nn::Activation;
/// assert_eq!(Activation::Relu.apply(-2.0), 0.0);
/// assert!((Activation::GeluErf.apply(1.0) - 0.841_344_75).abs() < 1e-6);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activation {
    /// `x Φ(x)` with the error function: what most model files call `gelu`.
    GeluErf,
    /// GELU by its tanh approximation: `gelu_new`, `gelu_pytorch_tanh`.
    GeluTanh,
    /// `x σ(1.702 x)`: `quick_gelu`.
    GeluQuick,
    /// `max(x, 0)`.
    Relu,
    /// `x σ(x)`: `silu`, `swish`.
    Silu,
    /// Hyperbolic tangent.
    Tanh,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `x` itself.
    Identity,
}

// One loop for each function, so that each can be vectorised by the compiler.
#[inline(always)]
fn each(values: &mut [f32], function: impl Fn(f32) -> f32) {
    values.iter_mut().for_each(|value| *value = function(*value));
}

impl Activation {
    /// All of them, for tests and listings.
    pub const ALL: [Activation; 8] = [
        Activation::GeluErf,
        Activation::GeluTanh,
        Activation::GeluQuick,
        Activation::Relu,
        Activation::Silu,
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::Identity,
    ];

    /// The function's name.
    pub fn name(self) -> &'static str {
        match self {
            Activation::GeluErf => "gelu",
            Activation::GeluTanh => "gelu_tanh",
            Activation::GeluQuick => "gelu_quick",
            Activation::Relu => "relu",
            Activation::Silu => "silu",
            Activation::Tanh => "tanh",
            Activation::Sigmoid => "sigmoid",
            Activation::Identity => "identity",
        }
    }

    /// The function of one value, with the portable kernel's bits.
    pub fn apply(self, x: f32) -> f32 {
        match self {
            Activation::GeluErf => math::gelu_erf(x),
            Activation::GeluTanh => math::gelu_tanh(x),
            Activation::GeluQuick => math::gelu_quick(x),
            Activation::Relu => math::relu(x),
            Activation::Silu => math::silu(x),
            Activation::Tanh => math::tanh(x),
            Activation::Sigmoid => math::sigmoid(x),
            Activation::Identity => x,
        }
    }

    /// The same as an 8-bit model does it.
    pub(crate) fn apply_short(self, values: &mut [f32]) {
        match self {
            Activation::GeluErf => each(values, math::gelu_short),
            other => other.apply_slice(values),
        }
    }

    /// Applies the function to every value, in place, with the portable kernel's bits.
    pub fn apply_slice(self, values: &mut [f32]) {
        match self {
            Activation::GeluErf => each(values, math::gelu_erf),
            Activation::GeluTanh => each(values, math::gelu_tanh),
            Activation::GeluQuick => each(values, math::gelu_quick),
            Activation::Relu => each(values, math::relu),
            Activation::Silu => each(values, math::silu),
            Activation::Tanh => each(values, math::tanh),
            Activation::Sigmoid => each(values, math::sigmoid),
            Activation::Identity => {}
        }
    }
}
