//! The anchor queries of an index: what new items are scored against, and with their scores what the index
//! was fitted on.
//!
//! `anchors.jsonl` holds one query a line, in the order of the fit, with the fields of a file of queries
//! (`_id` and `text`, or `context_left`, `mention` and `context_right`).

use std::sync::Arc;

use loxia_core::{Error, Query, QueryText};

use super::Index;
use crate::linalg::Dense;
use crate::plane::Numbers;
use crate::{AnchorSet, Result};

/// Name of the file within the directory.
pub(super) const ANCHORS_FILE: &str = "anchors.jsonl";

#[derive(serde::Serialize, serde::Deserialize)]
struct Line {
    _id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_left: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mention: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_right: Option<String>,
}

impl Index {
    /// With the texts of the anchor queries, in the order of the fit, so that items can be added later.
    pub fn with_anchor_queries(mut self, queries: &[Query]) -> Result<Self> {
        let anchors = self.posterior.anchors();
        if queries.len() != anchors {
            return Err(Error::Invalid(format!(
                "{} anchor queries, but the index was fitted on {anchors}",
                queries.len()
            ))
            .into());
        }
        let mut bytes = Vec::new();
        for query in queries {
            let mut line = Line {
                _id: query.id.as_str().to_owned(),
                text: None,
                context_left: None,
                mention: None,
                context_right: None,
            };
            match &query.text {
                QueryText::Plain(text) => line.text = Some(text.clone()),
                QueryText::Mention { left, mention, right } => {
                    (line.context_left, line.mention, line.context_right) =
                        (Some(left.clone()), Some(mention.clone()), Some(right.clone()));
                }
            }
            let written = serde_json::to_writer(&mut bytes, &line);
            written.map_err(|error| Error::Invalid(format!("anchor query {:?}: {error}", query.id)))?;
            bytes.push(b'\n');
        }
        self.anchor_queries = Some(Numbers::from_vec(bytes));
        Ok(self)
    }

    /// The anchor queries, in the order of the fit, where the index holds them.
    pub fn anchor_queries(&self) -> Result<Option<Vec<Query>>> {
        let Some(bytes) = &self.anchor_queries else { return Ok(None) };
        let path =
            self.stored.as_ref().map_or(ANCHORS_FILE.into(), |stored| stored.directory.join(ANCHORS_FILE));
        let corrupt = |what: String| Error::corrupt(&path, format!("{what}; build the index again"));
        let mut queries = Vec::with_capacity(self.posterior.anchors());
        for (number, line) in bytes.as_slice().split(|&byte| byte == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            let place = || format!("line {}", number + 1);
            let line: Line =
                serde_json::from_slice(line).map_err(|error| corrupt(format!("{}: {error}", place())))?;
            let text = match (line.text, line.mention) {
                (Some(text), None) => QueryText::Plain(text),
                (None, Some(mention)) => QueryText::Mention {
                    left: line.context_left.unwrap_or_default(),
                    mention,
                    right: line.context_right.unwrap_or_default(),
                },
                _ => return Err(corrupt(format!("{}: neither a text nor a mention", place())).into()),
            };
            queries.push(Query { id: line._id.into(), text });
        }
        let anchors = self.posterior.anchors();
        if queries.len() != anchors {
            return Err(corrupt(format!("{} queries, but {anchors} anchors", queries.len())).into());
        }
        Ok(Some(queries))
    }

    /// The anchor rows again, given their scores (anchors x items, columns in the order of the index; items
    /// at its end may be left out), with the vectors that the index holds. Those of the items were rounded
    /// to half precision.
    pub fn anchor_set(&self, scores: Arc<Dense>) -> Result<AnchorSet> {
        let items = crate::Method::items(self);
        if scores.rows() != self.posterior.anchors() || scores.cols() > items {
            return Err(crate::Error::Shape {
                what: "matrix of anchor scores",
                found_rows: scores.rows(),
                found_cols: scores.cols(),
                expected: format!("{} x {items}, as the index", self.posterior.anchors()),
            });
        }
        let vectors = self.posterior.stored_vectors(scores.cols());
        AnchorSet::new(scores, vectors)
    }
}
