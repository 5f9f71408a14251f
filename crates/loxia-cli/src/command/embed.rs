//! `loxia embed`: the vectors of a data set's queries or items.
//!
//! Written like a score matrix: rows are texts, columns are dimensions, a tile is a block of texts. So an
//! interrupted run goes on with `--resume`, and memory holds one block of texts.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use loxia::core::IdTable;
use loxia::core::matrix::{EMBEDDINGS_KIND, MatrixSpec, MatrixWriter, TileShape};
use loxia::data::DataSet;
use loxia::model::{Embeddings, TextEncoder};

use super::bench::tell_speed;
use crate::context::{Bar, Context};
use crate::exit::{Outcome, usage};
use crate::flags::{DataFlags, ModelFlags, OutputFlags, Positions};
use crate::matrix_target::{MatrixTarget, command_line};
use crate::report::Summary;

/// Texts in one tile: a second or so of work, and room for batches of one length.
const TEXTS_AT_ONCE: usize = 512;

/// Embed the queries or items of a data set with a dual encoder.
///
/// The result is a directory (see FORMATS.md) or, if the output's name ends in .npy, a plain float32 array of
/// NumPy with the ids beside it, one a line, in NAME.npy.ids. An interrupted run is continued with --resume.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia embed --model MODEL_DIR --data BEIR_DIR --side item --output VECTORS
  loxia embed --model QUERY_DIR,ITEM_DIR --data wordnet-worlds --split test --world verb.motion \\
      --side query --output QUERIES.npy")]
pub(crate) struct EmbedFlags {
    /// Dual encoder: a directory, QUERY_DIR,ITEM_DIR, or hf:owner/name[@revision]
    #[arg(long, value_name = "DIR")]
    model: String,
    /// Data set: a directory, or a file of texts
    #[arg(long, value_name = "PATH")]
    data: PathBuf,
    /// Whose vectors
    #[arg(long, value_enum)]
    side: Side,
    /// Which texts, by position: A..B (half-open) [default: all]
    #[arg(long, value_name = "A..B")]
    rows: Option<Positions>,
    /// Go on with an unfinished output
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    model_flags: ModelFlags,
    #[command(flatten)]
    data_flags: DataFlags,
}

/// The two sides of a dual encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Side {
    /// The queries
    Query,
    /// The items
    Item,
}

/// Runs the command.
pub(crate) fn run(flags: EmbedFlags, context: &Context) -> Result<Outcome> {
    let target = MatrixTarget::new(&flags.output, flags.resume, true)?;
    if target.is_complete() {
        context.say(format_args!("{} is complete; nothing to do", target.shown()));
        return Ok(Outcome::Done);
    }
    let data = flags.data_flags.open(&flags.data)?;
    let texts = Texts::open(&data, flags.side)?;
    let rows = match &flags.rows {
        Some(range) => range.within(texts.ids.len(), texts.plural)?,
        None => 0..texts.ids.len(),
    };
    if rows.is_empty() {
        return usage(format!("nothing to embed: the data set has no {}", texts.plural));
    }
    let encoder = flags.model_flags.text_encoder(&flags.model, context)?;
    let info = encoder.info()?;
    let row_ids = crate::flags::ids_of(texts.ids, rows.clone())?;
    let dimensions: Vec<String> = (0..encoder.dim()).map(|dimension| dimension.to_string()).collect();
    let col_ids = IdTable::try_from(dimensions.as_slice())?;
    let spec = MatrixSpec::dense(&row_ids, &col_ids)
        .kind(EMBEDDINGS_KIND)
        .tile(TileShape { rows: TEXTS_AT_ONCE.min(rows.len()), cols: encoder.dim() })
        .digest("model", &info.digest)
        .digest("texts", texts.digest)
        .digest("side", texts.plural)
        .command(command_line());
    let mut summary = Summary::default();
    summary.fact("model", info.name).fact(texts.plural, rows.len()).fact("dimensions", encoder.dim());
    if let Some(writer) = target.writer(&spec)? {
        let took = fill(writer, &encoder, &texts, rows.start, context, &mut summary)
            .with_context(|| format!("{} is unfinished; --resume goes on with it", target.shown()))?;
        tell_speed(
            &mut summary,
            flags.model_flags.options().precision,
            encoder.most_scratch_bytes(),
            took,
            0,
        );
    }
    target.deliver(EMBEDDINGS_KIND)?;
    summary.fact("output", target.shown()).print(context, false)?;
    Ok(summary.outcome())
}

fn fill(
    mut writer: MatrixWriter,
    encoder: &TextEncoder,
    texts: &Texts<'_>,
    first: usize,
    context: &Context,
    summary: &mut Summary,
) -> Result<Duration> {
    let grid = *writer.grid();
    let missing: Vec<usize> = writer.missing_tiles().collect();
    let bar = context.bar(grid.rows() as u64, "texts");
    let to_do: usize = missing.iter().map(|&tile| grid.rows_of(tile).len()).sum();
    bar.resume_at((grid.rows() - to_do) as u64);
    let (mut tokens, mut truncated) = (0, 0);
    for tile in missing {
        let rows = grid.rows_of(tile);
        let block = texts.encode(encoder, first + rows.start..first + rows.end, &bar, context)?;
        tokens += block.tokens;
        truncated += block.truncated;
        writer.write_tile(tile, &block.vectors)?;
    }
    writer.finish()?;
    let (done, took) = bar.finish();
    summary.fact("tokens", tokens).count("truncated texts", truncated).rate("texts", done, took);
    Ok(took)
}

/// One side of a data set.
struct Texts<'a> {
    data: &'a DataSet,
    side: Side,
    plural: &'static str,
    ids: &'a IdTable,
    digest: &'a str,
}

impl<'a> Texts<'a> {
    fn open(data: &'a DataSet, side: Side) -> Result<Self> {
        let (plural, ids, digest) = match side {
            Side::Query => ("queries", data.queries()?.ids(), data.queries()?.digest()),
            Side::Item => ("items", data.items()?.ids(), data.items()?.digest()),
        };
        Ok(Texts { data, side, plural, ids, digest })
    }

    fn encode(
        &self,
        encoder: &TextEncoder,
        rows: Range<usize>,
        bar: &Bar,
        context: &Context,
    ) -> Result<Embeddings> {
        Ok(match self.side {
            Side::Query => encoder.encode_queries(&self.data.queries()?.read(rows)?, bar, &context.cancel)?,
            Side::Item => encoder.encode_items(&self.data.items()?.read(rows)?, bar, &context.cancel)?,
        })
    }
}
