//! Items that come after the fit.
//!
//! A new item's anchor scores are one more column of the anchor rows. Everything that a fit computes of
//! a column is linear in it once the other items' part of the fit (the kernel on queries, beta, the left
//! singular vectors, the principal axes) is taken as it is: so a new item's numbers are a few small
//! products. What stays behind is those parts: they were fitted without the new items.

use std::sync::Arc;

use super::Posterior;
use super::covariance::{Covariance, CovarianceMaps, item_noise};
use super::prior::{Prior, VectorPrior};
use super::prior_fit::{VectorMaps, own_weights, raw_rows, subtract_means};
use super::regression::Regression;
use crate::anchors::{centred, column_means};
use crate::linalg::{Dense, product, product_nt, product_tn};
use crate::{Error, Result};

/// From the anchor scores (and the vector) of an item to its numbers.
pub(crate) struct AnchorMaps {
    pub(crate) vectors: Option<(VectorMaps, Arc<Dense>)>,
    pub(crate) covariance: CovarianceMaps,
    /// How each anchor's weights of the prior's terms differ.
    pub(crate) effects: Dense,
}

impl AnchorMaps {
    /// `vectors` come with the vectors of the anchor queries.
    pub(crate) fn new(
        vectors: Option<(VectorMaps, Arc<Dense>)>,
        covariance: CovarianceMaps,
        effects: Dense,
    ) -> Self {
        AnchorMaps { vectors, covariance, effects }
    }

    pub(crate) fn anchors(&self) -> usize {
        self.effects.rows()
    }
}

impl Posterior {
    /// With more items: their anchor scores (anchors x new items, the anchors in the order of the fit)
    /// and, where it was fitted with vectors, their vectors.
    ///
    /// ```
    /// use loxia_search::{AnchorSet, Method, Posterior, PosteriorSettings, linalg::Dense};
    /// let scores = Dense::from_fn(8, 40, |row, col| ((row + 2) * col % 11) as f32);
    /// let anchors = AnchorSet::new(scores.clone().into(), None).unwrap();
    /// let posterior = Posterior::fit(&anchors, PosteriorSettings::default()).unwrap();
    /// let grown = posterior.with_items(&scores.select_cols(&[3, 5]), None).unwrap();
    /// assert_eq!(grown.items(), 42);
    /// ```
    pub fn with_items(&self, scores: &Dense, vectors: Option<&Dense>) -> Result<Self> {
        self.check_new_items(scores, vectors)?;
        let mut rows = scores.clone();
        rows.values_mut().iter_mut().for_each(|score| *score = self.transform.apply(*score));
        let means = match (vectors, self.prior.column_means.as_column()) {
            // As for the first ones: see `means_of` of the fit.
            (Some(_), [first, rest @ ..]) if !rest.is_empty() && rest.iter().all(|mean| mean == first) => {
                vec![*first; rows.cols()]
            }
            _ => column_means(&rows),
        };
        let rows = centred(&rows, &means);
        // The new items as a prior of their own: the same beta, levels and standards.
        let mut new = Prior {
            column_means: crate::plane::Plane::column(means),
            mean_standard: self.prior.mean_standard,
            vectors: None,
            weights: self.prior.weights.clone(),
            effects: self.prior.effects.clone(),
            variance: self.prior.variance.clone(),
        };
        let mut residuals = rows.clone();
        let dual_and_predicted = match (&self.maps.vectors, vectors) {
            (Some((maps, queries)), Some(vectors)) => {
                Some((maps, product_nt(queries, vectors), product(&maps.regression.cross_fit, &rows)))
            }
            _ => None,
        };
        for anchor in 0..residuals.rows() {
            let own = own_weights(&new.weights, self.maps.effects.row(anchor));
            let mean = match &dual_and_predicted {
                Some((maps, dual, predicted)) => new.mean_with_vectors(
                    &own,
                    dual.row(anchor),
                    &maps.dual[anchor],
                    predicted.row(anchor).to_vec(),
                ),
                None => new.mean_without_vectors(&own),
            };
            subtract_means(residuals.row_mut(anchor), &mean, &new);
        }
        let mut evidence = residuals;
        if let Some(raw) = raw_rows(&rows, &self.settings) {
            evidence.append_rows(&raw);
        }
        let factors = product_tn(&evidence, &self.maps.covariance.to_factors);
        let noise = item_noise(&evidence, rows.rows(), &factors);
        let old = &self.prior;
        new.column_means = appended(&old.column_means, new.column_means.as_column().to_vec())?;
        new.vectors = match (&old.vectors, &self.maps.vectors, vectors) {
            (Some(part), Some((maps, _)), Some(vectors)) => Some(VectorPrior {
                item_vectors: part.item_vectors.with_rows(vectors),
                regression: Regression {
                    query_mean: part.regression.query_mean.clone(),
                    units: part.regression.units.clone(),
                    basis: part.regression.basis.clone(),
                    items: part.regression.items.with_rows(&product_tn(&rows, &maps.regression.to_items)),
                    width: part.regression.width,
                },
            }),
            _ => None,
        };
        let directions = match (&self.covariance.directions, &self.maps.covariance.axes, vectors) {
            (Some(directions), Some(axes), Some(vectors)) => {
                Some(directions.with_rows(&axes.directions(vectors)))
            }
            _ => None,
        };
        let covariance = Covariance {
            factors: self.covariance.factors.with_rows(&factors),
            directions,
            noise: appended(&self.covariance.noise, noise)?,
        };
        Ok(Posterior { prior: Arc::new(new), covariance: Arc::new(covariance), ..self.clone() })
    }

    /// The vectors it was fitted with, if there are any: of the anchor queries, and of the first `items`.
    pub(crate) fn stored_vectors(&self, items: usize) -> Option<(Arc<Dense>, Arc<Dense>)> {
        let (_, queries) = self.maps.vectors.as_ref()?;
        let vectors = &self.prior.vectors.as_ref()?.item_vectors;
        let rows: Vec<usize> = (0..items.min(vectors.rows())).collect();
        Some((queries.clone(), Arc::new(vectors.select_rows(&rows))))
    }

    fn check_new_items(&self, scores: &Dense, vectors: Option<&Dense>) -> Result<()> {
        let anchors = self.maps.anchors();
        if scores.rows() != anchors {
            return Err(Error::Shape {
                what: "matrix of the new items' anchor scores",
                found_rows: scores.rows(),
                found_cols: scores.cols(),
                expected: format!("{anchors} rows, one for each anchor of the fit, in its order"),
            });
        }
        scores.check_size("anchor scores of new items", crate::anchors::LARGEST)?;
        let Some(part) = &self.prior.vectors else { return Ok(()) };
        let Some(vectors) = vectors else {
            return Err(Error::Missing {
                method: "posterior",
                what: "the vectors of the new items",
                advice: "it was fitted with item vectors: encode the new items the same way",
            });
        };
        let width = part.item_vectors.cols();
        if (vectors.rows(), vectors.cols()) != (scores.cols(), width) {
            return Err(Error::Shape {
                what: "matrix of the new items' vectors",
                found_rows: vectors.rows(),
                found_cols: vectors.cols(),
                expected: format!("{} x {width}", scores.cols()),
            });
        }
        vectors.check_size("vectors of new items", crate::anchors::LARGEST)
    }
}

fn appended(column: &crate::plane::Plane, values: Vec<f32>) -> Result<crate::plane::Plane> {
    Ok(column.with_rows(&Dense::new(values.len(), 1, values)?))
}
