//! The checks pass what keeps its promise and catch what does not.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

use loxia_core::conformance::{check_pair_scorer, check_retriever};
use loxia_core::*;

fn collection() -> (Vec<Query>, Vec<Item>) {
    let queries = (0..4).map(|number| Query::plain(format!("q{number}"), "x".repeat(number + 1))).collect();
    let items = (0..19).map(|number| Item::plain(format!("d{number}"), "y".repeat(number % 5))).collect();
    (queries, items)
}

fn lengths(query: &Query, item: &Item) -> f32 {
    query.text.joined().len() as f32 * 0.1 - item.text.len() as f32
}

/// A scorer whose fault is a function of the place of a pair in its call.
struct Faulty<F>(F);

impl<F: Fn(usize, usize, f32) -> f32 + Send + Sync> PairScorer for Faulty<F> {
    fn score(
        &self,
        queries: &[Query],
        items: &[Item],
        pairs: &[(u32, u32)],
        scores: &mut [f32],
        _progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Cost> {
        assert_eq!(pairs.len(), scores.len());
        cancel.check()?;
        for (place, &(query, item)) in pairs.iter().enumerate() {
            let score = lengths(&queries[query as usize], &items[item as usize]);
            scores[place] = (self.0)(place, pairs.len(), score);
        }
        Ok(Cost { pairs: pairs.len() as u64, ..Cost::default() })
    }

    fn info(&self) -> ScorerInfo {
        ScorerInfo { name: "faulty".into(), digest: "faulty".into() }
    }
}

fn complaint(check: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(check)).expect_err("the check should have failed");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn honest_scorers_pass() {
    let (queries, items) = collection();
    check_pair_scorer(&FnScorer::new("lengths", lengths), &queries, &items);
    check_pair_scorer(&FnScorer::new("lengths", lengths), &queries[..1], &items[..1]);
}

#[test]
fn scores_that_depend_on_company_are_caught() {
    let (queries, items) = collection();
    let in_batches = Faulty(|_, size, score: f32| if size == 7 { score.next_up() } else { score });
    assert!(complaint(|| check_pair_scorer(&in_batches, &queries, &items)).contains("in a batch of 7"));
    let last =
        Faulty(|place, size, score: f32| if size == 6 && place == 5 { score.next_up() } else { score });
    assert!(complaint(|| check_pair_scorer(&last, &queries, &items)).contains("a batch"));
    let nan = Faulty(|place, _, score| if place == 3 { f32::NAN } else { score });
    assert!(complaint(|| check_pair_scorer(&nan, &queries, &items)).contains("finite"));
}

#[test]
fn exact_search_passes() {
    let (queries, items) = collection();
    let scorer = FnScorer::new("lengths", lengths);
    let exact = |query: &Query| items.iter().map(|item| lengths(query, item)).collect();
    check_retriever(&ExactSearch { scorer: &scorer, items: &items }, &queries, &exact);
    check_retriever(&ExactSearch { scorer: &scorer, items: &[] }, &queries, &|_| Vec::new());
}

#[test]
fn exact_search_heeds_its_deadline() {
    let (queries, items) = collection();
    let scorer = FnScorer::new("lengths", lengths);
    let search = ExactSearch { scorer: &scorer, items: &items };
    let stop = Stop { deadline: Some(std::time::Duration::ZERO), ..Stop::default() };
    let answer = search.search(&queries[0], 3, &stop, &Cancel::new()).unwrap();
    assert_eq!((answer.stopped_by, answer.evidence.len()), (StoppedBy::Deadline, 0));
    assert!(answer.recall_estimate.is_none());
}

/// Changes the answers of exact search.
struct Tampered<'a, F>(ExactSearch<'a>, F);

impl<F: Fn(&mut Answer) + Send + Sync> Retriever for Tampered<'_, F> {
    fn search(&self, query: &Query, k: usize, stop: &Stop, cancel: &Cancel) -> Result<Answer> {
        let mut answer = self.0.search(query, k, stop, cancel)?;
        (self.1)(&mut answer);
        Ok(answer)
    }

    fn items(&self) -> usize {
        self.0.items.len()
    }
}

#[test]
fn broken_retrievers_are_caught() {
    let (queries, items) = collection();
    let scorer = FnScorer::new("lengths", lengths);
    let search = ExactSearch { scorer: &scorer, items: &items };
    let exact = |query: &Query| items.iter().map(|item| lengths(query, item)).collect();
    let check = |tamper: &(dyn Fn(&mut Answer) + Send + Sync)| {
        complaint(|| check_retriever(&Tampered(search, tamper), &queries, &exact))
    };
    assert!(check(&|answer| answer.cost.pairs += 1).contains("once"));
    assert!(check(&|answer| answer.ranking.truncate(2)).contains("best k"));
    assert!(check(&|answer| answer.stopped_by = StoppedBy::Budget).contains("without a limit"));
    let calls = AtomicU32::new(0);
    let restless = check(&|answer| {
        if calls.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
            answer.evidence = Ranking::default();
            answer.ranking = Ranking::default();
            answer.cost = Cost::default();
        }
    });
    assert!(restless.contains("same search"), "{restless}");
}
