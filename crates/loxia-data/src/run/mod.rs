//! Runs: ranked lists of items for queries, from TREC files, JSON arrays and JSON lines.

mod json;
mod trec;

use std::io::BufRead;
use std::path::Path;

use hashbrown::HashSet;
use indexmap::IndexSet;
use loxia_core::{ItemId, QueryId, Run, RunEntry};

use crate::{ItemStore, LineReader, QueryStore, ReadOptions, Result};

/// A run as it was read.
#[derive(Debug)]
pub struct RunFile {
    /// The ranked lists, in file order.
    pub run: Run,
    /// Texts that came with it; a TREC run has none.
    pub texts: RunTexts,
    /// Lines left out because query and item had come before.
    pub duplicates: Duplicates,
    /// How the file was written.
    pub format: RunFormat,
}

/// How a run is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunFormat {
    /// Six columns: query, `Q0`, item, rank, score, tag.
    Trec,
    /// One JSON object a line.
    JsonLines,
    /// One JSON array of objects.
    JsonArray,
}

impl RunFormat {
    /// A short name: `trec`, `jsonl`, `json`.
    pub fn name(self) -> &'static str {
        match self {
            RunFormat::Trec => "trec",
            RunFormat::JsonLines => "jsonl",
            RunFormat::JsonArray => "json",
        }
    }
}

/// Texts that came with a run; `None` where the file has none.
#[derive(Debug, Default)]
pub struct RunTexts {
    /// The queries whose text was given.
    pub queries: Option<QueryStore>,
    /// The items whose text was given, kept in a temporary file.
    pub items: Option<ItemStore>,
}

/// Repeated (query, item) pairs: the first is kept, the others are counted.
#[derive(Debug, Clone, Default)]
pub struct Duplicates {
    /// How many lines were left out.
    pub count: u64,
    /// The first ten of them.
    pub first: Vec<(QueryId, ItemId)>,
}

/// Reads a run: TREC, JSON array or JSON lines, plain or gzip, `-` for standard input; told by content.
pub fn read_run(path: impl AsRef<Path>, options: &ReadOptions) -> Result<RunFile> {
    read(LineReader::open(path, &options.limits)?, options)
}

/// Reads a run from any reader, like [`read_run`]; `name` stands for the path in messages.
///
/// ```
/// use loxia_data::{ReadOptions, parse_run};
/// let file = parse_run(&b"q1 Q0 d7 1 12.5 bm25\n"[..], "example.run", &ReadOptions::default()).unwrap();
/// assert_eq!(file.run.get("q1").unwrap()[0].score, 12.5);
/// ```
pub fn parse_run(input: impl BufRead + Send, name: &str, options: &ReadOptions) -> Result<RunFile> {
    read(LineReader::new(input, name, &options.limits)?, options)
}

fn read(mut lines: LineReader<'_>, options: &ReadOptions) -> Result<RunFile> {
    let line = lines.peek_line()?;
    match line.first() {
        // A query id of a TREC run may start with a bracket.
        Some(b'{' | b'[') if trec::is_line(line) => trec::read(lines),
        Some(b'{') => json::read_lines(lines, options),
        Some(b'[') => json::read_array(lines, options),
        _ => trec::read(lines),
    }
}

/// Collects lines of a run in any order of queries; an id is kept once however often it occurs.
#[derive(Default)]
struct RunBuilder {
    tag: String,
    queries: IndexSet<QueryId>,
    items: IndexSet<ItemId>,
    lists: Vec<Vec<RunEntry>>,
    seen: HashSet<(u32, u32)>,
    duplicates: Duplicates,
    last_query: usize,
}

impl RunBuilder {
    /// Adds a line; `score` is given its rank in the list, from 1. A pair that came before is counted
    /// and left out.
    fn push(&mut self, query: &str, item: &str, score: impl FnOnce(usize) -> f64) {
        let query = self.query_index(query);
        let item = match self.items.get_index_of(item) {
            Some(index) => index,
            None => self.items.insert_full(item.into()).0,
        };
        let id = self.items[item].clone();
        if !self.seen.insert((query as u32, item as u32)) {
            self.duplicates.count += 1;
            if self.duplicates.first.len() < 10 {
                self.duplicates.first.push((self.queries[query].clone(), id));
            }
            return;
        }
        let list = &mut self.lists[query];
        list.push(RunEntry { item: id, score: score(list.len() + 1) });
    }

    fn query_index(&mut self, query: &str) -> usize {
        if self.queries.get_index(self.last_query).is_none_or(|last| last.as_str() != query) {
            self.last_query = match self.queries.get_index_of(query) {
                Some(index) => index,
                None => {
                    self.lists.push(Vec::new());
                    self.queries.insert_full(query.into()).0
                }
            };
        }
        self.last_query
    }

    fn finish(self, texts: RunTexts, format: RunFormat) -> RunFile {
        let mut run = Run::new(self.tag);
        for (query, list) in self.queries.into_iter().zip(self.lists) {
            run.insert(query, list);
        }
        RunFile { run, texts, duplicates: self.duplicates, format }
    }
}
