//! The program as its users run it, on the embedded tiny models.

mod bad_input;
mod bench;
mod config;
mod data;
mod demo;
mod embed;
mod eval;
mod faults;
mod index;
mod keep_scores;
mod kill;
mod knn;
mod precision;
mod program;
mod rerank;
mod retrieve;
mod score;
mod search;
