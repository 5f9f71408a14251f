//! Building an index from anchor rows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use loxia_core::{Cancel, IdTable, Progress};

use super::Index;
use crate::posterior::{Calibration, FIT_STEPS, Work, choose_steps, choose_under};
use crate::{AnchorSet, Error, Posterior, PosteriorSettings, Result};

/// What is done beside the fit.
#[derive(Debug, Clone, Copy)]
pub struct IndexOptions {
    /// Constants to begin with.
    pub settings: PosteriorSettings,
    /// Whether the five constants are chosen on held-out anchor rows.
    pub choose: bool,
    /// Whether the recall estimate is calibrated on held-out anchor rows: without it answers carry none,
    /// and recall targets are never reached.
    pub calibrate: bool,
}

impl Default for IndexOptions {
    fn default() -> Self {
        IndexOptions { settings: PosteriorSettings::default(), choose: true, calibrate: true }
    }
}

impl IndexOptions {
    /// How many steps [`Index::build`] tells of, for a progress bar.
    pub fn steps(&self, anchors: &AnchorSet) -> u64 {
        let choose = if self.choose { choose_steps(anchors) } else { 0 };
        let calibrate = if self.calibrate { Calibration::steps(anchors) } else { 0 };
        choose + FIT_STEPS + calibrate
    }
}

/// How long the parts of a build took.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuildTimes {
    /// Choosing constants.
    pub choose: Duration,
    /// The fit on all anchors.
    pub fit: Duration,
    /// Calibrating the recall estimate.
    pub calibrate: Duration,
}

impl Index {
    /// Fits the method on all anchors; before that chooses its constants, after that calibrates its recall
    /// estimate, both on held-out anchors.
    pub fn build(
        anchors: &AnchorSet,
        items: IdTable,
        options: &IndexOptions,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<(Self, BuildTimes)> {
        check_count(&items, anchors.items())?;
        let work = Work::new(progress, cancel);
        let mut times = BuildTimes::default();
        let mut settings = options.settings;
        if options.choose {
            settings = timed(&mut times.choose, || choose_under(anchors, settings, &work))?;
        }
        work.step(FIT_STEPS)?;
        let mut posterior = timed(&mut times.fit, || Posterior::fit(anchors, settings))?;
        if options.calibrate {
            posterior = timed(&mut times.calibrate, || posterior.calibrated_under(anchors, &work))?;
        }
        Ok((
            Index {
                posterior,
                ids: Arc::new(items),
                encoder: None,
                anchor_queries: None,
                added: 0,
                stored: None,
            },
            times,
        ))
    }

    /// An index of a method that was fitted elsewhere.
    pub fn from_posterior(posterior: Posterior, items: IdTable) -> Result<Self> {
        check_count(&items, crate::Method::items(&posterior))?;
        Ok(Index {
            posterior,
            ids: Arc::new(items),
            encoder: None,
            anchor_queries: None,
            added: 0,
            stored: None,
        })
    }
}

fn check_count(ids: &IdTable, expected: usize) -> Result<()> {
    if ids.len() == expected {
        return Ok(());
    }
    Err(Error::Shape {
        what: "list of item ids",
        found_rows: ids.len(),
        found_cols: 1,
        expected: format!("{expected} ids, one for each column of the anchor scores"),
    })
}

fn timed<T>(time: &mut Duration, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let result = work();
    *time = started.elapsed();
    result
}
