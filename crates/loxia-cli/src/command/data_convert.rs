//! `loxia data convert`: from one layout or notation to another.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use loxia::core::artefact::write_file_atomically;
use loxia::data::convert::{Converted, MentionText, TextSources, to_beir, to_blink, write_qrels, write_run};
use loxia::data::{
    DataFormat, DataOptions, DataSet, QrelsFormat, ReadOptions, RunFormat, read_qrels, read_run,
};

use crate::context::Context;
use crate::exit::{Outcome, usage};
use crate::flags::OutputFlags;
use crate::report::Summary;

/// Convert a data set, a run or judgements.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia data convert --input ZESHEL_DIR --to blink --output BLINK_DIR
  loxia data convert --input ZESHEL_DIR --to beir --world lego --split test --mentions marked --output BEIR_DIR
  loxia data convert --input MSMARCO_DIR --to beir --output BEIR_DIR
  loxia data convert --input RUN.jsonl.gz --to trec-run --output RUN.trec
  loxia data convert --input RUN.trec --to jsonl-run --data BEIR_DIR --output RUN.jsonl
  loxia data convert --input qrels/test.tsv --to trec-qrels --output test.qrels

What the input is, is recognised (--from for a data set that is not); a run or judgements are told by content.")]
pub(crate) struct ConvertFlags {
    /// Data set, run or judgements to read; - is stdin
    #[arg(long, short, value_name = "PATH")]
    input: PathBuf,
    /// Layout of the input [default: recognised]
    #[arg(long, value_name = "NAME", value_parser = data_format)]
    from: Option<DataFormat>,
    /// What to write
    #[arg(long, value_enum)]
    to: Target,
    #[command(flatten)]
    output: OutputFlags,
    /// One world of an entity-linking data set
    #[arg(long, value_name = "NAME")]
    world: Option<String>,
    /// One split [default: all]
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
    /// How a mention becomes the text of a BEIR query
    #[arg(long, value_enum, default_value = "joined")]
    mentions: Mentions,
    /// Data set with the texts for a JSON run
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
}

fn data_format(name: &str) -> Result<DataFormat, String> {
    name.parse().map_err(|error: loxia::data::Error| error.to_string())
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mentions {
    /// Left context, mention and right context joined by spaces
    Joined,
    /// The same with [unused0] and [unused1] around the mention
    Marked,
}

/// Runs the command.
pub(crate) fn run(flags: ConvertFlags, context: &Context) -> Result<Outcome> {
    let is_data_set = matches!(flags.to, Target::Beir | Target::Blink);
    if flags.data.is_some() && !matches!(flags.to, Target::JsonlRun | Target::JsonRun) {
        return usage("--data gives the texts of a JSON run; use it with --to jsonl-run or --to json-run");
    }
    if is_data_set && flags.output.is_stdout() {
        return usage("a data set is a directory; give --output DIR");
    }
    if !is_data_set && (flags.from.is_some() || (flags.world.is_some() && flags.data.is_none())) {
        return usage("--from and --world choose in a data set; runs and judgements are told by content");
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

fn open(flags: &ConvertFlags, path: &std::path::Path, format: Option<DataFormat>) -> Result<DataSet> {
    let options = DataOptions {
        format,
        world: flags.world.clone(),
        split: flags.split.clone(),
        ..DataOptions::default()
    };
    Ok(DataSet::open(path, &options)?)
}

fn convert_data_set(flags: &ConvertFlags, summary: &mut Summary) -> Result<()> {
    let data = open(flags, &flags.input, flags.from)?;
    let (output, existing) = (&flags.output.output, flags.output.existing());
    let Converted { items, queries, judgements, repeated_queries, without_gold } = match flags.to {
        Target::Blink => to_blink(&data, output, existing)?,
        _ => {
            let mentions = match flags.mentions {
                Mentions::Joined => MentionText::Joined,
                Mentions::Marked => MentionText::Marked,
            };
            to_beir(&data, mentions, output, existing)?
        }
    };
    summary
        .fact("from", data.format().name())
        .fact("items", items)
        .fact("queries", queries)
        .fact("judgements", judgements)
        .count("queries in two splits", repeated_queries);
    for _ in 0..without_gold {
        summary.skip("a mention whose gold entity is not among the documents of its world");
    }
    Ok(())
}

fn convert_run(flags: &ConvertFlags, format: RunFormat, summary: &mut Summary) -> Result<()> {
    let file = read_run(&flags.input, &ReadOptions::default())?;
    let data = flags.data.as_ref().map(|path| open(flags, path, None)).transpose()?;
    let mut queries: Vec<_> = file.texts.queries.iter().collect();
    let mut items: Vec<_> = file.texts.items.iter().collect();
    if let Some(data) = &data {
        queries.push(data.queries()?);
        items.push(data.items()?);
    }
    let texts = TextSources { queries: &queries, items: &items };
    let mut lacking = 0;
    write_output(flags, |output| {
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

fn convert_qrels(flags: &ConvertFlags, format: QrelsFormat, summary: &mut Summary) -> Result<()> {
    let (qrels, repeated) = if flags.input.is_dir() {
        (open(flags, &flags.input, flags.from)?.qrels()?, 0)
    } else {
        let file = read_qrels(&flags.input, &ReadOptions::default())?;
        (file.qrels, file.repeated)
    };
    write_output(flags, |output| Ok(write_qrels(output, &qrels, format)?))?;
    summary
        .fact("queries", qrels.len())
        .fact("judgements", qrels.iter().map(|(_, items)| items.len()).sum::<usize>())
        .count("repeated judgements", repeated);
    Ok(())
}

/// To stdout, or to a file that appears whole or not at all.
fn write_output(flags: &ConvertFlags, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    if flags.output.is_stdout() {
        let mut stdout = std::io::BufWriter::new(std::io::stdout().lock());
        write(&mut stdout)?;
        stdout.flush()?;
        return Ok(());
    }
    write_file_atomically(&flags.output.output, flags.output.existing(), |file| write(file))
}
