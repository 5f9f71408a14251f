//! The work of one attention call, whatever kernel does it.

use std::ops::Range;

use super::DistanceBias;
use crate::Precision;
use crate::memory::{Buffer, Extent, Scratch};

/// Rows of a matrix, or of some columns of it.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// From the first value of the first row on.
    pub(crate) values: &'a [f32],
    /// Distance of rows.
    pub(crate) stride: usize,
}

impl<'a> Rows<'a> {
    /// The rows from some row on, and of these some columns on.
    pub(crate) fn from(self, row: usize, column: usize) -> Self {
        Rows { values: &self.values[row * self.stride + column..], stride: self.stride }
    }

    /// `width` values of a row.
    pub(crate) fn row(self, index: usize, width: usize) -> &'a [f32] {
        &self.values[index * self.stride..][..width]
    }
}

/// In pairs, a sequence's keys begin at a multiple of so many slots, and their number is rounded up to it: what is read
/// at once.
pub(crate) const SLOTS: usize = 16;
/// Rows of a sequence can be kept in pieces that begin at multiples of so many.
pub(crate) const PIECE: usize = 8;

/// How keys and values wait for attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// Row by row, as they are.
    Rows,
    /// Rounded to bfloat16, in pairs, as products read them: made once, by whoever makes the rows.
    #[cfg_attr(not(any(test, target_arch = "x86_64")), expect(dead_code, reason = "there is no such kernel"))]
    Pairs,
}

impl Keeping {
    /// Slots that so many keys of a sequence take.
    pub(crate) fn slots(self, keys: usize) -> usize {
        match self {
            Keeping::Rows => keys,
            Keeping::Pairs => keys.next_multiple_of(SLOTS),
        }
    }
}

/// Room for the keys and values of all sequences of a batch, for each head by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shelf {
    pub(crate) keeping: Keeping,
    /// Room for so many keys, and as many values.
    pub(crate) slots: usize,
    /// Width of a head.
    pub(crate) width: usize,
}

impl Shelf {
    /// Numbers of 32 bits that a key takes, and a value.
    fn of_slot(self) -> usize {
        match self.keeping {
            Keeping::Rows => self.width,
            Keeping::Pairs => self.width.next_multiple_of(SLOTS) / 2,
        }
    }

    /// Numbers of 32 bits that a head takes: keys, then values.
    pub(crate) fn of_head(self) -> usize {
        2 * self.slots * self.of_slot()
    }

    /// Where the keys and the values of a sequence lie, given its first slot and its number of keys.
    pub(crate) fn places(self, first: usize, count: usize) -> [Range<usize>; 2] {
        let (each, count) = (self.of_slot(), self.keeping.slots(count));
        [first, self.slots + first].map(|slot| slot * each..(slot + count) * each)
    }
}

/// Rows of one sequence that are put on a shelf, one head of them.
#[derive(Clone, Copy)]
pub(crate) struct NewRows<'a> {
    /// Projected keys and values, from the first of these rows on.
    pub(crate) keys: Rows<'a>,
    pub(crate) values: Rows<'a>,
    /// Width of a head.
    pub(crate) width: usize,
    /// Which rows of their sequence these are, from the first up to the end, multiples of [`PIECE`] but for the
    /// sequence's end.
    pub(crate) first: usize,
    pub(crate) end: usize,
    /// Rows of the whole sequence.
    pub(crate) count: usize,
}

impl NewRows<'_> {
    /// Copies them as they are to where the sequence's keys and values lie.
    pub(super) fn copy(self, keys: &mut [f32], values: &mut [f32]) {
        for (rows, to) in [(self.keys, keys), (self.values, values)] {
            let to = to[self.first * self.width..].chunks_exact_mut(self.width);
            for (row, to) in (0..self.end - self.first).zip(to) {
                // Without a call each: the common widths are multiples of 16.
                let ((from, rest), (pieces, rest_to)) =
                    (rows.row(row, self.width).as_chunks::<16>(), to.as_chunks_mut::<16>());
                pieces.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
                rest_to.copy_from_slice(rest);
            }
        }
    }
}

/// Some queries of one sequence over all keys of that sequence.
pub(crate) struct Attention<'a> {
    /// Projected queries, heads side by side.
    pub(crate) queries: Rows<'a>,
    /// Place of each query in the sequence.
    pub(crate) places: &'a [u32],
    /// What the shelf holds, head by head.
    pub(crate) kept: &'a [&'a [f32]],
    pub(crate) shelf: Shelf,
    /// Slot of the sequence's first key.
    pub(crate) first: usize,
    /// Number of keys.
    pub(crate) count: usize,
    /// Addend by distance, where the model has one.
    pub(crate) bias: Option<&'a DistanceBias>,
    /// Precision of the model: in 8 bits products may be of rounded numbers.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "there is no such kernel"))]
    pub(crate) precision: Precision,
}

impl<'a> Attention<'a> {
    /// Number of heads.
    pub(crate) fn heads(&self) -> usize {
        self.kept.len()
    }

    /// Width of a head.
    pub(crate) fn width(&self) -> usize {
        self.shelf.width
    }

    pub(crate) fn hidden(&self) -> usize {
        self.heads() * self.width()
    }

    pub(crate) fn scale(&self) -> f32 {
        1.0 / (self.width() as f32).sqrt()
    }

    /// A head's queries.
    pub(crate) fn queries(&self, head: usize) -> Rows<'a> {
        self.queries.from(0, head * self.width())
    }

    /// A head's keys, kept as rows.
    pub(crate) fn keys(&self, head: usize) -> Rows<'a> {
        self.rows(head, 0)
    }

    /// A head's values, kept as rows.
    pub(crate) fn values(&self, head: usize) -> Rows<'a> {
        self.rows(head, 1)
    }

    fn rows(&self, head: usize, part: usize) -> Rows<'a> {
        debug_assert_eq!(self.shelf.keeping, Keeping::Rows);
        let place = self.shelf.places(self.first, self.count)[part].clone();
        Rows { values: &self.kept[head][place], stride: self.width() }
    }

    /// A head's keys and values, kept in pairs.
    #[cfg(any(test, target_arch = "x86_64"))]
    pub(super) fn pairs(&self, head: usize) -> [&'a [u32]; 2] {
        debug_assert_eq!(self.shelf.keeping, Keeping::Pairs);
        let kept = self.kept[head];
        self.shelf.places(self.first, self.count).map(|place| bytemuck::cast_slice(&kept[place]))
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
    /// Queries at work in bfloat16.
    pub(crate) queries: Buffer<u16>,
    /// For a matrix unit: sums of these queries, and in bfloat16 pairs of keys and of values.
    pub(crate) sums: Buffer,
    pub(crate) key_pairs: Buffer<u32>,
    pub(crate) value_pairs: Buffer<u32>,
}

impl Scratch for AttentionScratch {
    fn extent(&self) -> Extent {
        let floats = [&self.scores, &self.keys, &self.values, &self.sums].map(Buffer::extent);
        let pairs = [&self.key_pairs, &self.value_pairs].map(Buffer::extent);
        floats.into_iter().chain(pairs).chain([self.queries.extent()]).sum()
    }
}
