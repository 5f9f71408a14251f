//! Search under a cross-encoder.

mod adacur;
mod anchors;
mod anncur;
mod axn;
mod catalogue;
mod collection;
mod error;
mod evaluate;
mod first_stage;
mod kmeans;
mod ledger;
pub mod linalg;
mod method;
mod posterior;
mod rerank;
mod row_model;
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
pub use ledger::{Ledger, ScoreItems};
pub use method::{Exact, Goal, Method, Outcome, QueryView, search_with};
pub use posterior::{Posterior, PosteriorSettings, choose_settings};
pub use rerank::Rerank;
pub use row_model::Solver;
pub use schedule::Schedule;
