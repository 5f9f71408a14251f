//! Bytes of a file or of standard input, decompressed where they are gzip.
//!
//! Compression is told by the first bytes, never by the name. Files come from anywhere: a gzip stream
//! that inflates out of proportion is stopped ([`Limits`]).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;

use crate::{Error, Result};

const BUFFER: usize = 1 << 18;

/// Bounds on what a file may make us do.
///
/// ```
/// use loxia_data::Limits;
/// let strict = Limits { line_bytes: 1 << 20, ..Limits::default() };
/// assert_eq!(strict.inflate_ratio, 200);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Longest line in bytes; 64 MiB unless set.
    pub line_bytes: usize,
    /// A gzip file may always inflate to this many bytes; 1 GiB unless set.
    pub inflated_bytes: u64,
    /// Beyond that it may inflate to this many times its compressed size; 200 unless set. Text
    /// compresses 3 to 20 times, deflate ends at 1,032 times.
    pub inflate_ratio: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { line_bytes: 64 << 20, inflated_bytes: 1 << 30, inflate_ratio: 200 }
    }
}

/// An opened file or stream, ready to be read as plain bytes.
pub(crate) struct Source<'a> {
    pub(crate) path: Arc<Path>,
    pub(crate) input: Box<dyn BufRead + Send + 'a>,
    /// The file itself, where positions in the text are positions in the file.
    pub(crate) plain: Option<File>,
}

impl Source<'static> {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &Path, limits: &Limits) -> Result<Self> {
        if path == Path::new("-") {
            return Source::sniff(path, BufReader::with_capacity(BUFFER, io::stdin()), limits);
        }
        let file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
        let metadata = file.metadata().map_err(|e| Error::io(path, "open", e))?;
        if metadata.is_dir() {
            return Err(Error::missing(path, "is a directory, expected a file"));
        }
        let again = if metadata.is_file() {
            Some(file.try_clone().map_err(|e| Error::io(path, "open", e))?)
        } else {
            None
        };
        let mut source = Source::sniff(path, BufReader::with_capacity(BUFFER, file), limits)?;
        source.plain = source.plain_text_of(again);
        Ok(source)
    }

    fn plain_text_of(&mut self, file: Option<File>) -> Option<File> {
        let mut magic = [0; 2];
        let file = file?;
        let filled = crate::positioned::read_at(&file, &mut magic, 0).ok()?;
        (filled < 2 || magic != GZIP_MAGIC).then_some(file)
    }
}

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// How much of the start formats are told apart by.
const HEAD: usize = 4096;

impl<'a> Source<'a> {
    /// Wraps a reader; `path` is the name in messages.
    pub(crate) fn sniff(path: &Path, mut input: impl BufRead + Send + 'a, limits: &Limits) -> Result<Self> {
        // A pipe may hand out its first bytes one by one, so they are collected before the look.
        let mut head = Vec::with_capacity(HEAD);
        input.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(|e| Error::io(path, "read", e))?;
        let compressed = head.starts_with(&GZIP_MAGIC);
        let whole = io::Cursor::new(head).chain(input);
        let input: Box<dyn BufRead + Send + 'a> = if compressed {
            Box::new(BufReader::with_capacity(BUFFER, Inflate::new(whole, limits)))
        } else {
            Box::new(whole)
        };
        Ok(Source { path: Arc::from(path), input, plain: None })
    }
}

/// Decompresses all members of a gzip stream and watches the proportion.
struct Inflate<R: Read> {
    decoder: MultiGzDecoder<Counted<R>>,
    inflated: u64,
    floor: u64,
    ratio: u64,
}

impl<R: Read> Inflate<R> {
    fn new(compressed: R, limits: &Limits) -> Self {
        Inflate {
            decoder: MultiGzDecoder::new(Counted { inner: compressed, count: 0 }),
            inflated: 0,
            floor: limits.inflated_bytes,
            ratio: limits.inflate_ratio,
        }
    }
}

impl<R: Read> Read for Inflate<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.decoder.read(buffer).map_err(|e| match e.kind() {
            io::ErrorKind::Interrupted => e,
            _ => io::Error::new(io::ErrorKind::InvalidData, DamagedGzip(e.to_string())),
        })?;
        self.inflated += count as u64;
        let compressed = self.decoder.get_ref().count;
        if self.inflated > self.floor.max(compressed.saturating_mul(self.ratio)) {
            return Err(io::Error::other(OutOfProportion { compressed, inflated: self.inflated }));
        }
        Ok(count)
    }
}

struct Counted<R> {
    inner: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct DamagedGzip(String);

#[derive(Debug, thiserror::Error)]
#[error("{compressed} bytes of gzip inflate to more than {inflated}")]
struct OutOfProportion {
    compressed: u64,
    inflated: u64,
}

/// Gives an error of a [`Source`]'s reader its place.
pub(crate) fn read_error(path: &Arc<Path>, line: u64, error: io::Error) -> Error {
    let at = crate::Place { path: Arc::clone(path), line };
    if let Some(inner) = error.get_ref() {
        if let Some(&OutOfProportion { compressed, inflated }) = inner.downcast_ref() {
            return Error::Inflated { at, compressed, inflated };
        }
        if inner.is::<DamagedGzip>() {
            return Error::Gzip { at, source: error };
        }
    }
    Error::io(&**path, "read", error)
}
