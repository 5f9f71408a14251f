//! The fitted method as named pieces, for storing, and back.
//!
//! Reading trusts nothing: every shape is compared with the others before the method is put together.

use std::sync::Arc;

use super::calibrate::Calibration;
use super::covariance::{Axes, Covariance, CovarianceMaps};
use super::extend::AnchorMaps;
use super::levels::VarianceByLevel;
use super::prior::{Prior, VectorPrior, WITH_VECTORS, WITHOUT_VECTORS};
use super::prior_fit::VectorMaps;
use super::regression::{Regression, RegressionMaps};
use super::standard::Standard;
use super::{Posterior, PosteriorSettings, Transform};
use crate::Schedule;
use crate::linalg::Dense;
use crate::plane::{Plane, Precision};

/// Everything that is not a matrix.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct Constants {
    pub(crate) settings: PosteriorSettings,
    pub(crate) transform: Transform,
    pub(crate) mean_standard: Standard,
    pub(crate) weights: Vec<f32>,
    pub(crate) variance: VarianceByLevel,
    /// With vectors, one an anchor.
    pub(crate) dual_standards: Vec<Standard>,
    pub(crate) calibration: Option<Calibration>,
}

const COLUMN_MEANS: &str = "column-means";
const NOISE: &str = "noise";
const FACTORS: &str = "factors";
const FACTOR_MAP: &str = "factor-map";
const DIRECTIONS: &str = "directions";
const ITEM_VECTORS: &str = "item-vectors";
const ITEM_MEAN: &str = "item-mean";
const ITEM_AXES: &str = "item-axes";
const REGRESSION: &str = "regression";
const REGRESSION_BASIS: &str = "regression-basis";
const REGRESSION_MAP: &str = "regression-map";
const CROSS_FIT: &str = "cross-fit";
const QUERY_MEAN: &str = "query-mean";
const ANCHOR_UNITS: &str = "anchor-units";
const ANCHOR_QUERIES: &str = "anchor-queries";
const EFFECTS: &str = "effects";
const ANCHOR_EFFECTS: &str = "anchor-effects";

/// Names of all planes that an index may have: nothing else is opened.
pub(crate) const PLANES: [&str; 17] = [
    COLUMN_MEANS,
    NOISE,
    FACTORS,
    FACTOR_MAP,
    DIRECTIONS,
    ITEM_VECTORS,
    ITEM_MEAN,
    ITEM_AXES,
    REGRESSION,
    REGRESSION_BASIS,
    REGRESSION_MAP,
    CROSS_FIT,
    QUERY_MEAN,
    ANCHOR_UNITS,
    ANCHOR_QUERIES,
    EFFECTS,
    ANCHOR_EFFECTS,
];

impl Posterior {
    /// Everything but the schedule.
    pub(crate) fn to_parts(&self) -> (Constants, Vec<(&'static str, Plane)>) {
        let small = |matrix: &Dense| Plane::single(matrix.clone());
        let row = |values: &[f32]| Plane::column(values.to_vec());
        let (prior, covariance, maps) = (&self.prior, &self.covariance, &self.maps);
        let mut planes = vec![
            (COLUMN_MEANS, prior.column_means.clone()),
            (NOISE, covariance.noise.clone()),
            (FACTORS, covariance.factors.clone()),
            (FACTOR_MAP, small(&maps.covariance.to_factors)),
            (EFFECTS, small(&prior.effects)),
            (ANCHOR_EFFECTS, small(&maps.effects)),
        ];
        let mut dual_standards = Vec::new();
        if let (Some(part), Some((vector_maps, queries))) = (&prior.vectors, &maps.vectors) {
            planes.extend([
                (ITEM_VECTORS, part.item_vectors.clone()),
                (REGRESSION, part.regression.items.clone()),
                (REGRESSION_BASIS, small(&part.regression.basis)),
                (REGRESSION_MAP, small(&vector_maps.regression.to_items)),
                (CROSS_FIT, small(&vector_maps.regression.cross_fit)),
                (QUERY_MEAN, row(&part.regression.query_mean)),
                (ANCHOR_UNITS, small(&part.regression.units)),
                (ANCHOR_QUERIES, small(queries)),
            ]);
            dual_standards = vector_maps.dual.clone();
        }
        if let (Some(directions), Some(axes)) = (&covariance.directions, &maps.covariance.axes) {
            planes.push((DIRECTIONS, directions.clone()));
            planes.push((ITEM_MEAN, row(&axes.mean)));
            planes.extend(axes.basis.as_ref().map(|basis| (ITEM_AXES, small(basis))));
        }
        let constants = Constants {
            settings: self.settings,
            transform: self.transform,
            mean_standard: prior.mean_standard,
            weights: prior.weights.clone(),
            variance: prior.variance.clone(),
            dual_standards,
            calibration: self.calibration.as_deref().cloned(),
        };
        (constants, planes)
    }

    /// The method again; `take` gives a plane by name. An error says what does not fit.
    pub(crate) fn from_parts(
        constants: Constants,
        items: usize,
        anchors: usize,
        take: impl FnMut(&str) -> Option<Plane>,
    ) -> Result<Self, String> {
        check_constants(&constants)?;
        let mut parts = Parts { take };
        let factors = parts.needed(FACTORS, items, None, Precision::F16)?;
        let rank = factors.cols();
        let evidence = if constants.settings.prior_trust < 1.0 { 2 * anchors } else { anchors };
        let to_factors = parts.needed(FACTOR_MAP, evidence, Some(rank), Precision::F32)?.to_dense();
        let column_means = parts.needed(COLUMN_MEANS, items, Some(1), Precision::F32)?;
        let noise = parts.needed(NOISE, items, Some(1), Precision::F32)?;
        let (mut vectors, mut maps, mut directions, mut axes) = (None, None, None, None);
        if let Some(item_vectors) = (parts.take)(ITEM_VECTORS) {
            let item_vectors = fitting(item_vectors, ITEM_VECTORS, items, None, Precision::F16)?;
            let (part, vector_maps) =
                parts.regression(items, anchors, item_vectors.cols(), &constants.settings)?;
            (directions, axes) = parts.directions(items, item_vectors.cols())?;
            vectors = Some(VectorPrior { item_vectors, regression: part });
            let (regression, queries) = vector_maps;
            maps = Some((VectorMaps { regression, dual: constants.dual_standards.clone() }, queries));
        }
        let expected = if vectors.is_some() { (WITH_VECTORS, anchors) } else { (WITHOUT_VECTORS, 0) };
        let effects = parts.needed(EFFECTS, expected.0, Some(expected.0), Precision::F32)?.to_dense();
        let anchor_effects =
            parts.needed(ANCHOR_EFFECTS, anchors, Some(expected.0), Precision::F32)?.to_dense();
        if (constants.weights.len(), constants.dual_standards.len()) != expected {
            return Err("the number of weights or of standards is not that of the planes".into());
        }
        let prior = Prior {
            column_means,
            mean_standard: constants.mean_standard,
            vectors,
            weights: constants.weights,
            effects,
            variance: constants.variance,
        };
        Ok(Posterior {
            settings: constants.settings,
            schedule: Schedule::default(),
            transform: constants.transform,
            prior: Arc::new(prior),
            covariance: Arc::new(Covariance { factors, directions, noise }),
            maps: Arc::new(AnchorMaps::new(maps, CovarianceMaps { to_factors, axes }, anchor_effects)),
            calibration: constants.calibration.map(Arc::new),
        })
    }
}

fn check_constants(constants: &Constants) -> Result<(), String> {
    constants.settings.check().map_err(|error| error.to_string())?;
    let Standard { mean, scale } = constants.mean_standard;
    let standards = constants.dual_standards.iter().all(|s| s.mean.is_finite() && s.scale.is_finite());
    let finite = constants.weights.iter().all(|weight| weight.is_finite());
    if !(mean.is_finite() && scale.is_finite() && standards && finite && constants.transform.is_sound()) {
        return Err("a constant is not finite or out of its range".into());
    }
    if !constants.variance.is_sound() {
        return Err("the table of variances is not ascending".into());
    }
    match &constants.calibration {
        Some(calibration) if !calibration.is_sound() => Err("the calibration is damaged".into()),
        _ => Ok(()),
    }
}

/// Hands out planes whose shapes were compared.
struct Parts<F> {
    take: F,
}

impl<F: FnMut(&str) -> Option<Plane>> Parts<F> {
    fn needed(
        &mut self,
        name: &str,
        rows: usize,
        cols: Option<usize>,
        precision: Precision,
    ) -> Result<Plane, String> {
        let plane = (self.take)(name).ok_or_else(|| format!("{name} is missing"))?;
        fitting(plane, name, rows, cols, precision)
    }

    fn regression(
        &mut self,
        items: usize,
        anchors: usize,
        width: usize,
        settings: &PosteriorSettings,
    ) -> Result<(Regression, (RegressionMaps, Arc<Dense>)), String> {
        let plane = self.needed(REGRESSION, items, None, Precision::F16)?;
        let rank = Some(plane.cols());
        let mut small =
            |name, rows, cols| self.needed(name, rows, cols, Precision::F32).map(|plane| plane.to_dense());
        let regression = Regression {
            query_mean: small(QUERY_MEAN, width, Some(1))?.into_values(),
            units: small(ANCHOR_UNITS, anchors, Some(width))?,
            basis: small(REGRESSION_BASIS, anchors, rank)?,
            items: plane,
            width: settings.query_width,
        };
        let maps = RegressionMaps {
            to_items: small(REGRESSION_MAP, anchors, rank)?,
            cross_fit: small(CROSS_FIT, anchors, Some(anchors))?,
        };
        Ok((regression, (maps, Arc::new(small(ANCHOR_QUERIES, anchors, Some(width))?))))
    }

    fn directions(&mut self, items: usize, width: usize) -> Result<(Option<Plane>, Option<Axes>), String> {
        let directions = self.needed(DIRECTIONS, items, None, Precision::F16)?;
        let mean = self.needed(ITEM_MEAN, width, Some(1), Precision::F32)?.to_dense().into_values();
        let basis = match (self.take)(ITEM_AXES) {
            Some(axes) => {
                let axes = fitting(axes, ITEM_AXES, width, Some(directions.cols()), Precision::F32)?;
                Some(axes.to_dense())
            }
            None if directions.cols() == width => None,
            None => return Err(format!("{ITEM_AXES} is missing")),
        };
        Ok((Some(directions), Some(Axes { mean, basis })))
    }
}

fn fitting(
    plane: Plane,
    name: &str,
    rows: usize,
    cols: Option<usize>,
    precision: Precision,
) -> Result<Plane, String> {
    let expected = cols.unwrap_or(plane.cols());
    if (plane.rows(), plane.cols(), plane.precision()) == (rows, expected, precision) {
        return Ok(plane);
    }
    let (found_rows, found_cols, found) = (plane.rows(), plane.cols(), plane.precision());
    Err(format!(
        "{name} is {found_rows} x {found_cols} {found:?}, expected {rows} x {expected} {precision:?}"
    ))
}
