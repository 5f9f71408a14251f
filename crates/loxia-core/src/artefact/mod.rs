//! Files and directories that are either whole or not there.
//!
//! An artefact is a directory with a `manifest.json` and data files: a score matrix, embeddings, an index,
//! a checkpoint. It is written under a temporary name beside its target, synced, and renamed into place;
//! whoever sees the final name sees the final content, also after a crash.
//!
//! - [`Manifest`] says what an artefact is and what it was made from; reading it refuses other kinds,
//!   other format versions and other digests, naming both values.
//! - [`ArtefactWriter`] writes directories, [`write_file_atomically`] single files.
//! - [`Digester`] and the `digest_*` functions give the SHA-256 values that manifests hold.
//! - [`write_id_list`] and [`read_id_list`] keep ids beside the numbers they belong to.
//!
//! Long work that must survive `kill -9` halfway does not start over with these: see
//! [`MatrixWriter`](crate::matrix::MatrixWriter), which builds on them.

mod atomic_file;
mod digest;
mod durable;
mod id_list;
mod manifest;
mod replace;
mod temporary;
mod writer;

pub use atomic_file::{OutputFile, write_file_atomically};
pub use digest::{Digester, digest_bytes, digest_file, digest_reader};
pub(crate) use durable::{exists, io_error, rename_durably, sibling, sync_directory};
pub use id_list::{digest_ids, read_counted_id_list, read_id_list, write_id_list};
pub use manifest::{ArtefactKind, MANIFEST_FILE, Manifest};
pub(crate) use manifest::{mismatch, or_computed_otherwise};
pub(crate) use replace::{check_replaceable, recover, replace_directory};
pub(crate) use temporary::discard_directory;
pub use writer::ArtefactWriter;

/// What to do with an output that is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// Fail with [`Error::Exists`](crate::Error::Exists) before any work is done.
    #[default]
    Refuse,
    /// Replace it, once the new one is complete.
    Overwrite,
}
