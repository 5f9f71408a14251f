//! Integration tests, one binary so that they link once.

mod converting;
mod layouts;
mod reading;
mod round_trips;
mod shared;
mod training_files;
