//! Telling how far long work is, and being told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

/// Hears how far a long piece of work is. The command line draws a bar; libraries stay silent.
pub trait Progress: Send + Sync {
    /// `done` more units are finished.
    fn advance(&self, done: u64);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn advance(&self, _done: u64) {}
}

/// A flag shared between the one who wants to stop and the ones who work.
///
/// ```
/// let cancel = loxia_core::Cancel::new();
/// let worker = cancel.clone();
/// assert!(worker.check().is_ok());
/// cancel.cancel();
/// assert!(worker.check().is_err());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A flag not yet raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks all holders of clones to stop at their next check.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a stop was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// `Err(Cancelled)` once a stop was asked for.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}
