//! Attention bias by distance, laid out for the inner loop.

use crate::RelativeBuckets;

/// For each head the bias of every distance `key - query`, in order of distance, so that the biases of all
/// keys for one query are one slice.
pub(crate) struct DistanceBias {
    /// `[heads][2 reach - 1]`, distance 0 in the middle.
    table: Vec<f32>,
    reach: usize,
}

impl DistanceBias {
    /// Spreads `bias`, `[buckets][heads]`, over the distances of sequences of up to `reach` tokens.
    pub(crate) fn new(relative: RelativeBuckets, bias: &[f32], heads: usize, reach: usize) -> Self {
        let furthest = reach as i64 - 1;
        let buckets: Vec<usize> = (-furthest..=furthest).map(|distance| relative.bucket(distance)).collect();
        let table = (0..heads)
            .flat_map(|head| buckets.iter().map(move |bucket| bias[bucket * heads + head]))
            .collect();
        DistanceBias { table, reach }
    }

    /// Longest sequence it can serve.
    pub(crate) fn reach(&self) -> usize {
        self.reach
    }

    /// Biases of keys `0..keys` for the query at place `query` of the same sequence.
    pub(crate) fn row(&self, head: usize, query: usize, keys: usize) -> &[f32] {
        let distances = 2 * self.reach - 1;
        &self.table[head * distances..][..distances][self.reach - 1 - query..][..keys]
    }
}
