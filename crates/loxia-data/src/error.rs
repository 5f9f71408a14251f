//! What can be wrong with a file of data: always the path, the line where there is one, what was found
//! and what to do.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A line of a file, shown as `path:line`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file; `-` is standard input.
    pub path: Arc<Path>,
    /// Its line, from 1.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path.display(), self.line)
    }
}

/// An error in reading or writing data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{path}: cannot {action}: {source}", path = path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// What was tried, as a verb phrase.
        action: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A line that is not what its format says.
    #[error("{at}: {what}")]
    Line {
        /// Where.
        at: Place,
        /// Found, expected, and what to do.
        what: String,
    },
    /// A line that is not the JSON that was expected.
    #[error("{at}: column {column}: {what}")]
    Json {
        /// Where.
        at: Place,
        /// Column, from 1, in bytes.
        column: usize,
        /// Found and expected.
        what: String,
    },
    /// A line that is not UTF-8.
    #[error(
        "{at}: invalid UTF-8 at byte {column} of the line (byte {offset} of the text); \
         convert the file to UTF-8 first, for instance with iconv"
    )]
    Utf8 {
        /// Where.
        at: Place,
        /// Byte in the line, from 1.
        column: usize,
        /// Byte in the whole (decompressed) text, from 0.
        offset: u64,
    },
    /// A line longer than the limit.
    #[error("{at}: the line is longer than {limit} bytes; is this a file of lines?")]
    LineTooLong {
        /// Where.
        at: Place,
        /// The limit, [`Limits::line_bytes`](crate::Limits::line_bytes).
        limit: usize,
    },
    /// Compressed data that is damaged or ends early.
    #[error("{at}: damaged gzip data after this line: {source}; fetch or compress the file again")]
    Gzip {
        /// The last line that could be read.
        at: Place,
        /// What the decoder said.
        source: std::io::Error,
    },
    /// A gzip file that inflates out of all proportion.
    #[error(
        "{at}: {compressed} bytes of gzip inflate to more than {inflated} bytes; if this is meant, \
         decompress the file first (gunzip) and give the plain one"
    )]
    Inflated {
        /// The last line that was read.
        at: Place,
        /// Compressed bytes read so far.
        compressed: u64,
        /// Bytes they made.
        inflated: u64,
    },
    /// An id that came before.
    #[error("{at}: duplicate id {id:?}, first at {first}; ids must be unique")]
    Duplicate {
        /// Where it came again.
        at: Place,
        /// The id.
        id: String,
        /// Where it came first.
        first: Place,
    },
    /// A file that is no longer what it was when it was opened.
    #[error("{at}: the file changed since it was opened: {what}; run again")]
    Changed {
        /// The line that differs.
        at: Place,
        /// What differs.
        what: String,
    },
    /// A name that is no data format.
    #[error("no data format {name:?}; there is {available}", available = listed(available))]
    UnknownFormat {
        /// The name.
        name: String,
        /// The names there are.
        available: Vec<String>,
    },
    /// A world or split that is not there.
    #[error("{path}: no {kind} {name:?}; there is {available}", path = path.display(),
        available = listed(available))]
    Unknown {
        /// The data set.
        path: PathBuf,
        /// What kind of name it is.
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// The names there are.
        available: Vec<String>,
    },
    /// A directory or file in which no data set was recognised.
    #[error("{path}: no data set recognised; looked for\n  {looked_for}", path = path.display(),
        looked_for = looked_for.join("\n  "))]
    NotRecognised {
        /// The directory or file.
        path: PathBuf,
        /// What would have been recognised, one entry a layout.
        looked_for: Vec<String>,
    },
    /// Something asked for that this data set does not hold.
    #[error("{path}: {what}", path = path.display())]
    Missing {
        /// The data set or file.
        path: PathBuf,
        /// What is missing, and what to do.
        what: String,
    },
    /// The output could not be written.
    #[error("cannot write the output: {source}")]
    Output {
        /// The system's answer.
        source: std::io::Error,
    },
    /// A value that a format cannot hold.
    #[error("cannot write {what}")]
    Unwritable {
        /// The value, the format, and what to do.
        what: String,
    },
    /// An error of the core.
    #[error(transparent)]
    Core(#[from] loxia_core::Error),
}

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>, action: &'static str, source: std::io::Error) -> Self {
        Error::Io { path: path.into(), action, source }
    }

    pub(crate) fn output(source: std::io::Error) -> Self {
        Error::Output { source }
    }

    pub(crate) fn missing(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Error::Missing { path: path.into(), what: what.into() }
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
