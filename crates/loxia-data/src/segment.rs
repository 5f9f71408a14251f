//! One file's part of a [`Store`](crate::Store): where the lines are, and how they are read again.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loxia_core::{IdTable, Item};

use crate::item_format::item_parser;
use crate::store::{Parser, Record, RecordDigest, Store, Texts, push_id};
use crate::write::item_json;
use crate::{Error, Line, LineFormat, LineReader, Place, Result, positioned};

/// Lines closer together than this are read in one go.
const NEAR: u64 = 16 << 10;
/// The most that is read in one go, unless one line is longer.
const AT_ONCE: u64 = 1 << 20;

/// The records of one file.
pub(crate) struct Segment<T> {
    path: Arc<Path>,
    file: File,
    parser: Parser<T>,
    /// Position of its first record in the store.
    first: usize,
    starts: Vec<u64>,
    lengths: Vec<u32>,
    gaps: Vec<Gap>,
}

/// Lines left out: before record `record` of the segment, `skipped` lines in all.
struct Gap {
    record: usize,
    skipped: u64,
}

impl<T> Segment<T> {
    /// The positions in the store that this file holds.
    pub(crate) fn positions(&self) -> Range<usize> {
        self.first..self.first + self.starts.len()
    }

    /// File and line of the record at a position of the store.
    pub(crate) fn place(&self, position: usize) -> Place {
        let record = position - self.first;
        let gaps = self.gaps.partition_point(|gap| gap.record <= record);
        let skipped = if gaps == 0 { 0 } else { self.gaps[gaps - 1].skipped };
        Place { path: Arc::clone(&self.path), line: record as u64 + 1 + skipped }
    }

    fn skip_line(&mut self) {
        let record = self.starts.len();
        let skipped = self.gaps.last().map_or(0, |gap| gap.skipped) + 1;
        match self.gaps.last_mut() {
            Some(gap) if gap.record == record => gap.skipped = skipped,
            _ => self.gaps.push(Gap { record, skipped }),
        }
    }
}

impl<T: Record> Segment<T> {
    /// Appends the records of a range of the store's positions, all inside this segment.
    pub(crate) fn read(&self, range: Range<usize>, ids: &IdTable, records: &mut Vec<T>) -> Result<()> {
        let mut bytes = Vec::new();
        let mut next = range.start - self.first;
        let last = range.end - self.first;
        while next < last {
            let group = self.group(next, last);
            let start = self.starts[group.start];
            let length = self.end_of(group.end - 1) - start;
            bytes.resize(length as usize, 0);
            let filled = positioned::read_at(&self.file, &mut bytes, start)
                .map_err(|e| Error::io(&*self.path, "read", e))?;
            for record in group.clone() {
                let from = (self.starts[record] - start) as usize;
                let to = from + self.lengths[record] as usize;
                let position = self.first + record;
                let line = bytes[..filled].get(from..to);
                records.push(self.parse(line, position, ids)?);
            }
            next = group.end;
        }
        Ok(())
    }

    fn end_of(&self, record: usize) -> u64 {
        self.starts[record] + u64::from(self.lengths[record])
    }

    /// The longest run of neighbours from `next` on that is worth one read.
    fn group(&self, next: usize, last: usize) -> Range<usize> {
        let mut end = next + 1;
        while end < last
            && self.starts[end].saturating_sub(self.end_of(end - 1)) <= NEAR
            && self.end_of(end) - self.starts[next] <= AT_ONCE
        {
            end += 1;
        }
        next..end
    }

    fn parse(&self, line: Option<&[u8]>, position: usize, ids: &IdTable) -> Result<T> {
        let at = self.place(position);
        let changed = |what: &str| Error::Changed { at: at.clone(), what: what.to_owned() };
        let bytes = line.ok_or_else(|| changed("it is shorter"))?;
        let text = std::str::from_utf8(bytes).map_err(|_| changed("the line is not UTF-8"))?;
        let expected = ids.get(position as u32);
        match (self.parser)(&Line::new(&self.path, at.line, text)) {
            Ok(Some(record)) if record.id() == expected => Ok(record),
            Ok(_) => Err(changed(&format!("id {expected:?} is not on this line"))),
            Err(error) => Err(changed(&error.to_string())),
        }
    }
}

/// Reads files into a [`Store`].
pub(crate) struct StoreBuilder<T> {
    ids: IdTable,
    digest: RecordDigest,
    segments: Vec<Segment<T>>,
    spool_dir: PathBuf,
}

impl<T: Record> StoreBuilder<T> {
    /// Spools go to `spool_dir`, or where the system keeps temporary files.
    pub(crate) fn new(spool_dir: Option<&Path>) -> Self {
        StoreBuilder {
            ids: IdTable::new(),
            digest: RecordDigest::new(),
            segments: Vec::new(),
            spool_dir: spool_dir.map_or_else(std::env::temp_dir, Path::to_owned),
        }
    }

    /// Number of records so far.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Where the record of an id stands, if it came by.
    pub(crate) fn position(&self, id: &str) -> Option<u32> {
        self.ids.position(id)
    }

    fn begin(&mut self, path: &Arc<Path>, file: File, parser: Parser<T>) {
        self.segments.push(Segment {
            path: Arc::clone(path),
            file,
            parser,
            first: self.ids.len(),
            starts: Vec::new(),
            lengths: Vec::new(),
            gaps: Vec::new(),
        });
    }

    /// Adds all records of a file.
    pub(crate) fn add(&mut self, mut lines: LineReader<'static>, parser: Parser<T>) -> Result<()> {
        let (file, mut spool) = match lines.take_plain() {
            Some(file) => (file, None),
            None => {
                let spool = Spool::new(&self.spool_dir)?;
                (spool.file()?, Some(spool))
            }
        };
        self.begin(lines.path(), file, Arc::clone(&parser));
        while let Some(line) = lines.next_line()? {
            let record = if line.is_blank() { None } else { parser(&line)? };
            self.take(record, &line, spool.as_mut())?;
        }
        if let Some(spool) = spool {
            spool.finish()?;
        }
        if let Some(segment) = self.segments.last_mut() {
            segment.starts.shrink_to_fit();
            segment.lengths.shrink_to_fit();
            segment.gaps.shrink_to_fit();
        }
        Ok(())
    }

    fn take(&mut self, record: Option<T>, line: &Line<'_>, spool: Option<&mut Spool>) -> Result<()> {
        let Some(record) = record else {
            if let Some(segment) = self.segments.last_mut() {
                segment.skip_line();
            }
            return Ok(());
        };
        push_id(&mut self.ids, record.id(), line, &self.segments)?;
        self.digest.update(&record);
        let start = match spool {
            Some(spool) => spool.write(line.text())?,
            None => line.start(),
        };
        let length = u32::try_from(line.text().len()).map_err(|_| line.invalid("the line is over 4 GiB"))?;
        if let Some(segment) = self.segments.last_mut() {
            segment.starts.push(start);
            segment.lengths.push(length);
        }
        Ok(())
    }

    /// The store of everything added.
    pub(crate) fn finish(mut self) -> Store<T> {
        self.ids.shrink_to_fit();
        Store { ids: self.ids, digest: self.digest.finish(), texts: Texts::Files(self.segments) }
    }
}

impl StoreBuilder<Item> {
    /// Prepares for items that come one by one and are kept as lines of JSON in a temporary file.
    pub(crate) fn begin_json(&mut self, path: &Arc<Path>) -> Result<Spool> {
        let spool = Spool::new(&self.spool_dir)?;
        self.begin(path, spool.file()?, item_parser(LineFormat::Json));
        Ok(spool)
    }

    /// One such item; its id must be new.
    pub(crate) fn add_json(&mut self, item: Item, spool: &mut Spool) -> Result<()> {
        let text = serde_json::to_string(&item_json(&item)).map_err(|e| Error::output(e.into()))?;
        let path = Arc::clone(&self.segments[self.segments.len() - 1].path);
        let line = Line::new(&path, self.ids.len() as u64 + 1, &text);
        self.take(Some(item), &line, Some(spool))
    }
}

/// An unlinked temporary file that texts are moved to.
pub(crate) struct Spool {
    dir: PathBuf,
    output: BufWriter<File>,
    length: u64,
}

impl Spool {
    fn new(dir: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(dir)
            .map_err(|e| Error::io(dir, "make a temporary file (TMPDIR chooses another place)", e))?;
        Ok(Spool { dir: dir.to_owned(), output: BufWriter::with_capacity(1 << 18, file), length: 0 })
    }

    fn file(&self) -> Result<File> {
        self.output.get_ref().try_clone().map_err(|e| self.failed(e))
    }

    fn write(&mut self, line: &str) -> Result<u64> {
        let start = self.length;
        self.output.write_all(line.as_bytes()).map_err(|e| self.failed(e))?;
        self.length += line.len() as u64;
        Ok(start)
    }

    /// Everything written can be read from now on.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.output.flush().map_err(|e| self.failed(e))
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::io(&self.dir, "write a temporary file (TMPDIR chooses another place)", error)
    }
}
