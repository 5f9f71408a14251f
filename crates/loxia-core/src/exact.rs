//! Search by scoring everything: the measure of every other method.

use std::time::Instant;

use crate::{
    Answer, Cancel, Cost, Item, NoProgress, PairScorer, Query, Ranking, RecallEstimate, Result, Retriever,
    Scored, Stop, StoppedBy,
};

/// Scores the items in their order until all are scored or a limit is reached.
///
/// It makes no estimate before the end, so a recall target alone does not stop it early.
///
/// ```
/// use loxia_core::*;
/// let scorer = FnScorer::new("length", |_: &Query, item: &Item| item.text.len() as f32);
/// let items = [Item::plain("a", "one"), Item::plain("b", "three")];
/// let search = ExactSearch { scorer: &scorer, items: &items };
/// let answer = search.search(&Query::plain("q", ""), 1, &Stop::default(), &Cancel::new()).unwrap();
/// assert_eq!(answer.ranking.top(1)[0].item, 1);
/// ```
#[derive(Clone, Copy)]
pub struct ExactSearch<'a> {
    /// Scores the pairs.
    pub scorer: &'a dyn PairScorer,
    /// The collection.
    pub items: &'a [Item],
}

/// Pairs between two looks at the clock.
const PAIRS_BETWEEN_LOOKS: usize = 1024;

impl Retriever for ExactSearch<'_> {
    fn search(&self, query: &Query, k: usize, stop: &Stop, cancel: &Cancel) -> Result<Answer> {
        let begin = Instant::now();
        cancel.check()?;
        let budget = stop.budget.map_or(u64::MAX, |budget| budget.0);
        let affordable = usize::try_from(budget).unwrap_or(usize::MAX).min(self.items.len());
        let mut scores = vec![0.0; affordable];
        let (mut done, mut cost) = (0, Cost::default());
        let mut stopped_by =
            if affordable == self.items.len() { StoppedBy::Exhausted } else { StoppedBy::Budget };
        // Without a deadline nothing is looked for, and one large call is cheaper than many.
        let step = stop.deadline.map_or(affordable.max(1), |_| PAIRS_BETWEEN_LOOKS);
        for chunk in scores.chunks_mut(step) {
            if stop.deadline.is_some_and(|deadline| begin.elapsed() >= deadline) {
                stopped_by = StoppedBy::Deadline;
                break;
            }
            let pairs: Vec<(u32, u32)> = (done..done + chunk.len()).map(|item| (0, item as u32)).collect();
            let query = std::slice::from_ref(query);
            cost += self.scorer.score(query, self.items, &pairs, chunk, &NoProgress, cancel)?;
            done += chunk.len();
        }
        let scored = scores[..done].iter().enumerate();
        let evidence =
            Ranking::new(scored.map(|(item, &score)| Scored { item: item as u32, score }).collect());
        let mut ranking = evidence.clone();
        ranking.truncate(k);
        let certain = RecallEstimate { mean: 1.0, low: 1.0, high: 1.0 };
        let recall_estimate = (stopped_by == StoppedBy::Exhausted).then_some(certain);
        Ok(Answer { ranking, cost, rounds: 1, stopped_by, recall_estimate, evidence })
    }

    fn items(&self) -> usize {
        self.items.len()
    }
}
