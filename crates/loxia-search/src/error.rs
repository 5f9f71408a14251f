//! What can go wrong in a search.

/// Result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the search crate: it names the value, what was found, what was expected and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A matrix or vector of the wrong shape.
    #[error("{what} is {found_rows} x {found_cols}, expected {expected}")]
    Shape {
        /// Which matrix.
        what: &'static str,
        /// Its rows.
        found_rows: usize,
        /// Its columns.
        found_cols: usize,
        /// What fits.
        expected: String,
    },
    /// A value that is not a number, or so large that its square would not be one.
    #[error("{what}: row {row}, column {col} is {value}; values must be finite and at most 1e15 in size")]
    NotFinite {
        /// Which matrix.
        what: &'static str,
        /// Row of the value.
        row: usize,
        /// Column of the value.
        col: usize,
        /// NaN, an infinity, or what is too large.
        value: f64,
    },
    /// A symmetric matrix that has no Cholesky factor.
    #[error("the {size} x {size} matrix is not positive definite (pivot {pivot}); add a ridge")]
    NotPositiveDefinite {
        /// Rows of the matrix.
        size: usize,
        /// The pivot that was not positive.
        pivot: usize,
    },
    /// A factorisation that did not converge.
    #[error("{what} of a {rows} x {cols} matrix did not converge; look for extreme values in it")]
    NoConvergence {
        /// The factorisation.
        what: &'static str,
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
    },
    /// A setting out of its range.
    #[error("{name} is {value}; it must be {allowed}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// Something a method cannot do without.
    #[error("{method} needs {what}; {advice}")]
    Missing {
        /// The method.
        method: &'static str,
        /// What is missing.
        what: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// An error of the core or of a scorer, and cancellation.
    #[error(transparent)]
    Core(#[from] loxia_core::Error),
}

impl From<Error> for loxia_core::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Core(error) => error,
            other => loxia_core::Error::Scorer(Box::new(other)),
        }
    }
}
