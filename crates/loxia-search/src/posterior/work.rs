//! Long work: telling how far it is, and stopping when asked.

use loxia_core::{Cancel, NoProgress, Progress};

use crate::Result;

/// Steps of a fit and of a calibration search; a search of a choice is one.
pub(crate) const FIT_STEPS: u64 = 100;
pub(crate) const PATH_STEPS: u64 = 10;

/// Who hears of the progress, and who may stop it.
pub(crate) struct Work<'a> {
    pub(crate) progress: &'a dyn Progress,
    cancel: Cancel,
}

impl<'a> Work<'a> {
    pub(crate) fn new(progress: &'a dyn Progress, cancel: &Cancel) -> Self {
        Work { progress, cancel: cancel.clone() }
    }

    /// Nobody hears of it and nobody stops it.
    pub(crate) fn silent() -> Work<'static> {
        Work { progress: &NoProgress, cancel: Cancel::new() }
    }

    /// Before so many steps are made.
    pub(crate) fn step(&self, steps: u64) -> Result<()> {
        self.cancel.check()?;
        self.progress.advance(steps);
        Ok(())
    }
}
