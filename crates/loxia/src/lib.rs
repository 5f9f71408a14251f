#![doc = include_str!("../../../README.md")]
//!
//! ---
//!
//! This crate is the door most programs use: it re-exports the parts under short names.

pub use loxia_core as core;
pub use loxia_data as data;
pub use loxia_eval as eval;
pub use loxia_model as model;
pub use loxia_nn as nn;
pub use loxia_search as search;

/// What most programs need.
pub mod prelude {
    pub use loxia_core::{
        Answer, Cancel, Cost, Item, NoProgress, PairScorer, Progress, Qrels, Query, QueryText, Ranking,
        Retriever, Run, RunEntry, Seed, Stop, TopK,
    };
    pub use loxia_data::{DataOptions, DataSet};
    pub use loxia_eval::{EvalOptions, Measure, evaluate};
    pub use loxia_model::{CrossEncoder, ModelOptions, ModelSpec, TextEncoder};
}
