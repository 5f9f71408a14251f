//! Eigenvalues of symmetric matrices.

use super::{Dense, Real};
use crate::{Error, Result};

/// `a = vectors diag(values) vectors^T`, values ascending.
#[derive(Debug, Clone)]
pub struct SymmetricEigen<T> {
    /// Eigenvalues, ascending.
    pub values: Vec<T>,
    /// Eigenvectors, one a column.
    pub vectors: Dense<T>,
}

/// Eigenvalues and eigenvectors; only the lower triangle is read.
///
/// ```
/// use loxia_search::linalg::{Dense, symmetric_eigen};
/// let a = Dense::new(2, 2, vec![2.0f64, 1.0, 1.0, 2.0]).unwrap();
/// let eigen = symmetric_eigen(&a).unwrap();
/// assert!((eigen.values[0] - 1.0).abs() < 1e-12 && (eigen.values[1] - 3.0).abs() < 1e-12);
/// ```
pub fn symmetric_eigen<T: Real>(a: &Dense<T>) -> Result<SymmetricEigen<T>> {
    if a.rows() != a.cols() {
        return Err(Error::Shape {
            what: "matrix of an eigenvalue problem",
            found_rows: a.rows(),
            found_cols: a.cols(),
            expected: "as many rows as columns".into(),
        });
    }
    a.check_finite("matrix of an eigenvalue problem")?;
    if a.rows() == 0 {
        return Ok(SymmetricEigen { values: Vec::new(), vectors: Dense::zeros(0, 0) });
    }
    let eigen = a.view().self_adjoint_eigen(faer::Side::Lower).map_err(|_| Error::NoConvergence {
        what: "the eigenvalue decomposition",
        rows: a.rows(),
        cols: a.cols(),
    })?;
    Ok(SymmetricEigen {
        values: eigen.S().column_vector().iter().copied().collect(),
        vectors: Dense::from_view(eigen.U()),
    })
}

/// Eigenvectors of the `count` largest eigenvalues, the largest first, one a column, and the eigenvalues;
/// fewer where there are fewer above `least_share` of the largest.
pub(crate) fn leading_eigen<T: Real>(
    a: &Dense<T>,
    count: usize,
    least_share: f64,
) -> Result<(Dense<T>, Vec<T>)> {
    let SymmetricEigen { values, vectors } = symmetric_eigen(a)?;
    let least = values.last().map_or(0.0, |&largest| least_share * Into::<f64>::into(largest).max(0.0));
    let kept = values.iter().rev().take(count).take_while(|&&value| Into::<f64>::into(value) > least);
    let values: Vec<T> = kept.copied().collect();
    let size = vectors.cols();
    Ok((Dense::from_fn(size, values.len(), |row, col| vectors[(row, size - 1 - col)]), values))
}

/// Eigenvectors of the `count` largest eigenvalues (all, if there are fewer), the largest first, one a
/// column.
pub(crate) fn leading_vectors<T: Real>(a: &Dense<T>, count: usize) -> Result<Dense<T>> {
    let vectors = symmetric_eigen(a)?.vectors;
    let size = vectors.cols();
    Ok(Dense::from_fn(size, count.min(size), |row, col| vectors[(row, size - 1 - col)]))
}
