//! Integration tests of the search crate.

mod anchors;
mod bad_input;
mod identities;
mod linalg;
mod posterior;
mod score_cache;
mod synthetic;
