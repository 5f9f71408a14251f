//! The work of one attention call, whatever kernel does it.

use super::DistanceBias;
use crate::memory::Buffer;

/// Some queries of one sequence over all keys of that sequence.
pub(crate) struct Attention<'a> {
    /// Projected queries, `[queries][heads · width]`.
    pub(crate) queries: &'a [f32],
    /// Place of each query in the sequence.
    pub(crate) places: &'a [u32],
    /// Projected keys and values side by side, `[keys][2 · heads · width]`.
    pub(crate) keys_values: &'a [f32],
    /// Number of heads.
    pub(crate) heads: usize,
    /// Width of a head.
    pub(crate) width: usize,
    /// Addend by distance, where the model has one.
    pub(crate) bias: Option<&'a DistanceBias>,
}

impl Attention<'_> {
    pub(crate) fn hidden(&self) -> usize {
        self.heads * self.width
    }

    pub(crate) fn keys(&self) -> usize {
        self.keys_values.len() / (2 * self.hidden())
    }

    pub(crate) fn scale(&self) -> f32 {
        1.0 / (self.width as f32).sqrt()
    }
}

/// Memory of an attention call.
#[derive(Default)]
pub(crate) struct AttentionScratch {
    /// Scores of the queries at work, then their exponentials.
    pub(crate) scores: Buffer,
    /// One head's keys, packed.
    pub(crate) keys: Buffer,
    /// One head's values, packed.
    pub(crate) values: Buffer,
}

impl AttentionScratch {
    pub(crate) fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        [&self.scores, &self.keys, &self.values].into_iter()
    }
}
