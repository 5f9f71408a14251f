//! JSON runs: objects with `qid`, `docno` and perhaps `query`, `text`, `title`, `rank`, `score`.
//!
//! Ids are strings or integers. Without scores the order comes from the ranks, without both from the
//! file; the first object decides which it is for the whole file. Other fields are ignored.

use std::hash::{BuildHasher, RandomState};
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use loxia_core::{Item, Query, QueryId};
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};

use super::{RunBuilder, RunFile, RunFormat, RunTexts};
use crate::fields::IdField;
use crate::lines::json_error;
use crate::segment::{Spool, StoreBuilder};
use crate::source::read_error;
use crate::{Error, LineReader, Place, QueryStore, ReadOptions, Result};

const EXPECTED: &str = "an object with `qid`, `docno`, perhaps `query`, `text`, `title`, `rank`, `score`";

#[derive(serde::Deserialize)]
struct RunRecord {
    #[serde(deserialize_with = "owned_id")]
    qid: String,
    #[serde(deserialize_with = "owned_id")]
    docno: String,
    query: Option<String>,
    text: Option<String>,
    title: Option<String>,
    rank: Option<f64>,
    score: Option<f64>,
}

fn owned_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let id: IdField<'de> = serde::Deserialize::deserialize(deserializer)?;
    Ok(id.0.into_owned())
}

pub(super) fn read_lines(mut lines: LineReader<'_>, options: &ReadOptions) -> Result<RunFile> {
    let mut reader = JsonRun::new(lines.path(), options);
    while let Some(line) = lines.next_filled()? {
        reader.push(line.json(EXPECTED)?, line.place())?;
    }
    reader.finish(RunFormat::JsonLines)
}

pub(super) fn read_array(lines: LineReader<'_>, options: &ReadOptions) -> Result<RunFile> {
    let (path, mut input) = lines.into_input();
    let buffered = input.fill_buf().map_err(|e| read_error(&path, 1, e))?;
    if buffered.starts_with(b"\xef\xbb\xbf") {
        input.consume(3);
    }
    let mut reader = JsonRun::new(&path, options);
    let mut failure = None;
    let mut json = serde_json::Deserializer::from_reader(input);
    let result = Elements { reader: &mut reader, failure: &mut failure }.deserialize(&mut json);
    result.and_then(|()| json.end()).map_err(|error| {
        let line = error.line() as u64;
        match failure {
            // Only now is the line known.
            Some(Error::Line { at, what }) => Error::Line { at: Place { line, ..at }, what },
            Some(failure) => failure,
            None if error.is_io() => read_error(&path, line, error.into()),
            None => json_error(Place { path: Arc::clone(&path), line }, &error, EXPECTED),
        }
    })?;
    reader.finish(RunFormat::JsonArray)
}

/// Feeds the elements of an array to the reader one by one.
struct Elements<'a> {
    reader: &'a mut JsonRun,
    failure: &'a mut Option<Error>,
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let unknown = Place { path: Arc::clone(&self.reader.path), line: 0 };
        while let Some(record) = elements.next_element()? {
            if let Err(error) = self.reader.push(record, unknown.clone()) {
                *self.failure = Some(error);
                return Err(serde::de::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

/// What orders the items of a file.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Score,
    Rank,
    File,
}

struct JsonRun {
    path: Arc<Path>,
    run: RunBuilder,
    order: Option<Order>,
    queries: IndexMap<QueryId, String>,
    items: StoreBuilder<Item>,
    spool: Option<Spool>,
    /// Of each item's title and text, to notice a docno that stands for two texts.
    fingerprints: Vec<u64>,
    hasher: RandomState,
}

impl JsonRun {
    fn new(path: &Arc<Path>, options: &ReadOptions) -> Self {
        JsonRun {
            path: Arc::clone(path),
            run: RunBuilder::default(),
            order: None,
            queries: IndexMap::new(),
            items: StoreBuilder::new(options.spool_dir.as_deref()),
            spool: None,
            fingerprints: Vec::new(),
            hasher: RandomState::new(),
        }
    }

    fn push(&mut self, record: RunRecord, at: Place) -> Result<()> {
        let invalid = |what: String| Error::Line { at: at.clone(), what };
        if record.qid.is_empty() || record.docno.is_empty() {
            return Err(invalid("`qid` or `docno` is empty".into()));
        }
        let found = match (record.score, record.rank) {
            (Some(_), _) => Order::Score,
            (None, Some(_)) => Order::Rank,
            (None, None) => Order::File,
        };
        let order = *self.order.get_or_insert(found);
        let score = match (order, record.score, record.rank) {
            (Order::Score, Some(score), _) => Some(score),
            (Order::Rank, None, Some(rank)) => Some(-rank),
            (Order::File, None, None) => None,
            _ => {
                let what = "`score` and `rank` must be on all objects of a run or on none, this one differs";
                return Err(invalid(what.into()));
            }
        };
        if score.is_some_and(|score| !score.is_finite()) {
            return Err(invalid("the score is not finite".into()));
        }
        self.keep_query_text(&record).map_err(&invalid)?;
        self.keep_item_text(&record, &invalid)?;
        let by_file = |rank: usize| -(rank as f64);
        self.run.push(&record.qid, &record.docno, |rank| score.unwrap_or_else(|| by_file(rank)));
        Ok(())
    }

    fn keep_query_text(&mut self, record: &RunRecord) -> Result<(), String> {
        let Some(text) = &record.query else { return Ok(()) };
        match self.queries.get(record.qid.as_str()) {
            Some(earlier) if earlier == text => {}
            Some(earlier) => {
                let qid = &record.qid;
                return Err(format!("query {qid:?} is {text:?} here and {earlier:?} before"));
            }
            None => {
                self.queries.insert(record.qid.as_str().into(), text.clone());
            }
        }
        Ok(())
    }

    fn keep_item_text(&mut self, record: &RunRecord, invalid: &impl Fn(String) -> Error) -> Result<()> {
        let Some(text) = &record.text else { return Ok(()) };
        let title = record.title.as_ref().filter(|title| !title.is_empty());
        let fingerprint = self.hasher.hash_one((title, text));
        if let Some(position) = self.items.position(&record.docno) {
            if self.fingerprints[position as usize] != fingerprint {
                let docno = &record.docno;
                return Err(invalid(format!(
                    "docno {docno:?} has another title or text than before; give each text its own docno"
                )));
            }
            return Ok(());
        }
        let spool = match &mut self.spool {
            Some(spool) => spool,
            none => none.insert(self.items.begin_json(&self.path)?),
        };
        let item = Item { id: record.docno.as_str().into(), title: title.cloned(), text: text.clone() };
        self.items.add_json(item, spool)?;
        self.fingerprints.push(fingerprint);
        Ok(())
    }

    fn finish(self, format: RunFormat) -> Result<RunFile> {
        let mut texts = RunTexts::default();
        if !self.queries.is_empty() {
            let queries = self.queries.into_iter().map(|(id, text)| Query::plain(id, text));
            texts.queries = Some(QueryStore::from_records(queries.collect())?);
        }
        if let Some(spool) = self.spool {
            spool.finish()?;
            texts.items = Some(self.items.finish());
        }
        Ok(self.run.finish(texts, format))
    }
}
