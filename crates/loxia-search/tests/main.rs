//! Integration tests of the search crate.

mod anchors;
mod bad_input;
mod identities;
mod index;
mod linalg;
mod posterior;
mod score_cache;
mod synthetic;
