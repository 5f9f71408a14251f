//! Where the time of a forward pass goes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Kinds of work in a forward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Work {
    /// Looking up and summing the tables, their norm, the map to the hidden width.
    Embeddings,
    /// Products that make queries, keys and values.
    Projections,
    /// Scores, softmax and weighted sums.
    Attention,
    /// The product that joins the heads.
    AttentionOutput,
    /// The first feed-forward product with its activation.
    Intermediate,
    /// The second feed-forward product.
    Output,
    /// Residual sums and norms.
    Norms,
    /// Turning activations into 8-bit codes.
    Quantisation,
}

impl Work {
    /// All kinds, in the order of a pass.
    pub const ALL: [Work; 8] = [
        Work::Embeddings,
        Work::Quantisation,
        Work::Projections,
        Work::Attention,
        Work::AttentionOutput,
        Work::Intermediate,
        Work::Output,
        Work::Norms,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Work::Embeddings => "embeddings",
            Work::Projections => "queries, keys, values",
            Work::Attention => "attention",
            Work::AttentionOutput => "attention output",
            Work::Intermediate => "intermediate, activation",
            Work::Output => "output",
            Work::Norms => "residuals, norms",
            Work::Quantisation => "quantisation",
        }
    }
}

/// Time by kind of work, summed over threads.
///
/// ```
/// use loxia_nn::{Profile, Work};
/// assert!(Profile::default().time(Work::Attention).is_zero());
/// ```
#[derive(Debug, Default)]
pub struct Profile {
    nanoseconds: [AtomicU64; Work::ALL.len()],
}

impl Profile {
    /// Time spent on one kind of work.
    pub fn time(&self, work: Work) -> Duration {
        Duration::from_nanos(self.nanoseconds[work as usize].load(Ordering::Relaxed))
    }

    /// Time spent on all of it.
    pub fn total(&self) -> Duration {
        Work::ALL.into_iter().map(|work| self.time(work)).sum()
    }
}

/// Does some work and, where somebody wants to know, counts its time.
pub(crate) fn timed<R>(profile: Option<&Profile>, work: Work, run: impl FnOnce() -> R) -> R {
    let Some(profile) = profile else { return run() };
    let start = Instant::now();
    let result = run();
    profile.nanoseconds[work as usize].fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
    result
}
