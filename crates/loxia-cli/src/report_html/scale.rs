//! From values to places on the page, and round numbers to mark on the way.

/// A straight or logarithmic map from values to pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    values: (f64, f64),
    pixels: (f64, f64),
    log: bool,
}

impl Scale {
    /// Maps `values` to `pixels`; a logarithmic scale needs values above 0 and is straight without them.
    pub(super) fn new(values: (f64, f64), pixels: (f64, f64), log: bool) -> Self {
        let log = log && values.0 > 0.0 && values.1 > 0.0;
        // One value alone stands in the middle.
        let values = if values.0 == values.1 { (values.0 * 0.5 - 0.5, values.1 * 1.5 + 0.5) } else { values };
        Scale { values, pixels, log: log && values.0 > 0.0 }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        let place = |x: f64| if self.log { x.max(f64::MIN_POSITIVE).ln() } else { x };
        let (low, high) = (place(self.values.0), place(self.values.1));
        let share = (place(value) - low) / (high - low);
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }
}

/// About `wanted` round numbers from `low` to `high`: steps of 1, 2 or 5 times a power of ten.
pub(super) fn round_ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let span = high - low;
    if !span.is_finite() || span <= 0.0 {
        return vec![low];
    }
    let rough = span / wanted.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|&step| step >= rough * 0.999);
    let step = step.unwrap_or(power * 10.0);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|i| i as f64 * step).collect()
}

/// Moves places apart to at least `gap`, keeping their order and staying below `bottom`.
pub(super) fn spread(places: &[f64], gap: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|&a, &b| places[a].total_cmp(&places[b]));
    let mut out = places.to_vec();
    for pair in 1..order.len() {
        let (above, below) = (order[pair - 1], order[pair]);
        out[below] = out[below].max(out[above] + gap);
    }
    let mut limit = bottom;
    for &place in order.iter().rev() {
        out[place] = out[place].min(limit);
        limit = out[place] - gap;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_hit_their_ends() {
        let log = Scale::new((50.0, 500.0), (0.0, 100.0), true);
        assert!((log.at(50.0)).abs() < 1e-9 && (log.at(500.0) - 100.0).abs() < 1e-9);
        assert!((log.at(158.113_883) - 50.0).abs() < 1e-6);
        let single = Scale::new((7.0, 7.0), (0.0, 100.0), false);
        assert!((0.0..=100.0).contains(&single.at(7.0)));
    }

    #[test]
    fn ticks_are_round_and_labels_apart() {
        assert_eq!(round_ticks(0.0, 1.0, 5), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(round_ticks(3.0, 3.0, 5), [3.0]);
        let moved = spread(&[90.0, 10.0, 91.0, 12.0], 10.0, 95.0);
        assert_eq!(moved, [85.0, 10.0, 95.0, 20.0]);
    }
}
