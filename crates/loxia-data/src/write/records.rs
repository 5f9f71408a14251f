//! Items, queries and mentions as lines of JSON.

use std::io::Write;

use loxia_core::{Item, ItemId, Query, QueryId, QueryText};
use serde::Serialize;

use super::{column, ends_column};
use crate::{Error, Result};

/// Writes a value as one line of JSON.
pub fn write_line(mut output: impl Write, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut output, value).map_err(|e| Error::output(e.into()))?;
    output.write_all(b"\n").map_err(Error::output)
}

#[derive(Serialize)]
struct BeirLine<'a> {
    _id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    text: &'a str,
}

/// An item as a value for [`write_line`]: `_id`, `title`, `text`, as BEIR's corpus has it.
pub fn item_json(item: &Item) -> impl Serialize + '_ {
    // BEIR's own loader wants a title on every line, so a missing one is written as empty.
    let title = Some(item.title.as_deref().unwrap_or(""));
    BeirLine { _id: item.id.as_str(), title, text: &item.text }
}

/// A query as a value for [`write_line`]: `_id` and `text`, a mention given by `text` as one line.
pub fn query_json<'a>(query: &'a Query, text: &'a str) -> impl Serialize + 'a {
    BeirLine { _id: query.id.as_str(), title: None, text }
}

/// Writes an item or a query as MS MARCO has it: id, tab, text. A title has no place there; join it to the
/// text first.
///
/// ```
/// let mut bytes = Vec::new();
/// loxia_data::write::write_tsv(&mut bytes, "d7", "Owls do not.").unwrap();
/// assert_eq!(bytes, b"d7\tOwls do not.\n");
/// ```
pub fn write_tsv(mut output: impl Write, id: &str, text: &str) -> Result<()> {
    let id = column("the id", id, ends_column)?;
    if text.contains(['\n', '\r']) {
        let what = format!("the text of {id:?} on one line: it has a line break; write JSON lines");
        return Err(Error::Unwritable { what });
    }
    writeln!(output, "{id}\t{text}").map_err(Error::output)
}

/// The candidates of a query as a value for [`write_line`], with ZESHEL's names: `mention_id` and
/// `tfidf_candidates`.
pub fn candidates_json<'a>(query: &'a QueryId, items: &'a [ItemId]) -> impl Serialize + 'a {
    #[derive(Serialize)]
    struct Line<'a> {
        mention_id: &'a str,
        tfidf_candidates: Vec<&'a str>,
    }
    Line { mention_id: query.as_str(), tfidf_candidates: items.iter().map(ItemId::as_str).collect() }
}

/// A mention as BLINK writes it, with the ids BLINK lacks added.
///
/// `label_id` is the line of the entity in its world's file, from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlinkRecord<'a> {
    /// Id of the mention; not one of BLINK's fields, ignored by it.
    pub mention_id: &'a str,
    /// Text before the mention.
    pub context_left: &'a str,
    /// The mention.
    pub mention: &'a str,
    /// Text after it.
    pub context_right: &'a str,
    /// Text of the gold entity.
    pub label: &'a str,
    /// Title of the gold entity.
    pub label_title: &'a str,
    /// Line of the gold entity in its world's file, from 0.
    pub label_id: u64,
    /// Id of the gold entity; not one of BLINK's fields.
    pub label_document_id: &'a str,
    /// The world.
    pub world: &'a str,
}

/// A mention and its gold entity as BLINK writes them; `None` for a query that is not a mention.
pub fn mention_json<'a>(
    query: &'a Query,
    world: &'a str,
    gold: &'a Item,
    label_id: u64,
) -> Option<BlinkRecord<'a>> {
    let QueryText::Mention { left, mention, right } = &query.text else { return None };
    let label_document_id: &'a ItemId = &gold.id;
    Some(BlinkRecord {
        mention_id: query.id.as_str(),
        context_left: left,
        mention,
        context_right: right,
        label: &gold.text,
        label_title: gold.title.as_deref().unwrap_or(""),
        label_id,
        label_document_id: label_document_id.as_str(),
        world,
    })
}
