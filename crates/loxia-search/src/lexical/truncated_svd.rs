//! The leading singular vectors of a sparse matrix, by randomised subspace iteration.
//!
//! `X` is n x f. A random basis of a few more columns than wanted is multiplied by `X X^T` and made
//! orthonormal again and again (Halko, Martinsson, Tropp 2011, algorithm 4.4), which turns it towards the
//! leading left singular vectors; an eigenvalue problem of that small size then separates them.
//!
//! With l columns: `8 nnz + 4 l (f + 3 n)` bytes, and `4 nnz l` floating-point operations a step.

use loxia_core::{Cancel, Stream};

use super::panels::Panels;
use super::sparse::SparseRows;
use crate::Result;
use crate::linalg::{Dense, symmetric_eigen, thin_qr};

/// Columns beyond those wanted: the more, the faster the wanted ones settle.
const OVERSAMPLING: usize = 24;
/// Multiplications by `X X^T`.
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
    let width = (rank + OVERSAMPLING).min(matrix.rows()).min(matrix.cols());
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
