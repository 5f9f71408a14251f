//! Attention of few queries over the states of a sequence themselves, in the place of keys and values made of them:
//! the work, whatever kernel does it, and its plain twin.
//!
//! A query that was taken through its head's key map backwards is multiplied with states; the states' sum by the shares
//! that come out of it goes through the value map afterwards (`encoder/few_rows.rs`).

use super::DistanceBias;
use super::reference::{dot, exponentials};
use crate::memory::Buffer;

/// Some queries of one sequence over all its states.
pub(crate) struct StatesAttention<'a> {
    /// `[heads][hidden]` for each query: those of a head side by side, heads so far apart.
    pub(crate) queries: &'a [f32],
    pub(crate) between_heads: usize,
    pub(crate) heads: usize,
    pub(crate) hidden: usize,
    /// Place of each query in the sequence.
    pub(crate) places: &'a [u32],
    /// States of the sequence in order, in pieces of whole rows.
    pub(crate) states: &'a [&'a [f32]],
    /// What scores are multiplied with.
    pub(crate) scale: f32,
    /// Addend by distance, where the model has one.
    pub(crate) bias: Option<&'a DistanceBias>,
}

impl<'a> StatesAttention<'a> {
    /// How many pairs of a head and a query there are.
    pub(super) fn rows(&self) -> usize {
        self.heads * self.places.len()
    }

    /// The head of such a row, and which query it is.
    pub(super) fn of_row(&self, row: usize) -> (usize, usize) {
        (row / self.places.len(), row % self.places.len())
    }

    /// Where a row lies among queries, and in the output.
    pub(super) fn start(&self, row: usize) -> usize {
        let (head, query) = self.of_row(row);
        head * self.between_heads + query * self.hidden
    }

    /// Number of states.
    pub(super) fn count(&self) -> usize {
        self.states.iter().map(|piece| piece.len() / self.hidden).sum()
    }

    /// The states one by one.
    pub(super) fn each_state(&self) -> impl Iterator<Item = &'a [f32]> {
        self.states.iter().flat_map(|piece| piece.chunks_exact(self.hidden))
    }

    /// What is added to the scores of a row, where the model has it.
    pub(super) fn bias_of(&self, row: usize, count: usize) -> Option<&'a [f32]> {
        let (head, query) = self.of_row(row);
        self.bias.map(|bias| bias.row(head, self.places[query] as usize, count))
    }
}

/// Plain twin of the kernels', and the portable one; `out` is laid out as the queries are.
pub(super) fn attend_states(work: &StatesAttention<'_>, scores: &mut Buffer, out: &mut [f32]) {
    let count = work.count();
    let scores = scores.sized(count);
    for row in 0..work.rows() {
        let places = work.start(row)..work.start(row) + work.hidden;
        let query = &work.queries[places.clone()];
        for (score, state) in scores.iter_mut().zip(work.each_state()) {
            *score = dot(query, state) * work.scale;
        }
        if let Some(bias) = work.bias_of(row, count) {
            scores.iter_mut().zip(bias).for_each(|(score, bias)| *score += bias);
        }
        let inverse = 1.0 / exponentials(scores);
        let out = &mut out[places];
        out.fill(0.0);
        for (share, state) in scores.iter().zip(work.each_state()) {
            out.iter_mut().zip(state).for_each(|(sum, x)| *sum += share * x);
        }
        out.iter_mut().for_each(|sum| *sum *= inverse);
    }
}
