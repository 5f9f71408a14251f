//! Ranked lists as they leave: a TREC run, JSON, or a table on a terminal.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use loxia::core::artefact::Existing;
use loxia::core::{Item, Query, RunEntry};
use loxia::data::write::{JsonRunWriter, TrecRunWriter};

use crate::context::Context;
use crate::exit::usage;
use crate::text_output::{claim, write_text_to};

/// One query's list, best item first. Texts are asked for only by forms that show them.
pub(crate) struct RankedList<'a> {
    /// The query.
    pub(crate) query: &'a Query,
    /// Its items.
    pub(crate) entries: &'a [RunEntry],
    /// The text of an entry, by its place in `entries`.
    pub(crate) item: &'a dyn Fn(usize) -> Result<Item>,
}

/// Receives the lists one after the other.
pub(crate) type Sink<'a> = dyn FnMut(&RankedList<'_>) -> Result<()> + 'a;

/// Where ranked lists go, and how they are written.
pub(crate) struct RankedOutput {
    path: PathBuf,
    existing: Existing,
    tag: String,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Trec,
    JsonLines,
    JsonArray,
    Table,
}

impl RankedOutput {
    /// Decides on the form; an existing file is refused before any work is done.
    pub(crate) fn new(path: &Path, overwrite: bool, tag: &str, context: &Context) -> Result<Self> {
        let stdout = path.as_os_str() == "-";
        let extension = path.extension().unwrap_or_default();
        let form = if extension == "gz" {
            return usage(format!("{}: runs are written plain; name it without .gz", path.display()));
        } else if extension == "json" {
            Form::JsonArray
        } else if extension == "jsonl" || (stdout && context.json) {
            Form::JsonLines
        } else if stdout && std::io::stdout().is_terminal() {
            Form::Table
        } else {
            Form::Trec
        };
        Ok(RankedOutput {
            path: path.to_owned(),
            existing: claim(path, overwrite)?,
            tag: tag.to_owned(),
            form,
        })
    }

    /// Whether the lists go to stdout.
    pub(crate) fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// Whether a person reads the lists as they come.
    pub(crate) fn is_table(&self) -> bool {
        self.form == Form::Table
    }

    /// Refuses a list whose ids cannot be written, before any work is done for it.
    pub(crate) fn check_ids<'i>(&self, query: &str, items: impl Iterator<Item = &'i str>) -> Result<()> {
        if self.form == Form::Trec {
            let entries: Vec<RunEntry> = items.map(|id| RunEntry { item: id.into(), score: 0.0 }).collect();
            TrecRunWriter::new(std::io::sink(), &self.tag, ' ')?.write(&query.into(), &entries)?;
        }
        Ok(())
    }

    /// Writes what `fill` sends to its sink; a file appears whole or not at all.
    pub(crate) fn write(&self, fill: impl FnOnce(&mut Sink<'_>) -> Result<()>) -> Result<()> {
        write_text_to(&self.path, self.existing, |output| self.send(output, fill))
    }

    fn send(&self, output: &mut dyn Write, fill: impl FnOnce(&mut Sink<'_>) -> Result<()>) -> Result<()> {
        match self.form {
            Form::Trec => {
                let mut writer = TrecRunWriter::new(output, &self.tag, ' ')?;
                fill(&mut |list| Ok(writer.write(&list.query.id, list.entries)?))
            }
            Form::JsonLines => json(JsonRunWriter::new(output), fill),
            Form::JsonArray => json(JsonRunWriter::array(output), fill),
            Form::Table => fill(&mut |list| table(output, list)),
        }
    }
}

fn json<W: Write>(
    mut writer: JsonRunWriter<W>,
    fill: impl FnOnce(&mut Sink<'_>) -> Result<()>,
) -> Result<()> {
    fill(&mut |list| {
        let text = list.query.text.joined();
        for (place, entry) in list.entries.iter().enumerate() {
            let item = (list.item)(place)?;
            writer.write(&list.query.id, Some(&text), place + 1, entry, Some(&item))?;
        }
        Ok(())
    })?;
    Ok(writer.finish()?)
}

fn table(output: &mut dyn Write, list: &RankedList<'_>) -> Result<()> {
    writeln!(output, "{}", list.query.text.joined())?;
    let lengths = list.entries.iter().map(|entry| entry.item.as_str().chars().count());
    let width = lengths.max().unwrap_or(0).min(24);
    for (place, entry) in list.entries.iter().enumerate() {
        let text = shown(&(list.item)(place)?, 80);
        writeln!(output, "{:>5}  {:>9.4}  {:<width$}  {text}", place + 1, entry.score, entry.item)?;
    }
    Ok(())
}

/// The first characters of an item, on one line; a title that the text begins with stands once.
pub(crate) fn shown(item: &Item, characters: usize) -> String {
    let text = item.text.trim_start();
    let rest = item.title.as_deref().and_then(|title| text.strip_prefix(title.trim()));
    match rest {
        Some(rest) if !rest.starts_with(char::is_alphanumeric) => head(text, characters),
        _ => head(&item.title_and_text(), characters),
    }
}

/// The first characters of a text, on one line.
pub(crate) fn head(text: &str, characters: usize) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= characters {
        return line;
    }
    line.chars().take(characters - 1).chain(['…']).collect()
}
