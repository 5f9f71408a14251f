//! How much of the true top k is likely paid for.
//!
//! The threshold t of the top k is where the number of paid scores at or above t and the expected
//! number U(t) of unpaid ones above it make k; the estimate is 1 - U(t)/k. Unpaid scores are taken as
//! independent Gaussians, which they are not: `calibrate` corrects it.

use super::kernel::fast_exp;

/// What is believed of the items that were not paid for, most promising first.
pub(crate) struct Outlook {
    pub(crate) means: Vec<f32>,
    pub(crate) variances: Vec<f32>,
    /// How much larger variances are than the model says, by the scores paid for; 1 if they are as it says.
    pub(crate) surprise: f64,
}

/// Items beyond these hardly ever reach the threshold.
pub(crate) const MOST_PROMISING: usize = 1000;
const HALVINGS: usize = 20;

/// The uncalibrated estimate, from transformed paid scores in descending order; variances are taken
/// times `spread`.
pub(crate) fn raw_recall(paid: &[f32], outlook: &Outlook, spread: f64, k: usize) -> f64 {
    let (Some(&highest), Some(&lowest)) = (paid.first(), paid.last()) else { return 0.0 };
    let precision = |&variance: &f32| (1.0 / (f64::from(variance).max(1e-8) * spread).sqrt()) as f32;
    let precisions: Vec<f32> = outlook.variances.iter().map(precision).collect();
    let above = |t: f64| expected_above(&outlook.means, &precisions, t as f32);
    let least_mean = outlook.means.iter().copied().fold(f32::INFINITY, f32::min);
    let (mut low, mut high) = (f64::from(lowest.min(least_mean)), f64::from(highest));
    for _ in 0..HALVINGS {
        let t = 0.5 * (low + high);
        let paid_above = paid.partition_point(|&score| f64::from(score) >= t);
        if paid_above as f64 + above(t) >= k as f64 { low = t } else { high = t }
    }
    (1.0 - above(low) / k as f64).clamp(0.0, (paid.len() as f64 / k as f64).min(1.0))
}

/// Expected number of Gaussians above `t`, of means and one over deviations.
fn expected_above(means: &[f32], precisions: &[f32], t: f32) -> f64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the feature that the function needs was just found.
        return unsafe { expected_above_avx2(means, precisions, t) };
    }
    expected_above_inline(means, precisions, t)
}

/// The same code and the same bits in wider vectors: nothing here is fused.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn expected_above_avx2(means: &[f32], precisions: &[f32], t: f32) -> f64 {
    expected_above_inline(means, precisions, t)
}

// Iterators with closures would not be compiled with the feature.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn expected_above_inline(means: &[f32], precisions: &[f32], t: f32) -> f64 {
    const LANES: usize = 8;
    let (mean_chunks, mean_rest) = means.as_chunks::<LANES>();
    let (chunks, rest) = precisions.as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for (mean, precision) in mean_chunks.iter().zip(chunks) {
        for lane in 0..LANES {
            sums[lane] += normal_cdf((mean[lane] - t) * precision[lane]);
        }
    }
    let whole: f64 = sums.iter().map(|&sum| f64::from(sum)).sum();
    whole + mean_rest.iter().zip(rest).map(|(mean, x)| f64::from(normal_cdf((mean - t) * x))).sum::<f64>()
}

/// The normal distribution function, to within 3e-7 (Abramowitz and Stegun 26.2.17), without branches.
#[inline(always)]
fn normal_cdf(x: f32) -> f32 {
    let distance = x.abs();
    let t = 1.0 / (1.0 + 0.231_641_9 * distance);
    let series = 1.781_477_9 + t * (-1.821_255_9 + t * 1.330_274_5);
    let series = t * (0.319_381_53 + t * (-0.356_563_78 + t * series));
    let tail = 0.398_942_3 * fast_exp(-0.5 * distance * distance) * series;
    if x > 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_at_known_points() {
        for (x, value) in [(0.0f32, 0.5f32), (1.0, 0.841_344_7), (-1.959_964, 0.025), (3.0, 0.998_650_1)] {
            assert!((normal_cdf(x) - value).abs() < 3e-7, "{x}: {}", normal_cdf(x));
        }
        assert_eq!(normal_cdf(40.0), 1.0);
        assert!(normal_cdf(-40.0) < 1e-30);
    }

    #[test]
    fn nothing_left_above_the_paid_means_full_recall() {
        let outlook = Outlook { means: vec![-50.0; 20], variances: vec![1.0; 20], surprise: 1.0 };
        assert!(raw_recall(&[3.0, 2.0, 1.0], &outlook, 1.0, 2) > 0.999);
        // As many unpaid ones as paid ones, all alike: half is found.
        let outlook = Outlook { means: vec![1.0; 4], variances: vec![1e-6; 4], surprise: 1.0 };
        let recall = raw_recall(&[1.0, 1.0, 1.0, 1.0], &outlook, 1.0, 4);
        assert!(recall < 0.6, "{recall}");
        assert_eq!(raw_recall(&[], &outlook, 1.0, 4), 0.0);
        // One paid score cannot be more than half of a top two.
        let nothing = Outlook { means: vec![], variances: vec![], surprise: 1.0 };
        assert!(raw_recall(&[9.0], &nothing, 1.0, 2) <= 0.5);
    }
}
