//! An entity-linking data set as BLINK has it: `documents/<world>.jsonl`, `blink_format/<split>.jsonl`.

use std::path::Path;

use loxia_core::artefact::{ArtefactWriter, Existing, OutputFile};
use serde::Serialize;

use super::Converted;
use crate::write::{mention_json, write_line};
use crate::{DataSet, Error, Result};

#[derive(Serialize)]
struct DocumentLine<'a> {
    document_id: &'a str,
    title: &'a str,
    text: &'a str,
}

/// Writes an entity-linking data set (its one split, or all) as a BLINK directory at `output`.
///
/// Contexts keep their length and case; BLINK's own files are lower-cased and cut to 128 words a side,
/// which is the reader's business. `val` is called `valid`. A mention whose gold entity is not among its
/// world's documents cannot be written, as a label is a line number; it is counted and named.
pub fn to_blink(data: &DataSet, output: &Path, existing: Existing) -> Result<Converted> {
    let worlds = data.world_sizes()?;
    if worlds.is_empty() {
        let what = format!("{} as BLINK: it has no worlds of entities", data.path().display());
        return Err(Error::Unwritable { what });
    }
    let mut writer = ArtefactWriter::create_marked(output, existing, "blink_format")?;
    for folder in ["documents", "blink_format"] {
        let folder = writer.directory().join(folder);
        std::fs::create_dir(&folder).map_err(|e| Error::io(&folder, "create", e))?;
    }
    let mut converted = Converted::default();
    let mut start = 0;
    for (world, size) in &worlds {
        writer.add_file(&format!("documents/{world}.jsonl"), |file| {
            write_documents(data, start..start + size, file)
        })?;
        start += size;
    }
    converted.items = start as u64;
    for part in data.parts()? {
        let Some(split) = part.split() else { continue };
        let name = if split == "val" { "valid" } else { split };
        writer.add_file(&format!("blink_format/{name}.jsonl"), |file| {
            write_mentions(&part, file, &mut converted)
        })?;
    }
    writer.commit()?;
    Ok(converted)
}

fn write_documents(data: &DataSet, range: std::ops::Range<usize>, file: &mut OutputFile) -> Result<()> {
    const AT_ONCE: usize = 256;
    let items = data.items()?;
    for start in range.clone().step_by(AT_ONCE) {
        for item in items.read(start..(start + AT_ONCE).min(range.end))? {
            let title = item.title.as_deref().unwrap_or("");
            write_line(&mut *file, &DocumentLine { document_id: item.id.as_str(), title, text: &item.text })?;
        }
    }
    Ok(())
}

fn write_mentions(part: &DataSet, file: &mut OutputFile, converted: &mut Converted) -> Result<()> {
    let items = part.items()?;
    let golds = part.golds()?;
    for (query, gold) in part.queries()?.iter().zip(&golds) {
        let query = query?;
        let row = part.row_in_world(&gold.world, gold.item.as_str())?;
        let position = items.position(gold.item.as_str());
        let (Some(row), Some(position)) = (row, position) else {
            converted.without_gold.add(&query.id, &gold.item);
            continue;
        };
        let item = items.get(position)?;
        let line = mention_json(&query, &gold.world, &item, u64::from(row)).ok_or_else(|| {
            Error::Unwritable { what: format!("query {:?} as BLINK: it is not a mention", query.id) }
        })?;
        write_line(&mut *file, &line)?;
        converted.queries += 1;
        converted.judgements += 1;
    }
    Ok(())
}
