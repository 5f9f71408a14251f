//! The query's row of scores, guessed from its vector by kernel ridge regression on anchor rows.
//!
//! With x the centred query vector of unit length, X those of the anchors, and Rc the anchor rows less
//! column means, z = k(x, X) B with B = (K + ridge I)^-1 Rc (anchors x items). A query that read one number
//! an item for each anchor would be slow, so B is projected on the leading right singular vectors of K B,
//! the predictions at the anchors: that is the space in which predictions vary. (B's own singular
//! vectors are the wrong ones: B is largest where k(x, X) is smallest.)

use super::PosteriorSettings;
use super::kernel::{gaussian_of_units, make_unit, unit_rows};
use crate::Result;
use crate::anchors::{centred, column_means};
use crate::linalg::{Cholesky, Dense, gram_rows_in_f64, leading_eigen, product, product_tn, row_times};
use crate::plane::Plane;

/// Dimensions that predictions are projected on: 200 lose .003 of recall where predictions vary most.
const RANK: usize = 256;
/// Directions with less than this share of the largest variance are rounding.
const LEAST_SHARE: f64 = 1e-12;
const FOLDS: usize = 5;

pub(crate) struct Regression {
    pub(crate) query_mean: Vec<f32>,
    /// Unit rows of the centred anchor vectors.
    pub(crate) units: Dense,
    /// From the kernel with the anchors to coordinates, one a column.
    pub(crate) basis: Dense,
    /// An item's prediction is the product of its row with those coordinates.
    pub(crate) items: Plane,
    pub(crate) width: f64,
}

/// What the fit knows beyond the regression itself: linear maps from a column of centred anchor scores.
pub(crate) struct RegressionMaps {
    /// To the item's row in the regression.
    pub(crate) to_items: Dense,
    /// To the anchors' z, each predicted by the anchors of other folds only.
    pub(crate) cross_fit: Dense,
}

impl Regression {
    /// `rows` are the anchor rows less column means, `queries` the vectors of the anchors.
    pub(crate) fn fit(
        rows: &Dense,
        queries: &Dense,
        settings: &PosteriorSettings,
    ) -> Result<(Self, RegressionMaps)> {
        let query_mean = column_means(queries);
        let units = unit_rows(centred(queries, &query_mean));
        // With P = K B = K inverse Rc, Q its leading left singular vectors and S the squares of its
        // singular values, the projection of B is (B P^T Q S^-1) (P^T Q)^T.
        let inverse = regularised_inverse(&units, settings)?;
        let kernel: Dense<f64> = gaussian_of_units(&units, &units, settings.query_width).cast();
        let smoother = product(&inverse, &kernel);
        let across = product(&product(&inverse, &gram_rows_in_f64(rows)), &smoother);
        let (leading, squares) = leading_eigen(&product_tn(&kernel, &across), RANK, LEAST_SHARE)?;
        let mut basis = product(&across, &leading);
        for row in 0..basis.rows() {
            basis.row_mut(row).iter_mut().zip(&squares).for_each(|(value, square)| *value /= square);
        }
        let to_items: Dense = product(&smoother, &leading).cast();
        let items = Plane::half(&product_tn(rows, &to_items));
        let cross_fit = cross_fit(&units, settings)?;
        let (basis, width) = (basis.cast(), settings.query_width);
        Ok((Regression { query_mean, units, basis, items, width }, RegressionMaps { to_items, cross_fit }))
    }

    /// The predicted row, less column means.
    pub(crate) fn predict(&self, vector: &[f32]) -> Result<Vec<f32>> {
        let mut unit: Vec<f32> =
            vector.iter().zip(&self.query_mean).map(|(value, mean)| value - mean).collect();
        make_unit(&mut unit);
        let kernel = gaussian_of_units(&Dense::new(1, unit.len(), unit)?, &self.units, self.width);
        Ok(self.items.dots(&row_times(kernel.values(), &self.basis)))
    }
}

fn regularised_inverse(units: &Dense, settings: &PosteriorSettings) -> Result<Dense<f64>> {
    let mut kernel: Dense<f64> = gaussian_of_units(units, units, settings.query_width).cast();
    kernel.add_diagonal(settings.query_ridge);
    let identity = Dense::from_fn(units.rows(), units.rows(), |row, col| f64::from(u8::from(row == col)));
    Ok(Cholesky::new(&kernel)?.solve(&identity))
}

/// The matrix whose product with a column of scores gives each anchor's score as predicted by the
/// anchors of the other folds, less those anchors' mean.
fn cross_fit(units: &Dense, settings: &PosteriorSettings) -> Result<Dense> {
    let mut out = Dense::zeros(units.rows(), units.rows());
    for fold in 0..FOLDS {
        let (held, kept): (Vec<usize>, Vec<usize>) = (0..units.rows()).partition(|row| row % FOLDS == fold);
        if held.is_empty() || kept.is_empty() {
            continue;
        }
        let known = units.select_rows(&kept);
        let kernel: Dense<f64> =
            gaussian_of_units(&units.select_rows(&held), &known, settings.query_width).cast();
        let hat = product(&kernel, &regularised_inverse(&known, settings)?);
        for (at, &row) in held.iter().enumerate() {
            // Taking the mean off the kept scores first is taking it off the weights.
            let mean = hat.row(at).iter().sum::<f64>() / kept.len() as f64;
            for (&weight, &other) in hat.row(at).iter().zip(&kept) {
                out[(row, other)] = (weight - mean) as f32;
            }
        }
    }
    Ok(out)
}
