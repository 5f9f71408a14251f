//! Directories that appear whole.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::durable::{exists, io_error, remove_directory, rename_durably, sibling, sync_directory};
use super::temporary::{Temporary, unique_suffix};
use super::{Existing, MANIFEST_FILE, Manifest, OutputFile};
use crate::{Error, Result};

/// Writes an artefact directory under a temporary name and renames it into place.
///
/// Dropped without [`commit`](ArtefactWriter::commit) it removes what it wrote. With
/// [`Existing::Overwrite`] the old directory is moved aside, and removed after the new one has its name;
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
        check_replaceable(&target, existing, marker)?;
        let temporary = Temporary::directory(&target)?;
        Ok(ArtefactWriter { target, temporary, existing, marker: marker.to_owned() })
    }

    /// The temporary directory, for writers that need more than a stream. What they put there they sync
    /// themselves.
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

    /// Gives the artefact its name. On error the old one, if any, is in its place.
    pub fn commit(self) -> Result<()> {
        sync_directory(self.directory())?;
        replace_directory(self.directory(), &self.target, self.existing, &self.marker)
    }
}

/// Whether `existing` and what is at `target` allow a new directory there.
pub(crate) fn check_replaceable(target: &Path, existing: Existing, marker: &str) -> Result<()> {
    if !exists(target)? {
        return Ok(());
    }
    if existing == Existing::Refuse {
        return Err(Error::Exists { path: target.to_owned(), resumable: false });
    }
    let metadata = fs::symlink_metadata(target).map_err(io_error(target, "look up"))?;
    let refuse = |what: &str| Err(Error::Invalid(format!("{}: {what}, not replaced", target.display())));
    if !metadata.is_dir() {
        return refuse("not a directory");
    }
    let empty = fs::read_dir(target).map_err(io_error(target, "list"))?.next().is_none();
    if empty || exists(&target.join(marker))? {
        Ok(())
    } else {
        refuse(&format!("a directory without {marker} is no artefact"))
    }
}

/// Renames `from` to `target`, moving an old `target` aside for the time between.
pub(crate) fn replace_directory(from: &Path, target: &Path, existing: Existing, marker: &str) -> Result<()> {
    check_replaceable(target, existing, marker)?;
    if !exists(target)? {
        return rename_durably(from, target);
    }
    let aside = sibling(target, &unique_suffix(".old-"))?;
    fs::rename(target, &aside).map_err(io_error(target, "move aside"))?;
    if let Err(error) = rename_durably(from, target) {
        // Best effort: the first error is the one to report.
        let _ = fs::rename(&aside, target);
        return Err(error);
    }
    remove_directory(&aside)
}
