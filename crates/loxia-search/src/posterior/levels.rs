//! How far scores stray from the prior mean, as a function of the prior's level in the row.

use super::transform::median;

/// Edges of the bins of the prior's standardised level in which the variance is measured.
const LEVELS: [f32; 14] = [-2.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0];
/// A bin with no more values than this says nothing.
const LEAST_IN_BIN: u64 = 20;

/// Level and variance, ascending in level; between them a straight line.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct VarianceByLevel(Vec<(f32, f32)>);

impl VarianceByLevel {
    pub(crate) fn at(&self, level: f32) -> f32 {
        let table = &self.0;
        let above = table.partition_point(|&(edge, _)| edge < level);
        match (above.checked_sub(1).and_then(|below| table.get(below)), table.get(above)) {
            (Some(&(left, low)), Some(&(right, high))) => {
                low + (high - low) * (level - left) / (right - left)
            }
            (Some(&(_, end)), None) | (None, Some(&(_, end))) => end,
            (None, None) => 0.0,
        }
    }

    /// Whether levels ascend and all numbers are finite, as a fit makes them.
    pub(crate) fn is_sound(&self) -> bool {
        let finite = self.0.iter().all(|(level, variance)| level.is_finite() && variance.is_finite());
        finite && self.0.windows(2).all(|pair| pair[0].0 < pair[1].0)
    }
}

/// Mean squared residual (less the row's median) in bins of the prior's level.
#[derive(Default)]
pub(crate) struct LevelVariance {
    counts: [u64; LEVELS.len() + 1],
    levels: [f64; LEVELS.len() + 1],
    squares: [f64; LEVELS.len() + 1],
}

impl LevelVariance {
    pub(crate) fn add(&mut self, levels: impl Iterator<Item = f32>, residuals: &[f32]) {
        let middle = median(residuals.to_vec());
        for (level, &residual) in levels.zip(residuals) {
            let bin = LEVELS.partition_point(|&edge| edge <= level);
            self.counts[bin] += 1;
            self.levels[bin] += f64::from(level);
            self.squares[bin] += f64::from(residual - middle).powi(2);
        }
    }

    pub(crate) fn table(&self) -> VarianceByLevel {
        let mean = |bins: std::ops::Range<usize>| {
            let count = self.counts[bins.clone()].iter().sum::<u64>().max(1) as f64;
            let level = self.levels[bins.clone()].iter().sum::<f64>() / count;
            (level as f32, (self.squares[bins].iter().sum::<f64>() / count) as f32)
        };
        let full = (0..self.counts.len()).filter(|&bin| self.counts[bin] > LEAST_IN_BIN);
        let table: Vec<(f32, f32)> = full.map(|bin| mean(bin..bin + 1)).collect();
        // A collection too small to fill any bin has one variance for all levels.
        VarianceByLevel(if table.is_empty() { vec![mean(0..self.counts.len())] } else { table })
    }
}
