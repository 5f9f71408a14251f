//! Calibration of the recall estimate on held-out anchor rows.
//!
//! Anchors are held out in turn, a fifth at a time, and searched by a model of the others, with small batches
//! as for a target and with budgets in even rounds; after each batch the raw estimate is set beside the true
//! recall. For each of some k that gives
//! - a curve from the raw estimate and the cost to recall (`curve`), at the variance factor that fits best;
//! - intervals around the estimate that together hold 90 % of the true recalls (`intervals`);
//! - for each target, the estimate at which stopping reached it on average, by one standard error:
//!   stopping picks estimates that are too high by chance, and this pays that back. It is never further below
//!   the target than [`BELOW_TARGET`]: where nearly every held-out search found all of a small top, any
//!   estimate would do on average, and a query that is not like them would be cut off at once.
//!
//! A curve ends below 1 ([`Curve::ceiling`]). Targets that would need more are never reached by estimate.

use loxia_core::{Cancel, Cost, RecallEstimate, Stop};

use super::curve::{Curve, Known, Moment};
use super::estimate::{Outlook, raw_recall};
use super::intervals::{COST_GROUPS, Intervals, cost_group};
use super::rounds::Rounds;
use super::work::{FIT_STEPS, PATH_STEPS, Work};
use super::{Posterior, PosteriorSettings};
use crate::evaluate::recalls;
use crate::method::{EstimateReach, Policy, best_positions};
use crate::{AnchorSet, Ledger, QueryRows, Result, Schedule};

/// Top sizes that are calibrated; others use the nearest.
const TOPS: [usize; 6] = [1, 5, 10, 20, 50, 100];
/// Factors of the variance that are tried.
const SPREADS: [f64; 3] = [0.5, 1.0, 2.0];
const FOLDS: usize = 5;
/// Held-out rows of a fold, and what each may cost.
const ROWS: usize = 100;
const BUDGET: usize = 500;
/// Budgets spent in even rounds, of which each held-out row takes every other one: what is known of them from
/// their half on is, taken together, known of all costs.
const EVEN_BUDGETS: [usize; 4] = [50, 100, 200, 400];
/// With fewer held-out rows an interval would mean nothing.
const LEAST_ROWS: usize = 10;
/// Targets for which a stopping point is kept.
const TARGETS: [f64; 9] = [0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99];
/// Of held-out searches, the share that is taken for usual.
const USUAL: f64 = 0.98;
/// How far below its target a search may stop.
const BELOW_TARGET: f64 = 0.02;

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct Calibration {
    /// Ascending in k.
    tops: Vec<TopCalibration>,
    /// The surprise that few held-out searches were beyond, for each group of costs; none in indexes made before it was
    /// kept.
    #[serde(default)]
    surprises: Vec<f64>,
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct TopCalibration {
    k: usize,
    spread: f64,
    curve: Curve,
    intervals: Intervals,
    /// Target, and the estimate to stop at; ascending.
    stops: Vec<(f64, f64)>,
    /// In thousandths; 0 where there is none.
    largest_target: f64,
}

/// One moment of a held-out search.
struct Checkpoint {
    cost: usize,
    even: bool,
    truth: Vec<f64>,
    surprise: f64,
    /// For each k, at each spread.
    raw: Vec<[f64; SPREADS.len()]>,
}

impl Checkpoint {
    /// For the k and the spread at these places.
    fn moment(&self, at: usize, which: usize) -> Moment {
        let known = Known { raw: self.raw[at][which], cost: self.cost, even: self.even };
        Moment { known, truth: self.truth[at] }
    }
}

/// What held-out rows went through.
#[derive(Default)]
struct Paths {
    /// One of each row, in small batches.
    small: Vec<Vec<Checkpoint>>,
    /// The second halves of budgets spent in even rounds.
    even: Vec<Checkpoint>,
}

impl Paths {
    fn checkpoints(&self) -> impl Iterator<Item = &Checkpoint> {
        self.small.iter().flatten().chain(&self.even)
    }

    /// What [`USUAL`] of the searches stay below in each group of costs.
    fn surprises(&self) -> Vec<f64> {
        let usual = |group| {
            let of_group = self.checkpoints().filter(|seen| cost_group(seen.cost) == group);
            let mut found: Vec<f64> = of_group.map(|seen| seen.surprise).collect();
            found.sort_by(f64::total_cmp);
            found.get((USUAL * found.len() as f64) as usize).copied().unwrap_or(f64::MAX)
        };
        (0..=COST_GROUPS.len()).map(usual).collect()
    }
}

impl Calibration {
    /// `None` where too few anchors could be held out.
    pub(crate) fn fit(
        anchors: &AnchorSet,
        settings: PosteriorSettings,
        work: &Work<'_>,
    ) -> Result<Option<Self>> {
        let tops: Vec<usize> = TOPS.into_iter().filter(|&k| k < anchors.items()).collect();
        let mut paths = Paths::default();
        for fold in 0..FOLDS {
            if let Some((kept, held)) = anchors.hold_out(fold, FOLDS, ROWS) {
                work.step(FIT_STEPS)?;
                let model = Posterior::fit(&kept, settings)?;
                for query in 0..held.scores.rows() {
                    work.step(PATH_STEPS)?;
                    paths.small.push(path(&model, &held, query, &tops, &Schedule::anytime(), BUDGET)?);
                    for budget in EVEN_BUDGETS.into_iter().skip(query % 2).step_by(2) {
                        let path = path(&model, &held, query, &tops, &Schedule::default(), budget)?;
                        let second_half = path.into_iter().filter(|seen| 2 * seen.cost > budget);
                        paths.even.extend(second_half.map(|seen| Checkpoint { even: true, ..seen }));
                    }
                }
            }
        }
        if paths.small.len() < LEAST_ROWS || tops.is_empty() {
            return Ok(None);
        }
        let tops = tops.iter().enumerate().map(|(at, &k)| TopCalibration::fit(&paths, at, k));
        Ok(Some(Calibration { tops: tops.collect::<Result<_>>()?, surprises: paths.surprises() }))
    }

    /// How far a fit tells its progress.
    pub(crate) fn steps(anchors: &AnchorSet) -> u64 {
        let held = |fold| (0..anchors.len()).filter(|row| row % FOLDS == fold).count().min(ROWS) as u64;
        (0..FOLDS).map(|fold| FIT_STEPS + PATH_STEPS * held(fold)).sum()
    }

    /// Whether the numbers are as a fit makes them.
    pub(crate) fn is_sound(&self) -> bool {
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let of_top = |top: &TopCalibration| {
            top.k > 0
                && top.spread.is_finite()
                && top.spread > 0.0
                && top.curve.is_sound()
                && top.intervals.is_sound()
                && share(top.largest_target)
                && top.stops.iter().all(|&(target, at)| share(target) && share(at))
                && top.stops.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1)
        };
        let surprises = self.surprises.iter().all(|&usual| usual.is_finite() && usual > 0.0);
        surprises && self.tops.iter().all(of_top) && self.tops.windows(2).all(|pair| pair[0].k < pair[1].k)
    }

    /// The calibrated estimate; `even` for a search that spends a budget in even rounds.
    pub(crate) fn estimate(
        &self,
        paid: &[f32],
        outlook: &Outlook,
        k: usize,
        even: bool,
    ) -> Option<RecallEstimate> {
        let (k, top) = (k.max(1), self.nearest(k)?);
        let raw = raw_recall(paid, outlook, top.spread, k);
        let calibrated = top.curve.recall(Known { raw, cost: paid.len(), even }, k);
        let (low, high) = top.intervals.around(calibrated, paid.len());
        let (low, high) = if k == top.k { (low, high) } else { to_shares_of(k, low, high) };
        let lost = calibrated - raw.min(calibrated);
        let unlike = self.unlike(outlook.surprise, paid.len());
        let (mean, low) = (calibrated - unlike * lost, low - unlike * low.min(lost));
        // As little as the mean can the true recall be more than was paid for.
        let most = paid.len() as f64 / k as f64;
        Some(RecallEstimate { mean, low: low.min(most), high: high.min(most) })
    }

    /// From 0 to 1, how far a search is from nearly all held-out ones by its surprise. What they teach of the raw estimate, mostly
    /// that it is too low, holds that much less for it.
    fn unlike(&self, surprise: f64, cost: usize) -> f64 {
        let usual = self.surprises.get(cost_group(cost)).copied().unwrap_or(f64::MAX);
        1.0 - (usual / surprise).min(1.0)
    }

    /// The estimate at which a search for this target stops; `None` if no estimate is enough.
    pub(crate) fn stop_at(&self, target: f64, k: usize) -> Option<f64> {
        self.nearest(k)?.stop_at(target)
    }

    /// What estimates of a top k can say.
    pub(crate) fn reach(&self, k: usize) -> Option<EstimateReach> {
        let (top, largest) = (self.nearest(k)?, self.tops.last()?);
        Some(EstimateReach { largest_target: top.largest_target, calibrated: k <= largest.k, nearest: top.k })
    }

    fn nearest(&self, k: usize) -> Option<&TopCalibration> {
        let distance = |top: &TopCalibration| (top.k as f64).ln() - (k.max(1) as f64).ln();
        self.tops.iter().min_by(|a, b| distance(a).abs().total_cmp(&distance(b).abs()))
    }
}

/// An interval made of recalls of another top, widened to recalls that a top k can have.
fn to_shares_of(k: usize, low: f64, high: f64) -> (f64, f64) {
    const ROUNDING: f64 = 1e-9;
    let k = k as f64;
    ((low * k + ROUNDING).floor() / k, ((high * k - ROUNDING).ceil() / k).min(1.0))
}

impl TopCalibration {
    fn fit(paths: &Paths, at: usize, k: usize) -> Result<Self> {
        let mut best: Option<(f64, usize, Curve)> = None;
        for which in 0..SPREADS.len() {
            // With less than half of k paid for, recall is hardly more than what was paid for.
            let telling = paths.checkpoints().filter(|seen| 2 * seen.cost >= k);
            let moments: Vec<Moment> = telling.map(|seen| seen.moment(at, which)).collect();
            let (curve, deviance) = Curve::fit(&moments, k)?;
            if best.as_ref().is_none_or(|&(lowest, ..)| deviance < lowest) {
                best = Some((deviance, which, curve));
            }
        }
        let (which, curve) = match best {
            Some((_, which, curve)) => (which, curve),
            None => (0, Curve::fit(&[], k)?.0),
        };
        let calibrated = |seen: &Checkpoint| {
            let Moment { known, truth } = seen.moment(at, which);
            (seen.cost, curve.recall(known, k), truth)
        };
        let moments: Vec<(usize, f64, f64)> = paths.checkpoints().map(calibrated).collect();
        let intervals = Intervals::fit(&moments, paths.small.len());
        let estimates: Vec<Vec<(f64, f64)>> = paths
            .small
            .iter()
            .map(|path| path.iter().map(calibrated).map(|(_, estimate, truth)| (estimate, truth)).collect())
            .collect();
        Ok(TopCalibration::of(k, SPREADS[which], curve, intervals, stopping_points(&estimates)))
    }

    fn of(k: usize, spread: f64, curve: Curve, intervals: Intervals, stops: Vec<(f64, f64)>) -> Self {
        let mut top = TopCalibration { k, spread, curve, intervals, stops, largest_target: 0.0 };
        let mut targets = (1..1000u32).rev().map(|step| f64::from(step) / 1000.0);
        top.largest_target = targets.find(|&target| top.point(target) <= top.curve.ceiling()).unwrap_or(0.0);
        top
    }

    fn stop_at(&self, target: f64) -> Option<f64> {
        (target <= self.largest_target).then(|| self.point(target))
    }

    /// The stopping point of a target, attainable or not; it never falls when the target rises.
    fn point(&self, target: f64) -> f64 {
        let above = self.stops.partition_point(|&(known, _)| known < target);
        let below = above.checked_sub(1).map(|below| self.stops[below]);
        match (below, self.stops.get(above).copied()) {
            (Some((left, low)), Some((right, high))) => low + (high - low) * (target - left) / (right - left),
            // Beyond what was measured the estimate is taken at its word.
            (Some((_, end)), None) => end.max(target),
            (None, _) => target,
        }
    }
}

/// Searches a held-out row, looking after each batch.
fn path(
    model: &Posterior,
    rows: &QueryRows,
    query: usize,
    tops: &[usize],
    schedule: &Schedule,
    budget: usize,
) -> Result<Vec<Checkpoint>> {
    let row = rows.scores.row(query);
    let number = query.to_string();
    let view = rows.view(query, &number);
    let exact = best_positions(row, TOPS[TOPS.len() - 1], |_| false);
    let mut rounds = Rounds::new(model, model.prior.predict(&view)?);
    let mut ledger = Ledger::new(row.len(), &Stop::default(), &Cancel::new(), |items, scores, _| {
        items.iter().zip(scores).for_each(|(&item, score)| *score = row[item as usize]);
        Ok(Cost { pairs: items.len() as u64, ..Cost::default() })
    });
    let mut path = Vec::new();
    for size in schedule.sizes(budget.min(row.len().saturating_sub(1))) {
        let chosen = rounds.choose(size, &ledger)?;
        ledger.pay(&chosen)?;
        let (paid, outlook) = rounds.outlook(&ledger)?;
        let raw = tops.iter().map(|&k| SPREADS.map(|spread| raw_recall(&paid, &outlook, spread, k)));
        let truth = recalls(&exact, ledger.evidence(), tops, row.len());
        let (cost, surprise) = (ledger.evidence().len(), outlook.surprise);
        path.push(Checkpoint { cost, even: false, truth, surprise, raw: raw.collect() });
    }
    Ok(path)
}

/// For each target the lowest estimate to stop at with which the mean recall, less its standard error,
/// reached it.
fn stopping_points(paths: &[Vec<(f64, f64)>]) -> Vec<(f64, f64)> {
    let reached = |stop_at: f64| {
        let at_stop = |path: &Vec<(f64, f64)>| {
            path.iter().find(|&&(estimate, _)| estimate >= stop_at).or(path.last()).map_or(0.0, |m| m.1)
        };
        let count = paths.len() as f64;
        let mean = paths.iter().map(at_stop).sum::<f64>() / count;
        let square = paths.iter().map(|path| (at_stop(path) - mean).powi(2)).sum::<f64>() / count;
        mean - (square / count).sqrt()
    };
    let stops = TARGETS.into_iter().filter_map(|target| {
        let mut grid =
            (0..1000).map(|step| f64::from(step) / 1000.0).filter(|&at| at >= target - BELOW_TARGET - 1e-9);
        Some((target, grid.find(|&at| reached(at) >= target)?))
    });
    stops.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A calibration of one top whose curve takes the raw estimate at its word.
    fn plain(stops: Vec<(f64, f64)>) -> TopCalibration {
        let curve = Curve::fit(&[], 10).unwrap().0;
        TopCalibration::of(10, 1.0, curve, Intervals::default(), stops)
    }

    #[test]
    fn intervals_of_another_top_end_at_recalls_that_there_are() {
        assert_eq!(to_shares_of(7, 0.8, 1.0), (5.0 / 7.0, 1.0));
        assert_eq!(to_shares_of(7, 5.0 / 7.0, 6.0 / 7.0), (5.0 / 7.0, 6.0 / 7.0));
        assert_eq!(to_shares_of(3, 0.0, 0.4), (0.0, 2.0 / 3.0));
    }

    #[test]
    fn no_search_stops_far_below_its_target() {
        // Everything is found at once, whatever the estimate says.
        let found = vec![vec![(0.3, 1.0), (0.6, 1.0), (0.97, 1.0)]; 20];
        for (target, at) in stopping_points(&found) {
            assert!((at - (target - BELOW_TARGET)).abs() < 1e-3, "{target}: {at}");
        }
        let top = plain(stopping_points(&found));
        for target in [0.55, 0.75, 0.93, 0.955, 0.97] {
            assert!(top.stop_at(target).unwrap() >= target - BELOW_TARGET - 1e-9, "{target}");
        }
        // Estimates that are too high are not enough by themselves.
        let high = vec![vec![(0.92, 0.7), (0.95, 0.85), (0.99, 0.96)]; 20];
        let stops = stopping_points(&high);
        assert!(stops.contains(&(0.9, 0.951)), "{stops:?}");
    }

    #[test]
    fn a_target_beyond_every_estimate_has_no_stopping_point() {
        let top = plain(vec![(0.5, 0.48), (0.9, 0.93)]);
        let ceiling = top.curve.ceiling();
        assert!(ceiling > 0.99 && ceiling < 1.0, "{ceiling}");
        for (target, at) in [(0.9, 0.93), (0.92, 0.93), (0.97, 0.97)] {
            assert!((top.stop_at(target).unwrap() - at).abs() < 1e-9, "{target}");
        }
        assert_eq!(top.stop_at(1.0), None);
        let largest = top.largest_target;
        assert!(largest <= ceiling && largest > ceiling - 1.1e-3, "{largest} of {ceiling}");
        let calibration = Calibration { tops: vec![top], surprises: vec![1.5; COST_GROUPS.len() + 1] };
        assert!(calibration.is_sound());
        let reach = calibration.reach(12).unwrap();
        assert_eq!((reach.calibrated, reach.nearest, reach.largest_target), (false, 10, largest));
        assert!(calibration.reach(7).unwrap().calibrated);
    }
}
