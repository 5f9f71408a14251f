//! The four constants, by recall on held-out anchor rows.
//!
//! Every fifth anchor (at most 60) is held out; each constant in turn takes the value of its grid with
//! the highest mean recall (k = 10, 50, 100 at cost 50 and 200, 5 rounds), but leaves its default only
//! for a gain above .002, which is about what chance gives.

use super::{Posterior, PosteriorSettings};
use crate::evaluate::mean_recall;
use crate::{AnchorSet, QueryRows, Result, Schedule};

const HELD_OUT: usize = 60;
const LEAST_GAIN: f64 = 0.002;
const COSTS: [u64; 2] = [50, 200];

/// Chooses `transform`, `query_ridge`, `noise` and `item_kernel`, beginning with `base`; each pass over
/// the grid costs 6 fits and 11 x 120 searches. With too few anchors to hold any out `base` stays.
pub fn choose_settings(anchors: &AnchorSet, base: PosteriorSettings) -> Result<PosteriorSettings> {
    let Some((kept, held)) = anchors.hold_out(0, 5, HELD_OUT) else { return Ok(base) };
    let has_vectors = kept.item_vectors().is_some();
    let mut choice = Choice { held, settings: base, best: None, model: Posterior::fit(&kept, base)? };

    choice.coordinate(&[None, Some(0.1), Some(0.3), Some(1.0), Some(4.0)], |_, settings, &transform| {
        Posterior::fit(&kept, PosteriorSettings { transform, ..settings })
    })?;
    if has_vectors {
        choice.coordinate(&[0.03, 0.1], |_, settings, &query_ridge| {
            Posterior::fit(&kept, PosteriorSettings { query_ridge, ..settings })
        })?;
    }
    choice.coordinate(&[0.05, 0.02, 0.15], |model, settings, &noise| {
        Ok(model.with_noise_and_kernel(noise, settings.item_kernel))
    })?;
    if has_vectors {
        choice.coordinate(&[0.3, 0.1, 1.0], |model, settings, &item_kernel| {
            Ok(model.with_noise_and_kernel(settings.noise, item_kernel))
        })?;
    }
    Ok(choice.settings)
}

struct Choice {
    held: QueryRows,
    settings: PosteriorSettings,
    /// Recall of the settings so far.
    best: Option<f64>,
    model: Posterior,
}

impl Choice {
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
