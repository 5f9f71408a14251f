//! Intervals of true recall around an estimate: short ones, that together hold 90 %.

/// Costs that part the groups in which intervals are made. Errors shrink as more is paid, so that a wide group holds
/// too little at its lower end.
pub(super) const COST_GROUPS: [usize; 6] = [45, 90, 140, 190, 275, 375];
/// Held-out rows for each bin of a group: the shortest interval of fewer holds less of other queries than of those it
/// was made of (with 60 rows in 12 bins, 71 to 84 % of the recalls of others at k = 50 and 100).
const ROWS_OF_BIN: usize = 50;
/// What intervals hold.
const COVERED: f64 = 0.9;
/// How much more or less than that a bin is made to hold at most, to make up for others.
const MADE_UP: f64 = 0.15;

/// For each group of costs, bins ascending in the estimate.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Intervals([Vec<IntervalBin>; COST_GROUPS.len() + 1]);

/// Where true recalls lay for estimates up to an edge.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
struct IntervalBin {
    edge: f64,
    low: f64,
    high: f64,
}

impl Intervals {
    /// From cost, estimate and true recall in the searches of so many held-out rows.
    pub(crate) fn fit(moments: &[(usize, f64, f64)], rows: usize) -> Self {
        let bins = rows.div_ceil(ROWS_OF_BIN);
        Intervals(std::array::from_fn(|group| {
            let of_group = moments.iter().filter(|&&(cost, ..)| cost_group(cost) == group);
            interval_bins(of_group.map(|&(_, estimate, truth)| (estimate, truth)).collect(), bins)
        }))
    }

    /// The interval around an estimate.
    pub(crate) fn around(&self, estimate: f64, cost: usize) -> (f64, f64) {
        let bins = &self.0[cost_group(cost)];
        let bin = bins.get(bins.partition_point(|bin| bin.edge < estimate).min(bins.len().saturating_sub(1)));
        let (low, high) = bin.map_or((0.0, 1.0), |bin| (bin.low, bin.high));
        (low.min(estimate), high.max(estimate))
    }

    /// Whether the numbers are as a fit makes them.
    pub(crate) fn is_sound(&self) -> bool {
        let share = |value: f64| (0.0..=1.0).contains(&value);
        self.0.iter().flatten().all(|bin| bin.edge.is_finite() && share(bin.low) && share(bin.high))
    }
}

pub(super) fn cost_group(cost: usize) -> usize {
    COST_GROUPS.partition_point(|&edge| edge <= cost)
}

/// Bins of equal count by estimate, each with a short interval of true recalls.
///
/// Recalls of a small top take few values, so that no interval of a bin may hold just the wanted share:
/// what one bin holds too much or too little, the next make up for. Highest estimates come first, as
/// nearly all of their recalls may be the same.
fn interval_bins(mut moments: Vec<(f64, f64)>, bins: usize) -> Vec<IntervalBin> {
    moments.sort_by(|a, b| b.0.total_cmp(&a.0));
    let size = moments.len().div_ceil(bins.max(1)).max(1);
    let mut owed = 0.0f64;
    let bins = moments.chunks(size).map(|bin| {
        let mut truths: Vec<f64> = bin.iter().map(|&(_, truth)| truth).collect();
        truths.sort_by(f64::total_cmp);
        let count = truths.len() as f64;
        let most = MADE_UP * count;
        let (low, high) = interval_holding(&truths, COVERED * count + owed.clamp(-most, most));
        // As it is given, with the estimate in it.
        let held = bin.iter().filter(|&&(at, truth)| low.min(at) <= truth && truth <= high.max(at));
        owed += COVERED * count - held.count() as f64;
        IntervalBin { edge: bin[0].0, low, high }
    });
    let mut bins: Vec<IntervalBin> = bins.collect();
    bins.reverse();
    bins
}

/// The interval that holds a number of ascending values nearest to `wanted`, of the shortest ones for
/// their number.
fn interval_holding(values: &[f64], wanted: f64) -> (f64, f64) {
    let enough = (wanted.ceil().max(1.0) as usize).min(values.len());
    let windows = values.windows(enough).map(|window| (window[0], window[enough - 1]));
    let Some((low, high)) = windows.min_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0))) else {
        return (0.0, 1.0);
    };
    let held = |low: f64, high: f64| {
        values.partition_point(|&value| value <= high) - values.partition_point(|&value| value < low)
    };
    let whole = (held(low, high), low, high);
    // The most that a strictly shorter interval holds.
    let mut shorter = (0, low, low);
    let mut start = 0;
    for (end, &last) in values.iter().enumerate() {
        while last - values[start] >= high - low && start < end {
            start += 1;
        }
        if last - values[start] < high - low && end + 1 - start > shorter.0 {
            shorter = (end + 1 - start, values[start], last);
        }
    }
    let distance = |held: usize| (held as f64 - wanted).abs();
    let (_, low, high) =
        if shorter.0 > 0 && distance(shorter.0) < distance(whole.0) { shorter } else { whole };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_the_number_nearest_to_the_wanted() {
        let values: Vec<f64> = (0..100).map(|at| f64::from(at) / 100.0).collect();
        let (low, high) = interval_holding(&values, 90.0);
        assert!((high - low - 0.89).abs() < 1e-9);
        // Nine in ten are 1: the next longer interval would hold all.
        let mut values = vec![0.8, 0.9, 0.9];
        values.extend([1.0; 27]);
        assert_eq!(interval_holding(&values, 27.3), (1.0, 1.0));
        assert_eq!(interval_holding(&values, 28.9), (0.9, 1.0));
        // All alike: there is no shorter interval, and none that holds fewer.
        assert_eq!(interval_holding(&[1.0; 10], 3.0), (1.0, 1.0));
        assert_eq!(interval_holding(&[0.5], 0.9), (0.5, 0.5));
    }

    #[test]
    fn bins_together_hold_the_wanted_share_of_recalls_that_take_few_values() {
        // The higher the estimate, the more often all ten are found.
        let moments: Vec<(f64, f64)> = (0..4800)
            .map(|at| {
                let all = f64::from(at) / 4800.0;
                let luck = f64::from(at * 7919 % 4800) / 4800.0;
                let missed = if luck < all { 0 } else { 1 + (at * 31 % 3) };
                (0.8 + 0.2 * all, 1.0 - f64::from(missed) / 10.0)
            })
            .collect();
        let bins = interval_bins(moments.clone(), 12);
        assert_eq!(bins.len(), 12);
        assert!(bins.windows(2).all(|pair| pair[0].edge < pair[1].edge));
        let inside = moments.iter().filter(|&&(estimate, truth)| {
            let bin = bins[bins.partition_point(|bin| bin.edge < estimate)];
            (bin.low.min(estimate)..=bin.high.max(estimate)).contains(&truth)
        });
        let share = inside.count() as f64 / moments.len() as f64;
        assert!((share - COVERED).abs() < 0.02, "{share}");
    }

    #[test]
    fn few_rows_make_few_bins() {
        let moments: Vec<(usize, f64, f64)> =
            (0..600).map(|at| (100, f64::from(at) / 600.0, f64::from(at % 10) / 10.0)).collect();
        let bins = |rows| Intervals::fit(&moments, rows).0.map(|group| group.len());
        assert_eq!(bins(10), [0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(bins(300), [0, 0, 6, 0, 0, 0, 0]);
        let (low, high) = Intervals::fit(&moments, 10).around(0.5, 100);
        assert!(low <= 0.5 && high >= 0.5 && high - low >= 0.8, "{low} to {high}");
        // Nothing is known of other costs.
        assert_eq!(Intervals::fit(&moments, 10).around(0.5, 400), (0.0, 1.0));
    }
}
