//! Mentions in the four ways they are written.
//!
//! | layout | id | world | text | gold |
//! |---|---|---|---|---|
//! | ZESHEL | `mention_id` | `corpus` | `context_document_id`, `start_index`, `end_index` (words, inclusive), `text` | `label_document_id` |
//! | worlds | `mention_id` | `world` | `context_left`, `mention`, `context_right` | `label_document_id` |
//! | BLINK | none (`_id`, `id`, `qid` if there) | `world` | same | `label_id` (line, from 0) |
//! | ANNCUR | `mention_id` | `type` | same | `label_id` (document id) |

use std::borrow::Cow;
use std::io::BufRead;

use loxia_core::{Item, Query, QueryText};

use super::DataFormat;
use crate::fields::{IdField, LabelField, words};
use crate::{Line, LineReader, ReadOptions, Records, Result};

/// A line of a file of mentions, whichever layout.
#[derive(serde::Deserialize)]
pub(super) struct MentionRecord<'a> {
    #[serde(borrow)]
    mention_id: Option<IdField<'a>>,
    #[serde(borrow)]
    _id: Option<IdField<'a>>,
    #[serde(borrow)]
    id: Option<IdField<'a>>,
    #[serde(borrow)]
    qid: Option<IdField<'a>>,
    #[serde(borrow)]
    world: Option<Cow<'a, str>>,
    #[serde(borrow)]
    corpus: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    context_left: Option<String>,
    mention: Option<String>,
    context_right: Option<String>,
    #[serde(borrow)]
    context_document_id: Option<IdField<'a>>,
    start_index: Option<usize>,
    end_index: Option<usize>,
    text: Option<String>,
    #[serde(borrow)]
    label_document_id: Option<IdField<'a>>,
    label_id: Option<LabelField>,
    label_title: Option<serde::de::IgnoredAny>,
}

const EXPECTED: &str = "a mention: `mention_id`, `world`, `context_left`, `mention`, `context_right` and a \
                        label, or ZESHEL's `corpus`, `context_document_id`, `start_index`, `end_index`, `text`";

/// Streams mentions whose contexts are on their lines (BLINK, ANNCUR, worlds), of all worlds.
///
/// A mention without an id is called after its line: `name:17`. ZESHEL's own files need their documents:
/// open them with [`DataSet::open`](crate::DataSet::open).
pub fn parse_mentions<'a>(
    input: impl BufRead + Send + 'a,
    name: &str,
    options: &ReadOptions,
) -> Result<Records<'a, Query>> {
    let split = name.to_owned();
    Ok(Records::new(LineReader::new(input, name, &options.limits)?, move |line| {
        let record = MentionRecord::parse(line)?;
        let id = record.id(&split, line).into();
        Ok(Query { id, text: record.into_text(line)? })
    }))
}

/// Whether a line holds a mention.
pub(crate) fn is_mention(line: &Line<'_>) -> bool {
    let record: Result<MentionRecord<'_>> = line.json(EXPECTED);
    record.is_ok_and(|record| record.is_span() || (record.context_left.is_some() && record.mention.is_some()))
}

impl<'a> MentionRecord<'a> {
    pub(super) fn parse(line: &Line<'a>) -> Result<Self> {
        line.json(EXPECTED)
    }

    pub(super) fn kind(&self) -> DataFormat {
        if self.is_span() {
            DataFormat::Zeshel
        } else if self.world.is_none() && self.kind.is_some() {
            DataFormat::Anncur
        } else if self.label_title.is_some() || self.label_document_id.is_none() {
            DataFormat::Blink
        } else {
            DataFormat::Worlds
        }
    }

    /// Whether the text is given by word indices into a document.
    pub(super) fn is_span(&self) -> bool {
        self.context_left.is_none() && self.start_index.is_some()
    }

    pub(super) fn world(&self, line: &Line<'_>) -> Result<&str> {
        let world = self.world.as_deref().or(self.corpus.as_deref()).or(self.kind.as_deref());
        world.ok_or_else(|| line.invalid(format!("no world; expected {EXPECTED}")))
    }

    /// Its id; where the layout has none, the split and the line, from 1.
    pub(super) fn id(&self, split: &str, line: &Line<'_>) -> String {
        let ids = [&self.mention_id, &self._id, &self.id, &self.qid];
        match ids.into_iter().flatten().next() {
            Some(id) => id.as_str().to_owned(),
            None => format!("{split}:{}", line.number()),
        }
    }

    pub(super) fn label(&self, line: &Line<'_>) -> Result<LabelField> {
        match (&self.label_document_id, &self.label_id) {
            (Some(id), _) => Ok(LabelField::Id(id.as_str().to_owned())),
            (None, Some(label)) => Ok(label.clone()),
            (None, None) => Err(line.invalid("no gold entity: neither `label_document_id` nor `label_id`")),
        }
    }

    /// The document that word indices point into.
    pub(super) fn context_document(&self, line: &Line<'_>) -> Result<&str> {
        let id = self.context_document_id.as_ref().map(IdField::as_str);
        id.ok_or_else(|| line.invalid("no `context_document_id`"))
    }

    /// Mention and contexts as the line gives them.
    pub(super) fn into_text(self, line: &Line<'_>) -> Result<QueryText> {
        match (self.context_left, self.mention, self.context_right) {
            (Some(left), Some(mention), Some(right)) => Ok(QueryText::Mention { left, mention, right }),
            _ => Err(line.invalid(format!("a context or the mention is missing; expected {EXPECTED}"))),
        }
    }

    /// Mention and contexts cut out of the document: the whole document, words joined by single spaces.
    pub(super) fn cut_from(self, document: &Item, line: &Line<'_>) -> Result<QueryText> {
        let (Some(start), Some(end), Some(text)) = (self.start_index, self.end_index, self.text) else {
            return Err(line.invalid(format!("no `start_index`, `end_index` or `text`; expected {EXPECTED}")));
        };
        let words: Vec<&str> = words(&document.text).collect();
        if start > end || end >= words.len() {
            return Err(line.invalid(format!(
                "words {start} to {end} of document {:?}, which has {}",
                document.id,
                words.len()
            )));
        }
        let mention = words[start..=end].join(" ");
        if mention != text {
            return Err(line.invalid(format!(
                "words {start} to {end} of document {:?} are {mention:?}, the mention says {text:?}",
                document.id
            )));
        }
        Ok(QueryText::Mention { left: words[..start].join(" "), mention, right: words[end + 1..].join(" ") })
    }
}
