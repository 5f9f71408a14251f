//! Stored weights: formats, files, and reading a model's tensors by name.
//!
//! A [`WeightStore`] is all weight files of a directory seen as one map of names. A [`TensorLoader`] fills
//! a network from it and remembers everything that does not fit, so that one error names all of it.

mod dtype;
mod loader;
pub(crate) mod safetensors;
mod store;

pub use dtype::Dtype;
pub(crate) use loader::TensorLoader;
pub(crate) use store::{STEPS, WeightStore};
