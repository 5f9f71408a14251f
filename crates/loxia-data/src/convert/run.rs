//! Runs and judgements from one notation to another.

use std::io::Write;

use loxia_core::{Item, Qrels, QueryId, Run};

use crate::write::{JsonRunWriter, TrecRunWriter, best_first, write_qrels_beir, write_qrels_trec};
use crate::{ItemStore, QrelsFormat, QueryStore, Result, RunFormat};

/// Where a run's texts are looked up; what is not found is left out and counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextSources<'a> {
    /// Stores of queries, the first that has an id wins.
    pub queries: &'a [&'a QueryStore],
    /// Stores of items, the first that has an id wins.
    pub items: &'a [&'a ItemStore],
}

impl TextSources<'_> {
    fn query(&self, id: &QueryId) -> Result<Option<String>> {
        let found = self.queries.iter().find_map(|store| Some((store, store.position(id.as_str())?)));
        found.map(|(store, position)| Ok(store.get(position)?.text.joined())).transpose()
    }

    fn item(&self, id: &str) -> Result<Option<Item>> {
        let found = self.items.iter().find_map(|store| Some((store, store.position(id)?)));
        found.map(|(store, position)| store.get(position)).transpose()
    }
}

/// Writes a run, each list from the highest score down; a JSON run takes texts from `texts`.
///
/// Returns how many (query, item) lines of a JSON run lack a text.
pub fn write_run(output: impl Write, run: &Run, format: RunFormat, texts: TextSources<'_>) -> Result<u64> {
    match format {
        RunFormat::Trec => {
            let tag = if run.tag.is_empty() { "loxia" } else { &run.tag };
            let mut writer = TrecRunWriter::new(output, tag, ' ')?;
            for (query, entries) in run.iter() {
                writer.write(query, entries)?;
            }
            Ok(0)
        }
        RunFormat::JsonLines => write_json(JsonRunWriter::new(output), run, texts),
        RunFormat::JsonArray => write_json(JsonRunWriter::array(output), run, texts),
    }
}

fn write_json<W: Write>(mut writer: JsonRunWriter<W>, run: &Run, texts: TextSources<'_>) -> Result<u64> {
    let mut lacking = 0;
    for (query, entries) in run.iter() {
        let query_text = texts.query(query)?;
        for (entry, rank) in best_first(entries).into_iter().zip(1..) {
            let item = texts.item(entry.item.as_str())?;
            lacking += u64::from(item.is_none() || query_text.is_none());
            writer.write(query, query_text.as_deref(), rank, entry, item.as_ref())?;
        }
    }
    writer.finish()?;
    Ok(lacking)
}

/// Writes judgements.
pub fn write_qrels(output: impl Write, qrels: &Qrels, format: QrelsFormat) -> Result<()> {
    match format {
        QrelsFormat::Trec => write_qrels_trec(output, qrels),
        QrelsFormat::Beir => write_qrels_beir(output, qrels),
    }
}
