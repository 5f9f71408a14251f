//! The six constants, by recall on held-out anchor rows.
//!
//! Every fifth anchor (at most 60) is held out; each constant in turn takes the value of its grid with
//! the highest mean recall (k = 10, 50, 100 at cost 50 and 200, 5 rounds), but leaves its default only
//! for a gain above .002, which is about what chance gives. Of a large collection a sample of items stands
//! for all: what is chosen are six shapes of the model, not where its items lie.

use super::work::{FIT_STEPS, Work};
use super::{Posterior, PosteriorSettings};
use loxia_core::Seed;

use crate::evaluate::mean_recall;
use crate::{AnchorSet, QueryRows, Result, Schedule};

const HELD_OUT: usize = 60;
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
    let Some((kept, held)) = anchors.hold_out(0, 5, HELD_OUT) else { return Ok(base) };
    let has_vectors = kept.item_vectors().is_some();
    let fit = |settings| {
        work.step(FIT_STEPS)?;
        Posterior::fit(&kept, settings)
    };
    let mut choice = Choice { held, settings: base, best: None, model: fit(base)?, work };
    choice.coordinate(&TRANSFORMS, |model, settings, &transform| {
        if transform == settings.transform {
            return Ok(model.clone());
        }
        fit(PosteriorSettings { transform, ..settings })
    })?;
    if has_vectors {
        choice.coordinate(&QUERY_RIDGES, |_, settings, &query_ridge| {
            fit(PosteriorSettings { query_ridge, ..settings })
        })?;
        choice.coordinate(&PRIOR_TRUSTS, |_, settings, &prior_trust| {
            fit(PosteriorSettings { prior_trust, ..settings })
        })?;
    }
    choice.coordinate(&NOISES, |model, settings, &noise| {
        Ok(model.with_noise_and_kernel(noise, settings.item_kernel))
    })?;
    if has_vectors {
        choice.coordinate(&ITEM_KERNELS, |model, settings, &item_kernel| {
            Ok(model.with_noise_and_kernel(settings.noise, item_kernel))
        })?;
        choice.coordinate(&DUAL_REGARDS, |model, _, &dual_regard| Ok(model.with_dual_regard(dual_regard)))?;
    }
    Ok(choice.settings)
}

/// How far a choice tells its progress.
pub(crate) fn choose_steps(anchors: &AnchorSet) -> u64 {
    let held = anchors.len().div_ceil(5).min(HELD_OUT) as u64;
    if held == 0 || anchors.len() < 2 {
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
    FIT_STEPS * fits as u64 + held * tried as u64
}

struct Choice<'a> {
    held: QueryRows,
    settings: PosteriorSettings,
    /// Recall of the settings so far.
    best: Option<f64>,
    model: Posterior,
    work: &'a Work<'a>,
}

impl Choice<'_> {
    /// Tries each value of a grid; the first is the default.
    fn coordinate<V>(
        &mut self,
        grid: &[V],
        make: impl Fn(&Posterior, PosteriorSettings, &V) -> Result<Posterior>,
    ) -> Result<()> {
        let mut winner: Option<(f64, Posterior)> = None;
        for (at, value) in grid.iter().enumerate() {
            // The default was measured with the constants before.
            if at == 0 && self.best.is_some() {
                continue;
            }
            let model = make(&self.model, self.settings, value)?;
            let tried = model.clone().with_schedule(Schedule::Even { rounds: 5 });
            self.work.step(self.held.scores.rows() as u64)?;
            let recall = mean_recall(&tried, &self.held, &COSTS)?;
            let Some(default) = self.best else {
                self.best = Some(recall);
                continue;
            };
            if recall > winner.as_ref().map_or(default + LEAST_GAIN, |&(highest, _)| highest) {
                winner = Some((recall, model));
            }
        }
        if let Some((recall, model)) = winner {
            (self.best, self.settings, self.model) = (Some(recall), model.settings, model);
        }
        Ok(())
    }
}
