//! Integration tests of the crate, in one binary.

mod layout;
mod tokenizer;
