//! Entity linking: worlds of documents, splits of mentions (ZESHEL and its descendants).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use loxia_core::Query;

use super::Gold;
use super::mention::MentionRecord;
use crate::fields::LabelField;
use crate::item_format::item_parser;
use crate::segment::StoreBuilder;
use crate::store::Parser;
use crate::{Error, ItemStore, Line, LineFormat, LineReader, QueryStore, ReadOptions, Result};

/// Where the parts of an entity-linking data set are.
#[derive(Clone, Default)]
pub(super) struct Linking {
    /// World to file.
    pub(super) documents: BTreeMap<String, PathBuf>,
    /// Split to file.
    pub(super) mentions: BTreeMap<String, PathBuf>,
    /// Split to file.
    pub(super) candidates: BTreeMap<String, PathBuf>,
}

/// Items of one or more worlds, and which positions each world has.
#[derive(Clone)]
pub(super) struct WorldItems {
    pub(super) store: Arc<ItemStore>,
    pub(super) worlds: BTreeMap<String, Range<u32>>,
}

impl WorldItems {
    /// Items without worlds.
    pub(super) fn of_one(store: ItemStore) -> Self {
        WorldItems { store: Arc::new(store), worlds: BTreeMap::new() }
    }
}

impl Linking {
    /// The worlds asked for: the one given, those of a split's mentions, or all.
    pub(super) fn worlds_of(
        &self,
        world: Option<&str>,
        split: Option<&str>,
        options: &ReadOptions,
    ) -> Result<BTreeSet<String>> {
        let Some(split) = split.filter(|_| world.is_none()) else {
            return Ok(match world {
                Some(world) => BTreeSet::from([world.to_owned()]),
                None => self.documents.keys().cloned().collect(),
            });
        };
        let mut worlds = BTreeSet::new();
        self.each_mention(split, None, options, |record, line| {
            let world = record.world(line)?;
            if !worlds.contains(world) {
                worlds.insert(world.to_owned());
            }
            Ok(())
        })?;
        Ok(worlds)
    }

    pub(super) fn open_items(&self, worlds: &BTreeSet<String>, options: &ReadOptions) -> Result<WorldItems> {
        let mut builder = StoreBuilder::new(options.spool_dir.as_deref());
        let mut ranges = BTreeMap::new();
        for world in worlds {
            let path = &self.documents[world];
            let first = builder.len() as u32;
            builder.add(LineReader::open(path, &options.limits)?, item_parser(LineFormat::Json))?;
            ranges.insert(world.clone(), first..builder.len() as u32);
        }
        Ok(WorldItems { store: Arc::new(builder.finish()), worlds: ranges })
    }

    /// Whether mentions of a split are cut from documents by word indices.
    pub(super) fn needs_documents(&self, split: &str, options: &ReadOptions) -> Result<bool> {
        let mut lines = LineReader::open(&self.mentions[split], &options.limits)?;
        match lines.next_filled()? {
            Some(line) => Ok(MentionRecord::parse(&line)?.is_span()),
            None => Ok(false),
        }
    }

    pub(super) fn open_queries(
        &self,
        split: &str,
        world: Option<&str>,
        documents: Option<Arc<ItemStore>>,
        options: &ReadOptions,
    ) -> Result<QueryStore> {
        let known: BTreeSet<String> = self.documents.keys().cloned().collect();
        let (split_name, world) = (split.to_owned(), world.map(str::to_owned));
        let parser: Parser<Query> = Arc::new(move |line| {
            let record = MentionRecord::parse(line)?;
            if !wanted(&record, world.as_deref(), &known, line)? {
                return Ok(None);
            }
            let id = record.id(&split_name, line);
            let text = match &documents {
                Some(documents) if record.is_span() => {
                    let document = record.context_document(line)?;
                    let position = documents.position(document).ok_or_else(|| {
                        line.invalid(format!("document {document:?} is not among those of its world"))
                    })?;
                    record.cut_from(&documents.get(position)?, line)?
                }
                _ => record.into_text(line)?,
            };
            Ok(Some(Query { id: id.into(), text }))
        });
        let mut builder = StoreBuilder::new(options.spool_dir.as_deref());
        builder.add(LineReader::open(&self.mentions[split], &options.limits)?, parser)?;
        Ok(builder.finish())
    }

    /// The gold entities of a split's mentions. `items` is asked for only where a label is a line
    /// number.
    pub(super) fn read_golds<'a>(
        &self,
        split: &str,
        world: Option<&str>,
        items: impl Fn() -> Result<&'a WorldItems>,
        options: &ReadOptions,
    ) -> Result<Vec<Gold>> {
        let mut golds = Vec::new();
        let mut names: BTreeMap<String, Arc<str>> = BTreeMap::new();
        self.each_mention(split, world, options, |record, line| {
            let world = record.world(line)?;
            let item = match record.label(line)? {
                LabelField::Id(id) => id.into(),
                LabelField::Row(row) => {
                    let items = items()?;
                    let range = &items.worlds[world];
                    if row >= u64::from(range.end - range.start) {
                        return Err(line.invalid(format!(
                            "label_id {row}, but world {world:?} has {} documents (rows count from 0)",
                            range.end - range.start
                        )));
                    }
                    items.store.ids().get(range.start + row as u32).into()
                }
            };
            let world = match names.get(world) {
                Some(name) => Arc::clone(name),
                None => Arc::clone(names.entry(world.to_owned()).or_insert_with(|| Arc::from(world))),
            };
            golds.push(Gold { query: record.id(split, line).into(), item, world });
            Ok(())
        })?;
        Ok(golds)
    }

    fn each_mention(
        &self,
        split: &str,
        world: Option<&str>,
        options: &ReadOptions,
        mut visit: impl FnMut(&MentionRecord<'_>, &Line<'_>) -> Result<()>,
    ) -> Result<()> {
        let known: BTreeSet<String> = self.documents.keys().cloned().collect();
        let mut lines = LineReader::open(&self.mentions[split], &options.limits)?;
        while let Some(line) = lines.next_filled()? {
            let record = MentionRecord::parse(&line)?;
            if wanted(&record, world, &known, &line)? {
                visit(&record, &line)?;
            }
        }
        Ok(())
    }
}

/// Whether a mention is of the world asked for; a world without documents is an error. A file of mentions
/// alone needs no worlds.
fn wanted(
    record: &MentionRecord<'_>,
    asked: Option<&str>,
    known: &BTreeSet<String>,
    line: &Line<'_>,
) -> Result<bool> {
    if asked.is_none() && known.is_empty() {
        return Ok(true);
    }
    let found = record.world(line)?;
    if !known.is_empty() && !known.contains(found) {
        return Err(Error::Line {
            at: line.place(),
            what: format!("world {found:?} has no file in documents/; add it, or correct the mention"),
        });
    }
    Ok(asked.is_none_or(|asked| asked == found))
}
