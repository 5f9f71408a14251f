//! The ground everything in Loxia stands on.
//!
//! Loxia ranks with cross-encoders. This crate knows neither networks nor the files of models; it holds
//! what all other crates say to each other:
//!
//! 1. **Names and texts**: [`QueryId`], [`ItemId`], [`Query`], [`Item`].
//! 2. **Scores**: [`matrix::ScoreMatrix`] in memory and on disk, [`npy`] in and out.
//! 3. **Order**: [`Ranking`] and [`TopK`], with one tie rule (score descending, then item order).
//! 4. **Runs and judgements**: [`Run`], [`Qrels`].
//! 5. **Contracts**: [`PairScorer`] and [`Retriever`], [`ExactSearch`] as the plainest retriever, and
//!    (feature `conformance`) tests that any implementation can be put through.
//! 6. **Long work**: [`Progress`], [`Cancel`], [`artefact`] directories that survive a crash, and
//!    [`Seed`] streams that keep results the same from run to run.

pub mod artefact;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod exact;
mod id;
pub mod matrix;
pub mod npy;
mod progress;
mod ranking;
mod retriever;
mod run;
mod scorer;
mod seed;
mod text;

pub use error::{Error, Result};
pub use exact::ExactSearch;
pub use id::{IdTable, ItemId, QueryId};
pub use progress::{Cancel, NoProgress, Progress};
pub use ranking::{Ranking, Scored, TopK};
pub use retriever::{Answer, Budget, RecallEstimate, RecallTarget, Retriever, Stop, StoppedBy};
pub use run::{Qrels, Run, RunEntry};
pub use scorer::{Cost, FnScorer, PairScorer, ScorerInfo};
pub use seed::{Seed, Stream};
pub use text::{Item, Query, QueryText};
