//! Standardising: mean 0 and deviation 1.

/// The line that standardises some values.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Standard {
    pub(crate) mean: f64,
    /// One over the deviation; 0 for a constant, which becomes zeros.
    pub(crate) scale: f64,
}

impl Standard {
    pub(crate) fn of(values: &[f32]) -> Self {
        // Four sums at a time: one alone would wait for itself.
        let sum_of = |term: &dyn Fn(f64) -> f64| {
            let (chunks, rest) = values.as_chunks::<4>();
            let mut sums = [0.0f64; 4];
            for chunk in chunks {
                sums.iter_mut().zip(chunk).for_each(|(sum, &value)| *sum += term(f64::from(value)));
            }
            sums.iter().sum::<f64>() + rest.iter().map(|&value| term(f64::from(value))).sum::<f64>()
        };
        let count = values.len().max(1) as f64;
        let mean = sum_of(&|value| value) / count;
        let square = sum_of(&|value| (value - mean).powi(2)) / count;
        Standard { mean, scale: if square > 0.0 { 1.0 / square.sqrt() } else { 0.0 } }
    }

    pub(crate) fn apply(&self, value: f32) -> f32 {
        ((f64::from(value) - self.mean) * self.scale) as f32
    }

    pub(crate) fn apply_all(&self, values: &mut [f32]) {
        values.iter_mut().for_each(|value| *value = self.apply(*value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_mean_zero_and_deviation_one() {
        let mut values = vec![1.0, 2.0, 3.0, 4.0, 10.0];
        Standard::of(&values).apply_all(&mut values);
        let again = Standard::of(&values);
        assert!(again.mean.abs() < 1e-6 && (again.scale - 1.0).abs() < 1e-6);
        let mut constant = vec![7.0; 3];
        Standard::of(&constant).apply_all(&mut constant);
        assert_eq!(constant, [0.0; 3]);
        assert_eq!(Standard::of(&[]), Standard { mean: 0.0, scale: 0.0 });
    }
}
