//! What all methods have in common: the loop of rounds, and the way from a method to an answer.

use loxia_core::{
    Answer, Cancel, Cost, QueryText, Ranking, RecallEstimate, RecallTarget, Scored, Stop, StoppedBy,
};

use crate::{Ledger, Result, Schedule};

/// A query as methods see it: its name, and its vector and text where there are some.
#[derive(Debug, Clone, Copy)]
pub struct QueryView<'a> {
    /// Id of the query; methods that draw at random draw by it.
    pub id: &'a str,
    /// Its vector, in the space of the item vectors.
    pub vector: Option<&'a [f32]>,
    /// Its text; a query known only as a row of stored scores has none.
    pub text: Option<&'a QueryText>,
}

/// What a search is for.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// How many items are wanted.
    pub k: usize,
    /// Estimated recall that is enough.
    pub recall: Option<RecallTarget>,
}

impl Goal {
    /// Whether batches are small whatever the budget: even ones need a budget to be cut from, and a target wants many
    /// chances to stop.
    pub(crate) fn wants_small_batches(&self, ledger: &Ledger<'_>) -> bool {
        self.recall.is_some() || !ledger.has_budget()
    }
}

/// A way to choose what to score.
pub trait Method: Send + Sync {
    /// Its name in tables: `adacur+`, `posterior`.
    fn name(&self) -> &str;

    /// Number of items it was made for.
    fn items(&self) -> usize;

    /// What its estimate of a top k can say, where it makes one.
    fn estimate_reach(&self, _k: usize) -> Option<EstimateReach> {
        None
    }

    /// Pays for items until the ledger closes or there is nothing more it would score.
    fn run(&self, query: &QueryView<'_>, goal: &Goal, ledger: &mut Ledger<'_>) -> Result<Outcome>;
}

/// What a recall estimate can say of a top k.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct EstimateReach {
    /// The largest recall target that it can certify, in thousandths. A search for a higher one never ends by
    /// its estimate: it goes on to its budget, its deadline or the whole collection.
    pub largest_target: f64,
    /// Whether it was calibrated for tops as large as k.
    pub calibrated: bool,
    /// The calibrated k that is nearest and stands for it.
    pub nearest: usize,
}

impl EstimateReach {
    /// Whether a search can end because the target is reached by estimate.
    pub fn certifies(&self, target: RecallTarget) -> bool {
        target.get() <= self.largest_target
    }
}

/// How a method ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    /// Its estimate of the recall, where it makes one.
    pub recall: Option<RecallEstimate>,
    /// Whether it ended because that estimate reached the goal.
    pub goal_reached: bool,
}

/// The state of a method between rounds.
pub(crate) trait Policy {
    /// The next `count` items to score, best first; evidence so far is in the ledger.
    fn choose(&mut self, count: usize, ledger: &Ledger<'_>) -> Result<Vec<u32>>;

    /// Estimated recall of the evidence, where the method can tell, and whether it is enough.
    fn estimate(&mut self, _goal: &Goal, _ledger: &Ledger<'_>) -> Result<Outcome> {
        Ok(Outcome::default())
    }
}

/// Chooses and pays, round by round.
pub(crate) fn run_rounds(
    policy: &mut dyn Policy,
    schedule: &Schedule,
    goal: &Goal,
    ledger: &mut Ledger<'_>,
) -> Result<Outcome> {
    let anytime = Schedule::anytime();
    let schedule = if goal.wants_small_batches(ledger) { &anytime } else { schedule };
    let mut sizes = schedule.sizes(ledger.remaining()).into_iter();
    while ledger.is_open() {
        ledger.check_cancelled()?;
        let size = sizes.next().unwrap_or_else(|| {
            // Cached pairs leave budget over at the end of the schedule, which is spent by another one.
            sizes = schedule.sizes(ledger.remaining()).into_iter();
            sizes.next().unwrap_or(ledger.remaining())
        });
        let chosen = policy.choose(size, ledger)?;
        if ledger.pay(&chosen)?.is_empty() {
            break;
        }
        if goal.recall.is_some() {
            let outcome = policy.estimate(goal, ledger)?;
            if outcome.goal_reached {
                return Ok(outcome);
            }
        }
    }
    policy.estimate(goal, ledger)
}

/// Runs a method for one query and makes its answer.
///
/// The answer's ranking holds at most `k` items, fewer when the collection or the budget is smaller.
/// When the budget covers the whole collection (and neither a recall target within the estimate's reach nor a deadline could end the search
/// sooner) all of it is scored without asking the method: the answer is exact.
///
/// ```
/// use loxia_core::{Cancel, Cost, Stop};
/// use loxia_search::{Exact, QueryView, search_with};
/// let scores = [0.1f32, 0.9, 0.5];
/// let query = QueryView { id: "q", vector: None, text: None };
/// let answer = search_with(&Exact::new(3), &query, 1, &Stop::default(), &Cancel::new(), |items, out, _| {
///     items.iter().zip(out).for_each(|(&item, score)| *score = scores[item as usize]);
///     Ok(Cost { pairs: items.len() as u64, ..Cost::default() })
/// })
/// .unwrap();
/// assert_eq!(answer.ranking.items().collect::<Vec<_>>(), [1]);
/// assert_eq!(answer.cost.pairs, 3);
/// ```
pub fn search_with<'a>(
    method: &dyn Method,
    query: &QueryView<'_>,
    k: usize,
    stop: &Stop,
    cancel: &Cancel,
    score: impl FnMut(&[u32], &mut [f32], &Cancel) -> Result<Cost> + 'a,
) -> Result<Answer> {
    let mut ledger = Ledger::new(method.items(), stop, cancel, score);
    // Of a collection of fewer than k items all are the top k.
    let goal = Goal { k: k.min(method.items()), recall: stop.recall };
    let reach = method.estimate_reach(goal.k);
    let by_recall = goal.recall.is_some_and(|target| reach.is_none_or(|reach| reach.certifies(target)));
    let outcome = if !by_recall && stop.deadline.is_none() && ledger.remaining() == ledger.items() {
        score_everything(&mut ledger)?;
        Outcome::default()
    } else {
        method.run(query, &goal, &mut ledger)?
    };
    let limit = ledger.stopped_by();
    let stopped_by = match limit {
        Some(StoppedBy::Exhausted) => StoppedBy::Exhausted,
        _ if outcome.goal_reached => StoppedBy::Recall,
        Some(limit) => limit,
        None => StoppedBy::Candidates,
    };
    let certain = RecallEstimate { mean: 1.0, low: 1.0, high: 1.0 };
    let recall_estimate = if stopped_by == StoppedBy::Exhausted { Some(certain) } else { outcome.recall };
    let (cost, rounds) = (ledger.cost(), ledger.rounds());
    let evidence = Ranking::new(ledger.into_evidence());
    let mut ranking = evidence.clone();
    ranking.truncate(k);
    Ok(Answer { ranking, cost, rounds, stopped_by, recall_estimate, evidence })
}

fn score_everything(ledger: &mut Ledger<'_>) -> Result<()> {
    let everything: Vec<u32> = (0..ledger.items() as u32).collect();
    ledger.pay(&everything)?;
    Ok(())
}

/// Scores everything, in collection order, until a limit is reached.
#[derive(Debug, Clone, Copy)]
pub struct Exact {
    items: usize,
}

impl Exact {
    /// For a collection of `items`.
    pub fn new(items: usize) -> Self {
        Exact { items }
    }
}

impl Method for Exact {
    fn name(&self) -> &str {
        "exact"
    }

    fn items(&self) -> usize {
        self.items
    }

    fn run(&self, _query: &QueryView<'_>, _goal: &Goal, ledger: &mut Ledger<'_>) -> Result<Outcome> {
        score_everything(ledger)?;
        Ok(Outcome::default())
    }
}

/// The best `count` positions by score among those not skipped, best first, with the tie rule.
pub(crate) fn best_positions(scores: &[f32], count: usize, skip: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut best = best_scored(scores, count, skip);
    best.sort_unstable_by(Scored::ranking_order);
    best.into_iter().map(|scored| scored.item).collect()
}

/// The same positions as [`best_positions`], ascending.
pub(crate) fn best_set(scores: &[f32], count: usize, skip: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut best: Vec<u32> = best_scored(scores, count, skip).into_iter().map(|scored| scored.item).collect();
    best.sort_unstable();
    best
}

fn best_scored(scores: &[f32], count: usize, skip: impl Fn(u32) -> bool) -> Vec<Scored> {
    if count == 0 {
        return Vec::new();
    }
    let full = count.saturating_mul(2).min(scores.len());
    let mut kept: Vec<Scored> = Vec::with_capacity(full);
    // Most items of a long list are below the worst of `count` others and need no second look.
    let mut floor = f32::NEG_INFINITY;
    for (item, &score) in (0u32..).zip(scores) {
        if score < floor || skip(item) {
            continue;
        }
        kept.push(Scored { item, score });
        if kept.len() == full && full > count {
            kept.select_nth_unstable_by(count - 1, Scored::ranking_order);
            kept.truncate(count);
            floor = kept[count - 1].score;
        }
    }
    if kept.len() > count {
        kept.select_nth_unstable_by(count - 1, Scored::ranking_order);
        kept.truncate(count);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn best_positions_are_those_of_a_full_sort(
            scores in proptest::collection::vec((-4i8..5).prop_map(f32::from), 0..60),
            count in 0usize..70,
            skipped in 0u32..7,
        ) {
            let mut all: Vec<Scored> = (0u32..).zip(&scores).map(|(item, &score)| Scored { item, score }).collect();
            all.retain(|scored| scored.item % 7 != skipped);
            all.sort_by(Scored::ranking_order);
            let expected: Vec<u32> = all.iter().take(count).map(|scored| scored.item).collect();
            prop_assert_eq!(&best_positions(&scores, count, |item| item % 7 == skipped), &expected);
            let mut expected = expected;
            expected.sort_unstable();
            prop_assert_eq!(best_set(&scores, count, |item| item % 7 == skipped), expected);
        }
    }
}
