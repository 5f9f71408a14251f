//! The prior: what is believed of a row before any of it is scored.
//!
//! mean_j = mu_j + beta . [1, m_j, d, (d - t)+ for eight knots t, m_j (d - 1)+, z_j]
//!
//! with mu the column mean, m the same standardised over items, d the dual encoder's score
//! standardised over the items of the query, and z the kernel-ridge prediction of the row from the
//! query's vector. beta is fitted on anchor rows with z cross-fitted, an anchor's top items weighing
//! more (`prior_fit`). Without vectors only the first two terms are left.

use super::levels::VarianceByLevel;
use super::regression::Regression;
use super::standard::Standard;
use crate::Result;
use crate::first_stage::query_vector;
use crate::method::QueryView;
use crate::plane::Plane;

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
}

pub(crate) struct Prior {
    pub(crate) column_means: Plane,
    pub(crate) mean_standard: Standard,
    pub(crate) vectors: Option<VectorPrior>,
    /// beta.
    pub(crate) weights: Vec<f32>,
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
        let mean = match &self.vectors {
            Some(part) => {
                let dual = part.dual_scores(query)?;
                let standard = Standard::of(&dual);
                self.mean_with_vectors(&dual, &standard, part.regression.predict(part.vector(query)?)?)
            }
            None => self.mean_without_vectors(),
        };
        let level = Standard::of(&mean);
        Ok(Belief { mean, level })
    }

    /// The prior mean from the dual encoder's scores and the predicted row, in place of the latter.
    pub(crate) fn mean_with_vectors(
        &self,
        dual: &[f32],
        standard: &Standard,
        mut predicted: Vec<f32>,
    ) -> Vec<f32> {
        let Ok(w) = <&[f32; WITH_VECTORS]>::try_from(self.weights.as_slice()) else { return predicted };
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

    pub(crate) fn mean_without_vectors(&self) -> Vec<f32> {
        let [constant, slope] = [0, 1].map(|term| self.weights.get(term).copied().unwrap_or(0.0));
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
