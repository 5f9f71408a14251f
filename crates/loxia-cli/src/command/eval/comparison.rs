//! What stands beside a mean: its p value against the baseline and its interval.

use anyhow::Result;
use loxia::core::Seed;
use loxia::eval::{
    Aggregation, Evaluation, Interval, PairedTest, bonferroni, bootstrap_mean, equivalence_test,
    paired_t_test,
};

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;
/// Level of the tests before it is shared among the systems.
const ALPHA: f64 = 0.05;

/// A test of two systems.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Test {
    /// Two-sided t-test of a difference.
    Difference,
    /// Equivalence within `delta`.
    Equivalence { delta: f64 },
}

/// Which systems are tested, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Comparison {
    /// Position of the baseline.
    pub(super) baseline: usize,
    pub(super) test: Test,
    /// Number of systems, baseline included.
    pub(super) systems: usize,
}

impl Comparison {
    /// The level that a p value must be below.
    pub(super) fn level(&self) -> f64 {
        bonferroni(ALPHA, self.systems - 1)
    }
}

/// Tests and intervals of every system and measure; empty where they make no sense or were not wanted.
#[derive(Debug, Default)]
pub(super) struct Extras {
    pub(super) comparison: Option<Comparison>,
    /// By system, then by measure.
    tests: Vec<Vec<Option<PairedTest>>>,
    intervals: Vec<Vec<Option<Interval>>>,
    pub(super) with_intervals: bool,
}

impl Extras {
    /// Computes what was asked for. Sums and geometric means have neither test nor interval.
    pub(super) fn compute(
        evaluations: &[Evaluation],
        comparison: Option<Comparison>,
        bootstrap: Option<(usize, Seed)>,
    ) -> Result<Self> {
        let mut extras = Extras { comparison, with_intervals: bootstrap.is_some(), ..Extras::default() };
        for (position, evaluation) in evaluations.iter().enumerate() {
            let mut tests = Vec::new();
            let mut intervals = Vec::new();
            for &measure in evaluation.measures() {
                let is_mean = measure.aggregation() == Aggregation::Mean;
                tests.push(match comparison {
                    Some(comparison) if is_mean && position != comparison.baseline => {
                        let (base, own) =
                            evaluations[comparison.baseline].paired_with(evaluation, measure)?;
                        Some(match comparison.test {
                            Test::Difference => paired_t_test(&base, &own)?,
                            Test::Equivalence { delta } => equivalence_test(&base, &own, delta)?,
                        })
                    }
                    _ => None,
                });
                intervals.push(match (bootstrap, evaluation.values(measure)) {
                    (Some((resamples, seed)), Some(values)) if is_mean => {
                        Some(bootstrap_mean(&values, CONFIDENCE, resamples, seed)?)
                    }
                    _ => None,
                });
            }
            extras.tests.push(tests);
            extras.intervals.push(intervals);
        }
        Ok(extras)
    }

    pub(super) fn test(&self, system: usize, measure: usize) -> Option<PairedTest> {
        self.tests[system][measure]
    }

    pub(super) fn interval(&self, system: usize, measure: usize) -> Option<Interval> {
        self.intervals[system][measure]
    }
}
