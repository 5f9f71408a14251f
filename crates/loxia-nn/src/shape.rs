//! The numbers that define an encoder.

use crate::{Activation, Error, Result, Sizes};

/// Shape of an encoder of the BERT class.
///
/// ```
/// use loxia_nn::{Activation, EncoderShape};
/// let mini = EncoderShape {
///     vocab: 30522, embedding: 384, hidden: 384, layers: 6, heads: 12, intermediate: 1536,
///     positions: 512, types: 2, layer_norm_eps: 1e-12, activation: Activation::GeluErf, relative: None,
/// };
/// assert_eq!(mini.head_width(), 32);
/// mini.check().unwrap();
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderShape {
    /// Rows of the word table.
    pub vocab: usize,
    /// Width of the embedding tables; differs from `hidden` in small ELECTRA models.
    pub embedding: usize,
    /// Width of the hidden states.
    pub hidden: usize,
    /// Number of layers.
    pub layers: usize,
    /// Attention heads; they divide `hidden`.
    pub heads: usize,
    /// Width inside the feed-forward part.
    pub intermediate: usize,
    /// Rows of the position table.
    pub positions: usize,
    /// Rows of the type table; 0 when there is none.
    pub types: usize,
    /// Added to the variance in every layer norm.
    pub layer_norm_eps: f32,
    /// Activation of the feed-forward part.
    pub activation: Activation,
    /// Attention bias by distance, shared by all layers (MPNet).
    pub relative: Option<RelativeBuckets>,
}

impl EncoderShape {
    /// What decides how much it computes.
    pub fn sizes(&self) -> Sizes {
        let &EncoderShape { layers, heads, hidden, intermediate, .. } = self;
        Sizes { layers, heads, hidden, intermediate }
    }

    /// Width of one attention head.
    pub fn head_width(&self) -> usize {
        self.hidden / self.heads
    }

    /// Checks that the numbers fit together; every constructor does it too.
    pub fn check(&self) -> Result<()> {
        let sizes = [
            ("vocab", self.vocab),
            ("embedding", self.embedding),
            ("hidden", self.hidden),
            ("heads", self.heads),
            ("intermediate", self.intermediate),
            ("positions", self.positions),
        ];
        if let Some((name, _)) = sizes.iter().find(|(_, size)| *size == 0) {
            return Err(Error::Shape(format!("{name} is 0")));
        }
        if !self.hidden.is_multiple_of(self.heads) {
            return Err(Error::Shape(format!(
                "hidden width {} is not divisible by {} heads",
                self.hidden, self.heads
            )));
        }
        if !(self.layer_norm_eps >= 0.0 && self.layer_norm_eps.is_finite()) {
            return Err(Error::Shape(format!("layer_norm_eps is {}", self.layer_norm_eps)));
        }
        match self.relative {
            Some(relative) => relative.check(),
            None => Ok(()),
        }
    }
}

/// Buckets of key-query distances as in T5 and MPNet: half of them for each direction; near distances have
/// their own, far ones share logarithmic bins, and all beyond `max_distance` share the last.
///
/// ```
/// let relative = loxia_nn::RelativeBuckets { buckets: 32, max_distance: 128 };
/// assert_eq!(relative.bucket(0), 0);
/// assert_eq!(relative.bucket(-3), 3);
/// assert_eq!(relative.bucket(3), 16 + 3);
/// assert_eq!(relative.bucket(100_000), 31);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelativeBuckets {
    /// Number of buckets, 32 in the published models.
    pub buckets: usize,
    /// Distance from which on the last bucket is used, 128 in the published models.
    pub max_distance: usize,
}

impl RelativeBuckets {
    fn check(self) -> Result<()> {
        let exact = self.buckets / 4;
        if exact == 0 || self.max_distance <= exact {
            return Err(Error::Shape(format!(
                "{} relative buckets up to distance {}: at least 4 buckets and a distance above a quarter of \
                 them are needed",
                self.buckets, self.max_distance
            )));
        }
        Ok(())
    }

    /// Bucket of a distance `key - query`.
    ///
    /// Each step rounds to `f32` as PyTorch does, since at powers of two the logarithm decides by one bit.
    pub fn bucket(self, distance: i64) -> usize {
        let half = self.buckets / 2;
        let exact = half / 2;
        let direction = if distance > 0 { half } else { 0 };
        let magnitude = distance.unsigned_abs();
        if magnitude < exact as u64 {
            return direction + magnitude as usize;
        }
        // The logarithm itself is taken in f64 and rounded once: that is what a correctly rounded f32
        // logarithm gives, without depending on the system's.
        let ratio = magnitude as f32 / exact as f32;
        let log = f64::from(ratio).ln() as f32;
        let range = (self.max_distance as f64 / exact as f64).ln() as f32;
        let bin = (log / range * (half - exact) as f32) as usize;
        direction + (exact + bin).min(half - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_shapes_are_named() {
        let good = EncoderShape {
            vocab: 10,
            embedding: 4,
            hidden: 4,
            layers: 1,
            heads: 2,
            intermediate: 8,
            positions: 8,
            types: 0,
            layer_norm_eps: 1e-12,
            activation: Activation::GeluErf,
            relative: None,
        };
        good.check().unwrap();
        let message = |shape: EncoderShape| shape.check().unwrap_err().to_string();
        assert!(message(EncoderShape { heads: 3, ..good.clone() }).contains("not divisible by 3 heads"));
        assert!(message(EncoderShape { heads: 0, ..good.clone() }).contains("heads is 0"));
        assert!(message(EncoderShape { layer_norm_eps: f32::NAN, ..good.clone() }).contains("NaN"));
        let relative = Some(RelativeBuckets { buckets: 3, max_distance: 128 });
        assert!(message(EncoderShape { relative, ..good }).contains("3 relative buckets"));
    }
}
