//! Searches that end when their own estimate says that enough was found.

use anyhow::Result;
use loxia::core::{Answer, Cancel, NoProgress, PairScorer, RecallTarget, Stop, StoppedBy};
use loxia::search::{Index, search_with};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::material::Material;
use super::shown::search_stored;
use crate::ranked_output::head;
use crate::report::grouped;

const TARGET: f64 = 0.9;
const K: usize = 50;

/// One search with the model itself, and all searches over the known scores.
pub(super) struct Stopping {
    /// `None` where there were too few anchors to calibrate an estimate.
    pub(super) searches: Option<Searches>,
    k: usize,
}

pub(super) struct Searches {
    live: Answer,
    live_recall: f64,
    /// Estimate, truth and cost of each searched query.
    pub(super) all: Vec<Ended>,
}

/// How a search ended.
pub(super) struct Ended {
    pub(super) estimate: f64,
    pub(super) recall: f64,
    pub(super) pairs: u64,
}

impl Stopping {
    pub(super) fn run(material: &Material, index: &Index, cancel: &Cancel) -> Result<Self> {
        let k = K.min(material.items.len() / 2);
        if !index.posterior().is_calibrated() {
            return Ok(Stopping { searches: None, k });
        }
        let stop = Stop { recall: Some(RecallTarget::new(TARGET)?), ..Stop::default() };
        let first = material.searched().start;
        let live = search_live(material, index, first, k, &stop, cancel)?;
        let ended = |query: usize| -> Result<Ended> {
            let answer = search_stored(material, query, index, k, &stop, cancel)?;
            Ok(Ended {
                estimate: answer.recall_estimate.map_or(0.0, |estimate| estimate.mean),
                recall: recall(material, query, &answer, k),
                pairs: answer.cost.pairs,
            })
        };
        let all = material.searched().into_par_iter().map(ended).collect::<Result<_>>()?;
        let live_recall = recall(material, first, &live, k);
        Ok(Stopping { searches: Some(Searches { live, live_recall, all }), k })
    }

    pub(super) fn text(&self, material: &Material) -> String {
        let k = self.k;
        let Some(searches) = &self.searches else {
            return format!(
                "\nNo recall estimate: {} anchors are too few to calibrate one, so there is no search with a target.",
                material.anchors
            );
        };
        let items = grouped(material.items.len() as u64);
        let (answer, (recall, pairs)) = (&searches.live, searches.means());
        let estimate = answer.recall_estimate.map_or(String::new(), |estimate| {
            format!(
                "estimated recall {:.2} (90 % interval {:.2} to {:.2}), in truth {:.2}",
                estimate.mean, estimate.low, estimate.high, searches.live_recall
            )
        });
        let why = match answer.stopped_by {
            StoppedBy::Recall => "stopped at the target",
            _ => "scored everything",
        };
        let (least, most) = searches.least_and_most();
        format!(
            "\nA search that stops by itself, where searches find {TARGET:.2} of the top {k} on average:\n\n  {}\n  \
             {why} after {} of {items} pairs, {} rounds; {estimate}\n\nOver all {} queries: mean recall {recall:.3} for the target \
             {TARGET:.2}, with {pairs:.0} pairs a query on average ({least} to {most}).\n",
            head(&material.asked(material.searched().start), 96),
            grouped(answer.cost.pairs),
            answer.rounds,
            searches.all.len(),
        )
    }

    pub(super) fn json(&self, material: &Material) -> Value {
        let Some(searches) = &self.searches else { return Value::Null };
        let (answer, (recall, pairs)) = (&searches.live, searches.means());
        json!({
            "target": TARGET, "k": self.k, "mean_recall": recall, "mean_cost": pairs,
            "search": {
                "query": material.asked(material.searched().start), "cost": answer.cost.pairs,
                "rounds": answer.rounds, "stopped_by": answer.stopped_by,
                "recall_estimate": answer.recall_estimate, "recall": searches.live_recall,
            },
        })
    }

    /// The target and k, for the page.
    pub(super) fn goal(&self) -> (f64, usize) {
        (TARGET, self.k)
    }
}

impl Searches {
    /// Mean recall and mean cost.
    pub(super) fn means(&self) -> (f64, f64) {
        let count = self.all.len().max(1) as f64;
        let recall = self.all.iter().map(|ended| ended.recall).sum::<f64>();
        let pairs = self.all.iter().map(|ended| ended.pairs as f64).sum::<f64>();
        (recall / count, pairs / count)
    }

    fn least_and_most(&self) -> (u64, u64) {
        let pairs = || self.all.iter().map(|ended| ended.pairs);
        (pairs().min().unwrap_or(0), pairs().max().unwrap_or(0))
    }
}

/// A search in which the cross-encoder scores whatever is chosen.
fn search_live(
    material: &Material,
    index: &Index,
    query: usize,
    k: usize,
    stop: &Stop,
    cancel: &Cancel,
) -> Result<Answer> {
    let queries = &material.queries[query..=query];
    Ok(search_with(index, &material.view(query), k, stop, cancel, |items, scores, cancel| {
        let pairs: Vec<(u32, u32)> = items.iter().map(|&item| (0, item)).collect();
        Ok(material.scorer.score(queries, &material.items, &pairs, scores, &NoProgress, cancel)?)
    })?)
}

/// Share of the exact top k that was paid for.
fn recall(material: &Material, query: usize, answer: &Answer, k: usize) -> f64 {
    let paid: std::collections::HashSet<u32> = answer.evidence.items().collect();
    let exact = material.exact(query, k);
    exact.iter().filter(|(item, _)| paid.contains(item)).count() as f64 / exact.len().max(1) as f64
}
