//! Runs and judgements.

use std::io::Write;

use loxia_core::{Item, Qrels, QueryId, RunEntry};
use serde::Serialize;

use super::{column, ends_column};
use crate::{Error, Result};

/// The entries of a list from the highest score down, equal scores in the order given.
pub fn best_first(entries: &[RunEntry]) -> Vec<&RunEntry> {
    let mut sorted: Vec<&RunEntry> = entries.iter().collect();
    sorted.sort_by(|a, b| b.score.total_cmp(&a.score));
    sorted
}

/// Writes a TREC run: `query Q0 item rank score tag`, ranks from 1.
///
/// Scores are written with the digits that read back as the same number.
///
/// ```
/// use loxia_core::RunEntry;
/// use loxia_data::write::TrecRunWriter;
/// let mut bytes = Vec::new();
/// let mut writer = TrecRunWriter::new(&mut bytes, "loxia", ' ').unwrap();
/// writer.write(&"q1".into(), &[RunEntry { item: "d7".into(), score: 0.5 }]).unwrap();
/// assert_eq!(bytes, b"q1 Q0 d7 1 0.5 loxia\n");
/// ```
pub struct TrecRunWriter<W> {
    output: W,
    tag: String,
    separator: char,
}

impl<W: Write> TrecRunWriter<W> {
    /// A writer of a run called `tag`, with columns separated by a space or a tab.
    pub fn new(output: W, tag: &str, separator: char) -> Result<Self> {
        let tag = column("the tag", tag, char::is_whitespace)?.to_owned();
        if !matches!(separator, ' ' | '\t') {
            return Err(Error::Unwritable { what: format!("a TREC run separated by {separator:?}") });
        }
        Ok(TrecRunWriter { output, tag, separator })
    }

    /// Writes a query's list, best first; entries that are not in order are sorted.
    pub fn write(&mut self, query: &QueryId, entries: &[RunEntry]) -> Result<()> {
        let query = column("the query id", query.as_str(), char::is_whitespace)?;
        let (s, tag) = (self.separator, &self.tag);
        for (entry, rank) in best_first(entries).into_iter().zip(1..) {
            let item = column("the item id", entry.item.as_str(), char::is_whitespace)?;
            let score = finite(entry)?;
            if query.starts_with(['[', '{']) && [query, item, tag].iter().any(|id| id.contains('"')) {
                let what = format!("query {query:?}, item {item:?} in a TREC run: it would read as JSON");
                return Err(Error::Unwritable { what });
            }
            writeln!(self.output, "{query}{s}Q0{s}{item}{s}{rank}{s}{score}{s}{tag}")
                .map_err(Error::output)?;
        }
        Ok(())
    }
}

fn finite(entry: &RunEntry) -> Result<f64> {
    if entry.score.is_finite() {
        return Ok(entry.score);
    }
    Err(Error::Unwritable { what: format!("the score {} of item {:?}", entry.score, entry.item) })
}

/// Writes a run as JSON objects with `qid, query, docno, title, text, rank, score`, one a line; absent
/// texts are left out.
pub struct JsonRunWriter<W> {
    output: W,
    /// What goes before the next object.
    before: &'static str,
    is_array: bool,
}

#[derive(Serialize)]
struct JsonRunLine<'a> {
    qid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<&'a str>,
    docno: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    rank: usize,
    score: f64,
}

impl<W: Write> JsonRunWriter<W> {
    /// A writer of JSON lines.
    pub fn new(output: W) -> Self {
        JsonRunWriter { output, before: "", is_array: false }
    }

    /// A writer of one JSON array.
    pub fn array(output: W) -> Self {
        JsonRunWriter { output, before: "[\n", is_array: true }
    }

    /// Writes one line: an item of a query at its rank, from 1, with the texts at hand.
    pub fn write(
        &mut self,
        query: &QueryId,
        query_text: Option<&str>,
        rank: usize,
        entry: &RunEntry,
        item: Option<&Item>,
    ) -> Result<()> {
        let line = JsonRunLine {
            qid: query.as_str(),
            query: query_text,
            docno: entry.item.as_str(),
            title: item.and_then(|item| item.title.as_deref()),
            text: item.map(|item| item.text.as_str()),
            rank,
            score: finite(entry)?,
        };
        self.output.write_all(self.before.as_bytes()).map_err(Error::output)?;
        self.before = if self.is_array { "," } else { "" };
        super::write_line(&mut self.output, &line)
    }

    /// Ends the array.
    pub fn finish(mut self) -> Result<()> {
        let end = match (self.is_array, self.before) {
            (false, _) => "",
            (true, ",") => "]\n",
            (true, _) => "[]\n",
        };
        self.output.write_all(end.as_bytes()).map_err(Error::output)
    }
}

/// Writes judgements as TREC has them: `query 0 item level`.
pub fn write_qrels_trec(mut output: impl Write, qrels: &Qrels) -> Result<()> {
    for (query, items) in qrels.iter() {
        let query = column("the query id", query.as_str(), char::is_whitespace)?;
        for (item, level) in items {
            let item = column("the item id", item.as_str(), char::is_whitespace)?;
            writeln!(output, "{query} 0 {item} {level}").map_err(Error::output)?;
        }
    }
    Ok(())
}

/// Writes judgements as BEIR has them: a header, then three columns separated by tabs.
pub fn write_qrels_beir(mut output: impl Write, qrels: &Qrels) -> Result<()> {
    writeln!(output, "query-id\tcorpus-id\tscore").map_err(Error::output)?;
    for (query, items) in qrels.iter() {
        let query = column("the query id", query.as_str(), ends_column)?;
        for (item, level) in items {
            let item = column("the item id", item.as_str(), ends_column)?;
            writeln!(output, "{query}\t{item}\t{level}").map_err(Error::output)?;
        }
    }
    Ok(())
}
