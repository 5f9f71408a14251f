//! A file of weights: mapped, to find one's way in it, and read, to get its numbers.
//!
//! A page that was touched in a map counts as memory of the process, with neighbours that nobody asked for, a MiB of
//! them where the system caches files in large pieces; a piece that is read into a buffer counts once.

use std::fs::File;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use memmap2::Mmap;
#[cfg(unix)]
use memmap2::UncheckedAdvice;

use crate::error::{Error, Result};

/// A file of weights; it stands for its bytes.
pub(crate) struct StoredFile {
    path: PathBuf,
    #[cfg(unix)]
    file: File,
    map: Mmap,
}

impl StoredFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
        // SAFETY: the map is read-only and private to this process. Another process that shortens the file
        // while it is read can make a read fail with SIGBUS; model files are not written in place.
        let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io(path, "map", e))?;
        Ok(StoredFile {
            path: path.to_owned(),
            #[cfg(unix)]
            file,
            map,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a part of the file that lies in it into a buffer, in the place of what that held.
    pub(crate) fn read(&self, part: Range<usize>, buffer: &mut Vec<u8>) -> Result<()> {
        #[cfg(unix)]
        {
            buffer.resize(part.len(), 0);
            std::os::unix::fs::FileExt::read_exact_at(&self.file, buffer, part.start as u64)
                .map_err(|e| Error::io(&self.path, "read", e))
        }
        #[cfg(not(unix))]
        {
            buffer.clear();
            buffer.extend_from_slice(&self.map[part]);
            Ok(())
        }
    }

    /// Says that a part of the map was read and need not stay in memory beside what was made of it.
    pub(crate) fn release(&self, part: Range<usize>) {
        #[cfg(unix)]
        {
            // SAFETY: the map is of a file and never written; pages that are read again come from the file again.
            let advised =
                unsafe { self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, part.start, part.len()) };
            // Advice that is not taken costs memory and nothing else.
            drop(advised);
        }
        #[cfg(not(unix))]
        let _ = part;
    }
}

impl Deref for StoredFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

/// Where the bytes of a tensor are, in row-major order.
pub(crate) enum TensorBytes {
    /// In this part of the file.
    Stored(Range<usize>),
    /// Nowhere in this order: here is a copy that is.
    Gathered(Vec<u8>),
}

impl TensorBytes {
    pub(crate) fn len(&self) -> usize {
        match self {
            TensorBytes::Stored(part) => part.len(),
            TensorBytes::Gathered(bytes) => bytes.len(),
        }
    }

    /// A part of them, which `buffer` may be needed for.
    pub(crate) fn piece<'a>(
        &'a self,
        file: &StoredFile,
        piece: Range<usize>,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        match self {
            TensorBytes::Stored(part) => {
                file.read(part.start + piece.start..part.start + piece.end, buffer)?;
                Ok(buffer)
            }
            TensorBytes::Gathered(bytes) => Ok(&bytes[piece]),
        }
    }
}
