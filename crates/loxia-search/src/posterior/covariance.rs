//! The covariance of what the prior leaves open.
//!
//! K(i, j) = F_i . F_j + x_i . x_j + share * sd_i sd_j * exp((e_i . e_j - 1) / width)
//!
//! x are the items' terms under the root of the effects of the query (`effects`), F are the scaled top singular
//! vectors of the anchors' residual rows, e the item vectors, centred,
//! reduced to their principal axes and of unit length, sd the prior's deviation. What the rank cuts off
//! each item's variance becomes noise of that item.

use super::PosteriorSettings;
use super::kernel::{add_exponentials, unit_rows};
use crate::Result;
use crate::anchors::{centred, column_means};
use crate::linalg::{
    Dense, add_product_nt, gram_rows_in_f64, leading_vectors, product, product_tn, row_times,
};
use crate::plane::Plane;
use crate::spare;

pub(crate) struct Covariance {
    /// F, one row an item.
    pub(crate) factors: Plane,
    /// e, one row an item.
    pub(crate) directions: Option<Plane>,
    /// Noise of each item beside the level-dependent one.
    pub(crate) noise: Plane,
}

/// What items that come later need.
pub(crate) struct CovarianceMaps {
    /// From an item's evidence to its factors.
    pub(crate) to_factors: Dense,
    /// From item vectors to directions.
    pub(crate) axes: Option<Axes>,
}

/// The mean of the item vectors and their principal axes, one a column; no axes means all of them.
pub(crate) struct Axes {
    pub(crate) mean: Vec<f32>,
    pub(crate) basis: Option<Dense>,
}

impl Covariance {
    /// From rows of evidence that count as those of so many anchors.
    pub(crate) fn fit(
        evidence: Dense,
        anchors: usize,
        item_vectors: Option<&Dense>,
        settings: &PosteriorSettings,
    ) -> Result<(Self, CovarianceMaps)> {
        let mut to_factors: Dense = leading_vectors(&gram_rows_in_f64(&evidence), settings.rank)?.cast();
        let scale = (1.0 / (anchors as f64).sqrt()) as f32;
        to_factors.values_mut().iter_mut().for_each(|value| *value *= scale);
        let factors = product_tn(&evidence, &to_factors);
        let noise = Plane::column(item_noise(&evidence, anchors, &factors));
        let factors = Plane::half(&factors);
        let axes = item_vectors.map(|vectors| Axes::of(vectors, settings.axes)).transpose()?;
        let directions =
            item_vectors.zip(axes.as_ref()).map(|(vectors, axes)| Plane::half(&axes.directions(vectors)));
        Ok((Covariance { factors, directions, noise }, CovarianceMaps { to_factors, axes }))
    }

    /// Whether K has more than its low-rank part.
    pub(crate) fn has_item_kernel(&self, settings: &PosteriorSettings) -> bool {
        self.directions.is_some() && settings.item_kernel > 0.0
    }

    /// Noise of an item beside the level-dependent one.
    pub(crate) fn noise(&self, item: usize) -> f32 {
        self.noise.as_column()[item]
    }

    /// Covariance vectors of some items, gathered for products.
    pub(crate) fn gather(&self, listed: &Listed) -> Gathered {
        let rows: Vec<usize> = listed.items.iter().map(|&item| item as usize).collect();
        Gathered {
            factors: self.factors.select_rows(&rows),
            directions: self.directions.as_ref().map(|directions| directions.select_rows(&rows)),
            effects: listed.effects.clone(),
            deviations: listed.deviations.clone(),
        }
    }

    /// Covariance of each item with a weighted sum of others, by the low-rank part alone: a full scan.
    pub(crate) fn scan(&self, others: &Gathered, weights: &[f32]) -> Vec<f32> {
        self.factors.dots(&row_times(weights, &others.factors))
    }

    /// As [`Covariance::scan`], of the named items only.
    pub(crate) fn scan_of(&self, items: &[u32], others: &Gathered, weights: &[f32]) -> Vec<f32> {
        self.factors.dots_of(items, &row_times(weights, &others.factors))
    }
}

/// Variance that the rank cuts off, and a little of the whole to keep it above zero.
pub(crate) fn item_noise(evidence: &Dense, anchors: usize, factors: &Dense) -> Vec<f32> {
    let mut total = vec![0.0f64; evidence.cols()];
    for row in 0..evidence.rows() {
        let values = evidence.row(row);
        total.iter_mut().zip(values).for_each(|(sum, &value)| *sum += f64::from(value).powi(2));
    }
    let noise = |(item, sum): (usize, f64)| {
        let total = (sum / anchors as f64) as f32;
        let held = factors.row(item).iter().map(|value| value * value).sum::<f32>();
        (total - held).max(0.0) + 1e-4 * total
    };
    total.into_iter().enumerate().map(noise).collect()
}

/// Vectors of items that were paid for, copied out.
pub(crate) struct Gathered {
    factors: Dense,
    pub(crate) effects: Dense,
    directions: Option<Dense>,
    deviations: Vec<f32>,
}

/// Items of a shortlist; their vectors are read where they are.
pub(crate) struct Listed {
    pub(crate) items: Vec<u32>,
    /// x, one row an item.
    pub(crate) effects: Dense,
    pub(crate) deviations: Vec<f32>,
}

impl Gathered {
    pub(crate) fn len(&self) -> usize {
        self.deviations.len()
    }

    pub(crate) fn append(&mut self, more: &Gathered) {
        self.factors.append_rows(&more.factors);
        self.effects.append_rows(&more.effects);
        if let (Some(mine), Some(new)) = (&mut self.directions, &more.directions) {
            mine.append_rows(new);
        }
        self.deviations.extend_from_slice(&more.deviations);
    }
}

impl Covariance {
    /// K between gathered items (rows) and listed ones (columns).
    pub(crate) fn between(
        &self,
        gathered: &Gathered,
        listed: &Listed,
        settings: &PosteriorSettings,
    ) -> Dense {
        let mut out = self.factors.cross_dots(&gathered.factors, &listed.items);
        add_product_nt(&mut out, &gathered.effects, &listed.effects);
        let (Some(directions), Some(mine)) = (&self.directions, &gathered.directions) else { return out };
        if settings.item_kernel == 0.0 {
            return out;
        }
        let cosines = directions.cross_dots(mine, &listed.items);
        let (share, inverse_width) = (settings.item_kernel as f32, (1.0 / settings.item_width) as f32);
        for row in 0..out.rows() {
            let scale = share * gathered.deviations[row];
            add_exponentials(out.row_mut(row), cosines.row(row), &listed.deviations, scale, inverse_width);
        }
        spare::give(cosines.into_values());
        out
    }

    /// K of each listed item with itself.
    pub(crate) fn variances(&self, listed: &Listed, settings: &PosteriorSettings) -> Vec<f32> {
        let share = if self.directions.is_some() { settings.item_kernel as f32 } else { 0.0 };
        let own = self.factors.squares_of(&listed.items).into_iter().zip(&listed.deviations);
        let square = |row: usize| listed.effects.row(row).iter().map(|x| x * x).sum::<f32>();
        own.enumerate().map(|(row, (own, sd))| own + square(row) + share * sd * sd).collect()
    }
}

impl Axes {
    fn of(vectors: &Dense, count: usize) -> Result<Self> {
        let mean = column_means(vectors);
        if count >= vectors.cols() {
            return Ok(Axes { mean, basis: None });
        }
        let moved = centred(vectors, &mean);
        let basis = leading_vectors(&product_tn(&moved, &moved).cast::<f64>(), count)?.cast();
        Ok(Axes { mean, basis: Some(basis) })
    }

    /// Vectors centred, on the axes, of unit length.
    pub(crate) fn directions(&self, vectors: &Dense) -> Dense {
        let moved = centred(vectors, &self.mean);
        unit_rows(match &self.basis {
            Some(basis) => product(&moved, basis),
            None => moved,
        })
    }
}
