//! Calibration of the recall estimate on held-out anchor rows.
//!
//! Three fifths of the anchors are held out in turn, searched by a model of the others with small
//! batches, and after each batch the raw estimate is set beside the true recall. For each of some k
//! that gives
//! - a logistic curve from the logit of the raw estimate and log(cost / k) to recall, at the variance factor
//!   that fits best;
//! - in bins of cost and of the calibrated estimate, short intervals that together hold 90 % of the true
//!   recalls;
//! - for each target, the estimate at which stopping reached it on average, by one standard error:
//!   stopping picks estimates that are too high by chance, and this pays that back.

use loxia_core::{Cancel, Cost, RecallEstimate, Stop};

use super::estimate::{Outlook, raw_recall};
use super::rounds::Rounds;
use super::work::{FIT_STEPS, PATH_STEPS, Work};
use super::{Posterior, PosteriorSettings};
use crate::evaluate::recalls;
use crate::linalg::{Cholesky, Dense};
use crate::method::{Policy, best_positions};
use crate::{AnchorSet, Ledger, QueryRows, Result, Schedule};

/// Terms of a curve: see [`terms`].
const TERMS: usize = 5;
/// Top sizes that are calibrated; others use the nearest.
const TOPS: [usize; 6] = [1, 5, 10, 20, 50, 100];
/// Factors of the variance that are tried.
const SPREADS: [f64; 3] = [0.5, 1.0, 2.0];
const FOLDS: usize = 5;
const HELD_FOLDS: usize = 3;
/// Held-out rows of a fold, and what each may cost.
const ROWS: usize = 100;
const BUDGET: usize = 500;
/// With fewer held-out rows an interval would mean nothing.
const LEAST_ROWS: usize = 10;
/// Costs that part the groups in which intervals are made, and bins of each.
const COST_GROUPS: [usize; 3] = [80, 180, 300];
const BINS: usize = 12;
/// What intervals hold.
const COVERED: f64 = 0.9;
/// How much more or less than that a bin holds at most, to make up for others.
const MADE_UP: f64 = 0.05;
/// Targets for which a stopping point is kept.
const TARGETS: [f64; 9] = [0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99];

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct Calibration {
    tops: Vec<TopCalibration>,
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct TopCalibration {
    k: usize,
    spread: f64,
    curve: [f64; TERMS],
    /// For each group of costs, bins ascending in the estimate.
    intervals: [Vec<IntervalBin>; COST_GROUPS.len() + 1],
    /// Target, and the estimate to stop at; ascending.
    stops: Vec<(f64, f64)>,
}

/// Where true recalls lay for estimates up to an edge.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
struct IntervalBin {
    edge: f64,
    low: f64,
    high: f64,
}

/// One moment of a held-out search.
struct Checkpoint {
    cost: usize,
    truth: Vec<f64>,
    /// For each k, at each spread.
    raw: Vec<[f64; SPREADS.len()]>,
}

impl Calibration {
    /// `None` where too few anchors could be held out.
    pub(crate) fn fit(
        anchors: &AnchorSet,
        settings: PosteriorSettings,
        work: &Work<'_>,
    ) -> Result<Option<Self>> {
        let tops: Vec<usize> = TOPS.into_iter().filter(|&k| k < anchors.items()).collect();
        let mut paths = Vec::new();
        for fold in 0..HELD_FOLDS {
            if let Some((kept, held)) = anchors.hold_out(fold, FOLDS, ROWS) {
                work.step(FIT_STEPS)?;
                let model = Posterior::fit(&kept, settings)?;
                for query in 0..held.scores.rows() {
                    work.step(PATH_STEPS)?;
                    paths.push(path(&model, &held, query, &tops)?);
                }
            }
        }
        if paths.len() < LEAST_ROWS || tops.is_empty() {
            return Ok(None);
        }
        let tops = tops.iter().enumerate().map(|(at, &k)| TopCalibration::fit(&paths, at, k));
        Ok(Some(Calibration { tops: tops.collect::<Result<_>>()? }))
    }

    /// How far a fit tells its progress.
    pub(crate) fn steps(anchors: &AnchorSet) -> u64 {
        let held = |fold| (0..anchors.len()).filter(|row| row % FOLDS == fold).count().min(ROWS) as u64;
        (0..HELD_FOLDS).map(|fold| FIT_STEPS + PATH_STEPS * held(fold)).sum()
    }

    /// Whether the numbers are as a fit makes them.
    pub(crate) fn is_sound(&self) -> bool {
        let share = |value: f64| (0.0..=1.0).contains(&value);
        self.tops.iter().all(|top| {
            let bins = top.intervals.iter().flatten();
            top.k > 0
                && top.spread.is_finite()
                && top.spread > 0.0
                && top.curve.iter().all(|weight| weight.is_finite())
                && bins.clone().all(|bin| bin.edge.is_finite() && share(bin.low) && share(bin.high))
                && top.stops.iter().all(|&(target, at)| share(target) && share(at))
                && top.stops.windows(2).all(|pair| pair[0].0 < pair[1].0)
        })
    }

    /// The calibrated estimate, and the one to stop at for a target.
    pub(crate) fn estimate(&self, paid: &[f32], outlook: &Outlook, k: usize) -> Option<RecallEstimate> {
        let (k, top) = (k.max(1), self.nearest(k)?);
        let raw = raw_recall(paid, outlook, top.spread, k);
        let mean = top.calibrated(raw, paid.len(), k);
        let bins = &top.intervals[cost_group(paid.len())];
        let (low, high) = bins
            .get(bins.partition_point(|bin| bin.edge < mean).min(bins.len().saturating_sub(1)))
            .map_or((0.0, 1.0), |bin| (bin.low, bin.high));
        Some(RecallEstimate { mean, low: low.min(mean), high: high.max(mean) })
    }

    /// The estimate at which a search for this target stops.
    pub(crate) fn stop_at(&self, target: f64, k: usize) -> f64 {
        let Some(top) = self.nearest(k) else { return target };
        let above = top.stops.partition_point(|&(known, _)| known < target);
        match (above.checked_sub(1).map(|below| top.stops[below]), top.stops.get(above).copied()) {
            (Some((left, low)), Some((right, high))) => low + (high - low) * (target - left) / (right - left),
            // Beyond what was measured the estimate is taken at its word.
            (Some((_, end)), None) => end.max(target),
            (None, _) => target,
        }
    }

    fn nearest(&self, k: usize) -> Option<&TopCalibration> {
        let distance = |top: &TopCalibration| (top.k as f64).ln() - (k.max(1) as f64).ln();
        self.tops.iter().min_by(|a, b| distance(a).abs().total_cmp(&distance(b).abs()))
    }
}

impl TopCalibration {
    fn fit(paths: &[Vec<Checkpoint>], at: usize, k: usize) -> Result<Self> {
        let moments = || paths.iter().flatten().filter(|moment| 2 * moment.cost >= k);
        let truths: Vec<f64> = moments().map(|moment| moment.truth[at]).collect();
        let mut best: Option<(f64, TopCalibration)> = None;
        for (which, &spread) in SPREADS.iter().enumerate() {
            let terms: Vec<[f64; TERMS]> =
                moments().map(|moment| terms(moment.raw[at][which], moment.cost, k)).collect();
            let curve = logistic_regression(&terms, &truths)?;
            let deviance = deviance(&terms, &truths, &curve);
            if best.as_ref().is_none_or(|&(lowest, _)| deviance < lowest) {
                let fitted =
                    TopCalibration { k, spread, curve, intervals: Default::default(), stops: Vec::new() };
                best = Some((deviance, fitted));
            }
        }
        let (_, mut fitted) = best.unwrap_or((0.0, TopCalibration::uninformed(k)));
        let which = SPREADS.iter().position(|&spread| spread == fitted.spread).unwrap_or(1);
        let calibrated = |moment: &Checkpoint| {
            (fitted.calibrated(moment.raw[at][which], moment.cost, k), moment.truth[at])
        };
        let estimates: Vec<Vec<(f64, f64)>> =
            paths.iter().map(|path| path.iter().map(calibrated).collect()).collect();
        let intervals = std::array::from_fn(|group| {
            let moments = paths.iter().flatten().filter(|moment| cost_group(moment.cost) == group);
            interval_bins(moments.map(calibrated).collect())
        });
        fitted.intervals = intervals;
        fitted.stops = stopping_points(&estimates);
        Ok(fitted)
    }

    fn uninformed(k: usize) -> Self {
        TopCalibration {
            k,
            spread: 1.0,
            curve: [0.0, 1.0, 0.0, 0.0, 0.0],
            intervals: Default::default(),
            stops: Vec::new(),
        }
    }

    fn calibrated(&self, raw: f64, cost: usize, k: usize) -> f64 {
        let value = sigmoid(dot(&self.curve, &terms(raw, cost, k)));
        // More than was paid for cannot have been found.
        value.min(cost as f64 / k as f64)
    }
}

/// Searches a held-out row, looking after each batch.
fn path(model: &Posterior, rows: &QueryRows, query: usize, tops: &[usize]) -> Result<Vec<Checkpoint>> {
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
    for size in Schedule::anytime().sizes(BUDGET.min(row.len().saturating_sub(1))) {
        let chosen = rounds.choose(size, &ledger)?;
        ledger.pay(&chosen)?;
        let (paid, outlook) = rounds.outlook(&ledger)?;
        let raw = tops.iter().map(|&k| SPREADS.map(|spread| raw_recall(&paid, &outlook, spread, k)));
        let truth = recalls(&exact, ledger.evidence(), tops, row.len());
        path.push(Checkpoint { cost: ledger.evidence().len(), truth, raw: raw.collect() });
    }
    Ok(path)
}

fn terms(raw: f64, cost: usize, k: usize) -> [f64; TERMS] {
    let raw = raw.clamp(1e-3, 1.0 - 1e-3);
    let logit = (raw / (1.0 - raw)).ln();
    // Beyond the budget of the calibration its curve says nothing of costs: there only the raw estimate moves.
    let effort = (cost.clamp(1, BUDGET) as f64 / k as f64).ln();
    [1.0, logit, effort, logit * effort, effort * effort]
}

fn dot(a: &[f64; TERMS], b: &[f64; TERMS]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Newton's method with a small ridge; targets are shares.
fn logistic_regression(terms: &[[f64; TERMS]], targets: &[f64]) -> Result<[f64; TERMS]> {
    const RIDGE: f64 = 1e-2;
    const STEPS: usize = 30;
    let mut curve = [0.0; TERMS];
    for _ in 0..STEPS {
        let mut hessian = Dense::<f64>::zeros(TERMS, TERMS);
        let mut gradient = curve.map(|weight: f64| -RIDGE * weight);
        for (x, &target) in terms.iter().zip(targets) {
            let share = sigmoid(dot(&curve, x));
            let weight = (share * (1.0 - share)).max(1e-6);
            for i in 0..TERMS {
                gradient[i] += x[i] * (target - share);
                (0..TERMS).for_each(|j| hessian[(i, j)] += weight * x[i] * x[j]);
            }
        }
        hessian.add_diagonal(RIDGE);
        let step = Cholesky::new(&hessian)?.solve(&Dense::new(TERMS, 1, gradient.to_vec())?);
        curve.iter_mut().zip(step.values()).for_each(|(weight, step)| *weight += step);
    }
    Ok(curve)
}

fn deviance(terms: &[[f64; TERMS]], targets: &[f64], curve: &[f64; TERMS]) -> f64 {
    let loss = |(x, &target): (&[f64; TERMS], &f64)| {
        let share = sigmoid(dot(curve, x)).clamp(1e-6, 1.0 - 1e-6);
        -(target * share.ln() + (1.0 - target) * (1.0 - share).ln())
    };
    terms.iter().zip(targets).map(loss).sum()
}

fn cost_group(cost: usize) -> usize {
    COST_GROUPS.partition_point(|&edge| edge <= cost)
}

/// Bins of equal count by estimate, each with a short interval of true recalls.
///
/// Recalls of a small top take few values, so that no interval of a bin may hold just the wanted share:
/// what one bin holds too much or too little, the next make up for. Highest estimates come first, as
/// nearly all of their recalls may be the same.
fn interval_bins(mut moments: Vec<(f64, f64)>) -> Vec<IntervalBin> {
    moments.sort_by(|a, b| b.0.total_cmp(&a.0));
    let size = moments.len().div_ceil(BINS).max(1);
    let mut owed = 0.0f64;
    let bins = moments.chunks(size).map(|bin| {
        let mut truths: Vec<f64> = bin.iter().map(|&(_, truth)| truth).collect();
        truths.sort_by(f64::total_cmp);
        let count = truths.len() as f64;
        let most = MADE_UP * count;
        let (held, low, high) = interval_holding(&truths, COVERED * count + owed.clamp(-most, most));
        owed += COVERED * count - held as f64;
        IntervalBin { edge: bin[0].0, low, high }
    });
    let mut bins: Vec<IntervalBin> = bins.collect();
    bins.reverse();
    bins
}

/// The interval that holds a number of ascending values nearest to `wanted`, of the shortest ones for
/// their number: how many it holds, and its ends.
fn interval_holding(values: &[f64], wanted: f64) -> (usize, f64, f64) {
    let enough = (wanted.ceil().max(1.0) as usize).min(values.len());
    let windows = values.windows(enough).map(|window| (window[0], window[enough - 1]));
    let Some((low, high)) = windows.min_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0))) else {
        return (0, 0.0, 1.0);
    };
    let held = |low: f64, high: f64| {
        values.partition_point(|&value| value <= high) - values.partition_point(|&value| value < low)
    };
    let whole = (held(low, high), low, high);
    // The most that a strictly shorter interval holds.
    let mut shorter = (0, low, low);
    let mut start = 0;
    for (end, &last) in values.iter().enumerate() {
        while last - values[start] >= high - low && start < end {
            start += 1;
        }
        if last - values[start] < high - low && end + 1 - start > shorter.0 {
            shorter = (end + 1 - start, values[start], last);
        }
    }
    let distance = |held: usize| (held as f64 - wanted).abs();
    if shorter.0 > 0 && distance(shorter.0) < distance(whole.0) { shorter } else { whole }
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
    let grid = || (0..1000).map(|step| f64::from(step) / 1000.0);
    TARGETS
        .into_iter()
        .filter_map(|target| Some((target, grid().find(|&at| reached(at) >= target)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_beyond_the_calibration_do_not_move_the_estimate() {
        assert_eq!(terms(0.9, 20 * BUDGET, 10), terms(0.9, BUDGET, 10));
        assert_ne!(terms(0.9, BUDGET / 2, 10), terms(0.9, BUDGET, 10));
    }

    #[test]
    fn an_interval_holds_the_number_nearest_to_the_wanted() {
        let values: Vec<f64> = (0..100).map(|at| f64::from(at) / 100.0).collect();
        let (held, low, high) = interval_holding(&values, 90.0);
        assert_eq!(held, 90);
        assert!((high - low - 0.89).abs() < 1e-9);
        // Nine in ten are 1: the next longer interval would hold all.
        let mut values = vec![0.8, 0.9, 0.9];
        values.extend([1.0; 27]);
        assert_eq!(interval_holding(&values, 27.3), (27, 1.0, 1.0));
        assert_eq!(interval_holding(&values, 28.9), (29, 0.9, 1.0));
        // All alike: there is no shorter interval, and none that holds fewer.
        assert_eq!(interval_holding(&[1.0; 10], 3.0), (10, 1.0, 1.0));
        assert_eq!(interval_holding(&[0.5], 0.9), (1, 0.5, 0.5));
    }

    #[test]
    fn bins_together_hold_the_wanted_share_of_recalls_that_take_few_values() {
        // The higher the estimate, the more often all ten are found.
        let moments: Vec<(f64, f64)> = (0..4800)
            .map(|at| {
                let estimate = f64::from(at) / 4800.0;
                let luck = f64::from(at * 7919 % 4800) / 4800.0;
                let missed = if luck < estimate { 0 } else { 1 + (at * 31 % 3) };
                (estimate, 1.0 - f64::from(missed) / 10.0)
            })
            .collect();
        let bins = interval_bins(moments.clone());
        assert_eq!(bins.len(), BINS);
        assert!(bins.windows(2).all(|pair| pair[0].edge < pair[1].edge));
        let inside = moments.iter().filter(|&&(estimate, truth)| {
            let bin = bins[bins.partition_point(|bin| bin.edge < estimate)];
            (bin.low..=bin.high).contains(&truth)
        });
        let share = inside.count() as f64 / moments.len() as f64;
        assert!((share - COVERED).abs() < 0.02, "{share}");
    }
}
