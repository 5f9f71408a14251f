//! Any data set as a BEIR directory: `corpus.jsonl`, `queries.jsonl`, `qrels/<split>.tsv`.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use loxia_core::artefact::{ArtefactWriter, Existing};
use loxia_core::{IdTable, Query, QueryText};

use super::{Converted, MentionText};
use crate::write::{item_json, query_json, write_line, write_qrels_beir};
use crate::{DataSet, Error, Judgements, Result};

/// Writes a data set (its one split, or all) as a BEIR directory at `output`.
///
/// Of queries that splits share in one file (BEIR's own) all are written, judged or not, unless one split is
/// given. A file of items becomes a corpus without queries. `existing` says what happens to a BEIR directory that is already there.
pub fn to_beir(
    data: &DataSet,
    mentions: MentionText,
    output: &Path,
    existing: Existing,
) -> Result<Converted> {
    let mut writer = ArtefactWriter::create_marked(output, existing, "corpus.jsonl")?;
    let mut converted = Converted::default();
    writer.add_file("corpus.jsonl", |file| -> Result<()> {
        for item in data.items()?.iter() {
            write_line(&mut *file, &item_json(&item?))?;
            converted.items += 1;
        }
        Ok(())
    })?;
    let parts = data.parts()?;
    let shared = data.shared_queries()?.filter(|_| data.split().is_none());
    let with_queries = shared.as_ref().map_or(parts.as_slice(), std::slice::from_ref);
    writer.add_file("queries.jsonl", |file| -> Result<()> {
        let mut seen = Seen::default();
        for part in with_queries.iter().filter(|part| part.has_queries()) {
            for query in part.queries()?.iter() {
                let query = query?;
                let text = one_text(&query, mentions);
                if seen.is_new(&query, &text)? {
                    write_line(&mut *file, &query_json(&query, &text))?;
                }
            }
        }
        converted.queries = seen.ids.len() as u64;
        converted.repeated_queries = seen.repeated;
        Ok(())
    })?;
    let qrels_dir = writer.directory().join("qrels");
    std::fs::create_dir(&qrels_dir).map_err(|e| Error::io(&qrels_dir, "create", e))?;
    for part in parts.iter().filter(|part| part.has_qrels()) {
        let Some(split) = part.split() else { continue };
        let Judgements { qrels, repeated } = part.judgements()?;
        converted.repeated_judgements += repeated;
        converted.judgements += qrels.iter().map(|(_, items)| items.len() as u64).sum::<u64>();
        writer.add_file(&format!("qrels/{split}.tsv"), |file| write_qrels_beir(file, &qrels))?;
    }
    writer.commit()?;
    Ok(converted)
}

fn one_text(query: &Query, mentions: MentionText) -> String {
    match (&query.text, mentions) {
        (QueryText::Mention { left, mention, right }, MentionText::Marked) => {
            let marked = format!("[unused0] {mention} [unused1]");
            let marked = QueryText::Mention { left: left.clone(), mention: marked, right: right.clone() };
            marked.joined()
        }
        (text, _) => text.joined(),
    }
}

/// Queries written so far; MS MARCO's splits contain one another.
#[derive(Default)]
struct Seen {
    ids: IdTable,
    fingerprints: Vec<u64>,
    hasher: RandomState,
    repeated: u64,
}

impl Seen {
    fn is_new(&mut self, query: &Query, text: &str) -> Result<bool> {
        let fingerprint = self.hasher.hash_one(text);
        match self.ids.position(query.id.as_str()) {
            Some(position) if self.fingerprints[position as usize] == fingerprint => {
                self.repeated += 1;
                Ok(false)
            }
            Some(_) => Err(Error::Unwritable {
                what: format!(
                    "query {:?}: two splits have different texts for it; convert one split",
                    query.id
                ),
            }),
            None => {
                self.ids.push(query.id.as_str())?;
                self.fingerprints.push(fingerprint);
                Ok(true)
            }
        }
    }
}
