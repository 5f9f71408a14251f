//! The directory of kept scores: one file for each writer that ever ran beside another.
//!
//! A writer holds the lock of its file and appends to it alone. At opening it takes over a file of its
//! scorer that nobody has locked and cuts a torn tail off it; if all are taken it makes a new one. So two
//! processes never write to one file, and readers read whatever is whole.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use loxia_core::artefact::digest_bytes;
use loxia_core::{Error, Result};

use super::record::{Key, RECORD, bounded, header, read_record, record};

const EXTENSION: &str = ".scores";
/// More files than this of one scorer are someone's mistake.
const MOST_FILES: usize = 1000;

/// What was found when a directory of kept scores was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheFound {
    /// Scores that can be used.
    pub scores: u64,
    /// Records whose checksum fails; their pairs are scored again.
    pub damaged: u64,
    /// Bytes of records that a crash tore; they were cut off.
    pub torn_bytes: u64,
    /// Files of this scorer whose header is damaged; they are left as they are.
    pub refused_files: u64,
}

/// Kept scores of one scorer.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    file: File,
    /// Where the next record goes: a failed write leaves a torn one there, which the next covers.
    end: u64,
    scores: HashMap<Key, f32>,
    found: CacheFound,
}

impl Store {
    /// Reads every file of the scorer with this digest, and holds one of them for appending.
    pub(super) fn open(directory: &Path, digest: &str) -> Result<Self> {
        fs::create_dir_all(directory).map_err(|error| Error::io(directory, "create", error))?;
        let digest = bounded(digest);
        let (header, stem) = (header(&digest), digest_bytes(digest.as_bytes())[..32].to_owned());
        let (mut scores, mut found, mut own) = (HashMap::new(), CacheFound::default(), None);
        for path in files_of(directory, &stem)? {
            let file = open_file(&path)?;
            // Taken before it is read, so that its end stays where it is found.
            let is_ours = own.is_none() && lock(&file);
            match read_file(&path, &file, &header, &mut scores)? {
                Content::Refused => found.refused_files += 1,
                Content::Scores { end, damaged, torn } => {
                    found.damaged += damaged;
                    if is_ours {
                        found.torn_bytes += torn;
                        own = Some((path, file, end));
                    }
                }
            }
        }
        found.scores = scores.len() as u64;
        let (path, file, end) = match own {
            Some(own) => own,
            None => new_file(directory, &stem)?,
        };
        let mut store = Store { path, file, end, scores, found };
        store.file.set_len(end).map_err(|error| Error::io(&store.path, "cut off a torn record", error))?;
        if end == 0 {
            store.write(&header)?;
        }
        Ok(store)
    }

    /// What was there at opening.
    pub(super) fn found(&self) -> CacheFound {
        self.found
    }

    /// The score of a pair, if it is kept.
    pub(super) fn get(&self, key: Key) -> Option<f32> {
        self.scores.get(&key).copied()
    }

    /// Keeps scores. They survive the end of the process at once, and a loss of power when the store is
    /// dropped.
    pub(super) fn keep(&mut self, new: &[(Key, f32)]) -> Result<()> {
        let bytes: Vec<u8> = new.iter().flat_map(|&(key, score)| record(key, score)).collect();
        self.write(&bytes)?;
        self.scores.extend(new.iter().copied());
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.seek(SeekFrom::Start(self.end)).and_then(|_| self.file.write_all(bytes));
        written.map_err(|error| Error::io(&self.path, "keep scores", error))?;
        self.end += bytes.len() as u64;
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Nobody could be told; what is lost is scored again.
        let _ = self.file.sync_data();
    }
}

/// Files of a scorer, in the order of their names.
fn files_of(directory: &Path, stem: &str) -> Result<Vec<PathBuf>> {
    let list = |error| Error::io(directory, "list", error);
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(list)? {
        let path = entry.map_err(list)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(stem) && name.ends_with(EXTENSION) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A file that nobody else has.
fn new_file(directory: &Path, stem: &str) -> Result<(PathBuf, File, u64)> {
    for number in 0..MOST_FILES {
        let path = directory.join(format!("{stem}-{number:03}{EXTENSION}"));
        match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
            // Another may have seen it and taken it before it was locked here.
            Ok(file) if lock(&file) => return Ok((path, file, 0)),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io(path, "create", error)),
        }
    }
    let directory = directory.display();
    Err(Error::Invalid(format!("{directory}: {MOST_FILES} files of one scorer; remove the damaged ones")))
}

fn open_file(path: &Path) -> Result<File> {
    OpenOptions::new().read(true).write(true).open(path).map_err(|error| Error::io(path, "open", error))
}

/// Whether the file is now ours. Where the file system has no locks, care is the user's.
fn lock(file: &File) -> bool {
    !matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

enum Content {
    /// Not a file of this scorer, or its header is damaged.
    Refused,
    Scores {
        /// Where whole records end; 0 when not even the header is whole.
        end: u64,
        damaged: u64,
        torn: u64,
    },
}

/// Reads the whole records of a file; a key that is known already keeps its score.
fn read_file(path: &Path, file: &File, header: &[u8], scores: &mut HashMap<Key, f32>) -> Result<Content> {
    let failed = |error| Error::io(path, "read", error);
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut start = Vec::with_capacity(header.len());
    Read::by_ref(&mut reader).take(header.len() as u64).read_to_end(&mut start).map_err(failed)?;
    if !header.starts_with(&start) {
        return Ok(Content::Refused);
    }
    if start.len() < header.len() {
        return Ok(Content::Scores { end: 0, damaged: 0, torn: start.len() as u64 });
    }
    let (mut end, mut damaged) = (header.len() as u64, 0);
    let mut bytes = [0; RECORD];
    loop {
        let length = fill(&mut reader, &mut bytes).map_err(failed)?;
        if length < RECORD {
            return Ok(Content::Scores { end, damaged, torn: length as u64 });
        }
        end += RECORD as u64;
        match read_record(&bytes) {
            Some((key, score)) => {
                scores.entry(key).or_insert(score);
            }
            None => damaged += 1,
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match reader.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
