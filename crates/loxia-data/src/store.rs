//! Random access to the records of files with bounded memory.
//!
//! A [`Store`] keeps the ids, and for each record where its line is: 12 bytes and the id table's
//! `length + 20` or so. The texts stay in the file and are read when asked for. A file whose positions
//! mean nothing later (gzip, a pipe) is spooled, decompressed, to an unlinked temporary file. Opening
//! reads everything once: every line is checked, duplicates are found, and the digest is computed.

use std::ops::Range;
use std::sync::Arc;

use loxia_core::artefact::Digester;
use loxia_core::{IdTable, Item, Query};

use crate::segment::Segment;
use crate::{Error, Line, Result};

/// Collections of items with random access.
///
/// ```
/// use loxia_core::Item;
/// use loxia_data::ItemStore;
/// let items = ItemStore::from_records(vec![Item::plain("a", "red"), Item::plain("b", "blue")]).unwrap();
/// assert_eq!(items.position("b"), Some(1));
/// assert_eq!(items.get(1).unwrap().text, "blue");
/// ```
pub type ItemStore = Store<Item>;

/// Queries with random access, in file order: row `i` of a score matrix is query `i`.
pub type QueryStore = Store<Query>;

/// What can be kept in a [`Store`]: [`Item`] and [`Query`].
pub trait Record: Clone + Send + Sync + sealed::Sealed + 'static {
    /// Its id.
    fn id(&self) -> &str;

    /// Everything it says, for a digest: each string with its length before it.
    fn feed(&self, digest: &mut dyn FnMut(&[u8]));
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for loxia_core::Item {}
    impl Sealed for loxia_core::Query {}
}

fn feed_text(digest: &mut dyn FnMut(&[u8]), text: &str) {
    digest(&(text.len() as u64).to_le_bytes());
    digest(text.as_bytes());
}

impl Record for Item {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn feed(&self, digest: &mut dyn FnMut(&[u8])) {
        feed_text(digest, self.id.as_str());
        digest(&[u8::from(self.title.is_some())]);
        if let Some(title) = &self.title {
            feed_text(digest, title);
        }
        feed_text(digest, &self.text);
    }
}

impl Record for Query {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn feed(&self, digest: &mut dyn FnMut(&[u8])) {
        use loxia_core::QueryText::{Mention, Plain};
        feed_text(digest, self.id.as_str());
        match &self.text {
            Plain(text) => {
                digest(&[0]);
                feed_text(digest, text);
            }
            Mention { left, mention, right } => {
                digest(&[1]);
                [left, mention, right].into_iter().for_each(|part| feed_text(digest, part));
            }
        }
    }
}

/// Makes a record of a line; `None` leaves the line out (another world, a header).
pub(crate) type Parser<T> = Arc<dyn Fn(&Line<'_>) -> Result<Option<T>> + Send + Sync>;

/// Records in order, by position or id. See [`ItemStore`] and [`QueryStore`].
pub struct Store<T> {
    pub(crate) ids: IdTable,
    pub(crate) digest: String,
    pub(crate) texts: Texts<T>,
}

pub(crate) enum Texts<T> {
    Memory(Vec<T>),
    Files(Vec<Segment<T>>),
}

impl<T: Record> Store<T> {
    /// Keeps records that are already in memory.
    pub fn from_records(records: Vec<T>) -> Result<Self> {
        let mut ids = IdTable::new();
        let mut digest = RecordDigest::new();
        for record in &records {
            ids.push(record.id())?;
            digest.update(record);
        }
        Ok(Store { ids, digest: digest.finish(), texts: Texts::Memory(records) })
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The ids in order.
    pub fn ids(&self) -> &IdTable {
        &self.ids
    }

    /// Where a record stands, by its id.
    pub fn position(&self, id: &str) -> Option<u32> {
        self.ids.position(id)
    }

    /// SHA-256 in hexadecimal over ids, titles and texts in order: equal for equal content, in whatever
    /// file, format or compression.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Reads one record.
    ///
    /// # Panics
    /// If `position` is not below [`Store::len`].
    pub fn get(&self, position: u32) -> Result<T> {
        let mut record = self.read(position as usize..position as usize + 1)?;
        Ok(record.swap_remove(0))
    }

    /// Reads the records of a range of positions.
    ///
    /// # Panics
    /// If the range goes beyond [`Store::len`].
    pub fn read(&self, range: Range<usize>) -> Result<Vec<T>> {
        assert!(range.start <= range.end && range.end <= self.len(), "{range:?} of {} records", self.len());
        let segments = match &self.texts {
            Texts::Memory(records) => return Ok(records[range].to_vec()),
            Texts::Files(segments) => segments,
        };
        let mut records = Vec::with_capacity(range.len());
        let mut next = range.start;
        while next < range.end {
            let segment = &segments[segments.partition_point(|s| s.positions().end <= next)];
            let end = segment.positions().end.min(range.end);
            segment.read(next..end, &self.ids, &mut records)?;
            next = end;
        }
        Ok(records)
    }

    /// Reads all records in order, a few hundred at a time.
    pub fn iter(&self) -> impl Iterator<Item = Result<T>> + '_ {
        const AT_ONCE: usize = 256;
        (0..self.len()).step_by(AT_ONCE).flat_map(move |start| {
            let end = (start + AT_ONCE).min(self.len());
            let (records, error) = match self.read(start..end) {
                Ok(records) => (records, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            records.into_iter().map(Ok).chain(error)
        })
    }
}

impl<T> std::fmt::Debug for Store<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({} records, {})", self.ids.len(), self.digest)
    }
}

/// The digest of records as they come by.
pub(crate) struct RecordDigest(Digester);

impl RecordDigest {
    pub(crate) fn new() -> Self {
        RecordDigest(Digester::new())
    }

    pub(crate) fn update<T: Record>(&mut self, record: &T) {
        record.feed(&mut |bytes| self.0.update(bytes));
    }

    pub(crate) fn finish(self) -> String {
        self.0.finish()
    }
}

/// Adds an id, or says where it came first.
pub(crate) fn push_id<T>(ids: &mut IdTable, id: &str, line: &Line<'_>, earlier: &[Segment<T>]) -> Result<()> {
    if id.is_empty() {
        return Err(line.invalid("the id is empty"));
    }
    match ids.push(id) {
        Ok(_) => Ok(()),
        Err(loxia_core::Error::DuplicateId { id, first, .. }) => {
            let segment = &earlier[earlier.partition_point(|s| s.positions().end <= first)];
            Err(Error::Duplicate { at: line.place(), id, first: segment.place(first) })
        }
        Err(error) => Err(error.into()),
    }
}
