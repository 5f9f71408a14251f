//! What is in a data set: counts, lengths, examples, and how judgements, queries and items fit together.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashSet;
use loxia_core::{Item, Query};
use serde::Serialize;

use crate::fields::words;
use crate::{DataSet, Judgements, QueryStore, Result, RunFile};

/// How many examples are shown, and how many characters of each.
const EXAMPLES: usize = 3;
const EXAMPLE_LENGTH: usize = 200;

/// What was found in a data set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inspection {
    /// Name of the layout.
    pub format: &'static str,
    /// The items; none in a file of mentions.
    pub items: Option<Texts>,
    /// Items whose title and text another item has too.
    pub repeated_items: u64,
    /// Digest over all items.
    pub items_digest: Option<String>,
    /// Worlds with the number of their items.
    pub worlds: Vec<(String, usize)>,
    /// The file of queries that the splits share (BEIR).
    pub shared_queries: Option<SharedQueries>,
    /// The splits.
    pub splits: Vec<SplitInspection>,
}

/// A file of queries that splits choose from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SharedQueries {
    /// All its queries.
    pub queries: Texts,
    /// Those that no split judges; with one split given, those that it does not judge.
    pub unjudged: usize,
}

/// A split of a data set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SplitInspection {
    /// Its name.
    pub name: String,
    /// Its queries.
    pub queries: Option<Texts>,
    /// Its judgements.
    pub judgements: Option<Coverage>,
    /// Worlds of an entity-linking split with the number of their mentions.
    pub worlds: Vec<(String, usize)>,
}

/// Counts and lengths of texts, in words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Texts {
    /// How many.
    pub count: usize,
    /// Mean length.
    pub mean_words: f64,
    /// Median length (the lower one of two).
    pub median_words: u32,
    /// Greatest length.
    pub max_words: u32,
    /// Texts without any word.
    pub blank: u64,
    /// Ids and the first 200 characters of the first few.
    pub examples: Vec<(String, String)>,
}

/// How judgements fit queries and items.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coverage {
    /// Judgements in all.
    pub judgements: u64,
    /// Lines that repeated a judgement with the same level; not among the judgements.
    pub repeated: u64,
    /// Judgements above level 0.
    pub relevant: u64,
    /// Queries with a judgement.
    pub judged_queries: usize,
    /// Queries of the split without one.
    pub unjudged_queries: usize,
    /// Judged queries that have no text.
    pub unknown_queries: usize,
    /// Judgements of items that are not in the collection.
    pub unknown_items: u64,
}

/// Reads everything once and tells what is there.
///
/// ```
/// use loxia_data::{DataOptions, DataSet, inspect::inspect};
/// let dir = tempfile::tempdir().unwrap();
/// let file = dir.path().join("birds.tsv");
/// std::fs::write(&file, "d1\tCrossbills eat seeds.\nd2\tOwls do not.\n").unwrap();
/// let found = inspect(&DataSet::open(&file, &DataOptions::default()).unwrap()).unwrap();
/// assert_eq!(found.items.unwrap().max_words, 3);
/// ```
pub fn inspect(data: &DataSet) -> Result<Inspection> {
    let mut found = Inspection {
        format: data.format().name(),
        items: None,
        repeated_items: 0,
        items_digest: None,
        worlds: Vec::new(),
        shared_queries: None,
        splits: Vec::new(),
    };
    if data.has_items() {
        let items = data.items()?;
        let mut repeats = Repeats::default();
        found.items = Some(Texts::of(items.iter().map(|item| {
            let item: Item = item?;
            let text = item.title_and_text();
            repeats.see(&text);
            Ok((item.id.to_string(), text))
        }))?);
        found.repeated_items = repeats.count;
        found.items_digest = Some(items.digest().to_owned());
        found.worlds = data.world_sizes()?;
    }
    let mut judged = HashSet::new();
    for part in data.parts()? {
        let Some(name) = part.split() else { continue };
        let judgements = if part.has_qrels() { Some(part.judgements()?) } else { None };
        found.splits.push(inspect_split(name, &part, judgements.as_ref())?);
        judged.extend(judgements.iter().flat_map(|found| found.qrels.iter()).map(|(query, _)| query.clone()));
    }
    if let Some(shared) = data.shared_queries()? {
        let queries = shared.queries()?;
        let unjudged = queries.ids().iter().filter(|id| !judged.contains(*id)).count();
        found.shared_queries = Some(SharedQueries { queries: Texts::of_queries(queries)?, unjudged });
    }
    Ok(found)
}

fn inspect_split(name: &str, part: &DataSet, judgements: Option<&Judgements>) -> Result<SplitInspection> {
    let mut found =
        SplitInspection { name: name.to_owned(), queries: None, judgements: None, worlds: Vec::new() };
    if part.has_queries() {
        found.queries = Some(Texts::of_queries(part.queries()?)?);
    }
    if let Some(judgements) = judgements.filter(|_| part.has_items()) {
        found.judgements = Some(coverage(part, judgements)?);
    }
    if !part.worlds().is_empty() {
        let mut worlds = indexmap::IndexMap::<_, usize>::new();
        for gold in part.golds()? {
            *worlds.entry(gold.world).or_default() += 1;
        }
        worlds.sort_keys();
        found.worlds = worlds.into_iter().map(|(world, count)| (world.to_string(), count)).collect();
    }
    Ok(found)
}

fn coverage(part: &DataSet, Judgements { qrels, repeated }: &Judgements) -> Result<Coverage> {
    let items = part.items()?;
    let queries = if part.has_queries() { Some(part.queries()?) } else { None };
    let mut found = Coverage {
        judgements: 0,
        repeated: *repeated,
        relevant: 0,
        judged_queries: qrels.len(),
        unjudged_queries: 0,
        unknown_queries: 0,
        unknown_items: 0,
    };
    for (query, judged) in qrels.iter() {
        let known = queries.is_some_and(|queries| queries.position(query.as_str()).is_some());
        found.unknown_queries += usize::from(!known);
        for (item, level) in judged {
            found.judgements += 1;
            found.relevant += u64::from(*level > 0);
            found.unknown_items += u64::from(items.position(item.as_str()).is_none());
        }
    }
    if let Some(queries) = queries {
        found.unjudged_queries = queries.ids().iter().filter(|id| qrels.get(id).is_none()).count();
    }
    Ok(found)
}

impl Texts {
    fn of_queries(queries: &QueryStore) -> Result<Self> {
        Texts::of(queries.iter().map(|query| {
            let query: Query = query?;
            Ok((query.id.to_string(), query.text.joined()))
        }))
    }

    fn of(texts: impl Iterator<Item = Result<(String, String)>>) -> Result<Self> {
        let mut lengths = Vec::new();
        let mut examples = Vec::new();
        for text in texts {
            let (id, text) = text?;
            lengths.push(u32::try_from(words(&text).count()).unwrap_or(u32::MAX));
            if examples.len() < EXAMPLES {
                examples.push((id, text.chars().take(EXAMPLE_LENGTH).collect()));
            }
        }
        lengths.sort_unstable();
        let total: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
        Ok(Texts {
            count: lengths.len(),
            mean_words: if lengths.is_empty() { 0.0 } else { total as f64 / lengths.len() as f64 },
            median_words: lengths.get(lengths.len().saturating_sub(1) / 2).copied().unwrap_or(0),
            max_words: lengths.last().copied().unwrap_or(0),
            blank: lengths.iter().take_while(|&&length| length == 0).count() as u64,
            examples,
        })
    }
}

/// Counts texts that came before, by their fingerprints.
#[derive(Default)]
struct Repeats {
    seen: HashSet<u64>,
    hasher: RandomState,
    count: u64,
}

impl Repeats {
    fn see(&mut self, text: &str) {
        self.count += u64::from(!self.seen.insert(self.hasher.hash_one(text)));
    }
}

/// What was found in a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunInspection {
    /// `trec`, `jsonl` or `json`.
    pub format: &'static str,
    /// Name of the system.
    pub tag: String,
    /// Number of queries.
    pub queries: usize,
    /// Number of lines kept.
    pub entries: usize,
    /// Shortest list.
    pub min_depth: usize,
    /// Longest list.
    pub max_depth: usize,
    /// Repeated (query, item) lines.
    pub duplicates: u64,
    /// Queries with a text.
    pub query_texts: usize,
    /// Items with a text.
    pub item_texts: usize,
}

/// Tells what is in a run.
pub fn inspect_run(file: &RunFile) -> RunInspection {
    let depths = || file.run.iter().map(|(_, entries)| entries.len());
    RunInspection {
        format: file.format.name(),
        tag: file.run.tag.clone(),
        queries: file.run.len(),
        entries: depths().sum(),
        min_depth: depths().min().unwrap_or(0),
        max_depth: depths().max().unwrap_or(0),
        duplicates: file.duplicates.count,
        query_texts: file.texts.queries.as_ref().map_or(0, |queries| queries.len()),
        item_texts: file.texts.items.as_ref().map_or(0, |items| items.len()),
    }
}
