//! The prior: what is believed of a row before any of it is scored.
//!
//! mean_j = mu_j + beta . [1, m_j, d, (d - t)+ for eight knots t, m_j (d - 1)+, z_j]
//!
//! with mu the column mean, m the same standardised over items, d the dual encoder's score
//! standardised over the items of the query, and z the kernel-ridge prediction of the row from the
//! query's vector. beta is fitted on anchor rows with z cross-fitted, an anchor's top items weighing
//! more. Without vectors only the first two terms are left.

use std::sync::Arc;

use super::kernel::{gaussian_of_units, make_unit, unit_rows};
use super::transform::median;
use super::{PosteriorSettings, Transform};
use crate::anchors::{centred, column_means};
use crate::axn::standardised;
use crate::first_stage::query_vector;
use crate::linalg::{Cholesky, Dense, product, product_nt, row_times, times_column};
use crate::method::{QueryView, best_positions};
use crate::{AnchorSet, Result};

const KNOTS: [f32; 8] = [0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0];
const FOLDS: usize = 5;
/// Columns beside the kernel ridge's: constant, mean, d, one a knot, mean times (d - 1)+.
const WITH_VECTORS: usize = 4 + KNOTS.len() + 1;

/// Edges of the bins of the prior's standardised level in which the variance is measured.
const LEVELS: [f32; 14] = [-2.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0];
/// A bin with no more values than this says nothing.
const LEAST_IN_BIN: u64 = 20;

/// Mean and variance of each item's transformed score.
pub(crate) struct Belief {
    pub(crate) mean: Vec<f32>,
    pub(crate) variance: Vec<f32>,
}

pub(crate) struct Prior {
    column_means: Vec<f32>,
    standard_means: Vec<f32>,
    vectors: Option<VectorPart>,
    weights: Vec<f32>,
    /// Level and variance, ascending in level.
    variance: Vec<(f32, f32)>,
}

/// What needs query and item vectors.
struct VectorPart {
    item_vectors: Arc<Dense>,
    query_mean: Vec<f32>,
    /// Unit rows of the centred anchor vectors.
    anchors: Dense,
    /// (K + ridge I)^-1.
    inverse: Dense,
    /// Anchor rows less column means.
    rows: Dense,
    width: f64,
}

impl Prior {
    /// Fits, and returns what the prior leaves of each anchor row.
    pub(crate) fn fit(
        anchors: &AnchorSet,
        transform: &Transform,
        settings: &PosteriorSettings,
    ) -> Result<(Prior, Dense)> {
        let mut scores = (*anchors.rows().scores).clone();
        scores.values_mut().iter_mut().for_each(|score| *score = transform.apply(*score));
        let means = column_means(&scores);
        let rows = centred(&scores, &means);
        let standard_means = standardised(means.clone());
        let mut predicted = Dense::zeros(0, 0);
        let vectors = match (&anchors.rows().vectors, anchors.item_vectors()) {
            (Some(queries), Some(items)) => {
                let query_mean = column_means(queries);
                let units = unit_rows(centred(queries, &query_mean));
                predicted = cross_fitted(&scores, &units, settings)?;
                let inverse = regularised_inverse(&units, settings)?;
                let (item_vectors, width) = (items.clone(), settings.query_width);
                Some(VectorPart {
                    item_vectors,
                    query_mean,
                    anchors: units,
                    inverse,
                    rows: rows.clone(),
                    width,
                })
            }
            _ => None,
        };
        let mut prior =
            Prior { column_means: means, standard_means, vectors, weights: Vec::new(), variance: Vec::new() };
        let features = |prior: &Prior, anchor: usize| match (&prior.vectors, &anchors.rows().vectors) {
            (Some(part), Some(queries)) => {
                let dual = standardised(times_column(&part.item_vectors, queries.row(anchor)));
                prior.features(Some((&dual, predicted.row(anchor))))
            }
            _ => prior.features(None),
        };
        prior.weights = fit_weights(&scores, &rows, settings, |anchor| features(&prior, anchor))?;
        let mut levels = LevelVariance::default();
        let mut residuals = rows;
        for anchor in 0..residuals.rows() {
            let lift = row_times(&prior.weights, &features(&prior, anchor));
            let residual = residuals.row_mut(anchor);
            residual.iter_mut().zip(&lift).for_each(|(value, lift)| *value -= lift);
            let mean: Vec<f32> =
                lift.iter().zip(&prior.column_means).map(|(lift, mean)| lift + mean).collect();
            levels.add(&standardised(mean), residual);
        }
        prior.variance = levels.table();
        Ok((prior, residuals))
    }

    /// The terms of the prior mean, one a row.
    fn features(&self, vectors: Option<(&[f32], &[f32])>) -> Dense {
        let items = self.column_means.len();
        let Some((dual, predicted)) = vectors else {
            return Dense::from_fn(
                2,
                items,
                |row, item| if row == 0 { 1.0 } else { self.standard_means[item] },
            );
        };
        let mut out = Dense::zeros(WITH_VECTORS, items);
        out.row_mut(0).fill(1.0);
        out.row_mut(1).copy_from_slice(&self.standard_means);
        out.row_mut(2).copy_from_slice(dual);
        for (at, knot) in KNOTS.iter().enumerate() {
            let hinge = out.row_mut(3 + at).iter_mut();
            hinge.zip(dual).for_each(|(value, d)| *value = (d - knot).max(0.0));
        }
        let products = out.row_mut(WITH_VECTORS - 2).iter_mut();
        let factors = dual.iter().zip(&self.standard_means);
        products.zip(factors).for_each(|(value, (d, mean))| *value = mean * (d - 1.0).max(0.0));
        out.row_mut(WITH_VECTORS - 1).copy_from_slice(predicted);
        out
    }

    /// Prior mean and variance of every item for a query.
    pub(crate) fn predict(&self, query: &QueryView<'_>) -> Result<Belief> {
        let lift = match &self.vectors {
            Some(part) => {
                let vector = query_vector(query, "posterior", part.item_vectors.cols())?;
                let dual = standardised(times_column(&part.item_vectors, vector));
                row_times(&self.weights, &self.features(Some((&dual, &part.predict(vector)?))))
            }
            None => row_times(&self.weights, &self.features(None)),
        };
        let mean: Vec<f32> = lift.iter().zip(&self.column_means).map(|(lift, mean)| lift + mean).collect();
        let variance = standardised(mean.clone()).into_iter().map(|level| self.variance_at(level)).collect();
        Ok(Belief { mean, variance })
    }

    fn variance_at(&self, level: f32) -> f32 {
        let above = self.variance.partition_point(|&(edge, _)| edge < level);
        match (above.checked_sub(1).and_then(|below| self.variance.get(below)), self.variance.get(above)) {
            (Some(&(left, low)), Some(&(right, high))) => {
                low + (high - low) * (level - left) / (right - left)
            }
            (Some(&(_, end)), None) | (None, Some(&(_, end))) => end,
            (None, None) => 0.0,
        }
    }

    pub(crate) fn items(&self) -> usize {
        self.column_means.len()
    }
}

impl VectorPart {
    /// Kernel-ridge prediction of the row, less column means.
    fn predict(&self, vector: &[f32]) -> Result<Vec<f32>> {
        let mut unit: Vec<f32> =
            vector.iter().zip(&self.query_mean).map(|(value, mean)| value - mean).collect();
        make_unit(&mut unit);
        let kernel = gaussian_of_units(&Dense::new(1, unit.len(), unit)?, &self.anchors, self.width);
        Ok(row_times(product(&kernel, &self.inverse).values(), &self.rows))
    }
}

fn regularised_inverse(units: &Dense, settings: &PosteriorSettings) -> Result<Dense> {
    let mut kernel: Dense<f64> = gaussian_of_units(units, units, settings.query_width).cast();
    kernel.add_diagonal(settings.query_ridge);
    let identity = Dense::from_fn(units.rows(), units.rows(), |row, col| f64::from(u8::from(row == col)));
    Ok(Cholesky::new(&kernel)?.solve(&identity).cast())
}

/// Each anchor's row as predicted by the anchors of the other folds.
fn cross_fitted(scores: &Dense, units: &Dense, settings: &PosteriorSettings) -> Result<Dense> {
    let mut out = Dense::zeros(scores.rows(), scores.cols());
    for fold in 0..FOLDS {
        let (held, kept): (Vec<usize>, Vec<usize>) = (0..scores.rows()).partition(|row| row % FOLDS == fold);
        if held.is_empty() || kept.is_empty() {
            continue;
        }
        let known = units.select_rows(&kept);
        let kernel = gaussian_of_units(&units.select_rows(&held), &known, settings.query_width);
        let hat = product(&kernel, &regularised_inverse(&known, settings)?);
        let rows = scores.select_rows(&kept);
        let means = column_means(&rows);
        let predicted = product(&hat, &centred(&rows, &means));
        for (at, &row) in held.iter().enumerate() {
            out.row_mut(row).copy_from_slice(predicted.row(at));
        }
    }
    Ok(out)
}

/// Least squares over all anchor pairs, an anchor's top items weighing more.
fn fit_weights(
    scores: &Dense,
    rows: &Dense,
    settings: &PosteriorSettings,
    features: impl Fn(usize) -> Dense,
) -> Result<Vec<f32>> {
    let top_count = settings.top_count.min(scores.cols() / 4);
    // The root of the weight goes on both sides of the normal equations.
    let root = settings.top_weight.sqrt() as f32;
    let mut gram = Dense::<f64>::zeros(0, 0);
    let mut right = Vec::new();
    for anchor in 0..rows.rows() {
        let mut terms = features(anchor);
        let mut targets = rows.row(anchor).to_vec();
        for item in best_positions(scores.row(anchor), top_count, |_| false) {
            (0..terms.rows()).for_each(|term| terms[(term, item as usize)] *= root);
            targets[item as usize] *= root;
        }
        let part: Dense<f64> = product_nt(&terms, &terms).cast();
        let sums = times_column(&terms, &targets);
        if anchor == 0 {
            gram = Dense::zeros(terms.rows(), terms.rows());
            right = vec![0.0f64; terms.rows()];
        }
        gram.values_mut().iter_mut().zip(part.values()).for_each(|(sum, value)| *sum += value);
        right.iter_mut().zip(sums).for_each(|(sum, value)| *sum += f64::from(value));
    }
    let size = gram.rows();
    let trace: f64 = (0..size).map(|i| gram[(i, i)]).sum();
    gram.add_diagonal(1e-6 * trace / size as f64 + f64::MIN_POSITIVE);
    let weights = Cholesky::new(&gram)?.solve(&Dense::new(size, 1, right)?);
    Ok(weights.values().iter().map(|&weight| weight as f32).collect())
}

/// Mean squared residual (less the row's median) in bins of the prior's level.
#[derive(Default)]
struct LevelVariance {
    counts: [u64; LEVELS.len() + 1],
    levels: [f64; LEVELS.len() + 1],
    squares: [f64; LEVELS.len() + 1],
}

impl LevelVariance {
    fn add(&mut self, levels: &[f32], residuals: &[f32]) {
        let middle = median(residuals.to_vec());
        for (&level, &residual) in levels.iter().zip(residuals) {
            let bin = LEVELS.partition_point(|&edge| edge <= level);
            self.counts[bin] += 1;
            self.levels[bin] += f64::from(level);
            self.squares[bin] += f64::from(residual - middle).powi(2);
        }
    }

    fn table(&self) -> Vec<(f32, f32)> {
        let mean = |bins: std::ops::Range<usize>| {
            let count = self.counts[bins.clone()].iter().sum::<u64>().max(1) as f64;
            let level = self.levels[bins.clone()].iter().sum::<f64>() / count;
            (level as f32, (self.squares[bins].iter().sum::<f64>() / count) as f32)
        };
        let full = (0..self.counts.len()).filter(|&bin| self.counts[bin] > LEAST_IN_BIN);
        let table: Vec<(f32, f32)> = full.map(|bin| mean(bin..bin + 1)).collect();
        // A collection too small to fill any bin has one variance for all levels.
        if table.is_empty() { vec![mean(0..self.counts.len())] } else { table }
    }
}
