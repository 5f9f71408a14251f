//! The leading singular vectors of a sparse matrix, by randomised subspace iteration.
//!
//! `X` is n x f. A random basis of a few more columns than wanted is multiplied by `X X^T` and made
//! orthonormal again and again (Halko, Martinsson, Tropp 2011, algorithm 4.4), which turns it towards the
//! leading left singular vectors; an eigenvalue problem of that small size then separates them.
//!
//! With l columns (24 more than wanted, at least 128): `8 nnz + 4 l (f + 3 n)` bytes, and `4 nnz l` floating-point operations a step.

use loxia_core::{Cancel, Stream};

use super::panels::Panels;
use super::sparse::SparseRows;
use crate::Result;
use crate::linalg::{Dense, symmetric_eigen, thin_qr};

/// Columns beyond those wanted: the more, the faster the wanted ones settle.
const OVERSAMPLING: usize = 24;
/// Fewest columns, where the matrix has them: small matrices are decomposed exactly.
const LEAST_WIDTH: usize = 128;
/// Multiplications by `X X^T`. scikit-learn takes five with fewer columns to spare.
const STEPS: usize = 7;
/// Singular values below this share of the largest are rounding noise in single precision.
const NEGLIGIBLE: f64 = 1e-5;

/// The right singular vectors that stand out, and their singular values.
#[derive(Debug, Clone)]
pub(crate) struct TruncatedSvd {
    /// Right singular vectors, one a column; the largest value of each is positive.
    pub(crate) basis: Dense,
    /// Singular values, descending.
    pub(crate) values: Vec<f32>,
}

/// At most `rank` singular vectors: fewer when the matrix has fewer that are not zero.
pub(crate) fn truncated_svd(
    matrix: &SparseRows,
    rank: usize,
    stream: &mut Stream,
    cancel: &Cancel,
) -> Result<TruncatedSvd> {
    let width = rank.saturating_add(OVERSAMPLING).max(LEAST_WIDTH).min(matrix.rows()).min(matrix.cols());
    let start = Dense::from_fn(matrix.rows(), width, |_, _| stream.normal() as f32);
    let mut left = Panels::from_dense(&start);
    drop(start);
    for _ in 0..STEPS {
        cancel.check()?;
        let right = matrix.transposed_times(&left);
        left = matrix.times(&right);
        drop(right);
        left = Panels::from_dense(&thin_qr(&left.to_dense())?.q);
    }
    cancel.check()?;
    // X^T Q = V (S W^T): the eigenvectors W of its Gram matrix rotate it onto the singular vectors.
    let right = matrix.transposed_times(&left);
    let eigen = symmetric_eigen(&right.gram())?;
    let squares: Vec<f64> = eigen.values.iter().rev().map(|&value| value.max(0.0)).collect();
    let largest = squares.first().copied().unwrap_or(0.0).sqrt();
    let stands_out = |&&square: &&f64| square > 0.0 && square.sqrt() > NEGLIGIBLE * largest;
    let kept = squares.iter().take(rank).take_while(stands_out).count();
    let values: Vec<f32> = squares[..kept].iter().map(|square| square.sqrt() as f32).collect();
    let rotation = Dense::from_fn(width, kept, |row, col| {
        (eigen.vectors[(row, width - 1 - col)] / squares[col].sqrt()) as f32
    });
    let mut basis = right.times(&rotation);
    fix_signs(&mut basis);
    Ok(TruncatedSvd { basis, values })
}

/// A singular vector is known up to its sign: the value of largest size becomes positive.
fn fix_signs(basis: &mut Dense) {
    let mut largest = vec![0.0f32; basis.cols()];
    for row in 0..basis.rows() {
        for (largest, &value) in largest.iter_mut().zip(basis.row(row)) {
            if value.abs() > largest.abs() {
                *largest = value;
            }
        }
    }
    for row in 0..basis.rows() {
        for (value, largest) in basis.row_mut(row).iter_mut().zip(&largest) {
            *value *= largest.signum();
        }
    }
}

#[cfg(test)]
mod tests {
    use loxia_core::Seed;

    use super::*;
    use crate::linalg::{product_nt, product_tn, thin_svd};

    #[test]
    fn it_agrees_with_the_dense_decomposition() {
        // A spectrum that falls off as those of texts do, in a matrix wider than the basis.
        let mut stream = Seed(4).stream("matrix");
        let mut matrix = SparseRows::new(400, 0);
        for _ in 0..300 {
            let mut row: Vec<(u32, f32)> = Vec::new();
            for col in 0..400u32 {
                if stream.unit() < 8.0 / (8.0 + f64::from(col)) {
                    row.push((col, stream.unit() as f32));
                }
            }
            matrix.push(&row);
        }
        let mut dense = Dense::<f64>::zeros(matrix.rows(), matrix.cols());
        for row in 0..matrix.rows() {
            matrix.row(row).iter().for_each(|&(col, value)| dense[(row, col as usize)] = value.into());
        }
        let exact = thin_svd(&dense).unwrap();
        let rank = 10;
        let found = truncated_svd(&matrix, rank, &mut Seed(1).stream("svd"), &Cancel::new()).unwrap();
        for (value, exact) in found.values.iter().zip(&exact.values) {
            assert!((f64::from(*value) - exact).abs() < 1e-3 * exact, "{value} and {exact}");
        }
        // The cosines of the angles between the two subspaces.
        let leading = Dense::from_fn(rank, matrix.cols(), |row, col| exact.vt[(row, col)] as f32);
        let cosines = thin_svd(&product_nt(&leading, &found.basis.transposed())).unwrap().values;
        assert!(cosines.iter().all(|&cosine| cosine > 0.99), "{cosines:?}");
        let gram = product_tn(&found.basis, &found.basis);
        assert!(
            (0..rank).all(|i| (gram[(i, i)] - 1.0).abs() < 1e-3 && gram[(i, (i + 1) % rank)].abs() < 1e-3)
        );
    }
}
