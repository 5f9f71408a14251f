//! Lines of a file or stream, with their numbers, and JSON out of a line.

use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use crate::source::{Source, read_error};
use crate::{Error, Limits, Place, Result};

/// A line and where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    path: &'a Arc<Path>,
    number: u64,
    start: u64,
    text: &'a str,
}

impl<'a> Line<'a> {
    pub(crate) fn new(path: &'a Arc<Path>, number: u64, text: &'a str) -> Self {
        Line { path, number, start: 0, text }
    }

    /// Its number, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its text without the line end.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Where its first byte is in the (decompressed) text.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Whether nothing but white space is on it.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// File and line number.
    pub fn place(&self) -> Place {
        Place { path: Arc::clone(self.path), line: self.number }
    }

    pub(crate) fn invalid(&self, what: impl Into<String>) -> Error {
        Error::Line { at: self.place(), what: what.into() }
    }

    /// The line as JSON; `expected` says what it should hold.
    pub(crate) fn json<T: serde::Deserialize<'a>>(&self, expected: &str) -> Result<T> {
        serde_json::from_str(self.text).map_err(|e| json_error(self.place(), &e, expected))
    }
}

/// An error of serde_json, with its own line number replaced by ours.
pub(crate) fn json_error(at: Place, error: &serde_json::Error, expected: &str) -> Error {
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
    let what = if error.is_eof() {
        format!("the JSON ends too early ({message}), expected {expected}; is the file cut short?")
    } else {
        format!("{message}; expected {expected}")
    };
    Error::Json { at, column: error.column(), what }
}

/// Streams the lines of a file, plain or gzip, or of standard input.
///
/// Line ends are LF or CR LF, the last may lack, a byte-order mark is skipped. Text that is not UTF-8, a
/// line beyond [`Limits::line_bytes`] and damaged or disproportionate gzip are errors with their place.
///
/// ```
/// use loxia_data::{LineReader, Limits};
/// let mut lines = LineReader::new(&b"one\r\ntwo"[..], "example", &Limits::default()).unwrap();
/// while let Some(line) = lines.next_line().unwrap() {
///     println!("{}: {}", line.number(), line.text());
/// }
/// ```
pub struct LineReader<'a> {
    path: Arc<Path>,
    input: Box<dyn BufRead + Send + 'a>,
    plain: Option<std::fs::File>,
    buffer: String,
    /// Bytes of the buffer before the line: a byte-order mark.
    skipped: usize,
    number: u64,
    start: u64,
    offset: u64,
    limit: usize,
}

impl LineReader<'static> {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        Ok(LineReader::of(Source::open(path.as_ref(), limits)?, limits))
    }
}

impl<'a> LineReader<'a> {
    /// Reads lines from any reader; `name` stands for the path in messages.
    pub fn new(input: impl BufRead + Send + 'a, name: &str, limits: &Limits) -> Result<Self> {
        Ok(LineReader::of(Source::sniff(Path::new(name), input, limits)?, limits))
    }

    fn of(source: Source<'a>, limits: &Limits) -> Self {
        LineReader {
            path: source.path,
            input: source.input,
            plain: source.plain,
            buffer: String::new(),
            skipped: 0,
            number: 0,
            start: 0,
            offset: 0,
            limit: limits.line_bytes,
        }
    }

    /// The next line; `None` at the end.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>> {
        Ok(self.advance()?.then(|| self.current()))
    }

    /// The next line that is not blank.
    pub fn next_filled(&mut self) -> Result<Option<Line<'_>>> {
        while self.advance()? {
            if !self.current().is_blank() {
                return Ok(Some(self.current()));
            }
        }
        Ok(None)
    }

    /// The line read last.
    fn current(&self) -> Line<'_> {
        Line { path: &self.path, number: self.number, start: self.start, text: &self.buffer[self.skipped..] }
    }

    /// Reads one more line into the buffer; `false` at the end.
    fn advance(&mut self) -> Result<bool> {
        let mut bytes = std::mem::take(&mut self.buffer).into_bytes();
        bytes.clear();
        let most = (self.limit as u64).saturating_add(2);
        let read = self.input.by_ref().take(most).read_until(b'\n', &mut bytes);
        let count = read.map_err(|e| read_error(&self.path, self.number, e))?;
        if count == 0 {
            return Ok(false);
        }
        self.number += 1;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
            if bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
        }
        if bytes.len() > self.limit {
            return Err(Error::LineTooLong { at: self.place(), limit: self.limit });
        }
        self.skipped = if self.number == 1 && bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        self.start = self.offset + self.skipped as u64;
        self.buffer = String::from_utf8(bytes).map_err(|e| {
            let valid = e.utf8_error().valid_up_to();
            Error::Utf8 { at: self.place(), column: valid + 1, offset: self.offset + valid as u64 }
        })?;
        self.offset += count as u64;
        Ok(true)
    }

    /// File and number of the line read last.
    pub(crate) fn place(&self) -> Place {
        Place { path: Arc::clone(&self.path), line: self.number }
    }

    pub(crate) fn path(&self) -> &Arc<Path> {
        &self.path
    }

    /// The file behind, when positions in the text are positions in the file.
    pub(crate) fn take_plain(&mut self) -> Option<std::fs::File> {
        self.plain.take()
    }

    /// The first byte that is not white space, without reading on; for telling formats apart.
    pub(crate) fn peek_byte(&mut self) -> Result<Option<u8>> {
        Ok(self.peek_line()?.first().copied())
    }

    /// The start of the first line that is not blank, without reading on; for telling formats apart.
    ///
    /// Looks no further than the first few kilobytes.
    pub(crate) fn peek_line(&mut self) -> Result<&[u8]> {
        let buffered = self.input.fill_buf().map_err(|e| read_error(&self.path, self.number, e))?;
        let buffered = buffered.strip_prefix(b"\xef\xbb\xbf").unwrap_or(buffered).trim_ascii_start();
        Ok(buffered.split(|byte| *byte == b'\n').next().unwrap_or(buffered))
    }

    /// The rest as bytes, for formats that are not made of lines.
    pub(crate) fn into_input(self) -> (Arc<Path>, Box<dyn BufRead + Send + 'a>) {
        (self.path, self.input)
    }
}

/// Records of a file of lines, one after the other; what [`LineReader`] is for whole records.
///
/// An iterator of results; it ends after the first error.
pub struct Records<'a, T> {
    lines: LineReader<'a>,
    parse: Parse<T>,
    failed: bool,
}

type Parse<T> = Box<dyn Fn(&Line<'_>) -> Result<T> + Send>;

impl<'a, T> Records<'a, T> {
    pub(crate) fn new(
        lines: LineReader<'a>,
        parse: impl Fn(&Line<'_>) -> Result<T> + Send + 'static,
    ) -> Self {
        Records { lines, parse: Box::new(parse), failed: false }
    }

    /// File and line of the record read last.
    pub fn place(&self) -> Place {
        self.lines.place()
    }
}

impl<T> Iterator for Records<'_, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        if self.failed {
            return None;
        }
        let parse = &self.parse;
        let record =
            self.lines.next_filled().and_then(|line| line.as_ref().map(parse).transpose()).transpose();
        self.failed = matches!(record, Some(Err(_)));
        record
    }
}
