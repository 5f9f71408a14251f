//! Integration tests of the search crate.

mod linalg;
