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
