//! Rounds of the posterior: condition the row on what was paid for, take the best by mean.
//!
//! With P the items paid for, y their transformed scores less the prior mean, C = K_PP + noise = L L^T
//! and b = L^-1 y, the mean of an item is its prior mean plus w . b with w = L^-1 K_P,item. The w of a
//! shortlist are kept as the columns of W; a new batch appends rows to L, b and W. The shortlist comes
//! from full scans with the low-rank part of K before the second and the third batch.
//!
//! What is paid for next is not quite the best by mean: the dual encoder's score has a small say of its own. Scores
//! have tails that no Gaussian has, and what the model has come to think little of it never looks at again; the more
//! pairs are paid for, the more of what is still missing is of that kind, and the dual encoder mostly likes it.

use std::collections::HashSet;

use super::covariance::{Gathered, Listed};
use super::estimate::{MOST_PROMISING, Outlook};
use super::prior::Belief;
use super::{Posterior, PosteriorSettings};
use crate::linalg::{
    Cholesky, Dense, row_times, solve_lower, solve_lower_transposed, subtract_product_tn, times_column,
};
use crate::method::{Goal, Outcome, Policy, best_positions, best_set};
use crate::{Ledger, Result, spare};

/// Batches after which the shortlist is chosen anew. Without an item kernel the scan sees all of K and
/// the prior knows nothing of the query, so that the first batches are a poor guide: then it is every
/// batch.
const SCANS: usize = 2;
/// Scans are about the best items by prior mean: this many times the shortlist, and at least one in eight of
/// all. What the prior leaves below does not come up to the shortlist.
const HOPEFUL_SHORTLISTS: usize = 4;
const HOPEFUL_SHARE: usize = 8;
/// Least length of the shortlist, where the settings allow it.
const LEAST_LISTED: usize = 2000;
/// More evidence than this no longer moves the model: its cost would grow with the square.
const MOST_MODELLED: usize = 2000;
/// How many scores as expected are taken to have been seen before the first.
const EXPECTED_BEFORE: f64 = 30.0;
/// For so many pairs paid the dual encoder's say grows by as much as it was at first.
const REGARD_GROWS: f32 = 100.0;
/// Most items that one batch is chosen among by the whole model; the rest of a larger batch comes by prior mean.
const MOST_LISTED: usize = 20_000;

pub(crate) struct Rounds<'a> {
    model: &'a Posterior,
    belief: Belief,
    /// Items paid for and understood, in order of payment.
    known: Option<Known>,
    batches: usize,
    /// Small batches mean a small budget, for which a shorter list will do; the budget itself must not count,
    /// or a larger one would not only add items.
    first_batch: usize,
    /// Of a large collection, the items that scans are about.
    hopeful: Option<Vec<u32>>,
    shortlist: Option<Shortlist>,
    /// Batches that the shortlist has taken in.
    shortlist_batches: usize,
    /// Places on the shortlist of the batch that was last chosen.
    pending: Vec<usize>,
}

struct Known {
    gathered: Gathered,
    factor: Cholesky<f32>,
    /// L^-1 (y - prior mean).
    solved: Vec<f32>,
}

struct Shortlist {
    listed: Listed,
    /// W = L^-1 K_PS.
    weights: Dense,
    mean: Vec<f32>,
    /// What the items are chosen by in addition, times the regard at the time.
    favour: Vec<f32>,
    live: Vec<bool>,
}

impl<'a> Rounds<'a> {
    pub(crate) fn new(model: &'a Posterior, belief: Belief) -> Self {
        let hopeful = hopeful_items(model, &belief.mean);
        let pending = Vec::new();
        Rounds {
            model,
            belief,
            known: None,
            batches: 0,
            first_batch: 0,
            hopeful,
            shortlist: None,
            shortlist_batches: 0,
            pending,
        }
    }

    fn settings(&self) -> &PosteriorSettings {
        &self.model.settings
    }

    /// Whether the batch at hand is followed by a scan.
    fn scans_next(&self) -> bool {
        self.batches <= SCANS || self.scans_always()
    }

    fn scans_always(&self) -> bool {
        !self.model.covariance.has_item_kernel(&self.model.settings)
    }

    /// The mean that scores are compared with: the prior's, as far as it is trusted.
    fn mean(&self, item: usize) -> f32 {
        let column = self.model.prior.column_means.as_column()[item];
        column + self.model.settings.prior_trust as f32 * (self.belief.mean[item] - column)
    }

    /// What the dual encoder says for an item, in units of scores; 0 without one.
    fn favour(&self, item: usize) -> f32 {
        self.belief.dual().map_or(0.0, |(dual, rate)| rate * dual[item])
    }

    /// How much that counts now.
    fn regard(&self, ledger: &Ledger<'_>) -> f32 {
        let paid = ledger.evidence().len() as f32;
        self.settings().dual_regard as f32 * (1.0 + paid / REGARD_GROWS)
    }

    fn noise(&self, item: usize) -> f32 {
        let variance = self.model.prior.variance(&self.belief, item);
        self.model.settings.noise as f32 * variance + self.model.covariance.noise(item)
    }

    fn list(&self, items: Vec<u32>) -> Listed {
        let deviation = |&item: &u32| self.model.prior.variance(&self.belief, item as usize).max(0.0).sqrt();
        let deviations = items.iter().map(deviation).collect();
        let effects = self.model.prior.effects_of(&self.belief, &items);
        Listed { items, effects, deviations }
    }

    /// Takes in what was paid for since the last time.
    fn absorb(&mut self, ledger: &Ledger<'_>) -> Result<()> {
        let before = self.known.as_ref().map_or(0, |known| known.gathered.len());
        let paid = ledger.evidence().len().min(MOST_MODELLED);
        let new = &ledger.evidence()[before.min(paid)..paid];
        let pending = std::mem::take(&mut self.pending);
        if let Some(shortlist) = &mut self.shortlist {
            // A limit may have cut the batch short: what it left is unpaid and as promising as before.
            for &place in &pending {
                shortlist.live[place] = !ledger.is_paid(shortlist.listed.items[place]);
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        self.batches += 1;
        if self.batches == 1 {
            self.first_batch = new.len();
        }
        let listed = self.list(new.iter().map(|scored| scored.item).collect());
        let covariance = &self.model.covariance;
        let surprise: Vec<f32> = new
            .iter()
            .map(|scored| self.model.transform.apply(scored.score) - self.mean(scored.item as usize))
            .collect();
        let gathered = covariance.gather(&listed);
        let mut block = covariance.between(&gathered, &listed, self.settings());
        for (at, &item) in listed.items.iter().enumerate() {
            block[(at, at)] += self.noise(item as usize);
        }
        match self.known.take() {
            None => {
                let factor = stable_factor(block)?;
                let mut solved = Dense::new(surprise.len(), 1, surprise)?;
                solve_lower(factor.factor(), &mut solved);
                self.known = Some(Known { gathered, factor, solved: solved.values().to_vec() });
            }
            Some(mut known) => {
                // A batch of the shortlist has its part of W at hand; one cut short by a limit too.
                let columns = match &self.shortlist {
                    Some(shortlist) if pending.len() >= new.len() => {
                        shortlist.weights.select_cols(&pending[..new.len()])
                    }
                    _ => {
                        let mut cross = covariance.between(&known.gathered, &listed, self.settings());
                        solve_lower(known.factor.factor(), &mut cross);
                        cross
                    }
                };
                let corner = append_stable(&mut known.factor, &columns, block)?;
                let expected = row_times(&known.solved, &columns);
                let rest = surprise.iter().zip(&expected).map(|(y, guess)| y - guess).collect();
                let mut solved = Dense::new(new.len(), 1, rest)?;
                solve_lower(&corner, &mut solved);
                // The next choice makes a new shortlist: this one need not be kept up to date.
                if !self.scans_next()
                    && let Some(shortlist) = &mut self.shortlist
                {
                    let mut rows = covariance.between(&gathered, &shortlist.listed, &self.model.settings);
                    subtract_product_tn(&mut rows, &columns, &shortlist.weights);
                    solve_lower(&corner, &mut rows);
                    let gain = row_times(solved.values(), &rows);
                    shortlist.mean.iter_mut().zip(gain).for_each(|(mean, gain)| *mean += gain);
                    shortlist.weights.append_rows(&rows);
                    spare::give(rows.into_values());
                    self.shortlist_batches = self.batches;
                }
                known.solved.extend_from_slice(solved.values());
                known.gathered.append(&gathered);
                self.known = Some(known);
            }
        }
        Ok(())
    }

    /// The most promising unpaid items, by a scan with the low-rank part; enough to choose `count` of.
    fn choose_shortlist(&mut self, count: usize, ledger: &Ledger<'_>) -> Result<()> {
        let Some(known) = &self.known else { return Ok(()) };
        let mut weights = Dense::new(known.solved.len(), 1, known.solved.clone())?;
        solve_lower_transposed(known.factor.factor(), &mut weights);
        let (prior, covariance) = (&self.model.prior, &self.model.covariance);
        // How the query's own weights differ, by what is known so far.
        let own = times_column(&prior.effects, &row_times(weights.values(), &known.gathered.effects));
        // Only one batch is chosen from the first.
        let last = self.batches >= SCANS || self.scans_always();
        let length =
            if last { self.first_batch.saturating_mul(100).max(LEAST_LISTED) } else { MOST_PROMISING };
        let length = length.min(self.settings().shortlist).max(count.saturating_mul(2).min(MOST_LISTED));
        let regard = self.regard(ledger);
        let promised = |item: usize| self.mean(item) + regard * self.favour(item);
        let best = match &self.hopeful {
            Some(hopeful) if ledger.evidence().len() + length <= hopeful.len() => {
                let mut promise = covariance.scan_of(hopeful, &known.gathered, weights.values());
                let shifts = prior.shifts(&own, &self.belief, hopeful.iter().map(|&item| item as usize));
                let parts = hopeful.iter().zip(shifts);
                promise.iter_mut().zip(parts).for_each(|(value, (&item, shift))| {
                    *value += promised(item as usize) + shift;
                });
                let places = best_set(&promise, length, |place| ledger.is_paid(hopeful[place as usize]));
                spare::give(promise);
                places.into_iter().map(|place| hopeful[place as usize]).collect()
            }
            _ => {
                let mut promise = covariance.scan(&known.gathered, weights.values());
                let shifts = prior.shifts(&own, &self.belief, 0..promise.len());
                promise.iter_mut().zip(shifts).enumerate().for_each(|(item, (value, shift))| {
                    *value += promised(item) + shift;
                });
                let best = best_set(&promise, length, |item| ledger.is_paid(item));
                spare::give(promise);
                best
            }
        };
        let listed = self.list(best);
        let mut weights = covariance.between(&known.gathered, &listed, self.settings());
        solve_lower(known.factor.factor(), &mut weights);
        let gain = row_times(&known.solved, &weights);
        let mean =
            listed.items.iter().zip(gain).map(|(&item, gain)| self.mean(item as usize) + gain).collect();
        let favour = listed.items.iter().map(|&item| self.favour(item as usize)).collect();
        let live = vec![true; listed.items.len()];
        self.end_shortlist();
        self.shortlist = Some(Shortlist { listed, weights, mean, favour, live });
        self.shortlist_batches = self.batches;
        Ok(())
    }

    /// Keeps the memory of the shortlist for the next one.
    fn end_shortlist(&mut self) {
        let ended = self.shortlist.take();
        ended.into_iter().for_each(|shortlist| spare::give(shortlist.weights.into_values()));
    }

    /// How much larger than the model says variances are, by the scores paid for: the mean square of how far
    /// each lay from its prediction, in deviations of that prediction. A query unlike the anchors surprises,
    /// and what is left open of it is worth less.
    fn surprise(&self) -> f64 {
        let Some(known) = &self.known else { return 1.0 };
        let squares: f64 = known.solved.iter().map(|&z| f64::from(z).powi(2)).sum();
        let scale = (EXPECTED_BEFORE + squares) / (EXPECTED_BEFORE + known.solved.len() as f64);
        if scale.is_finite() { scale } else { 1.0 }
    }

    /// Transformed paid scores, descending, and what is believed of the most promising unpaid items.
    pub(crate) fn outlook(&mut self, ledger: &Ledger<'_>) -> Result<(Vec<f32>, Outlook)> {
        self.absorb(ledger)?;
        if self.shortlist_batches != self.batches {
            self.choose_shortlist(0, ledger)?;
        }
        let transform = &self.model.transform;
        let mut paid: Vec<f32> = ledger.evidence().iter().map(|s| transform.apply(s.score)).collect();
        paid.sort_unstable_by(|a, b| b.total_cmp(a));
        let mut outlook = Outlook { means: Vec::new(), variances: Vec::new(), surprise: self.surprise() };
        let surprise = outlook.surprise as f32;
        if let Some(shortlist) = &self.shortlist {
            let mut variances = self.model.covariance.variances(&shortlist.listed, self.settings());
            for row in 0..shortlist.weights.rows() {
                let known = shortlist.weights.row(row);
                variances.iter_mut().zip(known).for_each(|(variance, w)| *variance -= w * w);
            }
            let dead = |place: u32| !shortlist.live[place as usize];
            for place in best_positions(&shortlist.mean, MOST_PROMISING, dead) {
                let place = place as usize;
                outlook.means.push(shortlist.mean[place]);
                let noise = self.noise(shortlist.listed.items[place] as usize);
                outlook.variances.push(surprise * (variances[place].max(0.0) + noise));
            }
        }
        Ok((paid, outlook))
    }
}

impl Drop for Rounds<'_> {
    fn drop(&mut self) {
        self.belief.end();
        self.end_shortlist();
    }
}

impl Policy for Rounds<'_> {
    fn choose(&mut self, count: usize, ledger: &Ledger<'_>) -> Result<Vec<u32>> {
        self.absorb(ledger)?;
        if self.known.is_none() {
            return Ok(best_positions(&self.belief.mean, count, |item| ledger.is_paid(item)));
        }
        let live = self.shortlist.as_ref().map_or(0, |list| list.live.iter().filter(|live| **live).count());
        if self.shortlist_batches != self.batches || live < count {
            self.choose_shortlist(count, ledger)?;
        }
        let Some(shortlist) = &self.shortlist else { return Ok(Vec::new()) };
        let regard = self.regard(ledger);
        let promise: Vec<f32> = shortlist
            .mean
            .iter()
            .zip(&shortlist.favour)
            .map(|(mean, favour)| mean + regard * favour)
            .collect();
        let places = best_positions(&promise, count, |place| !shortlist.live[place as usize]);
        self.pending = places.into_iter().map(|place| place as usize).collect();
        let mut chosen: Vec<u32> = self.pending.iter().map(|&place| shortlist.listed.items[place]).collect();
        if chosen.len() < count {
            let known: HashSet<u32> = chosen.iter().copied().collect();
            let skip = |item: u32| ledger.is_paid(item) || known.contains(&item);
            chosen.extend(best_positions(&self.belief.mean, count - chosen.len(), skip));
        }
        Ok(chosen)
    }

    fn estimate(&mut self, goal: &Goal, ledger: &Ledger<'_>) -> Result<Outcome> {
        let Some(calibration) = self.model.calibration.clone() else { return Ok(Outcome::default()) };
        let (paid, outlook) = self.outlook(ledger)?;
        let recall = calibration.estimate(&paid, &outlook, goal.k, !goal.wants_small_batches(ledger));
        let enough = goal.recall.and_then(|target| calibration.stop_at(target.get(), goal.k));
        let goal_reached = recall.zip(enough).is_some_and(|(recall, enough)| recall.mean >= enough);
        Ok(Outcome { recall, goal_reached })
    }
}

/// Of a large collection, the items worth a scan, ascending. Without vectors the prior knows nothing of the
/// query, so that all are.
fn hopeful_items(model: &Posterior, mean: &[f32]) -> Option<Vec<u32>> {
    let count = HOPEFUL_SHORTLISTS.saturating_mul(model.settings.shortlist).max(mean.len() / HOPEFUL_SHARE);
    if count >= mean.len() || !model.covariance.has_item_kernel(&model.settings) {
        return None;
    }
    let mut sorted = spare::copy(mean);
    let (_, &mut least, _) = sorted.select_nth_unstable_by(count - 1, |a, b| b.total_cmp(a));
    spare::give(sorted);
    Some((0u32..).zip(mean).filter(|(_, value)| **value >= least).map(|(item, _)| item).collect())
}

/// Adds to the diagonal, more each time, until there is a factor: duplicates and constant rows make
/// matrices that are only just not definite.
fn with_jitter<R>(mut block: Dense, mut factor: impl FnMut(&Dense) -> Result<R>) -> Result<R> {
    let size = block.rows().max(1) as f32;
    let mean = (0..block.rows()).map(|i| block[(i, i)]).sum::<f32>() / size;
    let mut jitter = if mean > 0.0 { 1e-6 * mean } else { 1e-6 };
    loop {
        block.add_diagonal(jitter);
        match factor(&block) {
            Err(crate::Error::NotPositiveDefinite { .. }) if jitter < 1e3 * mean.max(1.0) => jitter *= 10.0,
            result => return result,
        }
    }
}

fn stable_factor(block: Dense) -> Result<Cholesky<f32>> {
    with_jitter(block, Cholesky::new)
}

fn append_stable(factor: &mut Cholesky<f32>, columns: &Dense, block: Dense) -> Result<Dense> {
    with_jitter(block, |block| factor.append_solved(columns, block))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use loxia_core::{Cancel, Cost, Stop};

    use super::*;
    use crate::{AnchorSet, QueryView};

    const ITEMS: usize = 200;

    /// With vectors: without them every round makes a new shortlist.
    fn model() -> Posterior {
        let scores = Dense::from_fn(30, ITEMS, |row, col| {
            let (row, col) = (row as f32, col as f32);
            (row * 0.7 + col * 0.13).sin() + (col * 0.31).cos() * (row * 0.2).cos() + 0.01 * col
        });
        let vectors = |rows: usize, step: f32| {
            let value = |row: usize, col: usize| (step * (row * (col + 1)) as f32).sin();
            Arc::new(Dense::from_fn(rows, 4, value))
        };
        let anchors = AnchorSet::new(scores.into(), Some((vectors(30, 0.7), vectors(ITEMS, 0.13))));
        Posterior::fit(&anchors.unwrap(), PosteriorSettings::default()).unwrap()
    }

    fn rounds(model: &Posterior) -> Rounds<'_> {
        let view = QueryView { id: "q", vector: Some(&[0.3, -0.2, 0.5, 0.1]), text: None };
        Rounds::new(model, model.prior.predict(&view).unwrap())
    }

    fn ledger<'a>(budget: u64, row: impl Fn(u32) -> f32 + 'a) -> Ledger<'a> {
        Ledger::new(ITEMS, &Stop::at_budget(budget), &Cancel::new(), move |items, scores, _| {
            items.iter().zip(scores).for_each(|(&item, score)| *score = row(item));
            Ok(Cost { pairs: items.len() as u64, ..Cost::default() })
        })
    }

    fn usual(item: u32) -> f32 {
        let col = item as f32;
        (1.3 + col * 0.13).sin() + 0.6 * (col * 0.31).cos() + 0.01 * col
    }

    #[test]
    fn what_a_limit_left_of_a_batch_is_still_promising() {
        let model = model();
        let seen = |last: usize| {
            let (mut rounds, mut ledger) = (rounds(&model), ledger(34, usual));
            for size in [10, 10, 10, last] {
                let chosen = rounds.choose(size, &ledger).unwrap();
                ledger.pay(&chosen).unwrap();
            }
            let (paid, outlook) = rounds.outlook(&ledger).unwrap();
            (paid, outlook.means, outlook.variances)
        };
        // The budget ends both after four of the last batch.
        let (cut, whole) = (seen(10), seen(4));
        assert_eq!(cut.0, whole.0);
        assert_eq!(cut.1.len(), ITEMS - 34);
        assert_eq!((cut.1, cut.2), (whole.1, whole.2));
    }

    #[test]
    fn surprising_scores_leave_more_open() {
        let model = model();
        let variance = |row: &dyn Fn(u32) -> f32| {
            let (mut rounds, mut ledger) = (rounds(&model), ledger(60, row));
            for _ in 0..3 {
                let chosen = rounds.choose(20, &ledger).unwrap();
                ledger.pay(&chosen).unwrap();
            }
            let (_, outlook) = rounds.outlook(&ledger).unwrap();
            outlook.variances.iter().sum::<f32>() / outlook.variances.len() as f32
        };
        let shuffled = |item: u32| usual((item * 77 + 5) % ITEMS as u32);
        assert!(variance(&shuffled) > 3.0 * variance(&usual));
    }
}
