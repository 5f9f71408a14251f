//! Matrix products.
//!
//! # Panics
//! All functions here panic when the inner sizes differ: that is a mistake of the caller, not of data.

use faer::{Accum, Par, linalg::matmul::matmul};

use super::{Dense, Real};

/// `a b`.
///
/// ```
/// use loxia_search::linalg::{Dense, product};
/// let a = Dense::new(1, 2, vec![1.0f64, 2.0]).unwrap();
/// let b = Dense::new(2, 1, vec![3.0f64, 4.0]).unwrap();
/// assert_eq!(product(&a, &b).values(), [11.0]);
/// ```
pub fn product<T: Real>(a: &Dense<T>, b: &Dense<T>) -> Dense<T> {
    let mut out = Dense::zeros(a.rows(), b.cols());
    matmul(out.view_mut(), Accum::Replace, a.view(), b.view(), T::from_f64(1.0), Par::Seq);
    out
}

/// `a b^T`.
pub fn product_nt<T: Real>(a: &Dense<T>, b: &Dense<T>) -> Dense<T> {
    let mut out = Dense::zeros(a.rows(), b.rows());
    matmul(out.view_mut(), Accum::Replace, a.view(), b.view().transpose(), T::from_f64(1.0), Par::Seq);
    out
}

/// `c + a b^T`, in place of `c`.
pub(crate) fn add_product_nt<T: Real>(c: &mut Dense<T>, a: &Dense<T>, b: &Dense<T>) {
    matmul(c.view_mut(), Accum::Add, a.view(), b.view().transpose(), T::from_f64(1.0), Par::Seq);
}

/// `a^T b`.
pub fn product_tn<T: Real>(a: &Dense<T>, b: &Dense<T>) -> Dense<T> {
    let mut out = Dense::zeros(a.cols(), b.cols());
    matmul(out.view_mut(), Accum::Replace, a.view().transpose(), b.view(), T::from_f64(1.0), Par::Seq);
    out
}

/// `c - a^T b`, in place of `c`.
pub(crate) fn subtract_product_tn<T: Real>(c: &mut Dense<T>, a: &Dense<T>, b: &Dense<T>) {
    matmul(c.view_mut(), Accum::Add, a.view().transpose(), b.view(), T::from_f64(-1.0), Par::Seq);
}

/// `a a^T`.
pub fn gram_rows<T: Real>(a: &Dense<T>) -> Dense<T> {
    product_nt(a, a)
}

/// `a a^T` in double precision, of a wide matrix: converted a block of columns at a time, so that no
/// whole copy is made.
pub(crate) fn gram_rows_in_f64(a: &Dense<f32>) -> Dense<f64> {
    const BLOCK: usize = 4096;
    let mut gram = Dense::<f64>::zeros(a.rows(), a.rows());
    for start in (0..a.cols()).step_by(BLOCK) {
        let width = BLOCK.min(a.cols() - start);
        let block = Dense::from_fn(a.rows(), width, |row, col| f64::from(a.row(row)[start + col]));
        let (left, right) = (block.view(), block.view().transpose());
        matmul(gram.view_mut(), Accum::Add, left, right, 1.0, Par::Seq);
    }
    gram
}

/// `weights a`: the weighted sum of the rows of `a`.
///
/// One pass over `a`, four rows at a time, so that it runs at the speed of memory.
pub fn row_times<T: Real>(weights: &[T], a: &Dense<T>) -> Vec<T> {
    assert_eq!(weights.len(), a.rows(), "one weight for each row");
    let mut out = vec![T::default(); a.cols()];
    let blocks = weights.chunks_exact(4);
    for (left, &weight) in (a.rows() - blocks.remainder().len()..).zip(blocks.remainder()) {
        out.iter_mut().zip(a.row(left)).for_each(|(sum, &value)| *sum += weight * value);
    }
    for (block, w) in blocks.enumerate() {
        let rows = [0, 1, 2, 3].map(|i| a.row(4 * block + i));
        for (col, sum) in out.iter_mut().enumerate() {
            let near = w[0] * rows[0][col] + w[1] * rows[1][col];
            let far = w[2] * rows[2][col] + w[3] * rows[3][col];
            *sum += near + far;
        }
    }
    out
}

/// `a x`: the dot product of each row with `x`.
pub(crate) fn times_column<T: Real>(a: &Dense<T>, x: &[T]) -> Vec<T> {
    let mut out = vec![T::default(); a.rows()];
    let column = faer::MatRef::from_column_major_slice(x, x.len(), 1);
    let rows = a.rows();
    let target = faer::MatMut::from_column_major_slice_mut(&mut out, rows, 1);
    matmul(target, Accum::Replace, a.view(), column, T::from_f64(1.0), Par::Seq);
    out
}
