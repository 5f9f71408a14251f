//! One door to every layout of data on disk.

mod detect;
mod linking;
mod mention;
mod retrieval;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use loxia_core::{ItemId, Qrels, QueryId};

use crate::candidates::{Candidates, read_candidates};
use crate::{Error, ItemStore, LineFormat, LineReader, QueryStore, ReadOptions, Result};
use linking::{Linking, WorldItems};
use retrieval::Retrieval;

use mention::is_mention;
pub use mention::parse_mentions;

/// Layouts that [`DataSet::open`] knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataFormat {
    /// ZESHEL as published: `documents/<world>.json`, `mentions/<split>.json` with word indices.
    Zeshel,
    /// ZESHEL's folders with contexts written out: `documents/<world>.jsonl`, `mentions/<split>.jsonl`.
    Worlds,
    /// BLINK: `documents/` and `blink_format/<split>.jsonl`, or one such file of mentions.
    Blink,
    /// ANNCUR's preprocessed ZESHEL: `documents/` and `processed/<split>.jsonl`.
    Anncur,
    /// BEIR: `corpus.jsonl`, `queries.jsonl`, `qrels/<split>.tsv`.
    Beir,
    /// MS MARCO: `collection.tsv`, `queries.<split>.tsv`, `qrels.<split>.tsv`.
    MsMarco,
    /// One file of items or queries as JSON lines; [`LineFormat::Json`] names the fields.
    Jsonl,
    /// One file of items or queries: id, tab, text.
    Tsv,
    /// One file with one item or query a line; ids are line numbers from 1.
    Text,
}

impl DataFormat {
    /// All formats with their names on the command line.
    pub const ALL: [(&'static str, DataFormat); 9] = [
        ("zeshel", DataFormat::Zeshel),
        ("worlds", DataFormat::Worlds),
        ("blink", DataFormat::Blink),
        ("anncur", DataFormat::Anncur),
        ("beir", DataFormat::Beir),
        ("msmarco", DataFormat::MsMarco),
        ("jsonl", DataFormat::Jsonl),
        ("tsv", DataFormat::Tsv),
        ("text", DataFormat::Text),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        DataFormat::ALL.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    /// Whether it is one file of lines, which may be read as items or as queries.
    pub fn is_plain_file(self) -> bool {
        matches!(self, DataFormat::Jsonl | DataFormat::Tsv | DataFormat::Text)
    }
}

impl std::str::FromStr for DataFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = DataFormat::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, format)| *format).ok_or_else(|| Error::UnknownFormat {
            name: name.to_owned(),
            available: DataFormat::ALL.iter().map(|(name, _)| (*name).to_owned()).collect(),
        })
    }
}

/// What of a data set is wanted, and how files are read.
#[derive(Debug, Clone, Default)]
pub struct DataOptions {
    /// The layout; recognised unless given.
    pub format: Option<DataFormat>,
    /// One world of an entity-linking data set. Without it: the worlds that the split's mentions are
    /// from, or all if no split is given either.
    pub world: Option<String>,
    /// A split (train, val, test, ...); needed where there are several and queries are asked for.
    /// `val` and `valid` are one name.
    pub split: Option<String>,
    /// Bounds and temporary files.
    pub read: ReadOptions,
}

/// The right entity of a mention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gold {
    /// The mention.
    pub query: QueryId,
    /// The entity it means.
    pub item: ItemId,
    /// The world both are from.
    pub world: Arc<str>,
}

/// Judgements of a split, and what was left out in reading them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgements {
    /// The judgements, in file order.
    pub qrels: Qrels,
    /// Lines that repeated an earlier judgement with the same level.
    pub repeated: u64,
}

/// Queries, items and judgements of a directory or file, whatever its layout.
///
/// Files are opened when something of them is asked for, then kept.
///
/// ```
/// use loxia_data::{DataOptions, DataSet};
/// let dir = tempfile::tempdir().unwrap();
/// let file = dir.path().join("birds.txt");
/// std::fs::write(&file, "Crossbills eat seeds.\nOwls do not.\n").unwrap();
/// let data = DataSet::open(&file, &DataOptions::default()).unwrap();
/// assert_eq!(data.items().unwrap().get(1).unwrap().text, "Owls do not.");
/// ```
pub struct DataSet {
    path: PathBuf,
    format: DataFormat,
    layout: Layout,
    world: Option<String>,
    split: Option<String>,
    read: ReadOptions,
    /// A stream's lines until they are read.
    stream: Option<Arc<Mutex<Option<LineReader<'static>>>>>,
    items: OnceLock<WorldItems>,
    queries: OnceLock<QueryStore>,
}

#[derive(Clone)]
enum Layout {
    Linking(Linking),
    Retrieval(Retrieval),
    File(LineFormat),
}

impl DataSet {
    /// Recognises the layout at `path` and checks that world and split are there. Standard input (`-`)
    /// and pipes hold a file of items or of queries, and can be asked for one of the two.
    pub fn open(path: impl AsRef<Path>, options: &DataOptions) -> Result<Self> {
        let path = path.as_ref();
        let mut stream = None;
        let (format, layout) = if detect::is_stream(path) {
            let (lines, format) = detect::open_stream(path, options)?;
            stream = Some(Arc::new(Mutex::new(Some(lines))));
            (detect::data_format(format), Layout::File(format))
        } else {
            detect::recognise(path, options)?
        };
        let mut data = DataSet {
            path: path.to_owned(),
            format,
            layout,
            world: options.world.clone(),
            split: None,
            read: options.read.clone(),
            stream,
            items: OnceLock::new(),
            queries: OnceLock::new(),
        };
        data.check_world()?;
        data.split = data.resolve_split(options.split.as_deref())?;
        Ok(data)
    }

    /// The directory or file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The layout.
    pub fn format(&self) -> DataFormat {
        self.format
    }

    /// Names of the worlds, sorted; none where the layout has no worlds.
    pub fn worlds(&self) -> Vec<String> {
        match &self.layout {
            Layout::Linking(linking) => linking.documents.keys().cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// Names of the splits, sorted.
    pub fn splits(&self) -> Vec<String> {
        match &self.layout {
            Layout::Linking(linking) => linking.mentions.keys().cloned().collect(),
            Layout::Retrieval(retrieval) => retrieval.splits.keys().cloned().collect(),
            Layout::File(_) => Vec::new(),
        }
    }

    /// The split in use, if one was given.
    pub fn split(&self) -> Option<&str> {
        self.split.as_deref()
    }

    fn check_world(&self) -> Result<()> {
        let Some(world) = &self.world else { return Ok(()) };
        match &self.layout {
            Layout::Linking(linking) if linking.documents.is_empty() => Ok(()),
            _ if self.worlds().contains(world) => Ok(()),
            _ => Err(self.unknown("world", world, self.worlds())),
        }
    }

    fn resolve_split(&self, asked: Option<&str>) -> Result<Option<String>> {
        let Some(asked) = asked else { return Ok(None) };
        let splits = self.splits();
        let also = match asked {
            "val" => "valid",
            "valid" => "val",
            other => other,
        };
        for name in [asked, also] {
            if splits.iter().any(|split| split == name) {
                return Ok(Some(name.to_owned()));
            }
        }
        Err(self.unknown("split", asked, splits))
    }

    fn unknown(&self, kind: &'static str, name: &str, available: Vec<String>) -> Error {
        Error::Unknown { path: self.path.clone(), kind, name: name.to_owned(), available }
    }

    /// The split to read queries or judgements of: the one given, or the only one there is.
    fn the_split(&self, wanted: &str) -> Result<String> {
        if let Some(split) = &self.split {
            return Ok(split.clone());
        }
        let mut splits = self.splits();
        match splits.len() {
            0 => Err(Error::missing(&self.path, format!("has no {wanted}"))),
            1 => Ok(splits.remove(0)),
            _ => {
                let what =
                    format!("which {wanted}? There are several splits; give --split {}", splits.join("|"));
                Err(Error::missing(&self.path, what))
            }
        }
    }

    /// The items: of the world, or of all worlds of the split in sorted order, each in file order.
    pub fn items(&self) -> Result<&ItemStore> {
        self.world_items().map(|items| &*items.store)
    }

    fn world_items(&self) -> Result<&WorldItems> {
        if let Some(items) = self.items.get() {
            return Ok(items);
        }
        let items = match &self.layout {
            Layout::Linking(linking) => {
                if linking.documents.is_empty() {
                    let what = "holds mentions only; give the directory with documents/ for the items";
                    return Err(Error::missing(&self.path, what));
                }
                let worlds = linking.worlds_of(self.world.as_deref(), self.split.as_deref(), &self.read)?;
                linking.open_items(&worlds, &self.read)?
            }
            Layout::Retrieval(retrieval) => WorldItems::of_one(retrieval.open_items(&self.read)?),
            Layout::File(format) => {
                WorldItems::of_one(ItemStore::from_lines(self.file_lines()?, *format, &self.read)?)
            }
        };
        Ok(self.items.get_or_init(|| items))
    }

    /// The lines of the one file; those of a stream come once.
    fn file_lines(&self) -> Result<LineReader<'static>> {
        let Some(stream) = &self.stream else { return LineReader::open(&self.path, &self.read.limits) };
        let lines = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        lines.ok_or_else(|| {
            let what = "is a stream and was read already; to read it as items and as queries give a file";
            Error::missing(&self.path, what)
        })
    }

    /// Number of items of each world that [`DataSet::items`] holds.
    pub(crate) fn world_sizes(&self) -> Result<Vec<(String, usize)>> {
        let worlds = &self.world_items()?.worlds;
        Ok(worlds.iter().map(|(world, range)| (world.clone(), range.len())).collect())
    }

    /// Line of an item in its world's file, from 0.
    pub(crate) fn row_in_world(&self, world: &str, item: &str) -> Result<Option<u32>> {
        let items = self.world_items()?;
        let range = items.worlds.get(world);
        let position = items.store.position(item);
        Ok(range.zip(position).filter(|(range, at)| range.contains(at)).map(|(range, at)| at - range.start))
    }

    /// The data set split by split, with the items that are already open: its one split, or all. One
    /// part without a split where the layout has none.
    pub(crate) fn parts(&self) -> Result<Vec<DataSet>> {
        let splits = match &self.split {
            Some(split) => vec![split.clone()],
            None => self.splits(),
        };
        match splits.is_empty() {
            true => Ok(vec![self.at_split(None)?]),
            false => splits.into_iter().map(|split| self.at_split(Some(split))).collect(),
        }
    }

    /// The file of queries that all splits share, if the layout has one: all its queries, judged or not.
    pub(crate) fn shared_queries(&self) -> Result<Option<DataSet>> {
        match &self.layout {
            Layout::Retrieval(retrieval) if retrieval.shared_queries.is_some() => {
                self.at_split(None).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn at_split(&self, split: Option<String>) -> Result<DataSet> {
        Ok(DataSet {
            path: self.path.clone(),
            format: self.format,
            layout: self.layout.clone(),
            world: self.world.clone(),
            split,
            read: self.read.clone(),
            stream: self.stream.clone(),
            items: match self.has_items() {
                true => OnceLock::from(self.world_items()?.clone()),
                false => OnceLock::new(),
            },
            queries: OnceLock::new(),
        })
    }

    /// Whether it holds items; a file of mentions does not.
    pub fn has_items(&self) -> bool {
        !matches!(&self.layout, Layout::Linking(linking) if linking.documents.is_empty())
    }

    /// Whether there is a file of queries for the split in use; a plain file is taken for items.
    pub fn has_queries(&self) -> bool {
        match &self.layout {
            Layout::Linking(linking) => !linking.mentions.is_empty(),
            Layout::Retrieval(retrieval) => retrieval.has_queries(self.split.as_deref()),
            Layout::File(_) => false,
        }
    }

    /// Whether there is a file of judgements for the split in use.
    pub(crate) fn has_qrels(&self) -> bool {
        match &self.layout {
            Layout::Linking(linking) => !linking.mentions.is_empty(),
            Layout::Retrieval(retrieval) => retrieval.has_qrels(self.split.as_deref()),
            Layout::File(_) => false,
        }
    }

    /// The queries, in file order: mentions of the split and world, or queries judged in the split (all,
    /// if no split is given and the layout keeps them in one file).
    ///
    /// A plain file is read as queries: JSON lines with an id (`_id`, `id`, `qid` or `query_id`) and a text
    /// (`text`, else `query`); columns of id and text; or texts alone. JSON lines with `context_left`,
    /// `mention` and `context_right` are mentions.
    pub fn queries(&self) -> Result<&QueryStore> {
        if let Some(queries) = self.queries.get() {
            return Ok(queries);
        }
        let queries = match &self.layout {
            Layout::Linking(linking) => {
                let split = self.the_split("queries")?;
                let documents = match linking.needs_documents(&split, &self.read)? {
                    true => Some(Arc::clone(&self.world_items()?.store)),
                    false => None,
                };
                linking.open_queries(&split, self.world.as_deref(), documents, &self.read)?
            }
            Layout::Retrieval(retrieval) => {
                let split = match retrieval.shared_queries.is_some() {
                    true => self.split.clone(),
                    false => Some(self.the_split("queries")?),
                };
                retrieval.open_queries(split.as_deref(), &self.path, &self.read)?
            }
            Layout::File(format) => QueryStore::from_lines(self.file_lines()?, *format, &self.read)?,
        };
        Ok(self.queries.get_or_init(|| queries))
    }

    /// The judgements of the split; for entity linking the gold entity has level 1. Lines that repeat one
    /// are left out; [`DataSet::judgements`] counts them.
    pub fn qrels(&self) -> Result<Qrels> {
        Ok(self.judgements()?.qrels)
    }

    /// The judgements of the split, and how many lines repeated one.
    pub fn judgements(&self) -> Result<Judgements> {
        match &self.layout {
            Layout::Linking(_) => {
                let mut qrels = Qrels::new();
                for gold in self.golds()? {
                    qrels.insert(gold.query, gold.item, 1);
                }
                Ok(Judgements { qrels, repeated: 0 })
            }
            Layout::Retrieval(retrieval) => {
                retrieval.read_qrels(&self.the_split("judgements")?, &self.path, &self.read)
            }
            Layout::File(_) => Err(Error::missing(&self.path, "is a file of lines and has no judgements")),
        }
    }

    /// The right entity of each mention, in the order of [`DataSet::queries`].
    pub fn golds(&self) -> Result<Vec<Gold>> {
        let Layout::Linking(linking) = &self.layout else {
            let what = format!("is {} and has judgements, not gold entities", self.format.name());
            return Err(Error::missing(&self.path, what));
        };
        let split = self.the_split("gold entities")?;
        linking.read_golds(&split, self.world.as_deref(), || self.world_items(), &self.read)
    }

    /// Candidates that came with the data set (`tfidf_candidates/<split>.json`), for its queries.
    pub fn candidates(&self) -> Result<Candidates> {
        let split = self.the_split("candidates")?;
        let file = match &self.layout {
            Layout::Linking(linking) => linking.candidates.get(&split),
            _ => None,
        };
        let file = file.ok_or_else(|| {
            Error::missing(&self.path, format!("has no tfidf_candidates/{split}.json; make candidates first"))
        })?;
        let mut candidates = read_candidates(file, &self.read)?;
        if self.world.is_some() {
            let queries = self.queries()?;
            candidates.retain(|query, _| queries.position(query.as_str()).is_some());
        }
        Ok(candidates)
    }
}

impl std::fmt::Debug for DataSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DataSet({}, {})", self.path.display(), self.format.name())
    }
}
