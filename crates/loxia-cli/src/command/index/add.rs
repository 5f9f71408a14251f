//! `loxia index add`: new items get their numbers from their anchor scores, without a new fit.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Args;
use loxia::core::artefact::Existing;
use loxia::core::matrix::MatrixSpec;
use loxia::core::{PairScorer, Seed};
use loxia::data::QueryStore;
use loxia::search::linalg::Dense;
use loxia::search::{EvaluatedAddition, Index, Provenance};

use super::anchor_matrix::{
    anchors_path, are_of_a_build, digests_by_part, keep_grown, kept_scores, part_name, unfinished,
};
use super::forecast::Forecast;
use super::items::{DATA_DIGEST, OrderedItems};
use super::opening::open_index;
use super::scoring::{AnchorScoring, anchor_scores};
use super::vectors::VectorSpace;
use crate::context::Context;
use crate::exit::{Outcome, usage};
use crate::flags::{DataFlags, ModelFlags};
use crate::matrix_source::read_vectors;
use crate::matrix_target::{beside, command_line};
use crate::report::Summary;
use crate::typed::Typed;

/// Add items to an index without building it again.
///
/// The anchor queries are scored against the new items. Items whose ids the index has are left out and counted.
/// Where the anchor scores of the build are at hand it is measured, on held-out anchors, what adding as large a
/// share of the items costs in recall against building with them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia index add --index INDEX --model MODEL_DIR --data NEW_ITEMS.jsonl
  loxia search --index INDEX --model MODEL_DIR --data ITEMS.jsonl --data NEW_ITEMS.jsonl --query \"...\"")]
pub(crate) struct AddFlags {
    #[command(flatten)]
    typed: Typed,
    /// The index
    #[arg(long, value_name = "INDEX")]
    index: PathBuf,
    /// The cross-encoder it was built with
    #[arg(long, value_name = "DIR")]
    model: String,
    /// The new items, or the whole collection with them
    #[arg(long, value_name = "PATH")]
    data: PathBuf,
    /// The dual encoder it was built with, if it was built with one
    #[arg(long, value_name = "DIR")]
    dual: Option<String>,
    /// Vectors of the new items, in the order of the data, for an index built from files of vectors
    #[arg(long, value_name = "FILE")]
    item_vectors: Option<PathBuf>,
    /// Write the larger index here [default: in place of the old one]
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Replace an existing output
    #[arg(long)]
    overwrite: bool,
    /// Go on with an unfinished addition
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    model_flags: ModelFlags,
    #[command(flatten)]
    data_flags: DataFlags,
}

/// Runs the command.
pub(super) fn run(flags: AddFlags, context: &Context) -> Result<Outcome> {
    let output = flags.output.as_ref().unwrap_or(&flags.index);
    if !flags.overwrite {
        flags.check_output()?;
    }
    if flags.dual.is_some() && flags.item_vectors.is_some() {
        return usage("--dual and --item-vectors exclude each other; vectors come from one place");
    }
    let index = open_index(&flags.index)?;
    let Some(anchors) = index.anchor_queries()? else {
        return usage(format!(
            "{} does not hold its anchor queries: it was built from --scores without --data; build it again",
            flags.index.display()
        ));
    };
    let anchors = QueryStore::from_records(anchors)?;
    let data = flags.data_flags.open(&flags.data)?;
    let store = data.items()?;
    let is_new = |position: &u32| index.item_ids().position(store.ids().get(*position)).is_none();
    let positions: Vec<u32> = (0..store.len() as u32).filter(is_new).collect();
    let mut summary = Summary::default();
    summary
        .fact("new items", positions.len())
        .count("items already there", (store.len() - positions.len()) as u64);
    if positions.is_empty() {
        let output = flags.output.as_ref().map(|output| format!(", and {} is not written", output.display()));
        let output = output.unwrap_or_default();
        context.say(format_args!("{}: no new items; nothing to do{output}", flags.data.display()));
        summary.print(context, false)?;
        return Ok(Outcome::Done);
    }
    let items = OrderedItems::some(store, positions.iter().copied());
    let scorer = flags.model_flags.cross_encoder_and(&flags.model, flags.dual.as_deref(), context)?;
    super::check_model(&index, &flags.index, &scorer.info().digest, context)?;
    let vectors = flags.vectors(&index, &items, &positions, store.len(), context)?;
    // Scores that are not the index's are refused before hours go into new ones.
    let kept = kept_scores(&index, &flags.index, context)?.map(Arc::new);

    let digest = items.digest(0..items.len())?;
    let forecast = Forecast::measure(&scorer, &anchors.read(0..anchors.len())?, &items, context)?;
    let before = index.item_ids().len();
    let path = beside(&flags.index, &format!(".anchors-{before}"));
    let work = AnchorScoring {
        path: &path,
        overwrite: flags.overwrite && !flags.resume,
        resume: flags.resume,
        tile_pairs: None,
        forecast: &forecast,
        precision: flags.model_flags.options().precision,
    };
    let scores = anchor_scores(&work, &scorer, &anchors, &items, &digest, context, &mut summary)?;
    let grown = index.add(&items.ids()?, &scores, vectors.as_ref())?;
    // What was added earlier was not fitted either.
    let share = (index.added() + items.len()) as f64 / (before + items.len()) as f64;
    evaluate(&index, &flags.index, kept.as_ref(), share, context, &mut summary)?;

    let part = format!("{DATA_DIGEST} {before}..{}", before + items.len());
    let mut made_from = Provenance::new(command_line()).seed(Seed(index.summary().seed.unwrap_or(0)));
    for (name, digest) in index.summary().digests {
        made_from = made_from.digest(name, digest);
    }
    for source in index.sources().iter().cloned().chain(flags.data_flags.source(&flags.data)) {
        made_from = made_from.source(source);
    }
    match kept.filter(|kept| kept.cols() == before) {
        Some(kept) => {
            let path = anchors_path(output);
            let mut spec = MatrixSpec::dense(anchors.ids(), grown.item_ids())
                .digest("model", scorer.info().digest)
                .digest("queries", anchors.digest())
                .digest(part_name(before..before + items.len()), &digest)
                .command(command_line());
            for (name, digest) in digests_by_part(&anchors_path(&flags.index), before)? {
                spec = spec.digest(name, digest);
            }
            // Before the index: with more scores than items it is as good as with those it had.
            keep_grown(&path, &spec, &kept, &scores, context)?;
            summary.fact("anchor scores", path.display().to_string());
        }
        None => {
            context.say(format_args!(
                "{} does not hold the scores of all items so far, so those of the new ones are not kept: of the \
                 methods of `search` posterior, exact and rerank are left. To have the others build the index again",
                anchors_path(&flags.index).display()
            ));
            summary.fact_as("anchor scores", "", serde_json::Value::Null);
            if flags.output.is_some() && anchors_path(output).is_dir() {
                // Those of an index that is replaced.
                std::fs::remove_dir_all(anchors_path(output))
                    .with_context(|| format!("{}: cannot remove", anchors_path(output).display()))?;
            }
        }
    }
    grown.write(output, Existing::Overwrite, &made_from.digest(part, digest))?;
    // From here on the scores of the new items are in the index.
    std::fs::remove_dir_all(&path).ok();
    summary.fact("items", before + items.len()).fact("output", output.display().to_string());
    summary.print(context, false)?;
    Ok(summary.outcome())
}

impl AddFlags {
    /// Refuses to replace anything but the index and its scores, and what an earlier run of this left.
    fn check_output(&self) -> Result<()> {
        let elsewhere = self.output.as_ref();
        let anchors = anchors_path(elsewhere.unwrap_or(&self.index));
        // Scores without an index are what a crash between the two leaves, but not those of a build, which took hours.
        let in_the_way =
            |path: &PathBuf| path.exists() && (elsewhere.is_some() && !self.resume || are_of_a_build(path));
        let mut kept = vec![unfinished(&anchors)];
        kept.extend(elsewhere.map(|_| anchors));
        let found = elsewhere.filter(|output| output.exists()).cloned();
        if let Some(path) = found {
            return Err(loxia::core::Error::Exists { path, resumable: false }.into());
        }
        match kept.into_iter().find(in_the_way) {
            Some(path) => {
                let resumable = !self.resume && !are_of_a_build(&path);
                Err(loxia::core::Error::Exists { path, resumable }.into())
            }
            None => Ok(()),
        }
    }

    /// Vectors of the new items, where the index has vectors.
    fn vectors(
        &self,
        index: &Index,
        items: &OrderedItems<'_>,
        positions: &[u32],
        all: usize,
        context: &Context,
    ) -> Result<Option<Dense>> {
        if index.posterior().vector_dimensions().is_none() {
            self.typed.refuse(&["dual", "item-vectors"], "the index was built without vectors")?;
            return Ok(None);
        }
        if let Some(path) = &self.item_vectors {
            let vectors = read_vectors(path, all, "items", context)?;
            let rows: Vec<usize> = positions.iter().map(|&position| position as usize).collect();
            return Ok(Some(vectors.select_rows(&rows)));
        }
        let space =
            VectorSpace::of_index(index, &self.index, self.dual.as_deref(), &self.model_flags, context)?;
        space.map(|space| space.items(items, context)).transpose()
    }
}

/// Measures what adding costs, if the anchor scores of the build are there.
fn evaluate(
    index: &Index,
    path: &std::path::Path,
    kept: Option<&Arc<Dense>>,
    share: f64,
    context: &Context,
    summary: &mut Summary,
) -> Result<()> {
    let Some(kept) = kept else {
        summary.fact("recall", format!("not measured: {} is not there", anchors_path(path).display()));
        return Ok(());
    };
    let anchors = index.anchor_set(kept.clone())?;
    let bar = context.bar(0, "fits");
    let evaluated = index.evaluate_addition(&anchors, share, &context.cancel);
    bar.finish();
    match evaluated? {
        None => {
            summary.fact("recall", "not measured: too few anchors or new items");
        }
        Some(EvaluatedAddition { share, rebuilt, added }) => {
            let text = format!(
                "{added:.4} with {:.1} % of the items added, {rebuilt:.4} built with them ({:+.4}), on held-out anchors",
                100.0 * share,
                added - rebuilt
            );
            let json = serde_json::json!({ "share": share, "rebuilt": rebuilt, "added": added });
            summary.fact_as("recall", text, json);
        }
    }
    Ok(())
}
