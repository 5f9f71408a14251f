//! `loxia data convert`: from one layout or notation to another.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use loxia::data::convert::{Converted, MentionText, TextSources, to_beir, to_blink, write_qrels, write_run};
use loxia::data::{DataSet, QrelsFormat, ReadOptions, RunFile, RunFormat, read_qrels, read_run};

use crate::context::Context;
use crate::exit::{Outcome, usage};
use crate::flags::{DataFlags, OutputFlags};
use crate::report::Summary;
use crate::text_output::write_text;
use crate::typed::Typed;

/// Convert a data set, a run or judgements.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia data convert --input ZESHEL_DIR --to blink --output BLINK_DIR
  loxia data convert --input ZESHEL_DIR --to beir --world lego --split test --mentions marked --output BEIR_DIR
  loxia data convert --input MSMARCO_DIR --to beir --output BEIR_DIR
  loxia data convert --input RUN.jsonl.gz --to trec-run --output RUN.trec
  loxia data convert --input RUN.trec --to jsonl-run --data BEIR_DIR --output RUN.jsonl
  loxia data convert --input qrels/test.tsv --to trec-qrels --output test.qrels

A data set is recognised (or named by --data-format); a run or judgements are told by content. --world and --split
choose in the data set: the input, or the one that --data gives for the texts of a JSON run. Without --split a data set
is converted with all its splits.")]
pub(crate) struct ConvertFlags {
    #[command(flatten)]
    typed: Typed,
    /// Data set, run or judgements to read; - is stdin
    #[arg(long, short, value_name = "PATH")]
    input: PathBuf,
    /// What to write
    #[arg(long, value_enum)]
    to: Target,
    #[command(flatten)]
    output: OutputFlags,
    /// How a mention becomes the text of a BEIR query
    #[arg(long, value_enum, default_value = "joined")]
    mentions: Mentions,
    /// Data set, or file of items, with the texts that a JSON run lacks
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    #[command(flatten)]
    data_flags: DataFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// A directory with corpus.jsonl, queries.jsonl and qrels/
    Beir,
    /// A directory with documents/ and blink_format/
    Blink,
    /// Six columns: query Q0 item rank score tag
    TrecRun,
    /// One JSON object a line, with texts where known
    JsonlRun,
    /// One JSON array, with texts where known
    JsonRun,
    /// Four columns: query 0 item level
    TrecQrels,
    /// Three columns with a header
    BeirQrels,
}

impl Target {
    fn is_data_set(self) -> bool {
        matches!(self, Target::Beir | Target::Blink)
    }

    /// Whether texts can be looked up for it.
    fn takes_texts(self) -> bool {
        matches!(self, Target::JsonlRun | Target::JsonRun)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mentions {
    /// Left context, mention and right context joined by spaces
    Joined,
    /// The same with [unused0] and [unused1] around the mention
    Marked,
}

/// Runs the command.
pub(crate) fn run(flags: ConvertFlags, context: &Context) -> Result<Outcome> {
    refuse_without_effect(&flags)?;
    if flags.to.is_data_set() && flags.output.is_stdout() {
        return usage("a data set is a directory; give --output DIR");
    }
    let mut summary = Summary::default();
    match flags.to {
        Target::Beir | Target::Blink => convert_data_set(&flags, &mut summary)?,
        Target::TrecRun => convert_run(&flags, RunFormat::Trec, &mut summary)?,
        Target::JsonlRun => convert_run(&flags, RunFormat::JsonLines, &mut summary)?,
        Target::JsonRun => convert_run(&flags, RunFormat::JsonArray, &mut summary)?,
        Target::TrecQrels => convert_qrels(&flags, QrelsFormat::Trec, &mut summary)?,
        Target::BeirQrels => convert_qrels(&flags, QrelsFormat::Beir, &mut summary)?,
    }
    let took = context.started.elapsed();
    summary
        .fact_as("time", crate::report::duration(took), took.as_secs_f64())
        .fact("output", flags.output.output.display().to_string());
    summary.print(context, flags.output.is_stdout())?;
    Ok(summary.outcome())
}

fn refuse_without_effect(flags: &ConvertFlags) -> Result<()> {
    const CHOICES: [&str; 3] = ["data-format", "world", "split"];
    let typed = &flags.typed;
    if flags.to != Target::Beir {
        typed.refuse(&["mentions"], "it says what becomes of a mention with --to beir")?;
    }
    if !flags.to.takes_texts() {
        typed.refuse(&["data"], "it gives the texts of a JSON run (--to jsonl-run or --to json-run)")?;
    }
    match flags.to {
        Target::Beir | Target::Blink => Ok(()),
        Target::TrecQrels | Target::BeirQrels if flags.input.is_dir() => Ok(()),
        Target::JsonlRun | Target::JsonRun if flags.data.is_some() => Ok(()),
        _ => typed.refuse(&CHOICES, "it chooses in a data set; runs and judgements are told by content"),
    }
}

fn convert_data_set(flags: &ConvertFlags, summary: &mut Summary) -> Result<()> {
    let data = flags.data_flags.open(&flags.input)?;
    let (output, existing) = (&flags.output.output, flags.output.existing());
    let converted = match flags.to {
        Target::Blink => to_blink(&data, output, existing)?,
        _ => {
            let mentions = match flags.mentions {
                Mentions::Joined => MentionText::Joined,
                Mentions::Marked => MentionText::Marked,
            };
            to_beir(&data, mentions, output, existing)?
        }
    };
    tell(&converted, &data, summary);
    Ok(())
}

fn tell(converted: &Converted, data: &DataSet, summary: &mut Summary) {
    summary
        .fact("from", data.format().name())
        .fact("items", converted.items)
        .fact("queries", converted.queries)
        .fact("judgements", converted.judgements)
        .count("repeated judgements", converted.repeated_judgements)
        .count("queries in two splits", converted.repeated_queries);
    let without_gold = &converted.without_gold;
    for (mention, gold) in &without_gold.first {
        summary.skip(format!(
            "mention {mention}: its gold entity {gold} is not among the documents of its world"
        ));
    }
    for _ in without_gold.first.len() as u64..without_gold.count {
        summary.skip("a mention whose gold entity is not among the documents of its world");
    }
}

fn convert_run(flags: &ConvertFlags, format: RunFormat, summary: &mut Summary) -> Result<()> {
    let file = read_run(&flags.input, &ReadOptions::default())?;
    let data = flags.data.as_ref().filter(|_| flags.to.takes_texts());
    let data = data.map(|path| flags.data_flags.open(path)).transpose()?;
    let mut queries: Vec<_> = file.texts.queries.iter().collect();
    let mut items: Vec<_> = file.texts.items.iter().collect();
    if let Some(data) = &data {
        // A file given for texts holds items; read as queries its ids could be taken for those of the run.
        if !data.format().is_plain_file() && lacks_query_texts(&file) {
            queries.push(data.queries()?);
        }
        if data.has_items() && lacks_item_texts(&file) {
            items.push(data.items()?);
        }
    }
    let texts = TextSources { queries: &queries, items: &items };
    let mut lacking = 0;
    write_text(&flags.output, |output| {
        lacking = write_run(output, &file.run, format, texts)?;
        Ok(())
    })?;
    summary
        .fact("from", file.format.name())
        .fact("queries", file.run.len())
        .fact("lines", file.run.iter().map(|(_, entries)| entries.len()).sum::<usize>())
        .count("duplicates dropped", file.duplicates.count)
        .count("lines without texts", lacking);
    Ok(())
}

fn lacks_query_texts(file: &RunFile) -> bool {
    let texts = file.texts.queries.as_ref();
    file.run.iter().any(|(query, _)| texts.is_none_or(|texts| texts.position(query.as_str()).is_none()))
}

fn lacks_item_texts(file: &RunFile) -> bool {
    let texts = file.texts.items.as_ref();
    let mut entries = file.run.iter().flat_map(|(_, entries)| entries);
    entries.any(|entry| texts.is_none_or(|texts| texts.position(entry.item.as_str()).is_none()))
}

fn convert_qrels(flags: &ConvertFlags, format: QrelsFormat, summary: &mut Summary) -> Result<()> {
    let (qrels, repeated) = if flags.input.is_dir() {
        let judgements = flags.data_flags.open(&flags.input)?.judgements()?;
        (judgements.qrels, judgements.repeated)
    } else {
        let file = read_qrels(&flags.input, &ReadOptions::default())?;
        (file.qrels, file.repeated)
    };
    write_text(&flags.output, |output| Ok(write_qrels(output, &qrels, format)?))?;
    summary
        .fact("queries", qrels.len())
        .fact("judgements", qrels.iter().map(|(_, items)| items.len()).sum::<usize>())
        .count("repeated judgements", repeated);
    Ok(())
}
