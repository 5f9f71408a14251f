//! Numbers of the items, one row an item: what searches scan and gather from.
//!
//! A plane is a row-major matrix in half or single precision, in memory or in a mapped file; both read
//! the same bits. Half precision keeps 11 bits of each number; a power of two common to the plane keeps
//! large and small numbers in its range.

mod numbers;

use half::f16;

use crate::linalg::Dense;
use crate::scan::{
    cross_dots_half, cross_dots_single, dots_half, dots_half_of, dots_single, dots_single_of, widen,
};
use crate::spare;
pub(crate) use numbers::Numbers;

/// Largest size that values are scaled to: some room below the largest half number (65504), so that
/// rows added later seldom need another scale.
const SCALED_TO: f32 = 4096.0;

/// How the numbers of a plane are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Precision {
    F16,
    F32,
}

impl Precision {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Precision::F16 => 2,
            Precision::F32 => 4,
        }
    }

    /// As in the manifest and in file names.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Precision::F16 => "f16",
            Precision::F32 => "f32",
        }
    }
}

#[derive(Clone)]
pub(crate) struct Plane {
    rows: usize,
    cols: usize,
    /// A power of two: a value is the stored number times this.
    scale: f32,
    values: Values,
}

#[derive(Clone)]
enum Values {
    Half(Numbers<f16>),
    Single(Numbers<f32>),
}

impl Plane {
    /// Rounds a matrix to half precision.
    pub(crate) fn half(matrix: &Dense) -> Self {
        let scale = scale_for(largest(matrix.values()));
        let values = Values::Half(Numbers::from_vec(rounded(matrix.values(), scale)));
        Plane { rows: matrix.rows(), cols: matrix.cols(), scale, values }
    }

    /// Keeps a matrix as it is.
    pub(crate) fn single(matrix: Dense) -> Self {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        Plane { rows, cols, scale: 1.0, values: Values::Single(Numbers::from_vec(matrix.into_values())) }
    }

    /// One number an item, as it is.
    pub(crate) fn column(values: Vec<f32>) -> Self {
        Plane { rows: values.len(), cols: 1, scale: 1.0, values: Values::Single(Numbers::from_vec(values)) }
    }

    /// Numbers of a mapped file; `None` if they are not `rows x cols` or the scale is no power of two.
    pub(crate) fn mapped(
        rows: usize,
        cols: usize,
        precision: Precision,
        scale: f32,
        map: Option<memmap2::Mmap>,
    ) -> Option<Self> {
        let count = rows.checked_mul(cols)?;
        let power_of_two = scale.is_normal() && scale > 0.0 && scale.to_bits() & 0x007f_ffff == 0;
        let values = match precision {
            Precision::F16 => Values::Half(Numbers::from_map(map, count)?),
            Precision::F32 => Values::Single(Numbers::from_map(map, count)?),
        };
        power_of_two.then_some(Plane { rows, cols, scale, values })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    pub(crate) fn scale(&self) -> f32 {
        self.scale
    }

    pub(crate) fn precision(&self) -> Precision {
        match self.values {
            Values::Half(_) => Precision::F16,
            Values::Single(_) => Precision::F32,
        }
    }

    /// The numbers as they are stored.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.values {
            Values::Half(numbers) => bytemuck::cast_slice(numbers.as_slice()),
            Values::Single(numbers) => bytemuck::cast_slice(numbers.as_slice()),
        }
    }

    /// The dot product of each row with `x`: one pass over the plane.
    pub(crate) fn dots(&self, x: &[f32]) -> Vec<f32> {
        let (x, mut out) = (self.scaled(x), spare::take(self.rows));
        match &self.values {
            Values::Half(numbers) => dots_half(numbers.as_slice(), &x, &mut out),
            Values::Single(numbers) => dots_single(numbers.as_slice(), &x, &mut out),
        }
        out
    }

    /// The dot product of each of the named rows with `x`.
    pub(crate) fn dots_of(&self, rows: &[u32], x: &[f32]) -> Vec<f32> {
        let (x, mut out) = (self.scaled(x), spare::take(rows.len()));
        match &self.values {
            Values::Half(numbers) => dots_half_of(numbers.as_slice(), rows, &x, &mut out),
            Values::Single(numbers) => dots_single_of(numbers.as_slice(), rows, &x, &mut out),
        }
        out
    }

    /// The dot product of each row of `vectors` with each of the named rows.
    pub(crate) fn cross_dots(&self, vectors: &Dense, rows: &[u32]) -> Dense {
        let mut out = Dense::of_spare(vectors.rows(), rows.len());
        let (x, width) = (self.scaled(vectors.values()), self.cols);
        match &self.values {
            Values::Half(numbers) => cross_dots_half(&x, numbers.as_slice(), rows, width, out.values_mut()),
            Values::Single(numbers) => {
                cross_dots_single(&x, numbers.as_slice(), rows, width, out.values_mut())
            }
        }
        out
    }

    /// The squared length of each of the named rows.
    pub(crate) fn squares_of(&self, rows: &[u32]) -> Vec<f32> {
        let mut numbers = vec![0.0; self.cols];
        let mut square = |&row: &u32| {
            self.copy_row(row as usize, &mut numbers);
            let (chunks, rest) = numbers.as_chunks::<8>();
            let mut sums = [0.0; 8];
            chunks.iter().for_each(|chunk| sums.iter_mut().zip(chunk).for_each(|(sum, x)| *sum += x * x));
            sums.iter().sum::<f32>() + rest.iter().map(|x| x * x).sum::<f32>()
        };
        rows.iter().map(&mut square).collect()
    }

    /// A vector for products with the stored numbers.
    fn scaled(&self, x: &[f32]) -> Vec<f32> {
        x.iter().map(|value| value * self.scale).collect()
    }

    /// The numbers of a plane with one column that is stored in single precision.
    ///
    /// # Panics
    /// If it is another plane.
    pub(crate) fn as_column(&self) -> &[f32] {
        match &self.values {
            Values::Single(numbers) if self.cols == 1 => numbers.as_slice(),
            _ => panic!("a {} x {} plane is no column in single precision", self.rows, self.cols),
        }
    }

    /// Copies the named rows, in the order named.
    pub(crate) fn select_rows(&self, rows: &[usize]) -> Dense {
        let mut out = Dense::zeros(rows.len(), self.cols);
        for (place, &row) in rows.iter().enumerate() {
            self.copy_row(row, out.row_mut(place));
        }
        out
    }

    fn copy_row(&self, row: usize, target: &mut [f32]) {
        let place = row * self.cols..(row + 1) * self.cols;
        match &self.values {
            Values::Half(numbers) => widen(&numbers.as_slice()[place], self.scale, target),
            Values::Single(numbers) => target.copy_from_slice(&numbers.as_slice()[place]),
        }
    }

    /// The whole plane in single precision.
    pub(crate) fn to_dense(&self) -> Dense {
        self.select_rows(&(0..self.rows).collect::<Vec<_>>())
    }

    /// The plane with rows below; in half precision with another scale where the new rows need it.
    ///
    /// # Panics
    /// If the widths differ.
    pub(crate) fn with_rows(&self, below: &Dense) -> Self {
        assert_eq!(self.cols, below.cols(), "added rows must be as wide");
        let rows = self.rows + below.rows();
        let (scale, values) = match &self.values {
            Values::Single(numbers) => {
                (1.0, Values::Single(Numbers::from_vec([numbers.as_slice(), below.values()].concat())))
            }
            Values::Half(numbers) => {
                let needed = scale_for(largest(below.values()));
                let scale = if needed > 8.0 * self.scale { needed } else { self.scale };
                let mut all = numbers.as_slice().to_vec();
                if scale != self.scale {
                    let factor = self.scale / scale;
                    all.iter_mut().for_each(|value| *value = f16::from_f32(value.to_f32() * factor));
                }
                all.extend(rounded(below.values(), scale));
                (scale, Values::Half(Numbers::from_vec(all)))
            }
        };
        Plane { rows, cols: self.cols, scale, values }
    }

    /// The place of the first value that is not finite.
    pub(crate) fn find_not_finite(&self) -> Option<(usize, usize)> {
        let at = match &self.values {
            Values::Half(numbers) => numbers.as_slice().iter().position(|value| !value.is_finite()),
            Values::Single(numbers) => numbers.as_slice().iter().position(|value| !value.is_finite()),
        }?;
        Some((at / self.cols, at % self.cols))
    }
}

fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0f32, |largest, value| largest.max(value.abs()))
}

/// The power of two that brings the largest value to between half of [`SCALED_TO`] and that.
fn scale_for(largest: f32) -> f32 {
    if largest == 0.0 || !largest.is_finite() {
        return 1.0;
    }
    let exponent = (largest / SCALED_TO).log2().ceil().clamp(-120.0, 120.0);
    exponent.exp2()
}

fn rounded(values: &[f32], scale: f32) -> Vec<f16> {
    let inverse = 1.0 / scale;
    values.iter().map(|value| f16::from_f32(value * inverse)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use loxia_core::Seed;

    fn normals(rows: usize, cols: usize, size: f64) -> Dense {
        let mut stream = Seed(3).stream("plane");
        Dense::from_fn(rows, cols, |_, _| (size * stream.normal()) as f32)
    }

    #[test]
    fn half_precision_keeps_eleven_bits_whatever_the_size() {
        for size in [1e-12, 1.0, 1e12] {
            let matrix = normals(20, 7, size);
            let again = Plane::half(&matrix).to_dense();
            for (value, kept) in matrix.values().iter().zip(again.values()) {
                assert!(
                    (value - kept).abs() <= value.abs() / 2048.0 + size as f32 * 1e-6,
                    "{value} as {kept}"
                );
            }
        }
    }

    #[test]
    fn rows_added_later_may_be_larger() {
        let (first, second) = (normals(5, 3, 1.0), normals(4, 3, 1e6));
        let plane = Plane::half(&first).with_rows(&second);
        assert_eq!((plane.rows(), plane.find_not_finite()), (9, None));
        let kept = plane.select_rows(&[6]);
        assert!(kept.values().iter().zip(second.row(1)).all(|(a, b)| (a - b).abs() <= b.abs() / 1024.0));
    }

    #[test]
    fn dots_are_those_of_the_kept_values() {
        let matrix = normals(11, 13, 100.0);
        let x: Vec<f32> = (0..13).map(|i| i as f32 - 6.0).collect();
        let plane = Plane::half(&matrix);
        let kept = plane.to_dense();
        for (row, dot) in plane.dots(&x).into_iter().enumerate() {
            let exact: f32 = kept.row(row).iter().zip(&x).map(|(a, b)| a * b).sum();
            assert!((dot - exact).abs() < 1e-2);
        }
    }
}
