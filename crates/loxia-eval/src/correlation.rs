//! Correlation of two lists of scores.

/// Spearman's rank correlation, with the mean rank for ties: as `scipy.stats.spearmanr`.
///
/// `None` where it is not defined: fewer than two values, a list of equal values, or values that are not
/// numbers.
///
/// ```
/// assert_eq!(loxia_eval::spearman(&[1.0, 2.0, 3.0], &[10.0, 30.0, 20.0]), Some(0.5));
/// assert_eq!(loxia_eval::spearman(&[1.0, 2.0], &[3.0, 3.0]), None);
/// ```
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() != b.len() || a.len() < 2 || a.iter().chain(b).any(|value| value.is_nan()) {
        return None;
    }
    pearson(&ranks(a), &ranks(b))
}

/// Rank of each value among all, from 1; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    for run in order.chunk_by(|&a, &b| values[a] == values[b]) {
        // Where the run starts is told by how many values are smaller.
        let first = order.partition_point(|&at| values[at] < values[run[0]]);
        let mean = first as f64 + (run.len() + 1) as f64 / 2.0;
        run.iter().for_each(|&at| ranks[at] = mean);
    }
    ranks
}

fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    let count = a.len() as f64;
    let (mean_a, mean_b) = (a.iter().sum::<f64>() / count, b.iter().sum::<f64>() / count);
    let (mut both, mut of_a, mut of_b) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a - mean_a, b - mean_b);
        both += a * b;
        of_a += a * a;
        of_b += b * b;
    }
    let scale = (of_a * of_b).sqrt();
    (scale > 0.0).then(|| (both / scale).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_scipy() {
        // scipy.stats.spearmanr([1, 2, 2, 3, 5], [5, 6, 6, 8, 7]) and ([3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 1, 8])
        let found = spearman(&[1.0, 2.0, 2.0, 3.0, 5.0], &[5.0, 6.0, 6.0, 8.0, 7.0]).unwrap();
        assert!((found - 0.894_736_842_105_263_2).abs() < 1e-12, "{found}");
        let a = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        let b = [2.0, 7.0, 1.0, 8.0, 2.0, 8.0, 1.0, 8.0];
        let found = spearman(&a, &b).unwrap();
        assert!((found - 0.198_853_681_209_924_67).abs() < 1e-9, "{found}");
    }

    #[test]
    fn what_has_no_order_has_no_correlation() {
        assert_eq!(spearman(&[1.0], &[1.0]), None);
        assert_eq!(spearman(&[1.0, f64::NAN], &[1.0, 2.0]), None);
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[1.0, 2.0]), None);
    }
}
