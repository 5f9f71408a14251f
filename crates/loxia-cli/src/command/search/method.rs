//! The method of a search: the index itself, or another one made from its anchor rows.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use loxia::search::{BuildOptions, Exact, Index, Method, MethodName, Schedule, build};

use crate::command::index::anchors_path;
use crate::context::Context;
use crate::exit::usage;
use crate::matrix_source::read_scores;

/// Makes a method; the published ones choose their constants on the anchor rows first.
pub(super) fn of(
    name: MethodName,
    index: Index,
    path: &Path,
    rounds: Option<u32>,
    context: &Context,
) -> Result<Box<dyn Method>> {
    let defaults = BuildOptions::default();
    let rounds = rounds.map_or(defaults.rounds, |rounds| rounds as usize);
    match name {
        MethodName::Posterior => return Ok(Box::new(index.with_schedule(Schedule::Even { rounds }))),
        MethodName::Exact => return Ok(Box::new(Exact::new(index.items()))),
        _ => {}
    }
    let scores = anchors_path(path);
    if !scores.is_dir() || index.added() > 0 {
        return usage(format!(
            "--method {name} is made from the anchor scores of all items, which {} would hold; posterior, rerank \
             by `loxia retrieve` and `loxia rerank`, and exact do without",
            scores.display()
        ));
    }
    let anchors = index.anchor_set(Arc::new(read_scores(&scores, context)?))?;
    Ok(build(name, &anchors, &BuildOptions { rounds, ..defaults })?.method)
}
