//! Fitting the prior on anchor rows.

use super::effects::Effects;
use super::levels::LevelVariance;
use super::prior::{KNOTS, Prior, VectorPrior, WITH_VECTORS, WITHOUT_VECTORS};
use super::regression::{Regression, RegressionMaps};
use super::standard::Standard;
use super::{PosteriorSettings, Transform};
use crate::anchors::column_means;
use crate::linalg::{Cholesky, Dense, product, product_nt};
use crate::method::best_positions;
use crate::plane::Plane;
use crate::{AnchorSet, Result};

/// Items whose terms are multiplied at a time: they stay in the cache.
const BLOCK: usize = 2048;

/// A fitted prior and what else the fit learned.
pub(crate) struct FittedPrior {
    pub(crate) prior: Prior,
    /// What the prior, with each anchor's own weights, leaves of its row; below, where the settings say so, the
    /// rows themselves with less weight.
    pub(crate) evidence: Dense,
    /// How each anchor's weights differ: anchors x terms.
    pub(crate) anchor_effects: Dense,
    /// Where there are vectors, what items that come later need.
    pub(crate) vectors: Option<VectorMaps>,
}

/// From an item's anchor scores and vector to the anchors' terms for it.
pub(crate) struct VectorMaps {
    pub(crate) regression: RegressionMaps,
    /// How each anchor's dual-encoder scores are standardised.
    pub(crate) dual: Vec<Standard>,
}

/// The dual encoder's scores of the anchors, and their cross-fitted predictions.
struct AnchorTerms {
    dual: Dense,
    standards: Vec<Standard>,
    predicted: Dense,
}

impl Prior {
    pub(crate) fn fit(
        anchors: &AnchorSet,
        transform: &Transform,
        settings: &PosteriorSettings,
    ) -> Result<FittedPrior> {
        let scores = &anchors.rows().scores;
        let mut rows = (**scores).clone();
        rows.values_mut().iter_mut().for_each(|score| *score = transform.apply(*score));
        let means = means_of(&rows, anchors.item_vectors().is_some());
        for row in 0..rows.rows() {
            rows.row_mut(row).iter_mut().zip(&means).for_each(|(value, mean)| *value -= mean);
        }
        let (mut vectors, mut terms, mut maps) = (None, None, None);
        if let (Some(queries), Some(items)) = (&anchors.rows().vectors, anchors.item_vectors()) {
            let (regression, regression_maps) = Regression::fit(&rows, queries, settings)?;
            let dual = product_nt(queries, items);
            let standards: Vec<Standard> = (0..dual.rows()).map(|row| Standard::of(dual.row(row))).collect();
            let predicted = product(&regression_maps.cross_fit, &rows);
            maps = Some(VectorMaps { regression: regression_maps, dual: standards.clone() });
            terms = Some(AnchorTerms { dual, standards, predicted });
            vectors = Some(VectorPrior { item_vectors: Plane::half(items), regression });
        }
        let mean_standard = Standard::of(&means);
        let standard_means: Vec<f32> = means.iter().map(|&mean| mean_standard.apply(mean)).collect();
        let equations = normal_equations(scores, &rows, &standard_means, terms.as_ref(), settings);
        let weights = fit_weights(&equations)?;
        // Without vectors no term knows the query: there is nothing to trust more or less.
        let share = if terms.is_some() { settings.query_effects } else { 0.0 };
        let Effects { root, of_anchors } = Effects::fit(&equations, &weights, share)?;
        let mut prior = Prior {
            column_means: Plane::column(means),
            mean_standard,
            vectors,
            weights,
            effects: root,
            variance: LevelVariance::default().table(),
        };
        let mut levels = LevelVariance::default();
        let raw = raw_rows(&rows, settings);
        let mut residuals = rows;
        for anchor in 0..residuals.rows() {
            let own = own_weights(&prior.weights, of_anchors.row(anchor));
            let residual = residuals.row_mut(anchor);
            subtract_means(residual, &prior.anchor_mean(&own, terms.as_ref(), anchor), &prior);
            let mean = prior.anchor_mean(&prior.weights, terms.as_ref(), anchor);
            let level = Standard::of(&mean);
            levels.add(mean.iter().map(|&mean| level.apply(mean)), residual);
        }
        prior.variance = levels.table();
        let mut evidence = residuals;
        if let Some(raw) = raw {
            evidence.append_rows(&raw);
        }
        Ok(FittedPrior { prior, evidence, anchor_effects: of_anchors, vectors: maps })
    }

    fn anchor_mean(&self, weights: &[f32], terms: Option<&AnchorTerms>, anchor: usize) -> Vec<f32> {
        match terms {
            Some(terms) => self.mean_with_vectors(
                weights,
                terms.dual.row(anchor),
                &terms.standards[anchor],
                terms.predicted.row(anchor).to_vec(),
            ),
            None => self.mean_without_vectors(weights),
        }
    }
}

/// Column means. One row, or rows that are all alike, would be explained by these to the last bit, and nothing would be
/// left for item vectors to explain: where there are such, the mean over all items stands for each.
fn means_of(rows: &Dense, with_vectors: bool) -> Vec<f32> {
    let means = column_means(rows);
    let alike = (1..rows.rows()).all(|row| rows.row(row) == rows.row(0));
    if !(with_vectors && alike) {
        return means;
    }
    let sum: f64 = means.iter().map(|&mean| f64::from(mean)).sum();
    vec![(sum / means.len().max(1) as f64) as f32; means.len()]
}

/// Weight of the anchors' rows in the covariance beside their residuals.
const RAW_WEIGHT: f32 = 0.3;

/// Centred rows as further evidence for the covariance, where the prior is not trusted in full.
pub(super) fn raw_rows(rows: &Dense, settings: &PosteriorSettings) -> Option<Dense> {
    (settings.prior_trust < 1.0).then(|| {
        let mut raw = rows.clone();
        raw.values_mut().iter_mut().for_each(|value| *value *= RAW_WEIGHT.sqrt());
        raw
    })
}

/// An anchor's own weights.
pub(super) fn own_weights(weights: &[f32], effects: &[f32]) -> Vec<f32> {
    weights.iter().zip(effects).map(|(weight, own)| weight + own).collect()
}

/// Takes the means off centred scores.
pub(super) fn subtract_means(centred: &mut [f32], means: &[f32], prior: &Prior) {
    let parts = means.iter().zip(prior.column_means.as_column());
    centred.iter_mut().zip(parts).for_each(|(value, (mean, column))| *value -= mean - column);
}

/// The normal equations of each anchor, its top items weighing more; the targets are the last row and column.
fn normal_equations(
    scores: &Dense,
    rows: &Dense,
    standard_means: &[f32],
    terms: Option<&AnchorTerms>,
    settings: &PosteriorSettings,
) -> Vec<Dense<f64>> {
    let (items, top_count) = (scores.cols(), settings.top_count.min(scores.cols() / 4));
    let size = if terms.is_some() { WITH_VECTORS } else { WITHOUT_VECTORS };
    // The root of the weight goes on both sides of the normal equations.
    let root = settings.top_weight.sqrt() as f32;
    let mut roots = vec![1.0f32; items];
    let mut equations = Vec::with_capacity(rows.rows());
    for anchor in 0..rows.rows() {
        let top = best_positions(scores.row(anchor), top_count, |_| false);
        top.iter().for_each(|&item| roots[item as usize] = root);
        let mut gram = Dense::<f64>::zeros(size + 1, size + 1);
        for start in (0..items).step_by(BLOCK) {
            let block = start..items.min(start + BLOCK);
            let mut columns = Dense::zeros(size + 1, block.len());
            write_terms(&mut columns, &standard_means[block.clone()], |d, z| {
                if let Some(terms) = terms {
                    d.copy_from_slice(&terms.dual.row(anchor)[block.clone()]);
                    terms.standards[anchor].apply_all(d);
                    z.copy_from_slice(&terms.predicted.row(anchor)[block.clone()]);
                }
            });
            columns.row_mut(size).copy_from_slice(&rows.row(anchor)[block.clone()]);
            for row in 0..=size {
                let weighted = columns.row_mut(row).iter_mut().zip(&roots[block.clone()]);
                weighted.for_each(|(value, root)| *value *= root);
            }
            let products = product_nt(&columns, &columns);
            gram.values_mut().iter_mut().zip(products.values()).for_each(|(sum, &x)| *sum += f64::from(x));
        }
        top.iter().for_each(|&item| roots[item as usize] = 1.0);
        equations.push(gram);
    }
    equations
}

/// Least squares over all anchor pairs.
fn fit_weights(equations: &[Dense<f64>]) -> Result<Vec<f32>> {
    let size = equations.first().map_or(0, |gram| gram.rows() - 1);
    let mut sum = Dense::<f64>::zeros(size + 1, size + 1);
    for gram in equations {
        sum.values_mut().iter_mut().zip(gram.values()).for_each(|(sum, value)| *sum += value);
    }
    let right = (0..size).map(|term| sum[(term, size)]).collect();
    let mut left = Dense::from_fn(size, size, |row, col| sum[(row, col)]);
    let trace: f64 = (0..size).map(|i| left[(i, i)]).sum();
    left.add_diagonal(1e-6 * trace / size as f64 + f64::MIN_POSITIVE);
    let weights = Cholesky::new(&left)?.solve(&Dense::new(size, 1, right)?);
    Ok(weights.values().iter().map(|&weight| weight as f32).collect())
}

/// The terms of the prior mean, one a row; `vectors` fills d and z.
fn write_terms(columns: &mut Dense, means: &[f32], vectors: impl FnOnce(&mut [f32], &mut [f32])) {
    columns.row_mut(0).fill(1.0);
    columns.row_mut(1).copy_from_slice(means);
    if columns.rows() <= WITH_VECTORS {
        return;
    }
    let (mut dual, mut predicted) = (vec![0.0; means.len()], vec![0.0; means.len()]);
    vectors(&mut dual, &mut predicted);
    columns.row_mut(2).copy_from_slice(&dual);
    for (at, knot) in KNOTS.iter().enumerate() {
        let hinge = columns.row_mut(3 + at).iter_mut();
        hinge.zip(&dual).for_each(|(value, d)| *value = (d - knot).max(0.0));
    }
    let products = columns.row_mut(WITH_VECTORS - 2).iter_mut();
    let factors = dual.iter().zip(means);
    products.zip(factors).for_each(|(value, (d, mean))| *value = mean * (d - 1.0).max(0.0));
    columns.row_mut(WITH_VECTORS - 1).copy_from_slice(&predicted);
}
