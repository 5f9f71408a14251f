//! Singular values and the pseudo-inverse.

use super::{Dense, Real, product_nt};
use crate::{Error, Result};

/// `a = u diag(values) vt` with `min(rows, cols)` singular values, descending.
#[derive(Debug, Clone)]
pub struct Svd<T> {
    /// Left singular vectors, one a column.
    pub u: Dense<T>,
    /// Singular values, descending.
    pub values: Vec<T>,
    /// Right singular vectors, one a row.
    pub vt: Dense<T>,
}

/// The thin singular value decomposition.
///
/// ```
/// use loxia_search::linalg::{Dense, thin_svd};
/// let a = Dense::new(2, 3, vec![3.0f64, 0.0, 0.0, 0.0, 0.0, 4.0]).unwrap();
/// let svd = thin_svd(&a).unwrap();
/// assert!((svd.values[0] - 4.0).abs() < 1e-12 && (svd.values[1] - 3.0).abs() < 1e-12);
/// ```
pub fn thin_svd<T: Real>(a: &Dense<T>) -> Result<Svd<T>> {
    a.check_finite("matrix of a singular value decomposition")?;
    if a.rows() == 0 || a.cols() == 0 {
        return Ok(Svd { u: Dense::zeros(a.rows(), 0), values: Vec::new(), vt: Dense::zeros(0, a.cols()) });
    }
    let svd = a.view().thin_svd().map_err(|_| Error::NoConvergence {
        what: "the singular value decomposition",
        rows: a.rows(),
        cols: a.cols(),
    })?;
    Ok(Svd {
        u: Dense::from_view(svd.U()),
        values: svd.S().column_vector().iter().copied().collect(),
        vt: Dense::from_view(svd.V().transpose()),
    })
}

/// The Moore-Penrose inverse; singular values at or below `rcond` times the largest count as zero.
///
/// ```
/// use loxia_search::linalg::{Dense, pseudo_inverse};
/// let a = Dense::new(2, 2, vec![2.0f64, 0.0, 0.0, 0.0]).unwrap();
/// let inverse = pseudo_inverse(&a, 1e-10).unwrap();
/// assert!((inverse[(0, 0)] - 0.5).abs() < 1e-12 && inverse[(1, 1)] == 0.0);
/// ```
pub fn pseudo_inverse<T: Real>(a: &Dense<T>, rcond: f64) -> Result<Dense<T>> {
    let Svd { u, values, vt } = thin_svd(a)?;
    let cutoff = values.first().map_or(0.0, |&largest| rcond * largest.into());
    let mut v = vt.transposed();
    for row in 0..v.rows() {
        for (value, &singular) in v.row_mut(row).iter_mut().zip(&values) {
            let singular: f64 = singular.into();
            // A matrix of zeros has a cutoff of zero and keeps nothing either.
            let scale = if singular > cutoff { 1.0 / singular } else { 0.0 };
            *value = T::from_f64((*value).into() * scale);
        }
    }
    Ok(product_nt(&v, &u))
}
