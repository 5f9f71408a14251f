//! Search under a cross-encoder.

mod error;
pub mod linalg;

pub use error::{Error, Result};
