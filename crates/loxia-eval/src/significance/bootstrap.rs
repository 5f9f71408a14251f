//! Percentile bootstrap of a mean over queries.

use loxia_core::Seed;
use serde::Serialize;

use crate::{Error, Result};

/// Resamples when nobody asks for another number.
pub const DEFAULT_RESAMPLES: usize = 10_000;

/// The fewest allowed: with less, the ends of a 95 % interval rest on under 50 resamples and wobble.
pub const LEAST_RESAMPLES: usize = 2000;

/// An interval of a mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The interval that holds the mean with a probability of `confidence`: queries are drawn with
/// replacement `resamples` times (at least [`LEAST_RESAMPLES`]), and the ends are percentiles of the means.
///
/// The same seed draws the same queries for every system and measure with as many queries, so that
/// intervals side by side are comparable, and the result is the same on every machine.
///
/// ```
/// use loxia_core::Seed;
/// use loxia_eval::{DEFAULT_RESAMPLES, bootstrap_mean};
/// let values: Vec<f64> = (0..100).map(|i| f64::from(i) / 100.0).collect();
/// let interval = bootstrap_mean(&values, 0.95, DEFAULT_RESAMPLES, Seed(42))?;
/// // The normal approximation gives 0.495 +- 0.057.
/// assert!((interval.low - 0.438).abs() < 0.005 && (interval.high - 0.552).abs() < 0.005);
/// # Ok::<(), loxia_eval::Error>(())
/// ```
pub fn bootstrap_mean(values: &[f64], confidence: f64, resamples: usize, seed: Seed) -> Result<Interval> {
    if resamples < LEAST_RESAMPLES {
        return Err(Error::Setting {
            name: "the number of bootstrap resamples",
            found: resamples.to_string(),
            expected: "at least 2000",
        });
    }
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(Error::Setting {
            name: "the confidence",
            found: confidence.to_string(),
            expected: "between 0 and 1",
        });
    }
    if values.is_empty() {
        return Err(Error::TooFewQueries { statistic: "a bootstrap interval", needed: 1, found: 0 });
    }
    let mut stream = seed.stream("bootstrap");
    let count = values.len() as u64;
    let mut means: Vec<f64> = (0..resamples)
        .map(|_| {
            let sum: f64 = (0..count).map(|_| values[stream.below(count) as usize]).sum();
            sum / count as f64
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    Ok(Interval { low: quantile(&means, tail), high: quantile(&means, 1.0 - tail) })
}

/// Quantile of sorted values, between neighbours by proportion.
fn quantile(sorted: &[f64], quantile: f64) -> f64 {
    let position = quantile * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        let sorted = [0.0, 1.0, 2.0, 4.0];
        assert_eq!(quantile(&sorted, 0.0), 0.0);
        assert_eq!(quantile(&sorted, 0.5), 1.5);
        assert_eq!(quantile(&sorted, 1.0), 4.0);
    }

    #[test]
    fn a_seed_fixes_the_interval() {
        let values: Vec<f64> = (0..20).map(|i| f64::from(i * i % 7)).collect();
        let interval = |seed| bootstrap_mean(&values, 0.9, 2000, Seed(seed)).unwrap();
        assert_eq!(interval(1), interval(1));
        assert_ne!(interval(1), interval(2));
        let constant = bootstrap_mean(&[0.5; 7], 0.95, 2000, Seed(1)).unwrap();
        assert_eq!(constant, Interval { low: 0.5, high: 0.5 });
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        assert!(
            bootstrap_mean(&[1.0], 0.95, 1999, Seed(1)).unwrap_err().to_string().contains("at least 2000")
        );
        assert!(bootstrap_mean(&[1.0], 1.0, 2000, Seed(1)).is_err());
        assert!(bootstrap_mean(&[], 0.95, 2000, Seed(1)).is_err());
    }
}
