//! What can go wrong below the models.

use std::path::PathBuf;

/// Result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the core: it names the file or the value, what was found, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{path}: cannot {action}: {source}", path = path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// What was tried, as a verb phrase ("open", "write tile 3").
        action: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// An output that is already there.
    #[error("{path} exists; give --overwrite to replace it{resume}", path = path.display(),
        resume = if *resumable { ", or --resume to go on with it" } else { "" })]
    Exists {
        /// The output.
        path: PathBuf,
        /// Whether it is unfinished work that can be continued.
        resumable: bool,
    },
    /// A file or artefact whose content is not what its format says.
    #[error("{path}: {what}", path = path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Found, expected, and what to do.
        what: String,
    },
    /// An artefact that is sound but does not belong to this model, data or format version.
    #[error("{path}: {field} is {found}, expected {expected}; {advice}", path = path.display())]
    Mismatch {
        /// The artefact.
        path: PathBuf,
        /// Which property differs.
        field: String,
        /// The value in the artefact.
        found: String,
        /// The value of this run.
        expected: String,
        /// What to do about it.
        advice: String,
    },
    /// Two queries or two items of one name.
    #[error("duplicate id {id:?} (first at position {first}, again at {second}); ids must be unique")]
    DuplicateId {
        /// The id.
        id: String,
        /// Its first position.
        first: usize,
        /// The position where it came again.
        second: usize,
    },
    /// A score that is not a number.
    #[error("score of row {row}, column {col} is {value}; scores must be finite")]
    NotFinite {
        /// Row of the matrix, or position of the query.
        row: usize,
        /// Column of the matrix, or position of the item.
        col: usize,
        /// NaN or an infinity.
        value: f32,
    },
    /// A value out of its range, or arguments that do not fit together.
    #[error("{0}")]
    Invalid(String),
    /// The user asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// A scorer of another crate failed.
    #[error(transparent)]
    Scorer(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Wraps an I/O error with the path and what was tried.
    pub fn io(path: impl Into<PathBuf>, action: impl Into<String>, source: std::io::Error) -> Self {
        Error::Io { path: path.into(), action: action.into(), source }
    }

    /// A file whose content contradicts its format.
    pub fn corrupt(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Error::Corrupt { path: path.into(), what: what.into() }
    }
}
