//! Readers and writers of ranking and entity-linking data.
//!
//! 1. [`DataSet::open`] is the one door: it looks at a directory or a file, recognises the layout and
//!    hands out queries, items, judgements, gold labels and candidates.
//! 2. [`ItemStore`] and [`QueryStore`] give random access with bounded memory: ids and offsets are
//!    kept, texts stay in the file.
//! 3. [`read_run`] and [`read_qrels`] read runs and judgements, whatever their format.
//! 4. [`training`] streams triples and scored pairs.
//! 5. [`write`](mod@write) holds the writers, [`convert`] goes from one layout to another, and
//!    [`inspect`](mod@inspect) says what is in a data set.
//!
//! Everything reads plain or gzip files and standard input (`-`), told by content. Every error names the
//! file and the line ([`Error`]). Nothing is dropped without being counted.

mod candidates;
pub mod convert;
mod dataset;
mod error;
mod fields;
pub mod inspect;
mod item_format;
mod lines;
mod positioned;
mod qrels;
mod run;
mod segment;
mod source;
mod store;
pub mod training;
pub mod write;

use std::path::PathBuf;

pub use candidates::{Candidates, parse_candidates, read_candidates};
pub use dataset::{DataFormat, DataOptions, DataSet, Gold, Judgements, parse_mentions};
pub use error::{Error, Place, Result};
pub use item_format::LineFormat;
pub use lines::{Line, LineReader, Records};
pub use qrels::{QrelsFile, QrelsFormat, parse_qrels, read_qrels};
pub use run::{Duplicates, RunFile, RunFormat, RunTexts, parse_run, read_run};
pub use source::Limits;
pub use store::{ItemStore, QueryStore, Record, Store};

/// How files are read: the bounds, and where decompressed copies go.
///
/// ```
/// use loxia_data::ReadOptions;
/// let options = ReadOptions { spool_dir: Some("/var/tmp".into()), ..ReadOptions::default() };
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Bounds on lines and on decompression.
    pub limits: Limits,
    /// Where a gzip file or a pipe is spooled for random access; the system's temporary directory
    /// unless set. The file is unlinked at once, so nothing stays behind.
    pub spool_dir: Option<PathBuf>,
}
