//! Layouts with one collection, queries and judgements: BEIR and MS MARCO.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hashbrown::HashSet;
use loxia_core::QueryId;

use super::Judgements;
use super::detect::{existing, files_in};
use crate::{Error, ItemStore, LineFormat, QueryStore, ReadOptions, Result, read_qrels};

/// Where the parts of a retrieval data set are.
#[derive(Clone)]
pub(super) struct Retrieval {
    items: PathBuf,
    format: LineFormat,
    /// BEIR: all queries in one file, and the splits choose among them.
    pub(super) shared_queries: Option<PathBuf>,
    pub(super) splits: BTreeMap<String, Split>,
}

#[derive(Clone, Default)]
pub(super) struct Split {
    queries: Option<PathBuf>,
    qrels: Option<PathBuf>,
}

impl Retrieval {
    pub(super) fn beir(root: &Path, corpus: PathBuf) -> Result<Self> {
        let qrels = files_in(&root.join("qrels"), &["tsv"])?;
        let splits =
            qrels.into_iter().map(|(name, qrels)| (name, Split { queries: None, qrels: Some(qrels) }));
        Ok(Retrieval {
            items: corpus,
            format: LineFormat::Json,
            shared_queries: existing(root, "queries.jsonl"),
            splits: splits.collect(),
        })
    }

    pub(super) fn msmarco(root: &Path, collection: PathBuf) -> Result<Self> {
        let mut splits: BTreeMap<String, Split> = BTreeMap::new();
        for (name, path) in files_in(root, &["tsv"])? {
            let (kind, split) = name.split_once('.').unwrap_or((&name, "all"));
            match kind {
                "queries" => splits.entry(split.to_owned()).or_default().queries = Some(path),
                "qrels" => splits.entry(split.to_owned()).or_default().qrels = Some(path),
                _ => {}
            }
        }
        Ok(Retrieval { items: collection, format: LineFormat::Tsv, shared_queries: None, splits })
    }

    pub(super) fn open_items(&self, options: &ReadOptions) -> Result<ItemStore> {
        ItemStore::open(&self.items, Some(self.format), options)
    }

    pub(super) fn has_queries(&self, split: Option<&str>) -> bool {
        let split = split.and_then(|split| self.splits.get(split));
        self.shared_queries.is_some() || split.is_some_and(|split| split.queries.is_some())
    }

    pub(super) fn has_qrels(&self, split: Option<&str>) -> bool {
        split.and_then(|split| self.splits.get(split)).is_some_and(|split| split.qrels.is_some())
    }

    /// The queries of a split; of a shared file those that the split judges, or all without a split.
    pub(super) fn open_queries(
        &self,
        split: Option<&str>,
        root: &Path,
        options: &ReadOptions,
    ) -> Result<QueryStore> {
        let own = split.and_then(|split| self.splits.get(split)).and_then(|split| split.queries.as_ref());
        if let Some(path) = own {
            return QueryStore::open(path, Some(self.format), options);
        }
        let path = self.shared_queries.as_ref().ok_or_else(|| {
            let split = split.map_or_else(String::new, |split| format!(" for split {split}"));
            Error::missing(root, format!("has no file of queries{split}"))
        })?;
        let Some(split) = split else { return QueryStore::open(path, Some(self.format), options) };
        let judgements = self.read_qrels(split, root, options)?;
        let judged: HashSet<QueryId> = judgements.qrels.iter().map(|(query, _)| query.clone()).collect();
        QueryStore::open_selected(path, Some(self.format), options, move |id| judged.contains(id))
    }

    pub(super) fn read_qrels(&self, split: &str, root: &Path, options: &ReadOptions) -> Result<Judgements> {
        let file = self.splits.get(split).and_then(|split| split.qrels.as_ref());
        let file =
            file.ok_or_else(|| Error::missing(root, format!("has no judgements for split {split}")))?;
        let file = read_qrels(file, options)?;
        Ok(Judgements { qrels: file.qrels, repeated: file.repeated })
    }
}
