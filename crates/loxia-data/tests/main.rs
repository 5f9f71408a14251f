//! Integration tests, one binary so that they link once.

mod reading;
mod shared;
