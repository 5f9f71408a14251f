//! From the raw estimate to recall: a logistic curve of its logit and of log(cost / k).
//!
//! With x the logit of the raw estimate and u the effort log(cost / k), from 0 to 1 over what was calibrated,
//! logit(recall) = a + (1 - u) b0 x + u b1 x + c1 u + c2 u^2 + c3 u^3, and + d u where a budget was spent in even
//! rounds: its large early ones leave more behind that looks promising than the small ones of a search for a target, and
//! no more that is.
//! b0 and b1 are held above zero: whatever was paid, a higher raw estimate means a higher estimate. Left free
//! they follow chance where nearly all recalls are alike, which is where searches for high targets end.

use crate::Result;
use crate::linalg::{Cholesky, Dense};

const TERMS: usize = 7;
/// Places of b0 and b1.
const SLOPES: [usize; 2] = [1, 2];
const LEAST_SLOPE: f64 = 0.05;
/// Raw estimates nearer to 0 and 1 than this are not told apart: the sums behind them are rounded.
const LEAST_RAW: f64 = 1e-3;

/// A fitted curve.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct Curve {
    /// log(cost / k) at the ends of the calibration; beyond them only the raw estimate moves the curve.
    efforts: [f64; 2],
    weights: [f64; TERMS],
}

/// What a search knows of itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) raw: f64,
    pub(crate) cost: usize,
    /// Whether it spends a budget in even rounds.
    pub(crate) even: bool,
}

/// A moment of a held-out search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) known: Known,
    pub(crate) truth: f64,
}

impl Curve {
    /// The curve for a top k, and how badly it fits. Without moments the raw estimate is taken at its word.
    pub(crate) fn fit(moments: &[Moment], k: usize) -> Result<(Self, f64)> {
        let efforts = moments.iter().map(|moment| effort(moment.known.cost, k));
        let ends =
            efforts.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)]);
        let mut curve = Curve { efforts: ends, weights: [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0] };
        if moments.is_empty() {
            curve.efforts = [0.0; 2];
            return Ok((curve, 0.0));
        }
        let rows: Vec<[f64; TERMS]> = moments.iter().map(|moment| curve.terms(moment.known, k)).collect();
        let truths: Vec<f64> = moments.iter().map(|moment| moment.truth).collect();
        // The loss is convex: if the free optimum is out of bounds, the best one lies on a bound.
        let bounds: [&[usize]; 4] = [&[], &SLOPES[..1], &SLOPES[1..], &SLOPES];
        let mut best: Option<(f64, [f64; TERMS])> = None;
        for held in bounds {
            let weights = logistic_regression(&rows, &truths, held)?;
            let finite = weights.iter().all(|weight| weight.is_finite());
            if !finite || SLOPES.iter().any(|&at| weights[at] < LEAST_SLOPE) {
                continue;
            }
            let deviance = deviance(&rows, &truths, &weights);
            if best.is_none_or(|(lowest, _)| deviance < lowest) {
                best = Some((deviance, weights));
            }
            if held.is_empty() {
                break;
            }
        }
        let deviance = match best {
            Some((deviance, weights)) => {
                curve.weights = weights;
                deviance
            }
            None => deviance(&rows, &truths, &curve.weights),
        };
        Ok((curve, deviance))
    }

    /// Expected recall.
    pub(crate) fn recall(&self, known: Known, k: usize) -> f64 {
        let value = sigmoid(dot(&self.weights, &self.terms(known, k)));
        // More than was paid for cannot have been found.
        value.min(known.cost as f64 / k as f64)
    }

    /// What a search for a target ends at that goes on and on: no estimate beyond the calibration's costs is higher.
    pub(crate) fn ceiling(&self) -> f64 {
        sigmoid(dot(&self.weights, &terms(1.0, self.along(self.efforts[1]), false)))
    }

    /// Whether the numbers are as a fit makes them.
    pub(crate) fn is_sound(&self) -> bool {
        let finite = self.weights.iter().chain(&self.efforts).all(|value| value.is_finite());
        finite && self.efforts[0] <= self.efforts[1] && SLOPES.iter().all(|&at| self.weights[at] > 0.0)
    }

    fn terms(&self, known: Known, k: usize) -> [f64; TERMS] {
        terms(known.raw, self.along(effort(known.cost, k)), known.even)
    }

    /// From 0 to 1 over the efforts of the calibration.
    fn along(&self, effort: f64) -> f64 {
        let [low, high] = self.efforts;
        (effort.clamp(low, high) - low) / (high - low).max(1e-9)
    }
}

fn effort(cost: usize, k: usize) -> f64 {
    (cost.max(1) as f64 / k.max(1) as f64).ln()
}

fn terms(raw: f64, along: f64, even: bool) -> [f64; TERMS] {
    let raw = raw.clamp(LEAST_RAW, 1.0 - LEAST_RAW);
    let logit = (raw / (1.0 - raw)).ln();
    let of_even = if even { along } else { 0.0 };
    [1.0, (1.0 - along) * logit, along * logit, along, along.powi(2), along.powi(3), of_even]
}

fn dot(a: &[f64; TERMS], b: &[f64; TERMS]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Newton's method with a small ridge; targets are shares. Weights named by `held` stay at the least slope.
fn logistic_regression(rows: &[[f64; TERMS]], targets: &[f64], held: &[usize]) -> Result<[f64; TERMS]> {
    // The addend of even rounds stays away where all recalls are alike.
    const RIDGE: [f64; TERMS] = [1e-2, 1e-2, 1e-2, 1e-2, 1e-2, 1e-2, 1.0];
    const STEPS: usize = 40;
    let mut weights = [0.0; TERMS];
    held.iter().for_each(|&at| weights[at] = LEAST_SLOPE);
    for _ in 0..STEPS {
        let mut hessian = Dense::<f64>::zeros(TERMS, TERMS);
        let mut gradient: [f64; TERMS] = std::array::from_fn(|at| -RIDGE[at] * weights[at]);
        for (row, &target) in rows.iter().zip(targets) {
            let share = sigmoid(dot(&weights, row));
            let curvature = (share * (1.0 - share)).max(1e-6);
            for i in 0..TERMS {
                gradient[i] += row[i] * (target - share);
                (0..TERMS).for_each(|j| hessian[(i, j)] += curvature * row[i] * row[j]);
            }
        }
        for &at in held {
            gradient[at] = 0.0;
            (0..TERMS).for_each(|other| {
                hessian[(at, other)] = 0.0;
                hessian[(other, at)] = 0.0;
            });
        }
        (0..TERMS).for_each(|at| hessian[(at, at)] += RIDGE[at]);
        let step = Cholesky::new(&hessian)?.solve(&Dense::new(TERMS, 1, gradient.to_vec())?);
        weights.iter_mut().zip(step.values()).for_each(|(weight, step)| *weight += step);
    }
    Ok(weights)
}

fn deviance(rows: &[[f64; TERMS]], targets: &[f64], weights: &[f64; TERMS]) -> f64 {
    let loss = |(row, &target): (&[f64; TERMS], &f64)| {
        let share = sigmoid(dot(weights, row)).clamp(1e-6, 1.0 - 1e-6);
        -(target * share.ln() + (1.0 - target) * (1.0 - share).ln())
    };
    rows.iter().zip(targets).map(loss).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const K: usize = 50;

    fn known(raw: f64, cost: usize) -> Known {
        Known { raw, cost, even: false }
    }

    /// Truths that follow the raw estimate by a slope that falls with the cost, below zero at the end.
    fn turning(slopes: [f64; 2]) -> Vec<Moment> {
        let at = |raw: usize, cost: usize| {
            let (raw, along) = (raw as f64 / 20.0, (cost as f64 / 25.0).ln() / 20f64.ln());
            let slope = (1.0 - along) * slopes[0] + along * slopes[1];
            Moment { known: known(raw, cost), truth: sigmoid(1.0 + slope * (raw / (1.0 - raw)).ln()) }
        };
        let costs = [25, 50, 100, 200, 300, 400, 500];
        costs.iter().flat_map(|&cost| (1..20).map(move |raw| at(raw, cost))).collect()
    }

    fn rises(curve: &Curve) -> bool {
        let at = |raw: u32, cost: usize| curve.recall(known(f64::from(raw) / 200.0, cost), K);
        let costs = [1, 20, 25, 60, 150, 400, 500, 5000];
        costs.iter().all(|&cost| (1..=200).all(|raw| at(raw, cost) >= at(raw - 1, cost)))
    }

    #[test]
    fn a_slope_that_would_turn_is_held_and_a_good_one_is_found() {
        let (curve, _) = Curve::fit(&turning([1.0, -0.5]), K).unwrap();
        assert!(rises(&curve), "{curve:?}");
        assert_eq!(curve.weights[SLOPES[1]], LEAST_SLOPE);
        let (curve, _) = Curve::fit(&turning([1.2, 0.6]), K).unwrap();
        for (at, slope) in SLOPES.into_iter().zip([1.2, 0.6]) {
            assert!((curve.weights[at] - slope).abs() < 0.05, "{curve:?}");
        }
        assert!(rises(&curve) && curve.is_sound());
    }

    proptest! {
        #[test]
        fn a_higher_raw_estimate_is_never_a_lower_estimate(
            moments in proptest::collection::vec((0.0f64..=1.0, 20usize..500, 0u8..=10), 1..80),
        ) {
            let moments: Vec<Moment> = moments
                .into_iter()
                .map(|(raw, cost, tenths)| Moment { known: Known { raw, cost, even: tenths % 2 == 0 }, truth: f64::from(tenths) / 10.0 })
                .collect();
            let (curve, _) = Curve::fit(&moments, K).unwrap();
            prop_assert!(curve.is_sound());
            prop_assert!(rises(&curve), "{:?}", curve);
            prop_assert!(curve.recall(known(1.0, 100 * K), K) <= curve.ceiling() + 1e-12);
        }
    }

    #[test]
    fn even_rounds_have_an_addend_of_their_own() {
        let small = turning([1.2, 0.6]);
        let even = small.iter().map(|moment| {
            let along = (moment.known.cost as f64 / 25.0).ln() / 20f64.ln();
            let logit = (moment.truth / (1.0 - moment.truth)).ln() + 0.8 * along;
            Moment { known: Known { even: true, ..moment.known }, truth: sigmoid(logit) }
        });
        // As many as a calibration has.
        let moments = [small.clone(), even.collect()].concat().repeat(20);
        let (curve, _) = Curve::fit(&moments, K).unwrap();
        assert!((curve.weights[6] - 0.8).abs() < 0.05 && rises(&curve), "{curve:?}");
        let even = curve.recall(Known { even: true, ..known(0.7, 400) }, K);
        assert!(even > curve.recall(known(0.7, 400), K) + 0.05);
    }

    #[test]
    fn costs_beyond_the_calibration_do_not_move_the_estimate() {
        let (curve, _) = Curve::fit(&turning([1.2, 0.6]), K).unwrap();
        assert_eq!(curve.recall(known(0.9, 10_000), K), curve.recall(known(0.9, 500), K));
        assert_ne!(curve.recall(known(0.9, 250), K), curve.recall(known(0.9, 500), K));
    }

    #[test]
    fn recalls_all_alike_and_no_moments_have_curves() {
        let alike: Vec<Moment> =
            (20..500).map(|cost| Moment { known: known(1.0, cost), truth: 1.0 }).collect();
        let (curve, _) = Curve::fit(&alike, 1).unwrap();
        assert!(curve.is_sound() && curve.recall(known(1.0, 100), 1) > 0.99, "{curve:?}");
        let (curve, _) = Curve::fit(&[], 5).unwrap();
        assert!((curve.recall(known(0.7, 20), 5) - 0.7).abs() < 1e-9 && curve.is_sound());
    }
}
