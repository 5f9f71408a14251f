//! Paired t-test, and the two one-sided tests (TOST) for equivalence.

use serde::Serialize;

use super::student_t::upper_tail;
use crate::{Error, Result};

/// What a paired test found.
///
/// ```
/// use loxia_eval::paired_t_test;
/// let test = paired_t_test(&[0.1, 0.2, 0.3, 0.4], &[0.2, 0.4, 0.3, 0.7])?;
/// assert_eq!(test.queries, 4);
/// assert!((test.difference - 0.15).abs() < 1e-12);
/// assert!(test.p > 0.05);
/// # Ok::<(), loxia_eval::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairedTest {
    /// Mean of system minus mean of baseline.
    pub difference: f64,
    /// The t statistic; infinite where the differences do not vary. Of the weaker side for TOST.
    pub statistic: f64,
    /// The p value.
    pub p: f64,
    /// Number of paired queries; one more than the degrees of freedom.
    pub queries: usize,
}

/// Two-sided paired t-test of the hypothesis that both systems have the same mean.
///
/// Where all differences are equal there is no variance to test with: p is 1 if they are all 0 and 0
/// otherwise.
pub fn paired_t_test(baseline: &[f64], system: &[f64]) -> Result<PairedTest> {
    let sample = Differences::new("a paired t-test", baseline, system)?;
    let statistic = sample.statistic(0.0);
    let p = if statistic == 0.0 { 1.0 } else { 2.0 * upper_tail(statistic.abs(), sample.degrees()) };
    Ok(PairedTest { difference: sample.mean, statistic, p: p.min(1.0), queries: sample.count })
}

/// Two one-sided paired t-tests (TOST): a small p shows that the means differ by less than `delta`.
///
/// p is the larger of the two: that the difference is above `-delta`, and that it is below `delta`. Where
/// all differences are equal, p is 0 if they lie inside and 1 if not. Compare p with
/// [`bonferroni`]`(0.05, systems - 1)` when several systems are tested against one baseline.
///
/// ```
/// use loxia_eval::equivalence_test;
/// let baseline: Vec<f64> = (0..50).map(|i| f64::from(i) / 50.0).collect();
/// let system: Vec<f64> = (0..50).map(|i| f64::from(i) / 50.0 + f64::from(i % 3 - 1) * 0.01).collect();
/// assert!(equivalence_test(&baseline, &system, 0.02)?.p < 0.001);
/// assert!(equivalence_test(&baseline, &system, 0.0005)?.p > 0.05);
/// # Ok::<(), loxia_eval::Error>(())
/// ```
pub fn equivalence_test(baseline: &[f64], system: &[f64], delta: f64) -> Result<PairedTest> {
    if !(delta > 0.0 && delta.is_finite()) {
        return Err(Error::Setting {
            name: "delta",
            found: delta.to_string(),
            expected: "above 0 (for a difference of exactly 0 use the t-test)",
        });
    }
    let sample = Differences::new("an equivalence test", baseline, system)?;
    let above_lower = sample.statistic(-delta);
    let below_upper = -sample.statistic(delta);
    let weaker = above_lower.min(below_upper);
    let tail = upper_tail(weaker.abs(), sample.degrees());
    // Differences that do not vary and lie exactly on the bound are not inside it.
    let p = if weaker > 0.0 { tail } else { 1.0 - tail };
    let p = if weaker == 0.0 && sample.deviation == 0.0 { 1.0 } else { p };
    Ok(PairedTest { difference: sample.mean, statistic: weaker, p, queries: sample.count })
}

/// The level each of several tests must reach so that all together keep the level `alpha`.
///
/// ```
/// assert_eq!(loxia_eval::bonferroni(0.05, 5), 0.01);
/// ```
pub fn bonferroni(alpha: f64, tests: usize) -> f64 {
    alpha / tests.max(1) as f64
}

/// Differences of paired values.
struct Differences {
    mean: f64,
    /// Standard deviation with `n - 1` in the denominator; 0 if it is only rounding.
    deviation: f64,
    count: usize,
}

impl Differences {
    fn new(statistic: &'static str, baseline: &[f64], system: &[f64]) -> Result<Self> {
        if baseline.len() != system.len() {
            return Err(Error::UnequalSamples { left: baseline.len(), right: system.len() });
        }
        let count = baseline.len();
        if count < 2 {
            return Err(Error::TooFewQueries { statistic, needed: 2, found: count });
        }
        let differences: Vec<f64> = system.iter().zip(baseline).map(|(system, base)| system - base).collect();
        let mean = differences.iter().sum::<f64>() / count as f64;
        let squares: f64 = differences.iter().map(|difference| (difference - mean).powi(2)).sum();
        let deviation = (squares / (count - 1) as f64).sqrt();
        // Equal differences of rounded values differ in their last bits; that is no variance.
        let largest = baseline.iter().chain(system).fold(0.0f64, |largest, value| largest.max(value.abs()));
        let deviation = if deviation <= 8.0 * f64::EPSILON * largest { 0.0 } else { deviation };
        Ok(Differences { mean, deviation, count })
    }

    fn degrees(&self) -> f64 {
        (self.count - 1) as f64
    }

    /// The t statistic of the mean difference minus `shift`.
    fn statistic(&self, shift: f64) -> f64 {
        let distance = self.mean - shift;
        if self.deviation > 0.0 {
            return distance / (self.deviation / (self.count as f64).sqrt());
        }
        // Without variance the mean is exact up to rounding.
        if distance.abs() <= 8.0 * f64::EPSILON * (self.mean.abs() + shift.abs()) {
            0.0
        } else {
            distance.signum() * f64::INFINITY
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_variance() {
        let values = [0.1, 0.2, 0.7];
        let shifted = values.map(|value| value + 0.01);
        assert_eq!(paired_t_test(&values, &values).unwrap().p, 1.0);
        let test = paired_t_test(&values, &shifted).unwrap();
        assert_eq!((test.p, test.statistic), (0.0, f64::INFINITY));
        assert_eq!(equivalence_test(&values, &values, 0.02).unwrap().p, 0.0);
        assert_eq!(equivalence_test(&values, &shifted, 0.02).unwrap().p, 0.0);
        assert_eq!(equivalence_test(&values, &shifted, 0.005).unwrap().p, 1.0);
        assert_eq!(equivalence_test(&shifted, &values, 0.005).unwrap().p, 1.0);
        assert_eq!(equivalence_test(&[0.0, 0.0], &[0.25, 0.25], 0.25).unwrap().p, 1.0);
    }

    #[test]
    fn what_cannot_be_tested() {
        assert_eq!(
            paired_t_test(&[1.0], &[1.0, 2.0]).unwrap_err().to_string(),
            "paired values must be of the same queries: 1 and 2 values given"
        );
        assert_eq!(
            paired_t_test(&[1.0], &[2.0]).unwrap_err().to_string(),
            "a paired t-test needs at least 2 queries with values, found 1"
        );
        for delta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(equivalence_test(&[1.0, 2.0], &[1.0, 2.0], delta).is_err());
        }
    }
}
