//! Dense linear algebra: plain row-major matrices outside, faer inside.
//!
//! Everything runs on the calling thread and in one order, so a result depends on its input and on the
//! instruction set alone. Factorisations check their input for NaN and infinities first: what comes
//! after them is then a number or an error.
//!
//! | question | function | cost for an m x n matrix |
//! |---|---|---|
//! | singular values and vectors | [`thin_svd`] | about 10 m n min(m, n) |
//! | pseudo-inverse with a cutoff | [`pseudo_inverse`] | the SVD |
//! | least squares of minimum norm | [`min_norm_solve`] | one QR; the SVD when rank deficient |
//! | `(A^T A + lambda I)^-1 A^T b` | [`ridge_solve`] | m n min(m, n), one Cholesky |
//! | `(K + lambda I)^-1 B` | [`kernel_ridge`] | n^3/3 and n^2 a column |
//! | a factor that grows by blocks | [`Cholesky`] | n^2 a new row |
//! | eigenvalues of a symmetric matrix | [`symmetric_eigen`] | about 9 n^3 |

mod cholesky;
mod dense;
mod eigen;
mod product;
mod qr;
mod ridge;
mod svd;
mod triangular;

pub use cholesky::Cholesky;
pub use dense::{Dense, Real};
pub use eigen::{SymmetricEigen, symmetric_eigen};
pub(crate) use eigen::{leading_eigen, leading_vectors};
pub(crate) use product::{add_product_nt, gram_rows_in_f64, subtract_product_tn, times_column};
pub use product::{gram_rows, product, product_nt, product_tn, row_times};
pub use qr::{Qr, min_norm_solve, thin_qr};
pub use ridge::{kernel_ridge, ridge_solve};
pub use svd::{Svd, pseudo_inverse, thin_svd};
pub use triangular::{solve_lower, solve_lower_transposed};
