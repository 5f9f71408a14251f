//! The word table, which is a quarter of a BERT-base: in half precision where that is as good.
//!
//! With 8-bit products (and products only, all else is in `f32`) the rounding of a word's row to half precision is
//! nothing beside that of the first layer's inputs, and a norm follows at once. In `f32` a table is halved only if
//! that changes no bit: where it came from a file of half precision.

use std::ops::ControlFlow;

use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::source::{Matrix, WeightSource};
use crate::weights::check_count;
use crate::{EncoderShape, Precision, Result};

/// Rows of numbers, one for each word.
#[derive(Debug, PartialEq)]
pub(super) enum WordTable {
    F32(Vec<f32>),
    F16(Vec<f16>),
}

/// Most that a number may be off by, as a share of the largest one of its row: what rounding to half precision costs in
/// its range.
const ROUNDING: f32 = 1.0 / 2048.0;

impl WordTable {
    /// The table of weights in memory, in rows of some width.
    pub(super) fn of(precision: Precision, width: usize, values: Vec<f32>) -> Self {
        let mut halves = Halves::new(precision, width, values.len());
        let _ = halves.push(&values);
        halves.finish().unwrap_or(WordTable::F32(values))
    }

    /// Reads the table, a second time where the first one shows that it has to stay in `f32`.
    pub(super) fn read<S: WeightSource>(
        precision: Precision,
        shape: &EncoderShape,
        source: &mut S,
    ) -> Result<Self, S::Error> {
        let (rows, width) = (shape.vocab, shape.embedding);
        let expected = rows.saturating_mul(width);
        let check = |found| check_count(|| "word".into(), found, rows, width);
        let mut halves = Halves::new(precision, width, expected);
        source.rows(Matrix::Words, &mut |rows| halves.push(rows))?;
        if let Some(table) = halves.finish() {
            check(table.len())?;
            return Ok(table);
        }
        let mut values = reserved(expected);
        source.rows(Matrix::Words, &mut |rows| {
            values.extend_from_slice(rows);
            ControlFlow::Continue(())
        })?;
        check(values.len())?;
        Ok(WordTable::F32(values))
    }

    fn len(&self) -> usize {
        match self {
            WordTable::F32(values) => values.len(),
            WordTable::F16(values) => values.len(),
        }
    }

    /// Copies a row.
    pub(super) fn copy_row(&self, index: usize, row: &mut [f32]) {
        let places = index * row.len()..(index + 1) * row.len();
        match self {
            WordTable::F32(values) => row.copy_from_slice(&values[places]),
            WordTable::F16(values) => values[places].convert_to_f32_slice(row),
        }
    }
}

/// Room for so many numbers. A shape that asks for more than there is fails later, when the table is too short for it.
fn reserved<T>(count: usize) -> Vec<T> {
    let mut values = Vec::new();
    let _ = values.try_reserve_exact(count);
    values
}

/// A table in half precision in the making; given up at the first row that it would not do for.
struct Halves {
    precision: Precision,
    width: usize,
    values: Option<Vec<f16>>,
    restored: Vec<f32>,
}

impl Halves {
    fn new(precision: Precision, width: usize, count: usize) -> Self {
        Halves { precision, width, values: Some(reserved(count)), restored: vec![0.0; width] }
    }

    fn push(&mut self, rows: &[f32]) -> ControlFlow<()> {
        for row in rows.chunks(self.width) {
            let Some(values) = &mut self.values else { return ControlFlow::Break(()) };
            let start = values.len();
            values.resize(start + row.len(), f16::ZERO);
            let rounded = &mut values[start..];
            let restored = &mut self.restored[..row.len()];
            rounded.convert_from_f32_slice(row);
            rounded.convert_to_f32_slice(restored);
            if !do_for(self.precision, row, restored) {
                self.values = None;
            }
        }
        ControlFlow::Continue(())
    }

    fn finish(self) -> Option<WordTable> {
        self.values.map(WordTable::F16)
    }
}

/// Whether a row's rounded numbers may stand for it.
fn do_for(precision: Precision, row: &[f32], rounded: &[f32]) -> bool {
    let pairs = row.iter().zip(rounded);
    // No loop has a way out: so they take many numbers at a time.
    match precision {
        Precision::F32 => {
            pairs.fold(true, |same, (exact, rounded)| same & (exact.to_bits() == rounded.to_bits()))
        }
        // Numbers beyond the range are off by more, and so are rows of numbers that are all too small for it.
        Precision::Int8 => {
            // Without their sign, numbers are ordered as their bits are.
            let largest = row.iter().fold(0, |largest, x| x.abs().to_bits().max(largest));
            let most = ROUNDING * f32::from_bits(largest);
            pairs.fold(true, |near, (exact, rounded)| near & ((exact - rounded).abs() <= most))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(table: &WordTable, index: usize, width: usize) -> Vec<f32> {
        let mut row = vec![f32::NAN; width];
        table.copy_row(index, &mut row);
        row
    }

    #[test]
    fn eight_bits_halve_what_is_in_range() {
        let values = vec![0.1, -2.5, 60_000.0, 1e-9, 0.0, 0.0];
        let table = WordTable::of(Precision::Int8, 2, values.clone());
        assert!(matches!(table, WordTable::F16(_)));
        assert_eq!(row(&table, 0, 2), [f16::from_f32(0.1).to_f32(), -2.5]);
        assert_eq!(row(&table, 1, 2), [60_000.0_f32, 1e-9].map(|x| f16::from_f32(x).to_f32()));
        // Beyond the range; and a row with nothing else in it.
        for bad in [[65_520.0, 1.0], [1e-9, 1e-9]] {
            let values = [&values[..], &bad].concat();
            assert_eq!(WordTable::of(Precision::Int8, 2, values.clone()), WordTable::F32(values));
        }
    }

    #[test]
    fn single_precision_halves_only_halves() {
        let halves: Vec<f32> = [0.1, -0.0, 3e-7, 1234.0].map(|x| f16::from_f32(x).to_f32()).to_vec();
        let table = WordTable::of(Precision::F32, 2, halves.clone());
        assert!(matches!(table, WordTable::F16(_)));
        let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&[row(&table, 0, 2), row(&table, 1, 2)].concat()), bits(&halves));
        let values = [&halves[..], &[0.1, 0.2]].concat();
        assert_eq!(WordTable::of(Precision::F32, 2, values.clone()), WordTable::F32(values));
    }
}
