//! From a model directory to a scorer.

pub mod layout;
mod tokenizer;
