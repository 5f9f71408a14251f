//! Ranked lists as they leave: a TREC run, JSON lines, or a table on a terminal.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use loxia::core::artefact::{Existing, write_file_atomically};
use loxia::core::{Item, Query, RunEntry};
use loxia::data::write::{JsonRunWriter, TrecRunWriter};

use crate::context::Context;

/// Receives the queries' lists one after the other, best item first.
pub(crate) type Sink<'a> = dyn FnMut(&Query, &[(RunEntry, &Item)]) -> Result<()> + 'a;

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
    Table,
}

impl RankedOutput {
    /// Decides on the form; an existing file is refused before any work is done.
    pub(crate) fn new(path: &Path, overwrite: bool, tag: &str, context: &Context) -> Result<Self> {
        let stdout = path.as_os_str() == "-";
        let name = path.to_string_lossy();
        let form = if name.ends_with(".jsonl") || name.ends_with(".json") || (stdout && context.json) {
            Form::JsonLines
        } else if stdout && std::io::stdout().is_terminal() {
            Form::Table
        } else {
            Form::Trec
        };
        let existing = if overwrite { Existing::Overwrite } else { Existing::Refuse };
        if !stdout && !overwrite && path.exists() {
            return Err(loxia::core::Error::Exists { path: path.to_owned(), resumable: false }.into());
        }
        Ok(RankedOutput { path: path.to_owned(), existing, tag: tag.to_owned(), form })
    }

    /// Whether the lists go to stdout.
    pub(crate) fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// Whether a person reads the lists as they come.
    pub(crate) fn is_shown_to_people(&self) -> bool {
        self.form == Form::Table
    }

    /// Writes what `fill` sends to its sink; a file appears whole or not at all.
    pub(crate) fn write(&self, fill: impl FnOnce(&mut Sink<'_>) -> Result<()>) -> Result<()> {
        if self.is_stdout() {
            let mut stdout = std::io::BufWriter::new(std::io::stdout().lock());
            self.send(&mut stdout, fill)?;
            stdout.flush()?;
            return Ok(());
        }
        write_file_atomically(&self.path, self.existing, |file| self.send(file, fill))
    }

    fn send(&self, output: &mut dyn Write, fill: impl FnOnce(&mut Sink<'_>) -> Result<()>) -> Result<()> {
        match self.form {
            Form::Trec => {
                let mut writer = TrecRunWriter::new(output, &self.tag, ' ')?;
                fill(&mut |query, entries| {
                    let entries: Vec<RunEntry> = entries.iter().map(|(entry, _)| entry.clone()).collect();
                    Ok(writer.write(&query.id, &entries)?)
                })
            }
            Form::JsonLines => {
                let mut writer = JsonRunWriter::new(output);
                fill(&mut |query, entries| {
                    let text = query.text.joined();
                    for (rank, (entry, item)) in entries.iter().enumerate() {
                        writer.write(&query.id, Some(&text), rank + 1, entry, Some(item))?;
                    }
                    Ok(())
                })
            }
            Form::Table => fill(&mut |query, entries| table(output, query, entries)),
        }
    }
}

fn table(output: &mut dyn Write, query: &Query, entries: &[(RunEntry, &Item)]) -> Result<()> {
    writeln!(output, "{}", query.text.joined())?;
    let width =
        entries.iter().map(|(entry, _)| entry.item.as_str().chars().count()).max().unwrap_or(0).min(24);
    for (rank, (entry, item)) in entries.iter().enumerate() {
        let text = item.title_and_text();
        writeln!(
            output,
            "{:>5}  {:>9.4}  {:<width$}  {}",
            rank + 1,
            entry.score,
            entry.item,
            head(&text, 80)
        )?;
    }
    Ok(())
}

/// The first characters of a text, on one line.
pub(crate) fn head(text: &str, characters: usize) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= characters {
        return line;
    }
    line.chars().take(characters - 1).chain(['…']).collect()
}
