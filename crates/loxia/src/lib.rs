//! Loxia: ranking with cross-encoders.
//!
//! This crate is the door most programs use: it re-exports the parts under short names.

pub use loxia_core as core;
pub use loxia_data as data;
pub use loxia_eval as eval;
pub use loxia_model as model;
pub use loxia_nn as nn;
