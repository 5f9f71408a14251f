//! Results as text: on stdout, or in a file that appears whole or not at all.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use loxia::core::artefact::{Existing, write_file_atomically};
use loxia::data::RunFormat;

use crate::context::Context;
use crate::flags::OutputFlags;
use crate::output::Stdout;

/// What to do with a file that is there already; said before any work, so that none is done in vain.
pub(crate) fn claim(path: &Path, overwrite: bool) -> Result<Existing> {
    if overwrite {
        return Ok(Existing::Overwrite);
    }
    if path.as_os_str() != "-" && path.exists() {
        return Err(loxia::core::Error::Exists { path: path.to_owned(), resumable: false }.into());
    }
    Ok(Existing::Refuse)
}

/// Writes what `write` sends to where the flags say.
pub(crate) fn write_text(
    output: &OutputFlags,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    write_text_to(&output.output, output.existing(), write)
}

/// The same, to a path; `-` is stdout.
pub(crate) fn write_text_to(
    path: &Path,
    existing: Existing,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    if path.as_os_str() == "-" {
        let mut stdout = std::io::BufWriter::new(Stdout::lock());
        write(&mut stdout)?;
        stdout.flush()?;
        return Ok(());
    }
    write_file_atomically(path, existing, |file| write(file))
}

/// How a run is written that no flag says more about: JSON lines where the name ends in `.jsonl` or
/// `.json`, or on stdout with `--json`; else a TREC run.
pub(crate) fn run_format(output: &OutputFlags, context: &Context) -> RunFormat {
    let name = output.output.to_string_lossy();
    let is_json = name.ends_with(".jsonl") || name.ends_with(".json");
    if is_json || (output.is_stdout() && context.json) { RunFormat::JsonLines } else { RunFormat::Trec }
}
