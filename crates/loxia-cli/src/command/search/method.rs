//! The method of a search: the index itself, or another one made from its anchor rows.

use std::sync::Arc;

use anyhow::Result;
use loxia::search::{BuildOptions, Exact, FirstStage, Index, Method, MethodName, Rerank, Schedule, build};

use super::SearchFlags;
use crate::command::index::{anchors_path, kept_scores};
use crate::context::Context;
use crate::exit::usage;

/// Makes the method; the published ones choose their constants on the anchor rows first.
pub(super) fn of(
    flags: &SearchFlags,
    index: Index,
    first_stage: Option<Arc<dyn FirstStage>>,
    context: &Context,
) -> Result<Box<dyn Method>> {
    let (name, defaults) = (flags.method, BuildOptions::default());
    let rounds = flags.rounds.map_or(defaults.rounds, |rounds| rounds as usize);
    match (name, &first_stage) {
        (MethodName::Posterior, _) => return Ok(Box::new(index.with_schedule(Schedule::Even { rounds }))),
        (MethodName::Exact, _) => return Ok(Box::new(Exact::new(index.items()))),
        (MethodName::Rerank, Some(stage)) => return Ok(Box::new(Rerank::new(stage.clone()))),
        (MethodName::Rerank, None) => {
            let Some(stage) = index.posterior().dual_scan() else {
                return usage(format!(
                    "{} holds no vectors to begin with; give --first-stage bm25, tfidf or a run",
                    flags.index.display()
                ));
            };
            return Ok(Box::new(Rerank::new(stage)));
        }
        _ => {}
    }
    let kept = kept_scores(&index, &flags.index, context)?;
    let lacks = kept.is_some();
    let Some(scores) = kept.filter(|scores| scores.cols() == index.items()) else {
        let why = if lacks { "lacks those of items added later" } else { "is not there" };
        return usage(format!(
            "--method {name} is made from the anchor scores of all items, and {} {why}; build the index again, or \
             choose posterior, exact or rerank, which do without",
            anchors_path(&flags.index).display()
        ));
    };
    let mut anchors = index.anchor_set(Arc::new(scores))?;
    if let Some(stage) = first_stage {
        let Some(queries) = index.anchor_queries()? else {
            return usage(format!(
                "{} does not hold its anchor queries, on which --method {name} would try --first-stage; build it again",
                flags.index.display()
            ));
        };
        anchors = anchors.with_first_stage(stage, queries.into())?;
    }
    let axn_shortlist = flags.first_stage.axn_shortlist();
    Ok(build(name, &anchors, &BuildOptions { rounds, axn_shortlist, ..defaults })?.method)
}
