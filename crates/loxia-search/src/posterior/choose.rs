//! The six constants, by recall on held-out anchor rows.
//!
//! Every fifth anchor is held out (at most 60; of fewer than 300 anchors another fifth in turn, until there are 60 rows to go
//! by); each constant in turn takes the value of its grid with
//! the highest mean recall (k = 10, 50, 100 at cost 50 and 200, 5 rounds), but leaves its default only
//! for a gain above .002, which is about what chance gives. Of a large collection a sample of items stands
//! for all: what is chosen are six shapes of the model, not where its items lie.

use super::work::{FIT_STEPS, Work};
use super::{Posterior, PosteriorSettings};
use loxia_core::Seed;

use crate::evaluate::mean_recall;
use crate::{AnchorSet, QueryRows, Result, Schedule};

const HELD_OUT: usize = 60;
const FOLDS: usize = 5;
const LEAST_GAIN: f64 = 0.002;
const COSTS: [u64; 2] = [50, 200];
/// Items that stand for all.
const SAMPLE: usize = 15_000;
/// Values that are tried; the first of each is the default.
const TRANSFORMS: [Option<f64>; 5] = [None, Some(0.1), Some(0.3), Some(1.0), Some(4.0)];
const QUERY_RIDGES: [f64; 2] = [0.03, 0.1];
const PRIOR_TRUSTS: [f64; 3] = [1.0, 0.6, 0.3];
const NOISES: [f64; 3] = [0.05, 0.02, 0.15];
const ITEM_KERNELS: [f64; 3] = [0.3, 0.1, 1.0];
const DUAL_REGARDS: [f64; 3] = [0.05, 0.0, 0.15];

/// Chooses `transform`, `query_ridge`, `prior_trust`, `noise`, `item_kernel` and `dual_regard`, beginning with `base`; each
/// pass over the grid costs 8 fits and 15 x 120 searches. With too few anchors to hold any out `base` stays.
pub fn choose_settings(anchors: &AnchorSet, base: PosteriorSettings) -> Result<PosteriorSettings> {
    choose_under(anchors, base, &Work::silent())
}

/// As [`choose_settings`], telling its progress.
pub(crate) fn choose_under(
    anchors: &AnchorSet,
    base: PosteriorSettings,
    work: &Work<'_>,
) -> Result<PosteriorSettings> {
    let sample;
    let anchors = if anchors.items() > SAMPLE {
        let items = Seed(0).stream("posterior/choose").sample(anchors.items() as u64, SAMPLE);
        sample = anchors.select_items(&items.into_iter().map(|item| item as usize).collect::<Vec<_>>());
        &sample
    } else {
        anchors
    };
    let mut folds = Vec::new();
    for fold in 0..folds_of(anchors.len()) {
        if let Some((kept, held)) = anchors.hold_out(fold, FOLDS, HELD_OUT) {
            folds.push(Fold { model: fit(&kept, base, work)?, kept, held });
        }
    }
    if folds.is_empty() {
        return Ok(base);
    }
    let has_vectors = anchors.item_vectors().is_some();
    let mut choice = Choice { folds, settings: base, best: None, work };
    choice.coordinate(&TRANSFORMS, |fold, settings, &transform| {
        if transform == settings.transform {
            return Ok(fold.model.clone());
        }
        fit(&fold.kept, PosteriorSettings { transform, ..settings }, work)
    })?;
    if has_vectors {
        choice.coordinate(&QUERY_RIDGES, |fold, settings, &query_ridge| {
            fit(&fold.kept, PosteriorSettings { query_ridge, ..settings }, work)
        })?;
        choice.coordinate(&PRIOR_TRUSTS, |fold, settings, &prior_trust| {
            fit(&fold.kept, PosteriorSettings { prior_trust, ..settings }, work)
        })?;
    }
    choice.coordinate(&NOISES, |fold, settings, &noise| {
        Ok(fold.model.with_noise_and_kernel(noise, settings.item_kernel))
    })?;
    if has_vectors {
        choice.coordinate(&ITEM_KERNELS, |fold, settings, &item_kernel| {
            Ok(fold.model.with_noise_and_kernel(settings.noise, item_kernel))
        })?;
        choice.coordinate(&DUAL_REGARDS, |fold, _, &dual_regard| {
            Ok(fold.model.with_dual_regard(dual_regard))
        })?;
    }
    Ok(choice.settings)
}

fn fit(anchors: &AnchorSet, settings: PosteriorSettings, work: &Work<'_>) -> Result<Posterior> {
    work.step(FIT_STEPS)?;
    Posterior::fit(anchors, settings)
}

/// How many folds of so many anchors are held out: with few anchors more than one, for what a handful of rows prefer
/// is chance.
fn folds_of(anchors: usize) -> usize {
    (HELD_OUT * FOLDS).div_ceil(anchors.max(1)).min(FOLDS)
}

/// How far a choice tells its progress.
pub(crate) fn choose_steps(anchors: &AnchorSet) -> u64 {
    let held = |fold| (0..anchors.len()).filter(|row| row % FOLDS == fold).count().min(HELD_OUT) as u64;
    let held: Vec<u64> = (0..folds_of(anchors.len())).map(held).filter(|&held| held > 0).collect();
    if anchors.len() < 2 {
        return 0;
    }
    let others = NOISES.len() - 1;
    let (fits, tried) = match anchors.item_vectors() {
        Some(_) => {
            let fits = TRANSFORMS.len() + QUERY_RIDGES.len() - 1 + PRIOR_TRUSTS.len() - 1;
            (fits, fits + others + ITEM_KERNELS.len() - 1 + DUAL_REGARDS.len() - 1)
        }
        None => (TRANSFORMS.len(), TRANSFORMS.len() + others),
    };
    FIT_STEPS * (fits * held.len()) as u64 + held.iter().sum::<u64>() * tried as u64
}

/// Anchors held out, and a model of the others.
struct Fold {
    kept: AnchorSet,
    held: QueryRows,
    model: Posterior,
}

struct Choice<'a> {
    /// Models have the settings so far.
    folds: Vec<Fold>,
    settings: PosteriorSettings,
    /// Recall of the settings so far.
    best: Option<f64>,
    work: &'a Work<'a>,
}

impl Choice<'_> {
    /// Tries each value of a grid; the first is the default.
    fn coordinate<V>(
        &mut self,
        grid: &[V],
        make: impl Fn(&Fold, PosteriorSettings, &V) -> Result<Posterior>,
    ) -> Result<()> {
        let mut winner: Option<(f64, Vec<Posterior>)> = None;
        for (at, value) in grid.iter().enumerate() {
            // The default was measured with the constants before.
            if at == 0 && self.best.is_some() {
                continue;
            }
            let models = self.folds.iter().map(|fold| make(fold, self.settings, value));
            let models = models.collect::<Result<Vec<_>>>()?;
            let recall = self.recall(&models)?;
            let Some(default) = self.best else {
                self.best = Some(recall);
                continue;
            };
            if recall > winner.as_ref().map_or(default + LEAST_GAIN, |&(highest, _)| highest) {
                winner = Some((recall, models));
            }
        }
        if let Some((recall, models)) = winner {
            self.best = Some(recall);
            for (fold, model) in self.folds.iter_mut().zip(models) {
                self.settings = model.settings;
                fold.model = model;
            }
        }
        Ok(())
    }

    /// Mean over all rows that are held out.
    fn recall(&self, models: &[Posterior]) -> Result<f64> {
        let (mut sum, mut rows) = (0.0, 0);
        for (fold, model) in self.folds.iter().zip(models) {
            let held = fold.held.scores.rows();
            self.work.step(held as u64)?;
            let model = model.clone().with_schedule(Schedule::Even { rounds: 5 });
            sum += held as f64 * mean_recall(&model, &fold.held, &COSTS)?;
            rows += held;
        }
        Ok(sum / rows as f64)
    }
}
