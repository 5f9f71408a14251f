//! PyTorch checkpoints, read without running anything in them.
//!
//! A checkpoint is a zip archive with one pickle (`data.pkl`) and one file of raw numbers for each storage.
//! A pickle is a program that may call any Python function; [`machine`] runs only the part that builds
//! numbers, strings, containers and tensors. Whatever else it asks for becomes an *opaque* value: listed,
//! never resolved. A tensor that depends on one is an error when, and only when, it is wanted.

pub(crate) mod machine;
mod torch_file;
mod value;
pub(crate) mod zip;

pub(crate) use torch_file::{TorchFile, read as read_checkpoint};
