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
//! | [`FixedItem`] | fixed anchor items, then the best of a row guessed from items in the query slot |
//! | [`Adacur`] | the same with items chosen for the query in rounds |
//! | [`Axn`] | by regression of the scores on item vectors, in rounds |
//! | [`Posterior`] | by the mean of a Gaussian model of the row, in rounds; it also estimates its recall |
//!
//! First stages and vectors need no neural encoder: [`TfidfVectors`], [`TfidfScan`] and (feature `bm25`)
//! `Bm25` are made from the texts. [`CachedScorer`] keeps scores on disk, so that none is paid for twice. An
//! [`Index`] is a fitted [`Posterior`] with the ids of its items, stored in a directory and mapped when it is
//! opened.
//!
//! A search runs on the calling thread; searches of one method may run on many threads at once (as
//! [`recall_grid`] does) and give the same answers. Rows and vectors are held in memory in single precision;
//! what [`Posterior`] keeps of each item is in half precision.

mod adacur;
mod anchors;
mod anncur;
mod axn;
mod catalogue;
mod collection;
mod cur;
mod dual_scan;
mod error;
mod evaluate;
mod first_stage;
mod fixed_item;
mod index;
mod item_scores;
mod kmeans;
mod ledger;
mod lexical;
pub mod linalg;
mod method;
mod paper;
mod plane;
mod posterior;
mod rerank;
mod row_model;
mod scan;
mod schedule;
mod score_cache;
mod spare;

pub use adacur::{Adacur, AdacurSettings, Strategy};
pub use anchors::{AnchorSet, QueryRows};
pub use anncur::{AnchorItems, Anncur, AnncurSettings, Preference};
pub use axn::{Axn, AxnSettings, factorised_item_vectors};
pub use catalogue::{BuildOptions, Built, MethodName, build, build_for_paper, build_for_seeds};
pub use collection::{Collection, MatrixCollection, QueryEncoder, Searcher, TextCollection};
pub use cur::{CurLink, CurQuality, cur_quality, numerical_rank, singular_values};
pub use dual_scan::{BlockScan, DualScan, normalise_rows};
pub use error::{Error, Result};
pub use evaluate::{RowOutcome, recall_grid, search_row};
pub use first_stage::{FirstStage, GivenRun, RandomStart};
pub use fixed_item::FixedItem;
pub use index::{
    BuildTimes, EvaluatedAddition, Index, IndexOptions, IndexSummary, PlaneSummary, Provenance, TextSource,
};
pub use item_scores::ItemScores;
pub use ledger::{Ledger, ScoreItems};
pub use lexical::{Analyser, ItemTexts, TfidfScan, TfidfSettings, TfidfVectors};
#[cfg(feature = "bm25")]
pub use lexical::{Bm25, Stemming};
pub use method::{EstimateReach, Exact, Goal, Method, Outcome, QueryView, search_with};
pub use paper::{PaperAccounting, paper_recalls};
pub use posterior::{Posterior, PosteriorSettings, StoredScan, choose_settings};
pub use rerank::Rerank;
pub use row_model::Solver;
pub use schedule::Schedule;
pub use score_cache::{CacheFound, CachedScorer};
