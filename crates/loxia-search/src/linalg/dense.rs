//! A row-major matrix.

use faer::{MatMut, MatRef};

use crate::{Error, Result, spare};

/// `f32` or `f64`.
pub trait Real: faer::traits::RealField + Copy + Default + PartialOrd + Into<f64> + sealed::Sealed {
    /// Rounds to this type.
    fn from_f64(value: f64) -> Self;
}

impl Real for f32 {
    fn from_f64(value: f64) -> Self {
        value as f32
    }
}

impl Real for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A matrix in row-major order.
///
/// ```
/// use loxia_search::linalg::Dense;
/// let matrix = Dense::new(2, 3, vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
/// assert_eq!(matrix.row(1), [4.0, 5.0, 6.0]);
/// assert_eq!(matrix.transposed().row(2), [3.0, 6.0]);
/// assert!(Dense::new(2, 2, vec![1.0f32]).is_err());
/// ```
#[derive(Clone, PartialEq)]
pub struct Dense<T = f32> {
    rows: usize,
    cols: usize,
    values: Vec<T>,
}

impl Dense<f32> {
    /// In memory that was spare; what it holds is left over from before.
    pub(crate) fn of_spare(rows: usize, cols: usize) -> Self {
        Dense { rows, cols, values: spare::take(rows * cols) }
    }
}

impl<T: Real> Dense<T> {
    /// Takes values in row-major order.
    pub fn new(rows: usize, cols: usize, values: Vec<T>) -> Result<Self> {
        if rows.checked_mul(cols) != Some(values.len()) {
            return Err(Error::Shape {
                what: "matrix",
                found_rows: rows,
                found_cols: cols,
                expected: format!("a shape of {} values in all", values.len()),
            });
        }
        Ok(Dense { rows, cols, values })
    }

    /// All zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Dense { rows, cols, values: vec![T::default(); rows * cols] }
    }

    /// Computes each value from its row and column.
    pub fn from_fn(rows: usize, cols: usize, mut value: impl FnMut(usize, usize) -> T) -> Self {
        let values = (0..rows * cols).map(|i| value(i / cols.max(1), i % cols.max(1))).collect();
        Dense { rows, cols, values }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// One row.
    ///
    /// # Panics
    /// If `row` is not below [`Dense::rows`].
    pub fn row(&self, row: usize) -> &[T] {
        &self.values[row * self.cols..][..self.cols]
    }

    /// One row, to be written.
    ///
    /// # Panics
    /// If `row` is not below [`Dense::rows`].
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        &mut self.values[row * self.cols..][..self.cols]
    }

    /// All values, row after row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// All values, to be written.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// Gives up the values, row after row.
    pub fn into_values(self) -> Vec<T> {
        self.values
    }

    /// Copies the named rows, in the order named.
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        let mut values = Vec::with_capacity(rows.len() * self.cols);
        rows.iter().for_each(|&row| values.extend_from_slice(self.row(row)));
        Dense { rows: rows.len(), cols: self.cols, values }
    }

    /// Copies the named columns, in the order named.
    pub fn select_cols(&self, cols: &[usize]) -> Self {
        let mut values = Vec::with_capacity(self.rows * cols.len());
        for row in 0..self.rows {
            let from = self.row(row);
            values.extend(cols.iter().map(|&col| from[col]));
        }
        Dense { rows: self.rows, cols: cols.len(), values }
    }

    /// Rows become columns.
    pub fn transposed(&self) -> Self {
        Dense::from_fn(self.cols, self.rows, |row, col| self.values[col * self.cols + row])
    }

    /// The same values in another precision.
    pub fn cast<U: Real>(&self) -> Dense<U> {
        let values = self.values.iter().map(|&value| U::from_f64(value.into())).collect();
        Dense { rows: self.rows, cols: self.cols, values }
    }

    /// Adds rows at the bottom.
    ///
    /// # Panics
    /// If the widths differ.
    pub fn append_rows(&mut self, below: &Dense<T>) {
        assert_eq!(self.cols, below.cols, "appended rows must be as wide");
        self.values.extend_from_slice(&below.values);
        self.rows += below.rows;
    }

    /// Adds a value to each element of the diagonal.
    pub fn add_diagonal(&mut self, value: T) {
        for i in 0..self.rows.min(self.cols) {
            self.values[i * self.cols + i] += value;
        }
    }

    /// Fails on the first value that is not finite.
    pub fn check_finite(&self, what: &'static str) -> Result<()> {
        self.check_size(what, f64::MAX)
    }

    /// Fails on the first value that is not finite or larger in size than `most`.
    pub(crate) fn check_size(&self, what: &'static str, most: f64) -> Result<()> {
        let wrong = |value: f64| value.is_nan() || value.abs() > most;
        match self.values.iter().position(|&value| wrong(value.into())) {
            None => Ok(()),
            Some(at) => Err(Error::NotFinite {
                what,
                row: at / self.cols,
                col: at % self.cols,
                value: self.values[at].into(),
            }),
        }
    }

    pub(crate) fn view(&self) -> MatRef<'_, T> {
        MatRef::from_row_major_slice(&self.values, self.rows, self.cols)
    }

    pub(crate) fn view_mut(&mut self) -> MatMut<'_, T> {
        MatMut::from_row_major_slice_mut(&mut self.values, self.rows, self.cols)
    }

    pub(crate) fn from_view(view: MatRef<'_, T>) -> Self {
        Dense::from_fn(view.nrows(), view.ncols(), |row, col| view[(row, col)])
    }
}

impl<T> std::fmt::Debug for Dense<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dense({} x {})", self.rows, self.cols)
    }
}

impl<T: Real> std::ops::Index<(usize, usize)> for Dense<T> {
    type Output = T;

    fn index(&self, (row, col): (usize, usize)) -> &T {
        &self.row(row)[col]
    }
}

impl<T: Real> std::ops::IndexMut<(usize, usize)> for Dense<T> {
    fn index_mut(&mut self, (row, col): (usize, usize)) -> &mut T {
        &mut self.row_mut(row)[col]
    }
}
