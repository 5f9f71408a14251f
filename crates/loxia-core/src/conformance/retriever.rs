//! The promise of a [`Retriever`].

use crate::{Answer, Budget, Cancel, Error, Query, Ranking, Retriever, Stop, StoppedBy};

/// Checks a retriever against the exact scores of each query over the whole collection: that no budget is
/// exceeded, that each pair is charged once, that the ranking is the best `k` of the evidence, that the
/// evidence has the exact scores, that a full budget gives the exact answer with the tie rule, that answers
/// repeat, and that `k` may be zero or larger than the collection.
///
/// `exact` gives the scores in the order of the items, for instance from a row of a
/// [`ScoreMatrix`](crate::matrix::ScoreMatrix).
///
/// # Panics
/// If the retriever breaks its promise.
pub fn check_retriever(retriever: &dyn Retriever, queries: &[Query], exact: &dyn Fn(&Query) -> Vec<f32>) {
    let items = retriever.items();
    for query in queries {
        let exact = exact(query);
        assert_eq!(exact.len(), items, "query {}: one exact score for each item", query.id);
        let check = Check { retriever, query, exact: &exact };
        for k in [0, 1, 3, items, items + 5] {
            for budget in [Some(0), Some(1), Some(items / 2), Some(items), Some(items + 5), None] {
                check.answer(k, budget.map(|budget| budget as u64));
            }
        }
        let cancel = Cancel::new();
        cancel.cancel();
        let result = retriever.search(query, 1, &Stop::default(), &cancel);
        assert!(
            matches!(result, Err(Error::Cancelled)),
            "a raised cancel flag ends a search with Error::Cancelled, not {result:?}"
        );
    }
}

struct Check<'a> {
    retriever: &'a dyn Retriever,
    query: &'a Query,
    exact: &'a [f32],
}

impl Check<'_> {
    fn answer(&self, k: usize, budget: Option<u64>) {
        let case = format!("query {}, k {k}, budget {budget:?}", self.query.id);
        let stop = Stop { budget: budget.map(Budget), ..Stop::default() };
        let search = || match self.retriever.search(self.query, k, &stop, &Cancel::new()) {
            Ok(answer) => answer,
            Err(error) => panic!("{case}: {error}"),
        };
        let answer = search();
        self.evidence(&answer, &case);
        self.charges(&answer, budget, &case);
        assert_eq!(
            answer.ranking.as_slice(),
            answer.evidence.top(k),
            "{case}: the ranking is the best k of everything scored"
        );
        if budget.is_none_or(|budget| budget >= self.exact.len() as u64) {
            let exact = Ranking::from_scores(self.exact);
            assert_eq!(
                answer.ranking.as_slice(),
                exact.top(k),
                "{case}: a full budget gives the exact answer"
            );
        }
        if budget.is_none() {
            assert_eq!(
                answer.stopped_by,
                StoppedBy::Exhausted,
                "{case}: without a limit everything is scored"
            );
        }
        let again = search();
        assert_eq!(again.ranking, answer.ranking, "{case}: the same search gives the same ranking");
        assert_eq!(again.evidence, answer.evidence, "{case}: the same search scores the same items");
    }

    fn evidence(&self, answer: &Answer, case: &str) {
        let evidence = answer.evidence.as_slice();
        let mut seen = vec![false; self.exact.len()];
        for scored in evidence {
            let item = scored.item as usize;
            assert!(item < self.exact.len(), "{case}: item {item} of {} was scored", self.exact.len());
            assert!(
                !std::mem::replace(&mut seen[item], true),
                "{case}: item {item} is twice in the evidence"
            );
            assert!(
                scored.score.to_bits() == self.exact[item].to_bits(),
                "{case}: item {item} is in the evidence with {}, its exact score is {}",
                scored.score,
                self.exact[item]
            );
        }
        let ordered = evidence.windows(2).all(|pair| pair[0].ranking_order(&pair[1]).is_lt());
        assert!(ordered, "{case}: the evidence is in ranking order");
    }

    fn charges(&self, answer: &Answer, budget: Option<u64>, case: &str) {
        let (cost, scored) = (answer.cost, answer.evidence.len() as u64);
        assert_eq!(cost.pairs + cost.cached, scored, "{case}: each scored pair is charged or cached, once");
        if let Some(budget) = budget {
            assert!(cost.pairs <= budget, "{case}: {} pairs were paid for", cost.pairs);
        }
    }
}
