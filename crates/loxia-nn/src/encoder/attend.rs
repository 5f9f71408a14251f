//! Attention of some rows of a packed batch.

use super::layer::Run;
use crate::kernels::{Attention, AttentionScratch, DistanceBias, Keeping, NewRows, Rows, Shelf};
use crate::profile::timed;
use crate::{AttentionPattern, PackedBatch, Work};

/// Rows of one sequence whose attention is computed together.
struct Part {
    sequence: usize,
    /// First token of the sequence, its first slot on the shelf, and how many tokens it has.
    start: usize,
    slot: usize,
    keys: usize,
    /// These rows, among all wanted ones.
    rows: std::ops::Range<usize>,
}

/// Rows of one sequence: where they are among all wanted ones, and their places in the sequence.
pub(super) struct PartOf<'a> {
    pub(super) sequence: usize,
    pub(super) rows: std::ops::Range<usize>,
    pub(super) places: &'a [u32],
}

/// Which tokens attend, and in which pieces.
#[derive(Default)]
pub(super) struct AttentionPlan {
    parts: Vec<Part>,
    /// Place of each row in its sequence.
    places: Vec<u32>,
}

impl AttentionPlan {
    /// For these tokens of a batch, in this order, given the first slot of each sequence.
    pub(super) fn new(batch: &PackedBatch, slots: &[usize], tokens: impl Iterator<Item = u32>) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        let mut places = Vec::new();
        for (row, token) in tokens.enumerate() {
            let token = token as usize;
            let in_last =
                parts.last().is_some_and(|part| (part.start..part.start + part.keys).contains(&token));
            if !in_last {
                let sequence = batch.sequence_of(token);
                let (range, slot) = (batch.range(sequence), slots[sequence]);
                parts.push(Part { sequence, start: range.start, slot, keys: range.len(), rows: row..row });
            }
            if let Some(part) = parts.last_mut() {
                part.rows.end = row + 1;
                places.push((token - part.start) as u32);
            }
        }
        AttentionPlan { parts, places }
    }

    /// The wanted rows of each sequence.
    pub(super) fn parts(&self) -> impl Iterator<Item = PartOf<'_>> {
        self.parts.iter().map(|part| PartOf {
            sequence: part.sequence,
            rows: part.rows.clone(),
            places: &self.places[part.rows.clone()],
        })
    }

    /// How many rows attend.
    pub(super) fn rows(&self) -> usize {
        self.places.len()
    }

    /// The rows of each sequence as they go on the shelf, with the sequence's first slot, one head of them: `keys` and
    /// `values` have a row for each of these tokens, which must be neighbours.
    pub(super) fn new_rows<'a>(
        &self,
        keys: Rows<'a>,
        values: Rows<'a>,
        width: usize,
    ) -> impl Iterator<Item = (usize, NewRows<'a>)> {
        self.parts.iter().map(move |part| {
            let first = self.places[part.rows.start] as usize;
            let (keys, values) = (keys.from(part.rows.start, 0), values.from(part.rows.start, 0));
            let (end, count) = (first + part.rows.len(), part.keys);
            (part.slot, NewRows { keys, values, width, first, end, count })
        })
    }

    /// Attends: `queries` has a row for each wanted token, `kept` is what the shelf holds, head by head. Only
    /// sequences `with_keys`.
    #[expect(clippy::too_many_arguments, reason = "what a layer's attention needs, each once")]
    pub(super) fn run(
        &self,
        run: Run<'_>,
        pattern: AttentionPattern,
        bias: Option<&DistanceBias>,
        queries: Rows<'_>,
        (shelf, kept): (Shelf, &[&[f32]]),
        with_keys: impl Fn(usize) -> bool,
        scratch: &mut AttentionScratch,
        out: &mut [f32],
    ) {
        let AttentionPattern::Full = pattern;
        let hidden = run.shape.hidden;
        let mut rest = out;
        for part in &self.parts {
            let (out, behind) = rest.split_at_mut(part.rows.len() * hidden);
            let work = Attention {
                queries: queries.from(part.rows.start, 0),
                places: &self.places[part.rows.clone()],
                kept,
                shelf,
                first: part.slot,
                count: part.keys,
                bias,
                precision: run.precision,
            };
            if with_keys(part.sequence) {
                timed(run.profile, Work::Attention, || run.isa.attention(&work, scratch, out));
            }
            rest = behind;
        }
    }
}

/// The first slot of each sequence, and how many slots there are.
pub(super) fn lay_out_slots(batch: &PackedBatch, keeping: Keeping) -> (Vec<usize>, usize) {
    let mut end = 0;
    let of_sequence = |sequence| {
        let first = end;
        end += keeping.slots(batch.range(sequence).len());
        first
    };
    let firsts = (0..batch.sequences()).map(of_sequence).collect();
    (firsts, end)
}
