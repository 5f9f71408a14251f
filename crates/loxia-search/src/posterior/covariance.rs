//! The covariance of what the prior leaves open.
//!
//! K(i, j) = F_i . F_j + share * sd_i sd_j * exp((e_i . e_j - 1) / width)
//!
//! F are the scaled top singular vectors of the anchors' residual rows, e the item vectors, centred,
//! reduced to their principal axes and of unit length, sd the prior's deviation. What the rank cuts off
//! each item's variance becomes noise of that item.

use super::PosteriorSettings;
use super::kernel::{fast_exp, unit_rows};
use crate::Result;
use crate::anchors::{centred, column_means};
use crate::axn::right_factors;
use crate::linalg::{Dense, product, product_nt, product_tn, symmetric_eigen};

pub(crate) struct Covariance {
    /// One row an item.
    factors: Dense,
    /// Unit vectors, one row an item.
    directions: Option<Dense>,
    /// Variance of each item that the factors do not hold.
    tail: Vec<f32>,
    /// Mean squared residual of each item.
    total: Vec<f32>,
}

impl Covariance {
    pub(crate) fn fit(
        residuals: &Dense,
        item_vectors: Option<&Dense>,
        settings: &PosteriorSettings,
    ) -> Result<Self> {
        let factors = right_factors(residuals, settings.rank)?;
        let mut total = vec![0.0f64; residuals.cols()];
        for row in 0..residuals.rows() {
            let values = residuals.row(row);
            total.iter_mut().zip(values).for_each(|(sum, &value)| *sum += f64::from(value).powi(2));
        }
        let total: Vec<f32> = total.iter().map(|sum| (sum / residuals.rows() as f64) as f32).collect();
        let held = |item: usize| factors.row(item).iter().map(|value| value * value).sum::<f32>();
        let tail = total.iter().enumerate().map(|(item, &total)| (total - held(item)).max(0.0)).collect();
        let directions = item_vectors.map(|vectors| principal_units(vectors, settings.axes)).transpose()?;
        Ok(Covariance { factors, directions, tail, total })
    }

    /// Whether K has more than its low-rank part.
    pub(crate) fn has_item_kernel(&self, settings: &PosteriorSettings) -> bool {
        self.directions.is_some() && settings.item_kernel > 0.0
    }

    /// Noise of an item beside the level-dependent one; the last term keeps it above zero.
    pub(crate) fn noise(&self, item: usize) -> f32 {
        self.tail[item] + 1e-4 * self.total[item]
    }

    /// Covariance vectors of some items, gathered for products.
    pub(crate) fn gather(&self, items: &[usize], deviations: &[f32]) -> Gathered {
        Gathered {
            factors: self.factors.select_rows(items),
            directions: self.directions.as_ref().map(|directions| directions.select_rows(items)),
            deviations: items.iter().map(|&item| deviations[item]).collect(),
        }
    }

    /// Covariance of each item with a weighted sum of others, by the low-rank part alone: a full scan.
    pub(crate) fn scan(&self, others: &Gathered, weights: &[f32]) -> Vec<f32> {
        let direction = crate::linalg::row_times(weights, &others.factors);
        crate::linalg::times_column(&self.factors, &direction)
    }
}

/// Vectors of some items.
pub(crate) struct Gathered {
    factors: Dense,
    directions: Option<Dense>,
    deviations: Vec<f32>,
}

impl Gathered {
    /// K between these items (rows) and others (columns).
    pub(crate) fn covariance(&self, others: &Gathered, settings: &PosteriorSettings) -> Dense {
        let mut out = product_nt(&self.factors, &others.factors);
        let (Some(mine), Some(theirs)) = (&self.directions, &others.directions) else { return out };
        if settings.item_kernel == 0.0 {
            return out;
        }
        let cosines = product_nt(mine, theirs);
        let (share, inverse_width) = (settings.item_kernel as f32, (1.0 / settings.item_width) as f32);
        for row in 0..out.rows() {
            let scale = share * self.deviations[row];
            let terms = cosines.row(row).iter().zip(&others.deviations);
            out.row_mut(row).iter_mut().zip(terms).for_each(|(value, (cosine, deviation))| {
                *value += scale * deviation * fast_exp((cosine - 1.0) * inverse_width);
            });
        }
        out
    }

    /// K of each item with itself.
    pub(crate) fn variances(&self, settings: &PosteriorSettings) -> Vec<f32> {
        let share = if self.directions.is_some() { settings.item_kernel as f32 } else { 0.0 };
        let own = |row: usize| self.factors.row(row).iter().map(|value| value * value).sum::<f32>();
        self.deviations.iter().enumerate().map(|(row, sd)| own(row) + share * sd * sd).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.deviations.len()
    }

    pub(crate) fn append(&mut self, more: &Gathered) {
        self.factors.append_rows(&more.factors);
        if let (Some(mine), Some(new)) = (&mut self.directions, &more.directions) {
            mine.append_rows(new);
        }
        self.deviations.extend_from_slice(&more.deviations);
    }
}

/// Vectors centred, on their principal axes, of unit length.
fn principal_units(vectors: &Dense, axes: usize) -> Result<Dense> {
    let moved = centred(vectors, &column_means(vectors));
    if axes >= vectors.cols() {
        return Ok(unit_rows(moved));
    }
    let width = vectors.cols();
    let eigen = symmetric_eigen(&product_tn(&moved, &moved).cast::<f64>())?;
    let basis = Dense::from_fn(width, axes, |row, col| eigen.vectors[(row, width - axes + col)] as f32);
    Ok(unit_rows(product(&moved, &basis)))
}
