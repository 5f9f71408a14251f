//! Solves with a lower triangular matrix.

use faer::{Par, linalg::triangular_solve};

use super::{Dense, Real};

/// `l^-1 b`, in place of `b`; only the lower triangle of `l` is read.
///
/// # Panics
/// If the sizes differ.
pub fn solve_lower<T: Real>(l: &Dense<T>, b: &mut Dense<T>) {
    triangular_solve::solve_lower_triangular_in_place(l.view(), b.view_mut(), Par::Seq);
}

/// `l^-T b`, in place of `b`; only the lower triangle of `l` is read.
///
/// # Panics
/// If the sizes differ.
pub fn solve_lower_transposed<T: Real>(l: &Dense<T>, b: &mut Dense<T>) {
    triangular_solve::solve_upper_triangular_in_place(l.view().transpose(), b.view_mut(), Par::Seq);
}
