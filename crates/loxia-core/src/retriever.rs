//! The contract of everything that finds the best items of a collection.

use std::time::Duration;

use crate::{Cancel, Cost, Error, Query, Ranking, Result};

/// How many pairs a search may pay for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Budget(pub u64);

/// A share of the true top k that a search aims for, above 0 and at most 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct RecallTarget(f64);

impl RecallTarget {
    /// Checks the range.
    ///
    /// ```
    /// assert!(loxia_core::RecallTarget::new(0.95).is_ok());
    /// assert!(loxia_core::RecallTarget::new(95.0).is_err());
    /// ```
    pub fn new(share: f64) -> Result<Self> {
        if share > 0.0 && share <= 1.0 {
            Ok(RecallTarget(share))
        } else {
            Err(Error::Invalid(format!("a recall target lies above 0 and at most at 1, not at {share}")))
        }
    }

    /// The share.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// When to stop: at the first limit that is reached. Without any, everything is scored.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stop {
    /// Pairs that may be paid for.
    pub budget: Option<Budget>,
    /// Estimated recall that is enough.
    pub recall: Option<RecallTarget>,
    /// Time that may pass.
    pub deadline: Option<Duration>,
}

impl Stop {
    /// Stops after `pairs` paid pairs.
    pub fn at_budget(pairs: u64) -> Self {
        Stop { budget: Some(Budget(pairs)), ..Stop::default() }
    }
}

/// Which limit ended a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoppedBy {
    /// Every item was scored: the answer is exact.
    Exhausted,
    /// The budget was spent.
    Budget,
    /// The estimate reached the target.
    Recall,
    /// Time ran out.
    Deadline,
    /// The method had no more candidates: a run or a first stage with a limit.
    Candidates,
}

/// Estimated share of the true top k in the answer.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RecallEstimate {
    /// The estimate.
    pub mean: f64,
    /// Lower end of the 90 % interval.
    pub low: f64,
    /// Upper end of the 90 % interval.
    pub high: f64,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The best `k` of everything that was scored.
    pub ranking: Ranking,
    /// What it cost.
    pub cost: Cost,
    /// Rounds of choosing and scoring.
    pub rounds: u32,
    /// Which limit ended it.
    pub stopped_by: StoppedBy,
    /// Estimated recall, where the method gives one.
    pub recall_estimate: Option<RecallEstimate>,
    /// Every item that was scored, with its exact score.
    pub evidence: Ranking,
}

/// Finds the best items of its collection for a query.
///
/// Methods differ only in what they choose to score. Each pair is charged once, every scored item is
/// eligible, and the answer does not depend on the number of threads.
/// `conformance::check_retriever` (feature `conformance`) tests the promise.
pub trait Retriever: Send + Sync {
    /// The best `k` items found before `stop`.
    fn search(&self, query: &Query, k: usize, stop: &Stop, cancel: &Cancel) -> Result<Answer>;

    /// Number of items in the collection.
    fn items(&self) -> usize;
}
