//! `loxia score`: every query against every item, into a matrix that survives a crash.
//!
//! The matrix is filled tile by tile. A tile is durable before the next begins, so a run that is killed loses
//! the tile in flight and `--resume` goes on from there to the same bytes. Texts are read tile by tile too:
//! memory does not grow with the collection beyond its ids.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use loxia::core::artefact::digest_bytes;
use loxia::core::matrix::{MATRIX_KIND, MatrixSpec, MatrixWriter, TileShape};
use loxia::core::{Cost, IdTable, Item, PairScorer, Query, QueryText};
use loxia::data::{ItemStore, QueryStore};

use super::bench::tell_speed;
use crate::context::{Bar, Context};
use crate::exit::{Outcome, usage};
use crate::flags::{DataFlags, ModelFlags, OutputFlags, Positions, ids_of};
use crate::matrix_target::{MatrixTarget, command_line};
use crate::report::{Summary, grouped};

/// Items whose texts are held at once; a tile of few rows has many more.
const ITEMS_AT_ONCE: usize = 1024;

/// Score every query against every item with a cross-encoder.
///
/// The result is a matrix directory (see FORMATS.md) or, if the output's name ends in .npy, a plain float32
/// array of NumPy. An interrupted run is continued with --resume and ends with the same bytes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia score --model MODEL_DIR --data BEIR_DIR --split test --output SCORES
  loxia score --model MODEL_DIR --variant emb --layout anncur --max-query 64 --max-item 64 \\
      --data wordnet-worlds --split test --world verb.motion --rows 0..500 --output SCORES.npy
  loxia score --model MODEL_DIR --layout anncur --data ZESHEL_DIR --world yugioh --items-as-queries text \
      --items 0..500 --output ITEM_SCORES.npy       # for `loxia eval knn --item-scores`")]
pub(crate) struct ScoreFlags {
    /// Cross-encoder: a directory, or hf:owner/name[@revision] in the Hugging Face cache
    #[arg(long, value_name = "DIR")]
    model: String,
    /// Data set with queries and items: a directory, or a file of items
    #[arg(long, value_name = "PATH")]
    data: PathBuf,
    /// Queries from another data set or file than the items
    #[arg(long, value_name = "PATH")]
    queries: Option<PathBuf>,
    /// Ask the items themselves instead of queries, as ItemCUR and FixedItem do: the title stands for the mention
    #[arg(long, value_name = "AFTER_IT", conflicts_with = "queries")]
    items_as_queries: Option<ItemSlot>,
    /// Which queries, by position: A..B (half-open) [default: all]
    #[arg(long, value_name = "A..B")]
    rows: Option<Positions>,
    /// Which items: A..B by position, or a file of ids [default: all]
    #[arg(long, value_name = "A..B|FILE")]
    items: Option<String>,
    /// Pairs in a tile: what a crash can cost. Smaller for slow models [default: 16384]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    tile_pairs: Option<u32>,
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

/// What comes after an item's title when the item takes the place of a mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ItemSlot {
    /// Its text: as the ANNCUR paper describes it
    Text,
    /// Its title again: as the published item scores were probably made; with --max-query 256
    Title,
}

impl ItemSlot {
    fn query(self, item: Item) -> Query {
        let mention = item.title.unwrap_or_default();
        let right = match self {
            ItemSlot::Text => item.text,
            ItemSlot::Title => mention.clone(),
        };
        Query {
            id: item.id.as_str().into(),
            text: QueryText::Mention { left: String::new(), mention, right },
        }
    }
}

/// Where rows come from.
enum RowTexts<'a> {
    Queries(&'a QueryStore),
    Items(&'a ItemStore, ItemSlot),
}

impl RowTexts<'_> {
    fn ids(&self) -> &IdTable {
        match self {
            RowTexts::Queries(queries) => queries.ids(),
            RowTexts::Items(items, _) => items.ids(),
        }
    }

    fn digest(&self) -> String {
        match self {
            RowTexts::Queries(queries) => queries.digest().to_owned(),
            RowTexts::Items(items, slot) => digest_bytes(format!("{} {slot:?}", items.digest()).as_bytes()),
        }
    }

    fn read(&self, rows: Range<usize>) -> Result<Vec<Query>> {
        Ok(match self {
            RowTexts::Queries(queries) => queries.read(rows)?,
            RowTexts::Items(items, slot) => {
                items.read(rows)?.into_iter().map(|item| slot.query(item)).collect()
            }
        })
    }

    /// A blank query has no meaning; better said before hours of scoring than found after.
    fn refuse_blank(&self, rows: Range<usize>) -> Result<()> {
        for start in rows.clone().step_by(ITEMS_AT_ONCE) {
            for (query, row) in self.read(start..rows.end.min(start + ITEMS_AT_ONCE))?.iter().zip(start..) {
                if query.text.is_blank() {
                    anyhow::bail!(
                        "query {:?} (row {row}) is empty; remove it, or leave it out with --rows",
                        query.id
                    );
                }
            }
        }
        Ok(())
    }
}

/// Runs the command.
pub(crate) fn run(flags: ScoreFlags, context: &Context) -> Result<Outcome> {
    let target = MatrixTarget::new(&flags.output, flags.resume, false)?;
    if target.is_complete() {
        context.say(format_args!("{} is complete; nothing to do", target.shown()));
        return Ok(Outcome::Done);
    }

    let data = flags.data_flags.of_items(&flags.data, flags.queries.as_deref()).open(&flags.data)?;
    let query_data = flags.queries.as_ref().map(|path| flags.data_flags.open_queries(path)).transpose()?;
    let queries = match (&query_data, flags.items_as_queries) {
        (_, Some(slot)) => RowTexts::Items(data.items()?, slot),
        (Some(query_data), None) => RowTexts::Queries(query_data.queries()?),
        (None, None) => RowTexts::Queries(
            DataFlags::queries_beside_items(&data)
                .context("give them with --queries, or ask the items with --items-as-queries")?,
        ),
    };
    let items = Columns::choose(data.items()?, flags.items.as_deref())?;
    let rows = match &flags.rows {
        Some(range) => range.within(queries.ids().len(), "queries")?,
        None => 0..queries.ids().len(),
    };
    if rows.is_empty() || items.len() == 0 {
        return usage(format!("nothing to score: {} queries x {} items", rows.len(), items.len()));
    }
    queries.refuse_blank(rows.clone())?;

    let scorer = flags.model_flags.cross_encoder(&flags.model, context)?;
    let row_ids = ids_of(queries.ids(), rows.clone())?;
    let col_ids = items.ids()?;
    let mut spec = MatrixSpec::dense(&row_ids, col_ids.as_ref().unwrap_or(items.store.ids()))
        .digest("model", scorer.info().digest)
        .digest("queries", queries.digest())
        .digest("items", items.store.digest())
        .command(command_line());
    if let Some(pairs) = flags.tile_pairs {
        spec = spec.tile(TileShape::of_cells(rows.len(), items.len(), pairs as usize));
    }
    let writer = target.writer(&spec)?;
    let mut summary = Summary::default();
    summary.fact("model", scorer.info().name).fact("queries", rows.len()).fact("items", items.len());
    if let Some(writer) = writer {
        let read_rows = |part: Range<usize>| queries.read(rows.start + part.start..rows.start + part.end);
        let (done, took) = fill(writer, &scorer, &read_rows, &|cols| items.read(cols), context, &mut summary)
            .with_context(|| format!("{} is unfinished; --resume goes on with it", target.shown()))?;
        summary.rate("pairs", done, took);
        tell_speed(&mut summary, flags.model_flags.options().precision, scorer.most_scratch_bytes(), took, 0);
    } else {
        summary.fact("tiles computed", 0);
    }
    target.deliver(MATRIX_KIND)?;
    summary.fact("output", target.shown());
    summary.print(context, false)?;
    Ok(summary.outcome())
}

/// Reads the texts of some rows.
pub(super) type ReadQueries<'a> = dyn Fn(Range<usize>) -> Result<Vec<Query>> + 'a;
/// Reads the texts of some columns.
pub(super) type ReadItems<'a> = dyn Fn(Range<usize>) -> Result<Vec<Item>> + 'a;

/// Scores the missing tiles; gives the pairs done here and how long they took.
pub(super) fn fill(
    mut writer: MatrixWriter,
    scorer: &dyn PairScorer,
    queries: &ReadQueries<'_>,
    items: &ReadItems<'_>,
    context: &Context,
    summary: &mut Summary,
) -> Result<(u64, Duration)> {
    let grid = *writer.grid();
    let missing: Vec<usize> = writer.missing_tiles().collect();
    let cells = |tiles: &[usize]| tiles.iter().map(|&tile| grid.cells_of(tile) as u64).sum::<u64>();
    let total = (grid.rows() * grid.cols()) as u64;
    let to_do = cells(&missing);
    let bar = context.bar(total, "pairs");
    bar.resume_at(total - to_do);
    let mut cost = Cost::default();
    let mut read_rows = 0..0;
    let mut row_queries = Vec::new();
    for &tile in &missing {
        let rows = grid.rows_of(tile);
        if rows != read_rows {
            row_queries = queries(rows.clone())?;
            read_rows = rows;
        }
        let scores = score_tile(scorer, &row_queries, items, grid.cols_of(tile), &bar, context, &mut cost)?;
        writer.write_tile(tile, &scores)?;
    }
    let dropped = writer.dropped();
    let tiles = grid.tiles() as u64;
    writer.finish()?;
    let (done, took) = bar.finish();
    summary
        .fact("pairs", cost.pairs)
        .fact("tokens", cost.tokens)
        .count("truncated pairs", cost.truncated)
        .fact_as(
            "tiles",
            format!("{} of {} computed here", grouped(missing.len() as u64), grouped(tiles)),
            tiles,
        )
        .fact_as("tiles computed", "", missing.len())
        .count("damaged tiles recomputed", dropped);
    Ok((done, took))
}

/// Scores a tile, row after row, with the texts of [`ITEMS_AT_ONCE`] items in memory.
pub(super) fn score_tile(
    scorer: &dyn PairScorer,
    queries: &[Query],
    items: &ReadItems<'_>,
    cols: Range<usize>,
    bar: &Bar,
    context: &Context,
    cost: &mut Cost,
) -> Result<Vec<f32>> {
    let mut scores = vec![0.0; queries.len() * cols.len()];
    for start in cols.clone().step_by(ITEMS_AT_ONCE) {
        let texts = items(start..cols.end.min(start + ITEMS_AT_ONCE))?;
        let pairs: Vec<(u32, u32)> = (0..queries.len() as u32)
            .flat_map(|query| (0..texts.len() as u32).map(move |item| (query, item)))
            .collect();
        let mut part = vec![0.0; pairs.len()];
        *cost += scorer.score(queries, &texts, &pairs, &mut part, bar, &context.cancel)?;
        for (row, part) in scores.chunks_mut(cols.len()).zip(part.chunks(texts.len())) {
            row[start - cols.start..][..part.len()].copy_from_slice(part);
        }
    }
    Ok(scores)
}

/// The chosen items.
struct Columns<'a> {
    store: &'a ItemStore,
    chosen: Chosen,
}

enum Chosen {
    Range(Range<usize>),
    List(Vec<u32>),
}

impl<'a> Columns<'a> {
    fn choose(store: &'a ItemStore, wanted: Option<&str>) -> Result<Self> {
        let chosen = match wanted {
            None => Chosen::Range(0..store.len()),
            Some(text) => match text.parse::<Positions>() {
                Ok(range) => Chosen::Range(range.within(store.len(), "items")?),
                Err(_) => Chosen::List(listed(store, Path::new(text))?),
            },
        };
        Ok(Columns { store, chosen })
    }

    fn len(&self) -> usize {
        match &self.chosen {
            Chosen::Range(range) => range.len(),
            Chosen::List(list) => list.len(),
        }
    }

    /// The ids of the columns, unless they are all of the store's.
    fn ids(&self) -> Result<Option<IdTable>> {
        match &self.chosen {
            Chosen::Range(range) if range.len() == self.store.len() => Ok(None),
            Chosen::Range(range) => ids_of(self.store.ids(), range.clone()).map(Some),
            Chosen::List(list) => {
                let mut ids = IdTable::new();
                for &position in list {
                    ids.push(self.store.ids().get(position))?;
                }
                Ok(Some(ids))
            }
        }
    }

    fn read(&self, cols: Range<usize>) -> Result<Vec<Item>> {
        Ok(match &self.chosen {
            Chosen::Range(range) => self.store.read(range.start + cols.start..range.start + cols.end)?,
            Chosen::List(list) => {
                list[cols].iter().map(|&position| self.store.get(position)).collect::<Result<_, _>>()?
            }
        })
    }
}

/// Positions of the ids in a file, one a line.
fn listed(store: &ItemStore, path: &Path) -> Result<Vec<u32>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{}: cannot read the list of item ids", path.display()))?;
    let mut positions = Vec::new();
    let mut seen = std::collections::HashMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let position = store.position(line.trim()).with_context(|| {
            format!("{}:{}: item {:?} is not in the data set", path.display(), number + 1, line.trim())
        })?;
        if let Some(first) = seen.insert(position, number + 1) {
            let id = line.trim();
            anyhow::bail!(
                "{}:{}: item {id:?} was listed in line {first} already",
                path.display(),
                number + 1
            );
        }
        positions.push(position);
    }
    Ok(positions)
}
