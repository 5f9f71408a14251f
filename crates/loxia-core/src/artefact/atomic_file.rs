//! Single files that appear whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::Existing;
use super::durable::{exists, io_error, rename_durably};
use super::temporary::Temporary;
use crate::{Error, Result};

/// A buffered file on its way to its final name; errors speak of that name.
#[derive(Debug)]
pub struct OutputFile {
    target: PathBuf,
    file: BufWriter<File>,
}

impl OutputFile {
    /// Buffers a new file that will be `target`.
    pub(super) fn new(file: File, target: &Path) -> Self {
        OutputFile { target: target.to_owned(), file: BufWriter::with_capacity(1 << 16, file) }
    }

    /// Writes all bytes; an error names the file.
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(io_error(&self.target, "write"))
    }

    /// Gives an error of the [`Write`] interface the file's name.
    pub fn error(&self, source: io::Error) -> Error {
        Error::io(&self.target, "write", source)
    }

    /// Empties the buffer and waits until the disk has everything.
    pub(super) fn finish(mut self) -> Result<()> {
        self.file.flush().map_err(io_error(&self.target, "write"))?;
        self.file.get_ref().sync_all().map_err(io_error(&self.target, "sync"))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a file that is either complete under its name or not there: under a temporary name beside it,
/// synced, renamed. If `write` fails nothing is left behind and an older file stays as it was.
///
/// A symbolic link is followed; anything that is neither a file nor a link to one is never replaced.
///
/// ```
/// use loxia_core::artefact::{Existing, write_file_atomically};
/// let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("scores.txt");
/// write_file_atomically(&path, Existing::Refuse, |file| file.write_bytes(b"0.5\n")).unwrap();
/// assert!(write_file_atomically(&path, Existing::Refuse, |file| file.write_bytes(b"1.5\n")).is_err());
/// assert_eq!(std::fs::read(&path).unwrap(), b"0.5\n");
/// ```
pub fn write_file_atomically<E: From<Error>>(
    path: &Path,
    existing: Existing,
    write: impl FnOnce(&mut OutputFile) -> Result<(), E>,
) -> Result<(), E> {
    let target = replaceable_file(path, existing)?;
    let (temporary, file) = Temporary::file(&target)?;
    let mut output = OutputFile::new(file, &target);
    write(&mut output)?;
    output.finish()?;
    // Someone else may have made it since; between here and the rename is a gap of microseconds.
    let target = replaceable_file(path, existing)?;
    rename_durably(temporary.path(), &target)?;
    Ok(())
}

/// Where the file really goes, if `existing` and what is there allow it.
fn replaceable_file(path: &Path, existing: Existing) -> Result<PathBuf> {
    if !exists(path)? {
        return Ok(path.to_owned());
    }
    if existing == Existing::Refuse {
        return Err(Error::Exists { path: path.to_owned(), resumable: false });
    }
    let target = fs::canonicalize(path).map_err(io_error(path, "resolve"))?;
    let metadata = fs::metadata(&target).map_err(io_error(&target, "look up"))?;
    if metadata.is_file() {
        Ok(target)
    } else {
        Err(Error::Invalid(format!("{} is not a regular file and will not be replaced", path.display())))
    }
}
