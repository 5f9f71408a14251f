//! Files with one item a line: JSON lines, TSV, plain text.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use loxia_core::{Item, Query, QueryText};
use serde_json::Value;

use crate::fields::IdField;
use crate::segment::StoreBuilder;
use crate::store::{ItemStore, Parser, QueryStore};
use crate::{Line, LineReader, ReadOptions, Records, Result};

/// How a line holds an item or a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFormat {
    /// A JSON object. Of an item: an id (the first there is of `_id`, `id`, `document_id`, `docno`, `docid`,
    /// `doc_id`, `pid`; a string or an integer), `text` and perhaps `title`; an empty title is none. Of a
    /// query: an id (`_id`, `id`, `qid`, `query_id`) and its text (`text`, else `query`), or a `mention` with what
    /// stands before and after it (`left` or `context_left`, `right` or `context_right`), where that is something.
    Json,
    /// `id`, a tab, and the text: everything after the first tab.
    Tsv,
    /// The line is the text; the id is the line's number, from 1, as messages and editors count. A query may be typed
    /// as `left [[mention]] right`.
    Text,
}

#[derive(serde::Deserialize)]
struct TextRecord<'a> {
    #[serde(borrow)]
    _id: Option<IdField<'a>>,
    #[serde(borrow)]
    id: Option<IdField<'a>>,
    #[serde(borrow)]
    document_id: Option<IdField<'a>>,
    #[serde(borrow)]
    docno: Option<IdField<'a>>,
    #[serde(borrow)]
    docid: Option<IdField<'a>>,
    #[serde(borrow)]
    doc_id: Option<IdField<'a>>,
    #[serde(borrow)]
    pid: Option<IdField<'a>>,
    #[serde(borrow)]
    qid: Option<IdField<'a>>,
    #[serde(borrow)]
    query_id: Option<IdField<'a>>,
    #[serde(borrow)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    query: Option<Cow<'a, str>>,
}

/// Fields that are looked at in queries only: those of items may hold what they like.
#[derive(serde::Deserialize)]
struct MentionRecord {
    #[serde(default)]
    mention: Value,
    #[serde(default)]
    left: Value,
    #[serde(default)]
    context_left: Value,
    #[serde(default)]
    right: Value,
    #[serde(default)]
    context_right: Value,
}

impl MentionRecord {
    fn has_context(&self) -> bool {
        [&self.left, &self.context_left, &self.right, &self.context_right]
            .iter()
            .any(|value| value.is_string())
    }
}

impl TextRecord<'_> {
    fn is_of_a_run(&self) -> bool {
        self.qid.is_some() && self.docno.is_some()
    }
}

const ITEM_FIELDS: &str = "an object with an id (`_id`, `id`, `document_id`, `docno`, ...), `text`, \
                           perhaps `title`";
const QUERY_FIELDS: &str = "an object with an id (`_id`, `id`, `qid`, `query_id`) and `text` or `query`, or \
                            `mention` with perhaps `left` and `right`";

impl LineFormat {
    /// The item on a line.
    pub fn item(self, line: &Line<'_>) -> Result<Item> {
        match self {
            LineFormat::Json => json_item(line),
            LineFormat::Tsv => tab_separated(line).map(|(id, text)| Item::plain(id, text)),
            LineFormat::Text => Ok(Item::plain(line.number().to_string(), line.text())),
        }
    }

    /// The query on a line.
    pub fn query(self, line: &Line<'_>) -> Result<Query> {
        match self {
            LineFormat::Json => json_query(line),
            LineFormat::Tsv => tab_separated(line).map(|(id, text)| Query::plain(id, text)),
            LineFormat::Text => {
                Ok(Query { id: line.number().to_string().into(), text: QueryText::typed(line.text()) })
            }
        }
    }

    /// Streams the items of a file, without keeping anything.
    ///
    /// ```
    /// use loxia_data::{LineFormat, LineReader, Limits};
    /// let lines = LineReader::new(&b"d1\tred\nd2\tblue\n"[..], "x.tsv", &Limits::default()).unwrap();
    /// let texts: Vec<String> = LineFormat::Tsv.items(lines).map(|item| item.unwrap().text).collect();
    /// assert_eq!(texts, ["red", "blue"]);
    /// ```
    pub fn items(self, lines: LineReader<'_>) -> Records<'_, Item> {
        Records::new(lines, move |line| self.item(line))
    }

    /// Streams the queries of a file, without keeping anything.
    pub fn queries(self, lines: LineReader<'_>) -> Records<'_, Query> {
        Records::new(lines, move |line| self.query(line))
    }

    /// What a file holds, by its name and its first byte: JSON lines start with `{`, TSV has a name that
    /// ends in `.tsv` or `.tsv.gz`, everything else is text.
    pub(crate) fn detect(lines: &mut LineReader<'_>) -> Result<Self> {
        if lines.peek_byte()? == Some(b'{') {
            return Ok(LineFormat::Json);
        }
        let name = lines.path().to_string_lossy().to_ascii_lowercase();
        let is_tsv = name.trim_end_matches(".gz").ends_with(".tsv");
        Ok(if is_tsv { LineFormat::Tsv } else { LineFormat::Text })
    }
}

fn json_item(line: &Line<'_>) -> Result<Item> {
    let record: TextRecord<'_> = line.json(ITEM_FIELDS)?;
    if record.is_of_a_run() {
        return Err(line.invalid("`qid` and `docno`: this is a line of a run, not an item; give it as a run"));
    }
    let id = record._id.or(record.id).or(record.document_id).or(record.docno);
    let id = id.or(record.docid).or(record.doc_id).or(record.pid);
    let id = id.ok_or_else(|| line.invalid(format!("no id; expected {ITEM_FIELDS}")))?;
    let text = record.text.ok_or_else(|| line.invalid(format!("no `text`; expected {ITEM_FIELDS}")))?;
    let title = record.title.filter(|title| !title.is_empty());
    Ok(Item { id: id.as_str().into(), title: title.map(Cow::into_owned), text: text.into_owned() })
}

fn json_query(line: &Line<'_>) -> Result<Query> {
    let record: TextRecord<'_> = line.json(QUERY_FIELDS)?;
    if record.is_of_a_run() {
        // Its `text` is the item's.
        return Err(line.invalid("`qid` and `docno`: this is a line of a run, not a query; give it as a run"));
    }
    let id = record._id.or(record.id).or(record.qid).or(record.query_id);
    let id = id.ok_or_else(|| line.invalid(format!("no id; expected {QUERY_FIELDS}")))?;
    let around: MentionRecord = line.json(QUERY_FIELDS)?;
    let has_context = around.has_context();
    let text = match (record.text.or(record.query), around.mention) {
        // A mention without contexts may be anything that somebody keeps beside a text.
        (Some(_), Value::String(_)) if has_context => {
            return Err(line.invalid(format!("a text and a mention in its context; expected {QUERY_FIELDS}")));
        }
        (Some(text), _) => QueryText::Plain(text.into_owned()),
        (None, Value::String(mention)) => {
            let either = |name: &str, a: Value, b: Value| match if a.is_null() { b } else { a } {
                Value::String(text) => Ok(text),
                Value::Null => Ok(String::new()),
                _ => Err(line.invalid(format!("`{name}` is no string; expected {QUERY_FIELDS}"))),
            };
            let left = either("left", around.left, around.context_left)?;
            QueryText::Mention { left, mention, right: either("right", around.right, around.context_right)? }
        }
        (None, _) => return Err(line.invalid(format!("no text; expected {QUERY_FIELDS}"))),
    };
    Ok(Query { id: id.as_str().into(), text })
}

fn tab_separated<'a>(line: &Line<'a>) -> Result<(&'a str, &'a str)> {
    line.text().split_once('\t').ok_or_else(|| line.invalid("no tab; expected `id`, a tab and the text"))
}

impl ItemStore {
    /// Opens a file of items, one a line; the format is told from the file unless given.
    pub fn open(path: impl AsRef<Path>, format: Option<LineFormat>, options: &ReadOptions) -> Result<Self> {
        let mut lines = LineReader::open(path, &options.limits)?;
        let format = format.map_or_else(|| LineFormat::detect(&mut lines), Ok)?;
        ItemStore::from_lines(lines, format, options)
    }

    pub(crate) fn from_lines(
        lines: LineReader<'static>,
        format: LineFormat,
        options: &ReadOptions,
    ) -> Result<Self> {
        let mut builder = StoreBuilder::new(options.spool_dir.as_deref());
        builder.add(lines, item_parser(format))?;
        Ok(builder.finish())
    }
}

pub(crate) fn item_parser(format: LineFormat) -> Parser<Item> {
    Arc::new(move |line| format.item(line).map(Some))
}

impl QueryStore {
    /// Opens a file of queries, one a line; the format is told from the file unless given.
    pub fn open(path: impl AsRef<Path>, format: Option<LineFormat>, options: &ReadOptions) -> Result<Self> {
        QueryStore::open_selected(path.as_ref(), format, options, |_| true)
    }

    pub(crate) fn from_lines(
        lines: LineReader<'static>,
        format: LineFormat,
        options: &ReadOptions,
    ) -> Result<Self> {
        QueryStore::selected(lines, format, options, |_| true)
    }

    /// Opens those queries of a file whose ids are wanted.
    pub(crate) fn open_selected(
        path: &Path,
        format: Option<LineFormat>,
        options: &ReadOptions,
        wanted: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<Self> {
        let mut lines = LineReader::open(path, &options.limits)?;
        let format = format.map_or_else(|| LineFormat::detect(&mut lines), Ok)?;
        QueryStore::selected(lines, format, options, wanted)
    }

    fn selected(
        lines: LineReader<'static>,
        format: LineFormat,
        options: &ReadOptions,
        wanted: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<Self> {
        let parser: Parser<Query> = Arc::new(move |line| {
            format.query(line).map(|query| Some(query).filter(|q| wanted(q.id.as_str())))
        });
        let mut builder = StoreBuilder::new(options.spool_dir.as_deref());
        builder.add(lines, parser)?;
        Ok(builder.finish())
    }
}
