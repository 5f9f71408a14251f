//! `<name>.partial`: a matrix directory on its way.
//!
//! It comes into being complete but for the scores (ids, manifest, an empty log), so whatever process finds
//! one can trust it. One process at a time works in it: the manifest, which never changes, carries a lock
//! that ends with the process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::spec::id_digests;
use super::{COL_IDS_FILE, DENSE_FILE, LOG_FILE, MatrixSpec, ROW_IDS_FILE, SPARSE_FILE, Storage, TileGrid};
use crate::artefact::{
    ArtefactWriter, Existing, MANIFEST_FILE, Manifest, check_replaceable, digest_file, discard_directory,
    exists, io_error, recover, replace_directory, sibling, sync_directory, write_id_list,
};
use crate::{Error, IdTable, Result};

/// How long a lock is waited for. A process that is just being started by another thread holds its parent's
/// locks until it runs its own program, also those that the parent has given up meanwhile.
const PATIENCE: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct PartialMatrix {
    target: PathBuf,
    pub(super) directory: PathBuf,
    existing: Existing,
    pub(super) grid: TileGrid,
    pub(super) data_path: PathBuf,
    pub(super) data: File,
    _lock: File,
}

impl PartialMatrix {
    /// Begins a matrix. Unfinished work under this name is an error, or discarded.
    pub(super) fn create(path: &Path, spec: &MatrixSpec<'_>, existing: Existing) -> Result<Self> {
        let directory = sibling(path, ".partial")?;
        // Before anything is discarded: a spec may be refused.
        let (grid, manifest) = (spec.grid()?, spec.manifest()?);
        recover(path);
        check_replaceable(path, existing, MANIFEST_FILE)?;
        if exists(&directory)? {
            if existing == Existing::Refuse {
                return Err(Error::Exists { path: directory, resumable: true });
            }
            check_replaceable(&directory, existing, MANIFEST_FILE)?;
            let _lock = exists(&directory.join(MANIFEST_FILE))?.then(|| lock(&directory)).transpose()?;
            // In one step out of its name: half of it could be neither resumed nor recognised as ours.
            discard_directory(&directory, path)?;
        }
        let mut writer = ArtefactWriter::create(&directory, Existing::Refuse)?;
        let mut add_ids = |name: &str, ids: &IdTable| {
            writer.add_file(name, |file| write_id_list(ids, file).map_err(|error| file.error(error)))
        };
        add_ids(ROW_IDS_FILE, spec.row_ids)?;
        add_ids(COL_IDS_FILE, spec.col_ids)?;
        writer.add_file(data_name(spec.storage), |_| Ok::<_, Error>(()))?;
        writer.add_file(LOG_FILE, |_| Ok::<_, Error>(()))?;
        writer.add_manifest(&manifest)?;
        writer.commit()?;
        Self::open(path, directory, spec.storage, grid, existing)
    }

    /// Goes on with a matrix, or begins it if there is nothing to go on with; `None` if it is finished.
    pub(super) fn resume(path: &Path, spec: &MatrixSpec<'_>, existing: Existing) -> Result<Option<Self>> {
        let directory = sibling(path, ".partial")?;
        // Complete but for its name it only has to be finished, whether or not the old one is in its place.
        if !exists(&directory)? {
            recover(path);
            if exists(path)? {
                match spec.check(path) {
                    Ok(_) => return Ok(None),
                    Err(error) if existing == Existing::Refuse => return Err(error),
                    Err(_) => {}
                }
            }
            return Self::create(path, spec, existing).map(Some);
        }
        check_replaceable(path, existing, MANIFEST_FILE)?;
        let manifest = spec.check(&directory)?;
        let partial = Self::open(path, directory, spec.storage, spec.grid()?, existing)?;
        partial.check_ids(&manifest)?;
        Ok(Some(partial))
    }

    fn open(
        path: &Path,
        directory: PathBuf,
        storage: Storage,
        grid: TileGrid,
        existing: Existing,
    ) -> Result<Self> {
        let lock = lock(&directory)?;
        let data_path = directory.join(data_name(storage));
        let mut options = OpenOptions::new();
        let data = options.read(true).write(true).open(&data_path).map_err(io_error(&data_path, "open"))?;
        Ok(PartialMatrix { target: path.to_owned(), directory, existing, grid, data_path, data, _lock: lock })
    }

    fn check_ids(&self, manifest: &Manifest) -> Result<()> {
        for (name, expected) in [ROW_IDS_FILE, COL_IDS_FILE].into_iter().zip(id_digests(manifest)) {
            let path = self.directory.join(name);
            let found = digest_file(&path)?;
            if found != expected {
                let what =
                    format!("SHA-256 {found}, the manifest says {expected}; begin again with --overwrite");
                return Err(Error::corrupt(path, what));
            }
        }
        Ok(())
    }

    /// Makes the data file this long.
    pub(super) fn set_data_length(&self, length: u64) -> Result<()> {
        self.data.set_len(length).map_err(io_error(&self.data_path, format!("resize to {length} bytes")))
    }

    /// Writes bytes at a place of the data file.
    pub(super) fn write_data(&mut self, offset: u64, bytes: &[u8], action: &str) -> Result<()> {
        self.data.seek(SeekFrom::Start(offset)).map_err(io_error(&self.data_path, action))?;
        self.data.write_all(bytes).map_err(io_error(&self.data_path, action))
    }

    /// Waits until the data is durable.
    pub(super) fn sync_data(&self, action: &str) -> Result<()> {
        self.data.sync_data().map_err(io_error(&self.data_path, action))
    }

    /// What is being done, for errors.
    pub(super) fn action(&self, tile: usize) -> String {
        format!("write tile {tile} of {}", self.grid.tiles())
    }

    /// Gives the complete directory its name.
    pub(super) fn finish(self) -> Result<PathBuf> {
        self.data.sync_all().map_err(io_error(&self.data_path, "sync"))?;
        sync_directory(&self.directory)?;
        replace_directory(&self.directory, &self.target, self.existing, MANIFEST_FILE)?;
        Ok(self.target)
    }
}

pub(super) fn data_name(storage: Storage) -> &'static str {
    match storage {
        Storage::Dense => DENSE_FILE,
        Storage::Sparse => SPARSE_FILE,
    }
}

fn lock(directory: &Path) -> Result<File> {
    let path = directory.join(MANIFEST_FILE);
    // Never written, but network file systems want the right to write for a lock that excludes others.
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).open(&path).map_err(io_error(&path, "open"))?;
    let begun = Instant::now();
    let mut attempt = file.try_lock();
    while matches!(attempt, Err(TryLockError::WouldBlock)) && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
        attempt = file.try_lock();
    }
    match attempt {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let busy = io::Error::new(io::ErrorKind::WouldBlock, "another process is writing this matrix");
            Err(Error::io(directory, "lock", busy))
        }
        // Some network file systems have no locks; care is then the user's.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(file),
        Err(TryLockError::Error(error)) => Err(Error::io(path, "lock", error)),
    }
}
