//! Regularised solves.

use super::{Cholesky, Dense, Real, gram_rows, product_tn, row_times};
use crate::{Error, Result};

/// `(a^T a + lambda I)^-1 a^T b`, through the smaller of the two Gram matrices.
///
/// ```
/// use loxia_search::linalg::{Dense, ridge_solve};
/// let a = Dense::new(2, 1, vec![1.0f64, 1.0]).unwrap();
/// let x = ridge_solve(&a, &[3.0, 3.0], 1.0).unwrap();
/// assert!((x[0] - 2.0).abs() < 1e-12);
/// ```
pub fn ridge_solve<T: Real>(a: &Dense<T>, b: &[T], lambda: f64) -> Result<Vec<T>> {
    check_lambda(lambda)?;
    if b.len() != a.rows() {
        return Err(Error::Shape {
            what: "right side of a ridge regression",
            found_rows: b.len(),
            found_cols: 1,
            expected: format!("{} x 1", a.rows()),
        });
    }
    if a.rows() <= a.cols() {
        let mut gram = gram_rows(a);
        gram.add_diagonal(T::from_f64(lambda));
        let weights = Cholesky::new(&gram)?.solve(&Dense::new(b.len(), 1, b.to_vec())?);
        Ok(row_times(weights.values(), a))
    } else {
        let mut gram = product_tn(a, a);
        gram.add_diagonal(T::from_f64(lambda));
        let right = row_times(b, a);
        Ok(Cholesky::new(&gram)?.solve(&Dense::new(right.len(), 1, right)?).values().to_vec())
    }
}

/// `(kernel + lambda I)^-1 b` for a positive semidefinite kernel matrix.
///
/// ```
/// use loxia_search::linalg::{Dense, kernel_ridge};
/// let kernel = Dense::new(1, 1, vec![1.0f64]).unwrap();
/// let b = Dense::new(1, 2, vec![2.0, 4.0]).unwrap();
/// assert_eq!(kernel_ridge(&kernel, &b, 3.0).unwrap().values(), [0.5, 1.0]);
/// ```
pub fn kernel_ridge<T: Real>(kernel: &Dense<T>, b: &Dense<T>, lambda: f64) -> Result<Dense<T>> {
    check_lambda(lambda)?;
    if b.rows() != kernel.rows() {
        return Err(Error::Shape {
            what: "right side of a kernel ridge regression",
            found_rows: b.rows(),
            found_cols: b.cols(),
            expected: format!("{} rows", kernel.rows()),
        });
    }
    let mut regularised = kernel.clone();
    regularised.add_diagonal(T::from_f64(lambda));
    Ok(Cholesky::new(&regularised)?.solve(b))
}

fn check_lambda(lambda: f64) -> Result<()> {
    if lambda.is_finite() && lambda > 0.0 {
        Ok(())
    } else {
        Err(Error::Setting { name: "ridge", value: lambda.to_string(), allowed: "finite and above 0" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::product::times_column;

    #[test]
    fn both_gram_matrices_give_one_answer() {
        let a = Dense::from_fn(4, 3, |i, j| ((i * 7 + j * 3) % 5) as f64 - 2.0);
        let b = [1.0, -2.0, 0.5, 3.0];
        let tall = ridge_solve(&a, &b, 0.3).unwrap();
        // The same problem with the normal equations written out.
        let mut gram = product_tn(&a, &a);
        gram.add_diagonal(0.3);
        let left = times_column(&gram, &tall);
        let right = row_times(&b, &a);
        assert!(left.iter().zip(&right).all(|(x, y)| (x - y).abs() < 1e-12));
    }

    #[test]
    fn a_ridge_of_zero_is_refused() {
        let a = Dense::from_fn(1, 1, |_, _| 1.0f64);
        assert!(ridge_solve(&a, &[1.0], 0.0).is_err());
    }
}
