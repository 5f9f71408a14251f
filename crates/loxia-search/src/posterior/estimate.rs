//! How much of the true top k is likely paid for.
//!
//! The threshold t of the top k is where the number of paid scores at or above t and the expected
//! number U(t) of unpaid ones above it make k; the estimate is 1 - U(t)/k. Unpaid scores are taken as
//! independent Gaussians, which they are not: `calibrate` corrects it.

/// What is believed of the items that were not paid for, most promising first.
pub(crate) struct Outlook {
    pub(crate) means: Vec<f32>,
    pub(crate) variances: Vec<f32>,
}

/// Items beyond these hardly ever reach the threshold.
pub(crate) const MOST_PROMISING: usize = 1000;
const HALVINGS: usize = 20;

/// The uncalibrated estimate, from transformed paid scores in descending order; variances are taken
/// times `spread`.
pub(crate) fn raw_recall(paid: &[f32], outlook: &Outlook, spread: f64, k: usize) -> f64 {
    let (Some(&highest), Some(&lowest)) = (paid.first(), paid.last()) else { return 0.0 };
    let unpaid: Vec<(f64, f64)> = outlook
        .means
        .iter()
        .zip(&outlook.variances)
        .map(|(&mean, &variance)| (f64::from(mean), 1.0 / (f64::from(variance).max(1e-8) * spread).sqrt()))
        .collect();
    let above =
        |t: f64| unpaid.iter().map(|&(mean, precision)| normal_cdf((mean - t) * precision)).sum::<f64>();
    let least_mean = unpaid.iter().map(|&(mean, _)| mean).fold(f64::INFINITY, f64::min);
    let (mut low, mut high) = (f64::from(lowest).min(least_mean), f64::from(highest));
    for _ in 0..HALVINGS {
        let t = 0.5 * (low + high);
        let paid_above = paid.partition_point(|&score| f64::from(score) >= t);
        if paid_above as f64 + above(t) >= k as f64 { low = t } else { high = t }
    }
    (1.0 - above(low) / k as f64).clamp(0.0, (paid.len() as f64 / k as f64).min(1.0))
}

/// The normal distribution function, to within 8e-8 (Abramowitz and Stegun 26.2.17).
pub(crate) fn normal_cdf(x: f64) -> f64 {
    let distance = x.abs();
    if distance > 6.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * distance);
    let series = 1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429);
    let series = t * (0.319_381_530 + t * (-0.356_563_782 + t * series));
    let tail = 0.398_942_280_401 * (-0.5 * distance * distance).exp() * series;
    if x > 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_at_known_points() {
        for (x, value) in [(0.0, 0.5), (1.0, 0.841_344_746), (-1.959_963_985, 0.025), (3.0, 0.998_650_102)] {
            assert!((normal_cdf(x) - value).abs() < 1e-7, "{x}: {}", normal_cdf(x));
        }
        assert_eq!((normal_cdf(40.0), normal_cdf(-40.0)), (1.0, 0.0));
    }

    #[test]
    fn nothing_left_above_the_paid_means_full_recall() {
        let outlook = Outlook { means: vec![-50.0; 20], variances: vec![1.0; 20] };
        assert!(raw_recall(&[3.0, 2.0, 1.0], &outlook, 1.0, 2) > 0.999);
        // As many unpaid ones as paid ones, all alike: half is found.
        let outlook = Outlook { means: vec![1.0; 4], variances: vec![1e-6; 4] };
        let recall = raw_recall(&[1.0, 1.0, 1.0, 1.0], &outlook, 1.0, 4);
        assert!(recall < 0.6, "{recall}");
        assert_eq!(raw_recall(&[], &outlook, 1.0, 4), 0.0);
        // One paid score cannot be more than half of a top two.
        assert!(raw_recall(&[9.0], &Outlook { means: vec![], variances: vec![] }, 1.0, 2) <= 0.5);
    }
}
