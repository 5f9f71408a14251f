//! Search under a cross-encoder: its own top k of a whole collection, for a budget of scored pairs.
//!
//! 1. **Anchor rows** ([`AnchorSet`]): some queries scored against every item, once, before any search.
//! 2. **A method** ([`Method`], [`build`] makes one by [`MethodName`]) learns from them. Constants are
//!    chosen on held-out anchor rows, never on the queries that are searched.
//! 3. **A search** ([`search_with`], or [`Searcher`] as a [`loxia_core::Retriever`]) goes in rounds: the
//!    method names items, the [`Ledger`] pays for them (each pair once, never beyond the budget or the
//!    deadline), the method learns from their scores. The answer is the best of all that was paid for.
//!
//! | method | what it scores |
//! |---|---|
//! | [`Exact`] | everything |
//! | [`Rerank`] | the best of a [`FirstStage`] |
//! | [`Anncur`] | fixed anchor items, then the best of a row guessed from them |
//! | [`Adacur`] | the same with items chosen for the query in rounds |
//! | [`Axn`] | by regression of the scores on item vectors, in rounds |
//! | [`Posterior`] | by the mean of a Gaussian model of the row, in rounds; it also estimates its recall |
//!
//! An [`Index`] is a fitted [`Posterior`] with the ids of its items, stored in a directory and mapped when it
//! is opened.
//!
//! Everything runs on the calling thread; searches of one method may run on many threads at once and
//! give the same answers. Rows and vectors are held in memory in single precision; what [`Posterior`]
//! keeps of each item is in half precision.

mod adacur;
mod anchors;
mod anncur;
mod axn;
mod catalogue;
mod collection;
mod error;
mod evaluate;
mod first_stage;
mod index;
mod kmeans;
mod ledger;
pub mod linalg;
mod method;
mod plane;
mod posterior;
mod rerank;
mod row_model;
mod scan;
mod schedule;

pub use adacur::{Adacur, AdacurSettings, Strategy};
pub use anchors::{AnchorSet, QueryRows};
pub use anncur::{AnchorItems, Anncur, AnncurSettings};
pub use axn::{Axn, AxnSettings, factorised_item_vectors};
pub use catalogue::{BuildOptions, Built, MethodName, build};
pub use collection::{Collection, MatrixCollection, QueryEncoder, Searcher, TextCollection};
pub use error::{Error, Result};
pub use evaluate::recall_grid;
pub use first_stage::{DualScan, FirstStage, GivenRun, RandomStart};
pub use index::{BuildTimes, EvaluatedAddition, Index, IndexOptions, IndexSummary, PlaneSummary, Provenance};
pub use ledger::{Ledger, ScoreItems};
pub use method::{Exact, Goal, Method, Outcome, QueryView, search_with};
pub use posterior::{Posterior, PosteriorSettings, choose_settings};
pub use rerank::Rerank;
pub use row_model::Solver;
pub use schedule::Schedule;
