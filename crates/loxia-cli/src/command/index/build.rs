//! `loxia index build`: anchor rows, from a matrix or scored here, become an index.
//!
//! What is expensive is scoring anchors x items; it fills a matrix beside the index (`INDEX.anchors`) as
//! `loxia score` does, so that a run that is killed goes on with `--resume`. The fit follows from it within
//! minutes and is done again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use loxia::core::artefact::Existing;
use loxia::core::{IdTable, Query, Seed};
use loxia::data::{DataSet, QueryStore};
use loxia::search::linalg::Dense;
use loxia::search::{AnchorSet, BuildTimes, Index, IndexOptions, Provenance};

use super::anchor_choice::AnchorChoice;
use super::anchor_matrix::{anchors_path, are_of_a_build, unfinished};
use super::items::OrderedItems;
use super::scored_rows::score_anchors;
use super::stand_in::AnchorSource;
use super::stored_scores;
use super::vectors::{DUAL_DIGEST, VectorSpace};
use crate::context::Context;
use crate::exit::{Outcome, usage};
use crate::flags::{DataFlags, ModelFlags, OutputFlags};
use crate::matrix_source::read_vectors;
use crate::matrix_target::command_line;
use crate::report::{Summary, duration, three_digits};
use crate::typed::Typed;

/// Build an index, from a score matrix or with a model.
///
/// Anchor queries are scored against every item once; from their scores and, where there are any, vectors of
/// queries and items, searches learn what is worth scoring. Constants are chosen and the recall estimate is
/// calibrated on held-out anchors.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia index build --model MODEL_DIR --data BEIR_DIR --split train --output INDEX
  loxia index build --model MODEL_DIR --dual QUERY_DIR,ITEM_DIR --data WORLDS_DIR --world verb.motion --split test \\
      --anchors 0..500 --output INDEX
  loxia index build --scores MATRIX --query-vectors Q.npy --item-vectors E.npy --anchors 0..500 --output INDEX

With --model, anchor scores are kept in OUTPUT.anchors: a run that was stopped goes on with --resume, and `index add` \
measures with them what adding items costs. It is said first how many pairs are to be scored and how long that takes; \
--dry-run stops there.
Vectors come from --dual, from the two files, or from TF-IDF weights of the texts, which need no model.")]
pub(crate) struct BuildFlags {
    #[command(flatten)]
    typed: Typed,
    /// Scores of queries (rows) against items: a matrix directory or an npy file [default: scored with --model]
    #[arg(long, value_name = "MATRIX")]
    scores: Option<PathBuf>,
    /// Cross-encoder: a directory, or hf:owner/name[@revision] in the Hugging Face cache
    #[arg(long, value_name = "DIR")]
    pub(super) model: Option<String>,
    /// Data set with items and, where it has them, queries
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Queries from another data set or file than the items
    #[arg(long, value_name = "PATH")]
    queries: Option<PathBuf>,
    /// Anchors: N queries drawn at random, or those at positions A..B [default: 500 or all; of --scores all rows]
    #[arg(long, value_name = "N|A..B")]
    pub(super) anchors: Option<AnchorChoice>,
    /// What anchor queries are made of [default: queries where the data has them, else sentences]
    #[arg(long, value_enum)]
    pub(super) anchors_from: Option<AnchorSource>,
    /// Dual encoder whose vectors guide searches: a directory, QUERY_DIR,ITEM_DIR, or hf:owner/name[@revision]
    #[arg(long, value_name = "DIR")]
    pub(super) dual: Option<String>,
    /// Vectors of the items, in the order of the columns: npy or a directory that `embed` wrote
    #[arg(long, value_name = "FILE")]
    item_vectors: Option<PathBuf>,
    /// Vectors of the queries, in the order of the rows
    #[arg(long, value_name = "FILE")]
    query_vectors: Option<PathBuf>,
    /// Vectors without a dual encoder [default: tfidf where there are texts]
    #[arg(long, value_enum)]
    vectors: Option<Vectors>,
    /// Seed of the draw of anchors
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
    /// Say how much is to be scored and how long that takes, and stop
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Go on with an unfinished output
    #[arg(long)]
    pub(super) resume: bool,
    /// Pairs in a tile: what a crash can cost. Smaller for slow models [default: 16384]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) tile_pairs: Option<u32>,
    #[command(flatten)]
    pub(super) output: OutputFlags,
    #[command(flatten)]
    pub(super) model_flags: ModelFlags,
    #[command(flatten)]
    data_flags: DataFlags,
}

/// Vectors that need no dual encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Vectors {
    /// TF-IDF weights of words and character runs, reduced to 300 dimensions
    Tfidf,
    /// None: searches learn from anchor scores alone
    None,
}

/// What an index is fitted on, beside vectors.
pub(super) struct AnchorRows<'a> {
    pub(super) scores: Dense,
    /// Texts of the anchors, where they are known.
    pub(super) anchors: Option<Vec<Query>>,
    /// Texts of the items, where they are known.
    pub(super) items: Option<OrderedItems<'a>>,
    pub(super) item_ids: IdTable,
    /// Positions of the anchors among all queries, of which there are `of_rows`.
    pub(super) chosen: Vec<usize>,
    pub(super) of_rows: usize,
    pub(super) digests: Vec<(&'static str, String)>,
    /// Whether a build that was to replace an index goes on.
    pub(super) replaces_index: bool,
}

/// Vectors of anchors and items, if there are any.
#[derive(Default)]
struct Encoded {
    /// What made them, unless they came from files.
    space: Option<VectorSpace>,
    vectors: Option<(Dense, Dense)>,
    /// Digest of the dual encoder, where it is known.
    digest: Option<String>,
}

/// Runs the command.
pub(super) fn run(flags: BuildFlags, context: &Context) -> Result<Outcome> {
    flags.check()?;
    let output = &flags.output.output;
    if output.exists() && !flags.dry_run && !flags.output.overwrite && !flags.resume {
        let resumable = flags.model.is_some() && are_of_a_build(&unfinished(&anchors_path(output)));
        return Err(loxia::core::Error::Exists { path: output.clone(), resumable }.into());
    }
    let data = flags.data.as_ref().map(|path| flags.item_flags(path).open(path)).transpose()?;
    let query_data = flags.queries.as_ref().map(|path| flags.data_flags.open_queries(path)).transpose()?;
    let queries = flags.queries(data.as_ref(), query_data.as_ref())?;
    // Before hours of scoring.
    let dual =
        flags.dual.as_ref().map(|dual| VectorSpace::dual(dual, &flags.model_flags, context)).transpose()?;
    let mut summary = Summary::default();
    let seed = Seed(flags.seed);
    let rows = match &flags.scores {
        Some(path) => {
            let choice = flags.anchors.as_ref();
            stored_scores::read(path, choice, seed, data.as_ref(), queries, context)?
        }
        None => match score_anchors(&flags, data.as_ref(), queries, dual.as_ref(), context, &mut summary)? {
            Some(rows) => rows,
            None => {
                summary.print(context, false)?;
                return Ok(Outcome::Done);
            }
        },
    };
    finish(&flags, rows, dual, context, summary)
}

/// Vectors, fit, and the directory.
fn finish(
    flags: &BuildFlags,
    rows: AnchorRows<'_>,
    dual: Option<VectorSpace>,
    context: &Context,
    mut summary: Summary,
) -> Result<Outcome> {
    let Encoded { space, vectors, digest } = flags.vectors(&rows, dual, context)?;
    let AnchorRows { scores, anchors, item_ids, mut digests, replaces_index, .. } = rows;
    digests.extend(digest.map(|digest| (DUAL_DIGEST, digest)));
    let anchor_set =
        AnchorSet::new(Arc::new(scores), vectors.map(|(queries, items)| (queries.into(), items.into())))?;
    let options = IndexOptions::default();
    let bar = context.bar(options.steps(&anchor_set), "steps of the fit");
    let built = Index::build(&anchor_set, item_ids, &options, &bar, &context.cancel);
    bar.finish();
    let (mut index, times) = built?;
    if let Some(space) = &space {
        index = space.stored_in(index)?;
    }
    if let Some(anchors) = &anchors {
        index = index.with_anchor_queries(anchors)?;
    }
    let mut made_from = Provenance::new(command_line()).seed(Seed(flags.seed));
    for (name, digest) in digests {
        made_from = made_from.digest(name, digest);
    }
    if let Some(source) = flags.data.as_ref().and_then(|path| flags.item_flags(path).source(path)) {
        made_from = made_from.source(source);
    }
    let existing =
        if flags.output.overwrite || replaces_index { Existing::Overwrite } else { Existing::Refuse };
    index.write(&flags.output.output, existing, &made_from)?;
    tell(&index, &times, space.as_ref(), &mut summary)?;
    summary.fact("output", flags.output.output.display().to_string()).print(context, false)?;
    Ok(summary.outcome())
}

/// What was built, for the summary.
fn tell(index: &Index, times: &BuildTimes, space: Option<&VectorSpace>, summary: &mut Summary) -> Result<()> {
    let facts = index.summary();
    let vectors = match (facts.vector_dimensions, space) {
        (Some(width), Some(space)) => format!("{}, {width} dimensions", space.name()?),
        (Some(width), None) => format!("{width} dimensions, from files"),
        (None, _) => "none".to_owned(),
    };
    let time = |took: Duration| (duration(took), took.as_secs_f64());
    let settings = &facts.settings;
    let estimate = if facts.calibrated {
        "calibrated on held-out anchors"
    } else {
        "none: too few anchors or items to calibrate it, so --recall cannot be used"
    };
    summary
        .fact("anchors", facts.anchors)
        .fact("items", facts.items)
        .fact("vectors", vectors)
        .fact_as("choose", time(times.choose).0, time(times.choose).1)
        .fact_as("fit", time(times.fit).0, time(times.fit).1)
        .fact_as("calibrate", time(times.calibrate).0, time(times.calibrate).1)
        .fact_as("constants", settings.to_string(), serde_json::to_value(settings)?)
        .fact_as("recall estimate", estimate, facts.calibrated)
        .fact_as("size", format!("{} MB", three_digits(facts.bytes as f64 / 1e6)), facts.bytes);
    Ok(())
}

impl BuildFlags {
    fn check(&self) -> Result<()> {
        if self.output.is_stdout() {
            return usage("an index is a directory; give --output its name");
        }
        if self.resume && self.output.overwrite {
            return usage("--resume goes on and --overwrite begins again; give one of them");
        }
        match (&self.scores, &self.model) {
            (Some(_), Some(_)) => return usage("--scores are scored already; leave out --model"),
            (None, None) => return usage("give --scores MATRIX, or --model DIR with --data PATH"),
            (None, Some(_)) if self.data.is_none() => return usage("--model needs the items: --data PATH"),
            (Some(_), None) => {
                let reason = "--scores are scored already";
                self.typed.refuse(&["dry-run", "resume", "tile-pairs", "anchors-from"], reason)?;
            }
            _ => {}
        }
        let files = self.item_vectors.is_some() || self.query_vectors.is_some();
        let given: Vec<&str> = [("--dual", self.dual.is_some()), ("vector files", files)]
            .into_iter()
            .chain([("--vectors", self.vectors.is_some())])
            .filter_map(|(name, given)| given.then_some(name))
            .collect();
        if given.len() > 1 {
            return usage(format!("{} exclude each other; vectors come from one place", given.join(" and ")));
        }
        if self.dual.is_some() && self.data.is_none() {
            return usage("vectors of texts need the texts; give the data set that was scored with --data");
        }
        if self.item_vectors.is_some() != self.query_vectors.is_some() {
            return usage("--query-vectors and --item-vectors belong together; give both or neither");
        }
        Ok(())
    }

    /// What of the data set the items are.
    fn item_flags(&self, data: &Path) -> DataFlags {
        self.data_flags.of_items(data, self.queries.as_deref())
    }

    /// The queries, where there are any and they are wanted.
    fn queries<'a>(
        &self,
        data: Option<&'a DataSet>,
        query_data: Option<&'a DataSet>,
    ) -> Result<Option<&'a QueryStore>> {
        if self.anchors_from.is_some_and(|source| source != AnchorSource::Queries) {
            self.typed.refuse(&["queries"], "--anchors-from takes anchors from the items")?;
            return Ok(None);
        }
        match (query_data, data) {
            (Some(queries), _) => Ok(Some(queries.queries()?)),
            (None, Some(data)) if data.has_queries() => Ok(Some(data.queries()?)),
            _ if self.anchors_from == Some(AnchorSource::Queries) => {
                usage("--anchors-from queries, but there are none; give them with --queries")
            }
            _ => Ok(None),
        }
    }

    /// Refuses a finished index whose vectors come from elsewhere than those asked for.
    pub(super) fn check_vectors(&self, finished: &Index, dual: Option<&VectorSpace>) -> Result<()> {
        let asked = match (dual, &self.item_vectors, self.vectors) {
            (Some(dual), ..) => VectorSource::Dual(dual.digest()?),
            (None, Some(items), _) => VectorSource::Dual(file_digest(items)?),
            (None, None, Some(Vectors::None)) => VectorSource::None,
            (None, None, _) => VectorSource::Tfidf,
        };
        let found = VectorSource::of(finished);
        if found == asked {
            return Ok(());
        }
        Err(loxia::core::Error::Mismatch {
            path: self.output.output.clone(),
            field: "vectors".into(),
            found: found.to_string(),
            expected: asked.to_string(),
            advice: "leave out --resume and give another --output, or --overwrite to build it again (with --scores and \
                     the anchor scores beside it in the place of --model nothing is scored again)"
                .into(),
        }
        .into())
    }

    /// Vectors of anchors and items, and what made them.
    fn vectors(
        &self,
        rows: &AnchorRows<'_>,
        dual: Option<VectorSpace>,
        context: &Context,
    ) -> Result<Encoded> {
        if let (Some(queries), Some(items)) = (&self.query_vectors, &self.item_vectors) {
            if rows.of_rows == 0 {
                return usage("anchors made of items have no rows in --query-vectors; give --dual instead");
            }
            let all = read_vectors(queries, rows.of_rows, "queries", context)?;
            let vectors = read_vectors(items, rows.item_ids.len(), "items", context)?;
            let vectors = Some((all.select_rows(&rows.chosen), vectors));
            return Ok(Encoded { space: None, vectors, digest: file_digest(items)? });
        }
        let texts = rows.anchors.as_ref().zip(rows.items.as_ref());
        let Some((anchors, items)) = texts else {
            if self.dual.is_some() || self.vectors == Some(Vectors::Tfidf) {
                return usage(
                    "vectors of texts need the texts; give the data set that was scored with --data",
                );
            }
            if self.vectors.is_none() {
                context.say(
                    "no vectors: neither files nor texts of queries and items are given, so searches learn from \
                     scores alone",
                );
            }
            return Ok(Encoded::default());
        };
        if self.vectors == Some(Vectors::None) {
            return Ok(Encoded::default());
        }
        let (space, item_vectors) = VectorSpace::of_texts(dual, items, context)?;
        let anchor_vectors = space.queries(anchors, context)?;
        let digest = space.digest()?;
        Ok(Encoded { space: Some(space), vectors: Some((anchor_vectors, item_vectors)), digest })
    }
}

/// Where the vectors of an index come from.
#[derive(PartialEq, Eq)]
enum VectorSource {
    None,
    Tfidf,
    /// With the digest of the model that made them; files do not tell it.
    Dual(Option<String>),
}

impl VectorSource {
    fn of(index: &Index) -> Self {
        let digest = || index.manifest().and_then(|manifest| manifest.digests.get(DUAL_DIGEST).cloned());
        match (index.posterior().vector_dimensions(), index.query_encoder()) {
            (None, _) => VectorSource::None,
            (Some(_), Some(_)) => VectorSource::Tfidf,
            (Some(_), None) => VectorSource::Dual(digest()),
        }
    }
}

impl std::fmt::Display for VectorSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            VectorSource::None => f.write_str("none"),
            VectorSource::Tfidf => f.write_str("tfidf"),
            VectorSource::Dual(Some(digest)) => write!(f, "those of the dual encoder {digest}"),
            VectorSource::Dual(None) => f.write_str("those of files"),
        }
    }
}

/// The digest of the model that made a directory of vectors; a file says nothing.
fn file_digest(path: &Path) -> Result<Option<String>> {
    if !path.is_dir() {
        return Ok(None);
    }
    Ok(loxia::core::artefact::Manifest::read_any(path)?.digests.remove("model"))
}
