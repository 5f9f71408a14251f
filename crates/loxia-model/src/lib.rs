//! From a model directory to a scorer.

pub mod layout;
pub mod tokenizer;
