//! Stored weights: formats, files, and reading a model's tensors by name.
//!
//! A [`WeightStore`] is all weight files of a directory seen as one map of names; tensors are read in pieces of rows. A [`TensorCheck`] compares names, shapes and types with those
//! of a network and remembers everything that does not fit, so that one error names all of it.

mod check;
mod dtype;
mod file;
pub(crate) mod safetensors;
mod store;

pub(crate) use check::TensorCheck;
pub use dtype::Dtype;
pub(crate) use file::{StoredFile, TensorBytes};
pub(crate) use store::{STEPS, WeightStore};
