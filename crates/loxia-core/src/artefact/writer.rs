//! Directories that appear whole.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::durable::{io_error, sync_tree};
use super::replace::{check_replaceable, recover, replace_directory};
use super::temporary::Temporary;
use super::{Existing, MANIFEST_FILE, Manifest, OutputFile};
use crate::{Error, Result};

/// Writes an artefact directory under a temporary name and renames it into place.
///
/// Dropped without [`commit`](ArtefactWriter::commit) it removes what it wrote. With
/// [`Existing::Overwrite`] the old directory is removed after the new one has its name;
/// only a directory that is empty or holds the marker file (`manifest.json`) is ever replaced, so a wrong
/// path cannot cost anyone their files.
///
/// ```
/// use loxia_core::artefact::*;
/// const VECTORS: ArtefactKind = ArtefactKind { name: "vectors", version: 1 };
/// let parent = tempfile::tempdir().unwrap();
/// let path = parent.path().join("vectors");
/// let mut writer = ArtefactWriter::create(&path, Existing::Refuse).unwrap();
/// writer.add_file("data.bin", |file| file.write_bytes(&[1, 2, 3])).unwrap();
/// writer.add_manifest(&Manifest::new(VECTORS)).unwrap();
/// assert!(!path.exists());
/// writer.commit().unwrap();
/// assert_eq!(Manifest::read(&path, VECTORS).unwrap().kind, "vectors");
/// ```
#[derive(Debug)]
pub struct ArtefactWriter {
    target: PathBuf,
    temporary: Temporary,
    existing: Existing,
    marker: String,
}

impl ArtefactWriter {
    /// Starts an artefact that will be at `path`; its parent directory must exist.
    pub fn create(path: impl Into<PathBuf>, existing: Existing) -> Result<Self> {
        Self::create_marked(path, existing, MANIFEST_FILE)
    }

    /// Like [`create`](ArtefactWriter::create) for directories that are known by another file than
    /// `manifest.json`.
    pub fn create_marked(path: impl Into<PathBuf>, existing: Existing, marker: &str) -> Result<Self> {
        let target = path.into();
        recover(&target);
        check_replaceable(&target, existing, marker)?;
        let temporary = Temporary::directory(&target)?;
        Ok(ArtefactWriter { target, temporary, existing, marker: marker.to_owned() })
    }

    /// The temporary directory, for writers that need more than a stream. Files that they put there they sync
    /// themselves; directories, which may hold files of [`add_file`](ArtefactWriter::add_file), are synced by
    /// [`commit`](ArtefactWriter::commit).
    pub fn directory(&self) -> &Path {
        self.temporary.path()
    }

    /// Adds a file of the given name and syncs it.
    pub fn add_file<E: From<Error>>(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut OutputFile) -> Result<(), E>,
    ) -> Result<(), E> {
        let path = self.directory().join(name);
        let file = File::create_new(&path).map_err(io_error(&path, "create"))?;
        let mut output = OutputFile::new(file, &self.target.join(name));
        write(&mut output)?;
        Ok(output.finish()?)
    }

    /// Adds `manifest.json`.
    pub fn add_manifest(&mut self, manifest: &Manifest) -> Result<()> {
        self.add_file(MANIFEST_FILE, |file| file.write_bytes(manifest.to_json().as_bytes()))
    }

    /// Gives the artefact its name. On error the old one, if any, is in its place; that the old one could
    /// not be removed afterwards is no error.
    pub fn commit(self) -> Result<()> {
        sync_tree(self.directory())?;
        replace_directory(self.directory(), &self.target, self.existing, &self.marker)
    }
}
