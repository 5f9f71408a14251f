//! The one place where pairs are paid for.
//!
//! A method names items; the ledger scores those that are new, counts what they cost, keeps the scores
//! as evidence, and closes when the budget, the deadline or the collection is used up. So no method can
//! pay twice, go over its budget or forget a scored item.

use std::time::Instant;

use loxia_core::{Cancel, Cost, Scored, Stop, StoppedBy};

use crate::Result;

/// Scores items of the collection for the query at hand.
pub type ScoreItems<'a> = dyn FnMut(&[u32], &mut [f32], &Cancel) -> Result<Cost> + 'a;

// With a deadline, as many pairs go to the scorer at a time: it may be late by one such call.
const DEADLINE_CHUNK: usize = 32;

/// Evidence and account of one search.
pub struct Ledger<'a> {
    score: Box<ScoreItems<'a>>,
    cancel: Cancel,
    deadline: Option<Instant>,
    budget: Option<u64>,
    paid: Vec<bool>,
    evidence: Vec<Scored>,
    cost: Cost,
    rounds: u32,
}

impl<'a> Ledger<'a> {
    /// Opens an account for a collection of `items`.
    pub fn new(
        items: usize,
        stop: &Stop,
        cancel: &Cancel,
        score: impl FnMut(&[u32], &mut [f32], &Cancel) -> Result<Cost> + 'a,
    ) -> Self {
        Ledger {
            score: Box::new(score),
            cancel: cancel.clone(),
            deadline: stop.deadline.map(|limit| Instant::now() + limit),
            budget: stop.budget.map(|budget| budget.0),
            paid: vec![false; items],
            evidence: Vec::new(),
            cost: Cost::default(),
            rounds: 0,
        }
    }

    /// Scores the items that are new, in the order named, as far as budget and deadline allow, and
    /// returns their scores.
    pub fn pay(&mut self, wanted: &[u32]) -> Result<&[Scored]> {
        let before = self.evidence.len();
        let mut fresh = Vec::with_capacity(wanted.len().min(self.paid.len()));
        for &item in wanted {
            if self.paid.get(item as usize) == Some(&false) {
                self.paid[item as usize] = true;
                fresh.push(item);
            }
        }
        let mut rest = fresh.as_slice();
        while !rest.is_empty() && self.is_open() {
            let chunk = if self.deadline.is_some() { DEADLINE_CHUNK } else { usize::MAX };
            // A cached pair is free, so a batch may leave budget over: then more of it is scored.
            let (now, later) = rest.split_at(rest.len().min(chunk).min(self.remaining()));
            self.score_chunk(now)?;
            rest = later;
        }
        rest.iter().for_each(|&item| self.paid[item as usize] = false);
        self.rounds += u32::from(self.evidence.len() > before);
        Ok(&self.evidence[before..])
    }

    fn score_chunk(&mut self, items: &[u32]) -> Result<()> {
        self.cancel.check()?;
        let mut scores = vec![0.0; items.len()];
        self.cost += (self.score)(items, &mut scores, &self.cancel)?;
        for (&item, &score) in items.iter().zip(&scores) {
            if !score.is_finite() {
                return Err(loxia_core::Error::NotFinite { row: 0, col: item as usize, value: score }.into());
            }
            self.evidence.push(Scored { item, score });
        }
        Ok(())
    }

    /// Whether more may be paid for.
    pub fn is_open(&self) -> bool {
        self.stopped_by().is_none()
    }

    /// Which limit was reached, if one was. A collection that is scored whole counts first.
    pub fn stopped_by(&self) -> Option<StoppedBy> {
        if self.evidence.len() == self.paid.len() {
            Some(StoppedBy::Exhausted)
        } else if self.remaining() == 0 {
            Some(StoppedBy::Budget)
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(StoppedBy::Deadline)
        } else {
            None
        }
    }

    /// How many more items may be scored: what the budget or the collection leaves.
    pub fn remaining(&self) -> usize {
        let unpaid = self.paid.len() - self.evidence.len();
        let left = self.budget.map_or(u64::MAX, |budget| budget.saturating_sub(self.cost.pairs));
        unpaid.min(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// Whether a budget was set.
    pub fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// Whether an item was scored.
    pub fn is_paid(&self, item: u32) -> bool {
        self.paid[item as usize]
    }

    /// Number of items in the collection.
    pub fn items(&self) -> usize {
        self.paid.len()
    }

    /// Everything scored so far, in the order of payment.
    pub fn evidence(&self) -> &[Scored] {
        &self.evidence
    }

    /// Batches in which something was scored.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// What it cost so far.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Fails once a stop was asked for.
    pub fn check_cancelled(&self) -> Result<()> {
        Ok(self.cancel.check()?)
    }

    pub(crate) fn into_evidence(self) -> Vec<Scored> {
        self.evidence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loxia_core::Budget;

    fn ledger<'a>(stop: Stop, asked: &'a mut Vec<u32>, cached: bool) -> Ledger<'a> {
        Ledger::new(10, &stop, &Cancel::new(), move |items, scores, _| {
            asked.extend_from_slice(items);
            scores.iter_mut().zip(items).for_each(|(score, &item)| *score = item as f32);
            let count = items.len() as u64;
            let (pairs, cached) = if cached { (0, count) } else { (count, 0) };
            Ok(Cost { pairs, cached, ..Cost::default() })
        })
    }

    #[test]
    fn each_pair_is_paid_once_and_none_beyond_the_budget() {
        let mut asked = Vec::new();
        let mut account = ledger(Stop::at_budget(4), &mut asked, false);
        assert_eq!(account.pay(&[3, 1, 3, 99]).unwrap().len(), 2);
        assert_eq!(account.pay(&[1, 3]).unwrap().len(), 0);
        assert_eq!(account.pay(&[5, 6, 7]).unwrap().len(), 2);
        assert!(!account.is_paid(7) && account.is_paid(6));
        assert_eq!(account.stopped_by(), Some(StoppedBy::Budget));
        assert_eq!((account.cost().pairs, account.rounds()), (4, 2));
        drop(account);
        assert_eq!(asked, [3, 1, 5, 6]);
    }

    #[test]
    fn cached_scores_are_free() {
        let mut asked = Vec::new();
        let mut account = ledger(Stop::at_budget(2), &mut asked, true);
        assert_eq!(account.pay(&[0, 1, 2, 3]).unwrap().len(), 4);
        assert_eq!((account.cost().pairs, account.cost().cached), (0, 4));
        assert!(account.is_open());
    }

    #[test]
    fn a_deadline_closes_it_and_a_full_collection_is_exhausted() {
        let mut asked = Vec::new();
        let stop = Stop { deadline: Some(std::time::Duration::ZERO), ..Stop::default() };
        let mut account = ledger(stop, &mut asked, false);
        assert!(account.pay(&[0]).unwrap().is_empty());
        assert_eq!(account.stopped_by(), Some(StoppedBy::Deadline));
        drop(account);
        let stop = Stop { budget: Some(Budget(10)), ..Stop::default() };
        let mut account = ledger(stop, &mut asked, false);
        account.pay(&(0..10).collect::<Vec<_>>()).unwrap();
        assert_eq!(account.stopped_by(), Some(StoppedBy::Exhausted));
    }

    #[test]
    fn a_score_that_is_no_number_is_an_error() {
        let mut account = Ledger::new(2, &Stop::default(), &Cancel::new(), |_, scores, _| {
            scores.fill(f32::NAN);
            Ok(Cost::default())
        });
        assert!(account.pay(&[1]).unwrap_err().to_string().contains("column 1"));
    }
}
