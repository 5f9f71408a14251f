//! A Cholesky factor that grows by blocks.

use super::product::subtract_product_tn;
use super::{Dense, Real, product_nt, solve_lower, solve_lower_transposed};
use crate::{Error, Result};

/// `a = l l^T` of a positive definite matrix, with new rows and columns appended at `n^2` each.
///
/// ```
/// use loxia_search::linalg::{Cholesky, Dense};
/// let whole = Dense::new(2, 2, vec![4.0f64, 2.0, 2.0, 5.0]).unwrap();
/// let mut grown = Cholesky::new(&Dense::new(1, 1, vec![4.0]).unwrap()).unwrap();
/// // The cross block holds the old rows against the new columns.
/// grown.append(&Dense::new(1, 1, vec![2.0]).unwrap(), &Dense::new(1, 1, vec![5.0]).unwrap()).unwrap();
/// assert_eq!(grown.factor().values(), Cholesky::new(&whole).unwrap().factor().values());
/// ```
#[derive(Debug, Clone)]
pub struct Cholesky<T> {
    factor: Dense<T>,
}

impl<T: Real> Cholesky<T> {
    /// Factors; only the lower triangle of `a` is read.
    pub fn new(a: &Dense<T>) -> Result<Self> {
        if a.rows() != a.cols() {
            return Err(Error::Shape {
                what: "matrix of a Cholesky factor",
                found_rows: a.rows(),
                found_cols: a.cols(),
                expected: "as many rows as columns".into(),
            });
        }
        a.check_finite("matrix of a Cholesky factor")?;
        let llt = a.view().llt(faer::Side::Lower).map_err(|error| match error {
            faer::linalg::cholesky::llt::factor::LltError::NonPositivePivot { index } => {
                Error::NotPositiveDefinite { size: a.rows(), pivot: index }
            }
        })?;
        // faer leaves the upper triangle to itself.
        let l = llt.L();
        Ok(Cholesky {
            factor: Dense::from_fn(
                a.rows(),
                a.rows(),
                |row, col| {
                    if col <= row { l[(row, col)] } else { T::default() }
                },
            ),
        })
    }

    /// Grows by a block: `cross` holds the old rows against the new columns, `block` the new against
    /// themselves. On an error the factor is as it was.
    pub fn append(&mut self, cross: &Dense<T>, block: &Dense<T>) -> Result<()> {
        let (old, new) = (self.size(), block.rows());
        if cross.rows() != old || cross.cols() != new {
            return Err(Error::Shape {
                what: "cross block of a Cholesky factor",
                found_rows: cross.rows(),
                found_cols: cross.cols(),
                expected: format!("{old} x {new}"),
            });
        }
        let mut solved = cross.clone();
        solve_lower(&self.factor, &mut solved);
        self.append_solved(&solved, block).map(drop)
    }

    /// As [`Cholesky::append`], with `l^-1 cross` already at hand; returns the factor of the new block.
    pub(crate) fn append_solved(&mut self, solved: &Dense<T>, block: &Dense<T>) -> Result<Dense<T>> {
        let (old, new) = (self.size(), block.rows());
        let mut schur = block.clone();
        subtract_product_tn(&mut schur, solved, solved);
        let corner = Cholesky::new(&schur)?.factor;
        let mut values = Vec::with_capacity((old + new).pow(2));
        for row in 0..old {
            values.extend_from_slice(self.factor.row(row));
            values.resize(values.len() + new, T::default());
        }
        for row in 0..new {
            values.extend((0..old).map(|col| solved[(col, row)]));
            values.extend_from_slice(corner.row(row));
        }
        self.factor = Dense::new(old + new, old + new, values)?;
        Ok(corner)
    }

    /// `a^-1 b`.
    pub fn solve(&self, b: &Dense<T>) -> Dense<T> {
        let mut x = b.clone();
        solve_lower(&self.factor, &mut x);
        solve_lower_transposed(&self.factor, &mut x);
        x
    }

    /// The lower triangular factor, zeros above its diagonal.
    pub fn factor(&self) -> &Dense<T> {
        &self.factor
    }

    /// Rows of the factored matrix.
    pub fn size(&self) -> usize {
        self.factor.rows()
    }

    /// The factored matrix again, for checks.
    pub fn reconstruct(&self) -> Dense<T> {
        product_nt(&self.factor, &self.factor)
    }
}
