//! `posterior`: a Gaussian model of the query's whole row of scores.
//!
//! **Prior** ([`prior`]): the mean of each item's score is its column mean, plus piecewise-linear
//! functions of the dual encoder's score, plus a kernel-ridge prediction of the row from the query's
//! vector; all fitted on anchor rows, cross-fitted, with more weight at the top.
//!
//! **Covariance** ([`covariance`]): low rank from what the prior leaves of the anchor rows, plus a
//! kernel on item vectors, plus what a query's own weights of the prior's terms may do ([`effects`]); scale
//! and noise depend on the prior's level.
//!
//! **Rounds** ([`rounds`]): pay for the best by posterior mean, append them to a Cholesky factor over a
//! shortlist, repeat. The answer is the best of what was paid for.
//!
//! **Estimate** ([`estimate`], [`calibrate`], [`curve`], [`intervals`]): the expected number of unpaid items
//! above the threshold of the top k, calibrated on held-out anchor rows.
//!
//! **Constants** ([`choose`]): six of them, by recall on held-out anchor rows.
//!
//! **Items that come later** ([`extend`]) get their numbers from their anchor scores, without a new fit.
//!
//! A search over N items with rank r and cost c reads N (d + 200) half-precision numbers for the prior
//! and N r for a scan, and does about 2000 c (r + 128 + c/2) multiplications on the shortlist.

mod calibrate;
mod choose;
mod covariance;
mod curve;
mod effects;
mod estimate;
mod extend;
mod intervals;
mod kernel;
mod levels;
mod parts;
mod prior;
mod prior_fit;
mod regression;
mod rounds;
mod standard;
mod stored_scan;
mod transform;
mod work;

use std::sync::Arc;

use crate::method::{EstimateReach, Goal, Method, Outcome, QueryView, run_rounds};
use crate::{AnchorSet, Error, Ledger, Result, Schedule};

pub(crate) use calibrate::Calibration;
pub use choose::choose_settings;
pub(crate) use choose::{choose_steps, choose_under};
use covariance::Covariance;
use extend::AnchorMaps;
pub(crate) use parts::{Constants, PLANES};
use prior::Prior;
pub use stored_scan::StoredScan;
use transform::Transform;
pub(crate) use work::{FIT_STEPS, Work};

/// Constants of the method. The first six are chosen on anchor rows by [`choose_settings`].
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct PosteriorSettings {
    /// Width of the logarithmic transform of scores, in units of median less minimum; `None` leaves
    /// scores as they are.
    pub transform: Option<f64>,
    /// Ridge of the kernel regression on query vectors.
    pub query_ridge: f64,
    /// How much of the prior still counts once there are scores, from 0 to 1: what it adds to the column means
    /// is taken times this, and where that is less than all of it, the anchors' rows themselves take part in
    /// the covariance. 1 suits a good dual encoder.
    pub prior_trust: f64,
    /// Noise, as a share of the level-dependent variance.
    pub noise: f64,
    /// Weight of the item kernel, as a share of the level-dependent variance.
    pub item_kernel: f64,
    /// How much the dual encoder's score counts beside the mean where items are chosen, both in their deviations; it
    /// grows with the pairs paid for. 0 follows the mean alone, as indexes do that were made before there was this.
    #[serde(default)]
    pub dual_regard: f64,
    /// Width of the kernel on query vectors.
    pub query_width: f64,
    /// Width of the kernel on item vectors.
    pub item_width: f64,
    /// Rank of the covariance.
    pub rank: usize,
    /// Principal axes of the item vectors that the item kernel sees.
    pub axes: usize,
    /// Weight of an anchor's top items in the fit of the prior.
    pub top_weight: f64,
    /// How many items of an anchor are its top; at most a quarter of all.
    pub top_count: usize,
    /// Items that later rounds choose from, at most.
    pub shortlist: usize,
    /// How far a query's own weights of the prior's terms may stray, as a share of the variance among
    /// anchors; 0 holds every query to the weights of all.
    pub query_effects: f64,
}

impl Default for PosteriorSettings {
    fn default() -> Self {
        PosteriorSettings {
            transform: None,
            query_ridge: 0.03,
            prior_trust: 1.0,
            noise: 0.05,
            item_kernel: 0.3,
            dual_regard: 0.05,
            query_width: 1.5,
            item_width: 0.4,
            rank: 200,
            axes: 128,
            top_weight: 10.0,
            top_count: 500,
            shortlist: 3000,
            query_effects: 0.5,
        }
    }
}

impl PosteriorSettings {
    fn check(&self) -> Result<()> {
        let positive = [
            ("query ridge", self.query_ridge),
            ("noise", self.noise),
            ("query width", self.query_width),
            ("item width", self.item_width),
            ("top weight", self.top_weight),
            ("transform", self.transform.unwrap_or(1.0)),
        ];
        for (name, value) in positive {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::Setting { name, value: value.to_string(), allowed: "finite and above 0" });
            }
        }
        let not_negative = [
            ("item kernel", self.item_kernel),
            ("query effects", self.query_effects),
            ("dual regard", self.dual_regard),
        ];
        for (name, value) in not_negative {
            if !(value >= 0.0 && value.is_finite()) {
                let value = value.to_string();
                return Err(Error::Setting { name, value, allowed: "finite and not below 0" });
            }
        }
        if !(0.0..=1.0).contains(&self.prior_trust) {
            let value = self.prior_trust.to_string();
            return Err(Error::Setting { name: "prior trust", value, allowed: "from 0 to 1" });
        }
        for (name, value) in [("rank", self.rank), ("axes", self.axes), ("shortlist", self.shortlist)] {
            if value == 0 {
                return Err(Error::Setting { name, value: "0".into(), allowed: "at least 1" });
            }
        }
        Ok(())
    }
}

/// The constants that are chosen, for people.
impl std::fmt::Display for PosteriorSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.transform {
            None => write!(f, "transform none")?,
            Some(width) => write!(f, "transform log {width}")?,
        }
        write!(
            f,
            ", query ridge {}, prior trust {}, noise {}, item kernel {}, dual regard {}",
            self.query_ridge, self.prior_trust, self.noise, self.item_kernel, self.dual_regard
        )
    }
}

/// The method, fitted.
///
/// ```
/// use loxia_search::{AnchorSet, Method, Posterior, PosteriorSettings, linalg::Dense};
/// let scores = Dense::from_fn(8, 40, |row, col| ((row + 2) * col % 11) as f32);
/// let anchors = AnchorSet::new(scores.into(), None).unwrap();
/// let posterior = Posterior::fit(&anchors, PosteriorSettings::default()).unwrap();
/// assert_eq!((posterior.name(), posterior.items()), ("posterior", 40));
/// ```
#[derive(Clone)]
pub struct Posterior {
    settings: PosteriorSettings,
    schedule: Schedule,
    transform: Transform,
    prior: Arc<Prior>,
    covariance: Arc<Covariance>,
    maps: Arc<AnchorMaps>,
    calibration: Option<Arc<Calibration>>,
}

impl Posterior {
    /// Fits prior and covariance on anchor rows.
    pub fn fit(anchors: &AnchorSet, settings: PosteriorSettings) -> Result<Self> {
        settings.check()?;
        let transform = Transform::fit(&anchors.rows().scores, settings.transform);
        let fitted = Prior::fit(anchors, &transform, &settings)?;
        let item_vectors = anchors.item_vectors().map(|vectors| &**vectors);
        let (covariance, covariance_maps) =
            Covariance::fit(fitted.evidence, anchors.len(), item_vectors, &settings)?;
        let vectors = fitted.vectors.zip(anchors.rows().vectors.clone());
        let maps = AnchorMaps::new(vectors, covariance_maps, fitted.anchor_effects);
        Ok(Posterior {
            settings,
            schedule: Schedule::default(),
            transform,
            prior: Arc::new(fitted.prior),
            covariance: Arc::new(covariance),
            maps: Arc::new(maps),
            calibration: None,
        })
    }

    /// With a recall estimate, calibrated by searching held-out anchor rows: five more fits and 500
    /// searches. Without it answers carry no estimate and recall targets are never reached; with fewer
    /// than ten rows to hold out it stays so.
    pub fn calibrated(self, anchors: &AnchorSet) -> Result<Self> {
        self.calibrated_under(anchors, &Work::silent())
    }

    /// As [`Posterior::calibrated`], telling its progress.
    pub(crate) fn calibrated_under(mut self, anchors: &AnchorSet, work: &Work<'_>) -> Result<Self> {
        self.calibration = Calibration::fit(anchors, self.settings, work)?.map(Arc::new);
        Ok(self)
    }

    /// Whether answers carry an estimate.
    pub fn is_calibrated(&self) -> bool {
        self.calibration.is_some()
    }

    /// With other batches than ten even ones.
    pub fn with_schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// With other noise and item kernel: what can change without a new fit.
    pub(crate) fn with_noise_and_kernel(&self, noise: f64, item_kernel: f64) -> Self {
        let settings = PosteriorSettings { noise, item_kernel, ..self.settings };
        Posterior { settings, ..self.clone() }
    }

    /// With another say of the dual encoder, for which no new fit is needed either.
    pub(crate) fn with_dual_regard(&self, dual_regard: f64) -> Self {
        let settings = PosteriorSettings { dual_regard, ..self.settings };
        Posterior { settings, ..self.clone() }
    }

    /// Mean and variance of every item's (transformed) score before anything is scored.
    pub fn prior(&self, query: &QueryView<'_>) -> Result<(Vec<f32>, Vec<f32>)> {
        let belief = self.prior.predict(query)?;
        let variance = (0..belief.mean.len()).map(|item| self.prior.variance(&belief, item)).collect();
        Ok((belief.mean, variance))
    }

    /// The dual encoder's score of every item, if it was fitted with vectors: what reranking would go by.
    pub fn dual_scores(&self, query: &QueryView<'_>) -> Result<Option<Vec<f32>>> {
        self.prior.vectors.as_ref().map(|part| part.dual_scores(query)).transpose()
    }

    /// The order of those scores as a first stage, if it was fitted with vectors.
    pub fn dual_scan(&self) -> Option<StoredScan> {
        self.prior.vectors.as_ref().map(|_| StoredScan { prior: self.prior.clone() })
    }

    /// Number of anchor queries it was fitted on.
    pub fn anchors(&self) -> usize {
        self.maps.anchors()
    }

    /// Numbers of a query's vector, if it was fitted with vectors and needs one.
    pub fn vector_dimensions(&self) -> Option<usize> {
        self.prior.vectors.as_ref().map(|part| part.item_vectors.cols())
    }

    /// The constants it was fitted with.
    pub fn settings(&self) -> &PosteriorSettings {
        &self.settings
    }
}

impl Method for Posterior {
    fn name(&self) -> &str {
        "posterior"
    }

    fn items(&self) -> usize {
        self.prior.items()
    }

    fn estimate_reach(&self, k: usize) -> Option<EstimateReach> {
        self.calibration.as_ref()?.reach(k.clamp(1, self.items()))
    }

    fn run(&self, query: &QueryView<'_>, goal: &Goal, ledger: &mut Ledger<'_>) -> Result<Outcome> {
        let belief = self.prior.predict(query)?;
        let mut rounds = rounds::Rounds::new(self, belief);
        run_rounds(&mut rounds, &self.schedule, goal, ledger)
    }
}
