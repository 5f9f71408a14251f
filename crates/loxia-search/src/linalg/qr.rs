//! QR factors, and least squares of minimum norm through them.

use super::{Dense, Real, pseudo_inverse, solve_lower, solve_lower_transposed};
use crate::{Error, Result};

/// `a = q r` with orthonormal columns in `q` and `r` upper triangular.
#[derive(Debug, Clone)]
pub struct Qr<T> {
    /// Orthonormal columns.
    pub q: Dense<T>,
    /// Upper triangular.
    pub r: Dense<T>,
}

/// The thin QR factors of a matrix.
///
/// ```
/// use loxia_search::linalg::{Dense, product, thin_qr};
/// let a = Dense::new(3, 2, vec![1.0f64, 2.0, 3.0, 4.0, 5.0, 6.5]).unwrap();
/// let qr = thin_qr(&a).unwrap();
/// let again = product(&qr.q, &qr.r);
/// assert!(again.values().iter().zip(a.values()).all(|(x, y)| (x - y).abs() < 1e-12));
/// ```
pub fn thin_qr<T: Real>(a: &Dense<T>) -> Result<Qr<T>> {
    a.check_finite("matrix of a QR factorisation")?;
    let size = a.rows().min(a.cols());
    if size == 0 {
        return Ok(Qr { q: Dense::zeros(a.rows(), 0), r: Dense::zeros(0, a.cols()) });
    }
    let qr = a.view().qr();
    let r = qr.thin_R();
    Ok(Qr {
        q: Dense::from_view(qr.compute_thin_Q().as_ref()),
        r: Dense::from_fn(size, a.cols(), |row, col| if row <= col { r[(row, col)] } else { T::default() }),
    })
}

/// The `x` of least norm among those that minimise `|a x - b|`.
///
/// Through QR where the matrix has full rank (the smallest diagonal of `r` above `rcond` times the
/// largest), which keeps the condition number that a Gram matrix would square; else through the SVD with
/// that cutoff.
///
/// ```
/// use loxia_search::linalg::{Dense, min_norm_solve};
/// let a = Dense::new(1, 2, vec![1.0f64, 1.0]).unwrap();
/// let x = min_norm_solve(&a, &[2.0], 1e-10).unwrap();
/// assert!((x[0] - 1.0).abs() < 1e-12 && (x[1] - 1.0).abs() < 1e-12);
/// ```
pub fn min_norm_solve<T: Real>(a: &Dense<T>, b: &[T], rcond: f64) -> Result<Vec<T>> {
    if b.len() != a.rows() {
        return Err(Error::Shape {
            what: "right side of least squares",
            found_rows: b.len(),
            found_cols: 1,
            expected: format!("{} x 1", a.rows()),
        });
    }
    let wide = a.rows() < a.cols();
    let Qr { q, r } = thin_qr(&if wide { a.transposed() } else { a.clone() })?;
    let diagonal = || (0..r.rows()).map(|i| Into::<f64>::into(r[(i, i)]).abs());
    let largest = diagonal().fold(0.0, f64::max);
    if diagonal().any(|pivot| pivot <= rcond * largest) {
        let inverse = pseudo_inverse(a, rcond)?;
        return Ok(super::product::times_column(&inverse, b));
    }
    let lower = r.transposed();
    if wide {
        // a = r^T q^T, so x = q r^-T b lies in the row space: it is the shortest.
        let mut y = Dense::new(b.len(), 1, b.to_vec())?;
        solve_lower(&lower, &mut y);
        Ok(super::product::times_column(&q, y.values()))
    } else {
        let projected = super::row_times(b, &q);
        let mut x = Dense::new(projected.len(), 1, projected)?;
        solve_lower_transposed(&lower, &mut x);
        Ok(x.values().to_vec())
    }
}
