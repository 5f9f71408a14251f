//! Attention over a packed batch, shared among threads.

use rayon::prelude::*;

use super::layer::Run;
use crate::kernels::{Attention, AttentionScratch, DistanceBias, Rows};
use crate::memory::Pool;
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

/// Fewest rows worth packing a sequence's keys and values once more for another thread.
const FEWEST_ROWS: usize = 48;

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
        let threads = rayon::current_num_threads();
        if threads > 1 {
            // Long sequences are cut where the threads would otherwise wait for one another.
            let share = places.len().div_ceil(2 * threads).max(FEWEST_ROWS);
            parts = parts.into_iter().flat_map(|part| part.cut(share)).collect();
        }
        AttentionPlan { parts, places }
    }

    /// Attends: `queries` has a row for each wanted token, `keys` and `values` for each of the batch.
    pub(super) fn run(
        &self,
        run: Run<'_>,
        pattern: AttentionPattern,
        bias: Option<&DistanceBias>,
        [queries, keys, values]: [Rows<'_>; 3],
        pool: &Pool<AttentionScratch>,
        out: &mut [f32],
    ) {
        let AttentionPattern::Full = pattern;
        let hidden = run.shape.hidden;
        let attend = |part: &Part, out: &mut [f32]| {
            let work = Attention {
                queries: queries.from(part.rows.start, 0),
                places: &self.places[part.rows.clone()],
                keys: keys.from(part.start, 0),
                values: values.from(part.start, 0),
                count: part.keys,
                heads: run.shape.heads,
                width: run.shape.head_width(),
                bias,
            };
            pool.with(|scratch| {
                timed(run.profile, Work::Attention, || run.isa.attention(&work, scratch, out));
            });
        };
        let mut pieces = Vec::with_capacity(self.parts.len());
        let mut rest = out;
        for part in &self.parts {
            let (piece, behind) = rest.split_at_mut(part.rows.len() * hidden);
            pieces.push((part, piece));
            rest = behind;
        }
        if pieces.len() == 1 || rayon::current_num_threads() == 1 {
            pieces.into_iter().for_each(|(part, piece)| attend(part, piece));
        } else {
            pieces.into_par_iter().for_each(|(part, piece)| attend(part, piece));
        }
    }
}

impl Part {
    /// Pieces of at most `share` rows, of nearly the same size.
    fn cut(self, share: usize) -> impl Iterator<Item = Part> {
        let Part { start, keys, rows } = self;
        let size = rows.len().div_ceil(rows.len().div_ceil(share).max(1)).max(1);
        let end = rows.end;
        rows.step_by(size).map(move |first| Part { start, keys, rows: first..end.min(first + size) })
    }
}
