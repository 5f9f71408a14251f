//! `loxia data inspect`: what is in a data set, a run or a file of judgements.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use loxia::data::inspect::{
    Coverage, Inspection, RunInspection, SplitInspection, Texts, inspect, inspect_run,
};
use loxia::data::{QrelsFile, QrelsFormat, ReadOptions, read_qrels, read_run};
use serde_json::json;

use crate::context::Context;
use crate::exit::Outcome;
use crate::flags::DataFlags;
use crate::ranked_output::head;
use crate::report::{grouped, three_digits};

/// Show counts, lengths, examples, and how queries, items and judgements fit together.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia data inspect BEIR_DIR
  loxia data inspect ZESHEL_DIR --world lego --split test --json
  loxia data inspect BM25.trec --as run
  loxia data inspect qrels.txt --as qrels")]
pub(crate) struct InspectFlags {
    /// Data set, run or judgements; - is stdin
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// What the path is
    #[arg(long = "as", value_enum, default_value = "data")]
    kind: Kind,
    #[command(flatten)]
    data_flags: DataFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A data set: a directory, or a file of items or mentions
    Data,
    /// A run
    Run,
    /// Judgements
    Qrels,
}

/// Runs the command.
pub(crate) fn run(flags: InspectFlags, context: &Context) -> Result<Outcome> {
    let read = ReadOptions::default();
    let mut out = io::BufWriter::new(io::stdout().lock());
    match flags.kind {
        Kind::Data => {
            let found = inspect(&flags.data_flags.open(&flags.path)?)?;
            if context.json { json_line(&mut out, &found)? } else { show_data(&mut out, &found)? }
        }
        Kind::Run => {
            let found = inspect_run(&read_run(&flags.path, &read)?);
            if context.json { json_line(&mut out, &found)? } else { show_run(&mut out, &found)? }
        }
        Kind::Qrels => {
            let file = read_qrels(&flags.path, &read)?;
            if context.json { json_line(&mut out, &qrels_json(&file))? } else { show_qrels(&mut out, &file)? }
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn json_line(out: &mut dyn Write, found: &impl serde::Serialize) -> Result<()> {
    writeln!(out, "{}", serde_json::to_string(found)?)?;
    Ok(())
}

fn show_data(out: &mut dyn Write, found: &Inspection) -> io::Result<()> {
    writeln!(out, "format      {}", found.format)?;
    if let Some(items) = &found.items {
        show_texts(out, "items", items)?;
        if found.repeated_items > 0 {
            writeln!(out, "            {} repeat the text of another", grouped(found.repeated_items))?;
        }
    }
    if let Some(digest) = &found.items_digest {
        writeln!(out, "digest      {digest}")?;
    }
    show_worlds(out, &found.worlds, "items")?;
    if let Some(shared) = &found.shared_queries {
        show_texts(out, "queries", &shared.queries)?;
        if shared.unjudged > 0 {
            writeln!(out, "            {} are judged in no split shown", grouped(shared.unjudged as u64))?;
        }
    }
    for split in &found.splits {
        show_split(out, split)?;
    }
    Ok(())
}

fn show_split(out: &mut dyn Write, split: &SplitInspection) -> io::Result<()> {
    writeln!(out)?;
    writeln!(out, "split       {}", split.name)?;
    if let Some(queries) = &split.queries {
        show_texts(out, "queries", queries)?;
    }
    show_worlds(out, &split.worlds, "mentions")?;
    if let Some(coverage) = &split.judgements {
        show_coverage(out, coverage)?;
    }
    Ok(())
}

fn show_texts(out: &mut dyn Write, name: &str, texts: &Texts) -> io::Result<()> {
    writeln!(
        out,
        "{name:<10}  {} of {} words in the mean, median {}, at most {}",
        grouped(texts.count as u64),
        three_digits(texts.mean_words),
        grouped(u64::from(texts.median_words)),
        grouped(u64::from(texts.max_words))
    )?;
    if texts.blank > 0 {
        writeln!(out, "            {} without a word", grouped(texts.blank))?;
    }
    for (id, text) in &texts.examples {
        writeln!(out, "            {}  {}", head(id, 24), head(text, 72))?;
    }
    Ok(())
}

fn show_worlds(out: &mut dyn Write, worlds: &[(String, usize)], what: &str) -> io::Result<()> {
    let width = worlds.iter().map(|(world, _)| world.chars().count()).max().unwrap_or(0);
    for (index, (world, count)) in worlds.iter().enumerate() {
        let title = if index == 0 { "worlds" } else { "" };
        writeln!(out, "{title:<10}  {world:<width$}  {:>9} {what}", grouped(*count as u64))?;
    }
    Ok(())
}

fn show_coverage(out: &mut dyn Write, coverage: &Coverage) -> io::Result<()> {
    writeln!(
        out,
        "judgements  {} ({} relevant) for {} queries",
        grouped(coverage.judgements),
        grouped(coverage.relevant),
        grouped(coverage.judged_queries as u64)
    )?;
    let odd = [
        (coverage.repeated, "lines repeat a judgement (counted once)"),
        (coverage.unjudged_queries as u64, "queries are not judged"),
        (coverage.unknown_queries as u64, "judged queries have no text"),
        (coverage.unknown_items, "judgements are of items that are not in the collection"),
    ];
    for (count, what) in odd.into_iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "            {} {what}", grouped(count))?;
    }
    Ok(())
}

fn show_run(out: &mut dyn Write, found: &RunInspection) -> io::Result<()> {
    writeln!(out, "format      {} run", found.format)?;
    if !found.tag.is_empty() {
        writeln!(out, "tag         {}", found.tag)?;
    }
    writeln!(
        out,
        "queries     {} ({} with a text)",
        grouped(found.queries as u64),
        grouped(found.query_texts as u64)
    )?;
    writeln!(
        out,
        "lines       {}, {} to {} a query",
        grouped(found.entries as u64),
        grouped(found.min_depth as u64),
        grouped(found.max_depth as u64)
    )?;
    writeln!(out, "items       {} with a text", grouped(found.item_texts as u64))?;
    writeln!(out, "duplicates  {}", grouped(found.duplicates))?;
    Ok(())
}

/// Number of judgements at each level, from the lowest.
fn levels(file: &QrelsFile) -> std::collections::BTreeMap<i32, u64> {
    let mut levels = std::collections::BTreeMap::new();
    for (_, items) in file.qrels.iter() {
        for level in items.values() {
            *levels.entry(*level).or_default() += 1;
        }
    }
    levels
}

fn format_name(format: QrelsFormat) -> &'static str {
    match format {
        QrelsFormat::Trec => "trec",
        QrelsFormat::Beir => "beir",
    }
}

fn qrels_json(file: &QrelsFile) -> serde_json::Value {
    let levels = levels(file);
    json!({
        "format": format_name(file.format),
        "queries": file.qrels.len(),
        "judgements": levels.values().sum::<u64>(),
        "levels": levels.into_iter().map(|(level, count)| (level.to_string(), count.into()))
            .collect::<serde_json::Map<_, _>>(),
        "repeated": file.repeated,
    })
}

fn show_qrels(out: &mut dyn Write, file: &QrelsFile) -> io::Result<()> {
    let levels = levels(file);
    writeln!(out, "format      {} judgements", format_name(file.format))?;
    writeln!(out, "queries     {}", grouped(file.qrels.len() as u64))?;
    writeln!(out, "judgements  {}", grouped(levels.values().sum()))?;
    for (level, count) in levels {
        writeln!(out, "            {} at level {level}", grouped(count))?;
    }
    writeln!(out, "repeated    {}", grouped(file.repeated))?;
    Ok(())
}
