//! A monotone transform of scores.
//!
//! Scores of a `[CLS]` model crowd near their minimum and reach far up; their logarithm above the
//! minimum is closer to the Gaussian that the method assumes. One transform serves all queries, so the
//! order within a query is kept, but for scores below the lowest anchor score: those tie.

use crate::linalg::Dense;

/// `s`, or `log(1 + max(s - low, 0) / width)`.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Transform {
    Identity,
    Log { low: f64, width: f64 },
}

impl Transform {
    /// `relative` is the width in units of median less minimum of all anchor scores.
    pub(crate) fn fit(scores: &Dense, relative: Option<f64>) -> Self {
        let Some(relative) = relative else { return Transform::Identity };
        let low = scores.values().iter().copied().fold(f32::INFINITY, f32::min);
        let spread = f64::from(median(scores.values().to_vec()) - low);
        if spread > 0.0 {
            Transform::Log { low: f64::from(low), width: relative * spread }
        } else {
            // At least half of all scores are the minimum: there is no scale to take a width from.
            Transform::Identity
        }
    }

    /// Whether the numbers are as a fit makes them.
    pub(crate) fn is_sound(&self) -> bool {
        match *self {
            Transform::Identity => true,
            Transform::Log { low, width } => low.is_finite() && width.is_finite() && width > 0.0,
        }
    }

    pub(crate) fn apply(&self, score: f32) -> f32 {
        match *self {
            Transform::Identity => score,
            Transform::Log { low, width } => ((f64::from(score) - low).max(0.0) / width).ln_1p() as f32,
        }
    }
}

/// The middle value, or the mean of the two middle ones; 0 of nothing.
pub(crate) fn median(mut values: Vec<f32>) -> f32 {
    let count = values.len();
    if count == 0 {
        return 0.0;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(count / 2, f32::total_cmp);
    if count % 2 == 1 {
        return upper;
    }
    let lower = below.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    0.5 * (lower + upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(vec![]), 0.0);
    }

    #[test]
    fn the_transform_keeps_order_and_clamps_below_the_minimum() {
        let scores = Dense::new(1, 5, vec![1.0, 2.0, 3.0, 4.0, 9.0]).unwrap();
        let log = Transform::fit(&scores, Some(0.5));
        assert_eq!(log, Transform::Log { low: 1.0, width: 1.0 });
        assert_eq!((log.apply(0.0), log.apply(1.0)), (0.0, 0.0));
        assert!(log.apply(9.0) > log.apply(4.0));
        let constant = Dense::new(1, 3, vec![1.0; 3]).unwrap();
        assert_eq!(Transform::fit(&constant, Some(0.5)), Transform::Identity);
    }
}
