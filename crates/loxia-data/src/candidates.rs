//! Candidate lists: for each query some items, best first, without scores.

use std::io::BufRead;
use std::path::Path;

use hashbrown::HashSet;
use indexmap::IndexMap;
use loxia_core::{ItemId, QueryId};

use crate::fields::IdField;
use crate::{Error, LineReader, ReadOptions, Result};

/// Items to consider for each query, best first.
pub type Candidates = IndexMap<QueryId, Vec<ItemId>>;

#[derive(serde::Deserialize)]
struct CandidateRecord<'a> {
    #[serde(borrow)]
    mention_id: IdField<'a>,
    #[serde(borrow, alias = "tfidf_candidates")]
    candidates: Vec<IdField<'a>>,
}

/// Reads candidates: JSON lines with `mention_id` and `tfidf_candidates` (ZESHEL) or `candidates`.
pub fn read_candidates(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Candidates> {
    read(LineReader::open(path, &options.limits)?)
}

/// Reads candidates from any reader; `name` stands for the path in messages.
///
/// ```
/// use loxia_data::{ReadOptions, parse_candidates};
/// let line = br#"{"mention_id": "m1", "tfidf_candidates": ["d3", "d1"]}"#;
/// let candidates = parse_candidates(&line[..], "example.json", &ReadOptions::default()).unwrap();
/// assert_eq!(candidates["m1"].len(), 2);
/// ```
pub fn parse_candidates(input: impl BufRead + Send, name: &str, options: &ReadOptions) -> Result<Candidates> {
    read(LineReader::new(input, name, &options.limits)?)
}

fn read(mut lines: LineReader<'_>) -> Result<Candidates> {
    let mut candidates = Candidates::new();
    let mut known: HashSet<ItemId> = HashSet::new();
    let mut places = Vec::new();
    while let Some(line) = lines.next_filled()? {
        let record: CandidateRecord<'_> =
            line.json("an object with `mention_id` and `tfidf_candidates` or `candidates` (ids)")?;
        let items =
            record.candidates.iter().map(|id| known.get_or_insert_with(id.as_str(), |id| id.into()).clone());
        let items = items.collect();
        let query = record.mention_id.as_str();
        if let Some(first) = candidates.get_index_of(query) {
            let (at, id) = (line.place(), query.to_owned());
            return Err(Error::Duplicate {
                first: crate::Place { line: places[first], ..at.clone() },
                at,
                id,
            });
        }
        places.push(line.number());
        candidates.insert(query.into(), items);
    }
    Ok(candidates)
}
