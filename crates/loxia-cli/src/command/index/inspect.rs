//! `loxia index inspect` and `loxia index check`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use loxia::core::Progress;
use loxia::search::IndexSummary;

use super::anchor_matrix::{anchors_path, check_kept_scores};
use super::opening::open_index;
use crate::context::Context;
use crate::exit::Outcome;
use crate::output::print_line;
use crate::report::{Summary, grouped, three_digits};

/// Say what is in an index.
#[derive(Debug, Args)]
pub(crate) struct InspectFlags {
    /// The index
    #[arg(value_name = "INDEX")]
    index: PathBuf,
}

/// Read an index, and the anchor scores beside it, to the last byte and compare them with their checksums.
#[derive(Debug, Args)]
pub(crate) struct CheckFlags {
    /// The index
    #[arg(value_name = "INDEX")]
    index: PathBuf,
}

/// Runs `inspect`.
pub(super) fn inspect(flags: &InspectFlags, context: &Context) -> Result<Outcome> {
    let index = open_index(&flags.index)?;
    let facts = index.summary();
    if context.json {
        let mut json = serde_json::to_value(&facts)?;
        json["anchor_queries"] = index.anchor_queries()?.is_some().into();
        print_line(json)?;
        return Ok(Outcome::Done);
    }
    let mut summary = Summary::default();
    summary
        .fact("items", facts.items)
        .count("added since the fit", facts.added as u64)
        .fact("anchors", facts.anchors)
        .fact("vectors", vectors(&facts))
        .fact("recall estimate", if facts.calibrated { "calibrated" } else { "none" });
    let settings = &facts.settings;
    let transform = settings.transform.map_or("none".to_owned(), |width| format!("log {width}"));
    summary
        .fact("transform", transform)
        .fact("query ridge", settings.query_ridge)
        .fact("prior trust", settings.prior_trust)
        .fact("noise", settings.noise)
        .fact("item kernel", settings.item_kernel)
        .fact("dual regard", settings.dual_regard)
        .fact("rank", settings.rank);
    let texts = if index.anchor_queries()?.is_some() { "kept, so items can be added" } else { "not kept" };
    summary.fact("anchor texts", texts);
    let scores = anchors_path(&flags.index);
    if scores.exists() {
        summary.fact("anchor scores", scores.display().to_string());
    }
    summary.fact_as("size", format!("{} MB", three_digits(facts.bytes as f64 / 1e6)), facts.bytes);
    summary.fact("made by", format!("{}: {}", facts.created_by, facts.command));
    summary.print_to_stdout(context)?;
    for (name, digest) in &facts.digests {
        print_line(format_args!("digest of {name}: {digest}"))?;
    }
    for plane in &facts.planes {
        let (rows, cols) = (grouped(plane.rows as u64), grouped(plane.cols as u64));
        print_line(format_args!("{:<18} {rows:>11} x {cols:<6} {}", plane.name, plane.dtype))?;
    }
    Ok(Outcome::Done)
}

fn vectors(facts: &IndexSummary) -> String {
    match (facts.vector_dimensions, &facts.query_encoder) {
        (None, _) => "none".to_owned(),
        (Some(width), Some(encoder)) => format!("{encoder}, {width} dimensions"),
        (Some(width), None) => format!("{width} dimensions of a dual encoder (searches need --dual)"),
    }
}

/// Runs `check`.
pub(super) fn check(flags: &CheckFlags, context: &Context) -> Result<Outcome> {
    let index = open_index(&flags.index)?;
    let bytes = index.stored_bytes();
    let bar = context.bar(bytes, "bytes");
    let checked = index.check(&bar as &dyn Progress, &context.cancel);
    bar.finish();
    checked?;
    let kept = check_kept_scores(&index, &flags.index)?;
    let mut summary = Summary::default();
    let facts = index.summary();
    let scores = match kept {
        None => String::new(),
        Some(items) if items == facts.items => "sound".to_owned(),
        Some(items) => format!(
            "sound, but of {} of the {} items only",
            grouped(items as u64),
            grouped(facts.items as u64)
        ),
    };
    summary
        .fact("index", flags.index.display().to_string())
        .fact("state", "sound")
        .fact("items", facts.items)
        .fact("anchors", facts.anchors)
        .fact_as("anchor scores", scores, kept.is_some())
        .fact_as("read", format!("{} MB", three_digits(bytes as f64 / 1e6)), bytes);
    summary.print_to_stdout(context)?;
    Ok(Outcome::Done)
}
