//! Runs and relevance judgements, in the order of their files.

use indexmap::IndexMap;

use crate::{ItemId, QueryId};

/// One line of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEntry {
    /// The item.
    pub item: ItemId,
    /// Its score; evaluation orders by it, never by the rank column.
    pub score: f64,
}

/// Ranked items for queries: queries in order of first appearance, items in file order.
///
/// ```
/// use loxia_core::{Run, RunEntry};
/// let mut run = Run::new("bm25");
/// run.push("q1".into(), RunEntry { item: "d1".into(), score: 2.5 });
/// assert_eq!(run.get("q1").unwrap().len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    /// Name of the system (last column of a TREC run).
    pub tag: String,
    queries: IndexMap<QueryId, Vec<RunEntry>>,
}

impl Run {
    /// An empty run.
    pub fn new(tag: impl Into<String>) -> Self {
        Run { tag: tag.into(), queries: IndexMap::new() }
    }

    /// Appends an item to a query's list.
    pub fn push(&mut self, query: QueryId, entry: RunEntry) {
        self.queries.entry(query).or_default().push(entry);
    }

    /// Adds a query's whole list, replacing an earlier one.
    pub fn insert(&mut self, query: QueryId, entries: Vec<RunEntry>) {
        self.queries.insert(query, entries);
    }

    /// The list of a query.
    pub fn get(&self, query: &str) -> Option<&[RunEntry]> {
        self.queries.get(query).map(Vec::as_slice)
    }

    /// All queries with their lists.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&QueryId, &[RunEntry])> {
        self.queries.iter().map(|(query, entries)| (query, entries.as_slice()))
    }

    /// Number of queries.
    pub fn len(&self) -> usize {
        self.queries.len()
    }

    /// Whether it has no query.
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }
}

/// Relevance judgements: query, item, level.
///
/// ```
/// let mut qrels = loxia_core::Qrels::new();
/// assert_eq!(qrels.insert("q1".into(), "d1".into(), 2), None);
/// assert_eq!(qrels.get("q1").unwrap().get("d1"), Some(&2));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Qrels {
    queries: IndexMap<QueryId, IndexMap<ItemId, i32>>,
}

impl Qrels {
    /// No judgements.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a judgement; returns the one it replaced.
    pub fn insert(&mut self, query: QueryId, item: ItemId, level: i32) -> Option<i32> {
        self.queries.entry(query).or_default().insert(item, level)
    }

    /// The judgements of a query.
    pub fn get(&self, query: &str) -> Option<&IndexMap<ItemId, i32>> {
        self.queries.get(query)
    }

    /// All queries with their judgements.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&QueryId, &IndexMap<ItemId, i32>)> {
        self.queries.iter()
    }

    /// Number of judged queries.
    pub fn len(&self) -> usize {
        self.queries.len()
    }

    /// Whether nothing is judged.
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }
}
