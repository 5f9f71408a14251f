//! The prior: what is believed of a row before any of it is scored.
//!
//! mean_j = mu_j + beta . [1, m_j, d, (d - t)+ for eight knots t, m_j (d - 1)+, z_j]
//!
//! with mu the column mean, m the same standardised over items, d the dual encoder's score
//! standardised over the items of the query, and z the kernel-ridge prediction of the row from the
//! query's vector. beta is fitted on anchor rows with z cross-fitted, an anchor's top items weighing
//! more (`prior_fit`); a query's own weights differ from it (`effects`). Without vectors only the first two terms
//! are left.

use super::levels::VarianceByLevel;
use super::regression::Regression;
use super::standard::Standard;
use crate::Result;
use crate::first_stage::query_vector;
use crate::linalg::{Dense, row_times};
use crate::method::QueryView;
use crate::plane::Plane;
use crate::spare;

pub(crate) const KNOTS: [f32; 8] = [0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0];
/// Terms with vectors: constant, mean, d, one a knot, mean times (d - 1)+, z.
pub(crate) const WITH_VECTORS: usize = KNOTS.len() + 5;
/// Terms without: constant and mean.
pub(crate) const WITHOUT_VECTORS: usize = 2;

/// What is believed of each item's transformed score: its mean, and by the mean's level in the row its
/// variance.
pub(crate) struct Belief {
    pub(crate) mean: Vec<f32>,
    pub(crate) level: Standard,
    /// What depends on the query among the terms.
    own: Option<OwnTerms>,
}

impl Belief {
    /// The dual encoder's score of every item, and the deviation of prior means for each one that it is higher.
    pub(crate) fn dual(&self) -> Option<(&[f32], f32)> {
        let own = self.own.as_ref()?;
        let rate = if self.level.scale > 0.0 { own.standard.scale / self.level.scale } else { 0.0 };
        Some((&own.dual, rate as f32))
    }

    /// Keeps its memory for the next one.
    pub(crate) fn end(&mut self) {
        let own = self.own.take().map(|own| [own.dual, own.predicted]);
        own.into_iter().flatten().chain([std::mem::take(&mut self.mean)]).for_each(spare::give);
    }
}

/// Terms that depend on a query, of every item.
struct OwnTerms {
    /// The dual encoder's score, and how it is standardised.
    dual: Vec<f32>,
    standard: Standard,
    /// z.
    predicted: Vec<f32>,
}

pub(crate) struct Prior {
    pub(crate) column_means: Plane,
    pub(crate) mean_standard: Standard,
    pub(crate) vectors: Option<VectorPrior>,
    /// beta.
    pub(crate) weights: Vec<f32>,
    /// Root of the covariance of a query's own weights, terms x terms.
    pub(crate) effects: Dense,
    pub(crate) variance: VarianceByLevel,
}

/// What needs query and item vectors.
pub(crate) struct VectorPrior {
    pub(crate) item_vectors: Plane,
    pub(crate) regression: Regression,
}

impl VectorPrior {
    fn vector<'a>(&self, query: &QueryView<'a>) -> Result<&'a [f32]> {
        query_vector(query, "posterior", self.item_vectors.cols())
    }

    /// The dual encoder's score of every item.
    pub(crate) fn dual_scores(&self, query: &QueryView<'_>) -> Result<Vec<f32>> {
        Ok(self.item_vectors.dots(self.vector(query)?))
    }
}

impl Prior {
    /// Prior mean of every item for a query.
    pub(crate) fn predict(&self, query: &QueryView<'_>) -> Result<Belief> {
        let own = match &self.vectors {
            Some(part) => {
                let dual = part.dual_scores(query)?;
                let standard = Standard::of(&dual);
                Some(OwnTerms { dual, standard, predicted: part.regression.predict(part.vector(query)?)? })
            }
            None => None,
        };
        let mean = match &own {
            Some(own) => {
                self.mean_with_vectors(&self.weights, &own.dual, &own.standard, spare::copy(&own.predicted))
            }
            None => self.mean_without_vectors(&self.weights),
        };
        let level = Standard::of(&mean);
        Ok(Belief { mean, level, own })
    }

    /// What other weights would add to the means of some items.
    pub(crate) fn shifts(
        &self,
        weights: &[f32],
        belief: &Belief,
        items: impl Iterator<Item = usize>,
    ) -> Vec<f32> {
        let sum = |item: usize| self.terms(belief, item).iter().zip(weights).map(|(t, w)| t * w).sum();
        items.map(sum).collect()
    }

    /// The terms of some items under the root of the effects, one row an item.
    pub(crate) fn effects_of(&self, belief: &Belief, items: &[u32]) -> Dense {
        let mut out = Dense::zeros(items.len(), self.effects.cols());
        for (row, &item) in items.iter().enumerate() {
            let terms = self.terms(belief, item as usize);
            let values = row_times(&terms[..self.effects.rows()], &self.effects);
            out.row_mut(row).copy_from_slice(&values);
        }
        out
    }

    /// The terms of an item; those that there are not are 0.
    #[inline]
    fn terms(&self, belief: &Belief, item: usize) -> [f32; WITH_VECTORS] {
        let m = self.mean_standard.apply(self.column_means.as_column()[item]);
        let mut terms = [0.0; WITH_VECTORS];
        (terms[0], terms[1]) = (1.0, m);
        if let Some(own) = &belief.own {
            let d = own.standard.apply(own.dual[item]);
            terms[2] = d;
            terms[3..].iter_mut().zip(KNOTS).for_each(|(term, knot)| *term = (d - knot).max(0.0));
            terms[WITH_VECTORS - 2] = m * (d - 1.0).max(0.0);
            terms[WITH_VECTORS - 1] = own.predicted[item];
        }
        terms
    }

    /// The prior mean from the dual encoder's scores and the predicted row, in place of the latter.
    pub(crate) fn mean_with_vectors(
        &self,
        weights: &[f32],
        dual: &[f32],
        standard: &Standard,
        mut predicted: Vec<f32>,
    ) -> Vec<f32> {
        let Ok(w) = <&[f32; WITH_VECTORS]>::try_from(weights) else { return predicted };
        let ascent: [f32; KNOTS.len()] = std::array::from_fn(|at| w[3 + at]);
        let (shift, scale) = (self.mean_standard.mean as f32, self.mean_standard.scale as f32);
        let (dual_shift, dual_scale) = (standard.mean as f32, standard.scale as f32);
        let terms = dual.iter().zip(self.column_means.as_column());
        for (value, (&dual, &mean)) in predicted.iter_mut().zip(terms) {
            let (m, d) = ((mean - shift) * scale, (dual - dual_shift) * dual_scale);
            let mut sum = w[0] + w[1] * m + w[2] * d;
            for (knot, ascent) in KNOTS.iter().zip(ascent) {
                sum += ascent * (d - knot).max(0.0);
            }
            *value = mean + (sum + w[11] * (m * (d - 1.0).max(0.0)) + w[12] * *value);
        }
        predicted
    }

    pub(crate) fn mean_without_vectors(&self, weights: &[f32]) -> Vec<f32> {
        let [constant, slope] = [0, 1].map(|term| weights.get(term).copied().unwrap_or(0.0));
        let means = self.column_means.as_column();
        means.iter().map(|&mean| mean + (constant + slope * self.mean_standard.apply(mean))).collect()
    }

    /// Prior variance of an item.
    pub(crate) fn variance(&self, belief: &Belief, item: usize) -> f32 {
        self.variance.at(belief.level.apply(belief.mean[item]))
    }

    pub(crate) fn items(&self) -> usize {
        self.column_means.rows()
    }
}
