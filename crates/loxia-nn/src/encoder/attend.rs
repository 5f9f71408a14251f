//! Attention of some rows of a packed batch.

use super::layer::Run;
use crate::kernels::{Attention, AttentionScratch, DistanceBias, Heads};
use crate::profile::timed;
use crate::{AttentionPattern, PackedBatch, Work};

/// Rows of one sequence whose attention is computed together.
struct Part {
    /// First token of the sequence, and how many it has.
    start: usize,
    keys: usize,
    /// These rows, among all wanted ones.
    rows: std::ops::Range<usize>,
}

/// Which tokens attend, and in which pieces.
pub(super) struct AttentionPlan {
    parts: Vec<Part>,
    /// Place of each row in its sequence.
    places: Vec<u32>,
}

impl AttentionPlan {
    /// For these tokens of a batch, in this order.
    pub(super) fn new(batch: &PackedBatch, tokens: impl Iterator<Item = u32>) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        let mut places = Vec::new();
        for (row, token) in tokens.enumerate() {
            let token = token as usize;
            let in_last =
                parts.last().is_some_and(|part| (part.start..part.start + part.keys).contains(&token));
            if !in_last {
                let range = batch.range(batch.sequence_of(token));
                parts.push(Part { start: range.start, keys: range.len(), rows: row..row });
            }
            if let Some(part) = parts.last_mut() {
                part.rows.end = row + 1;
                places.push((token - part.start) as u32);
            }
        }
        AttentionPlan { parts, places }
    }

    /// How many rows attend.
    pub(super) fn rows(&self) -> usize {
        self.places.len()
    }

    /// Attends: `queries` has a row for each wanted token, `keys` and `values` for each of the batch.
    pub(super) fn run(
        &self,
        run: Run<'_>,
        pattern: AttentionPattern,
        bias: Option<&DistanceBias>,
        [queries, keys, values]: [Heads<'_>; 3],
        scratch: &mut AttentionScratch,
        out: &mut [f32],
    ) {
        let AttentionPattern::Full = pattern;
        let hidden = run.shape.hidden;
        let mut rest = out;
        for part in &self.parts {
            let (out, behind) = rest.split_at_mut(part.rows.len() * hidden);
            let work = Attention {
                queries: queries.from(part.rows.start),
                places: &self.places[part.rows.clone()],
                keys: keys.from(part.start),
                values: values.from(part.start),
                count: part.keys,
                heads: run.shape.heads,
                width: run.shape.head_width(),
                bias,
                precision: run.precision,
            };
            timed(run.profile, Work::Attention, || run.isa.attention(&work, scratch, out));
            rest = behind;
        }
    }
}
