//! The crate's parsers as plain functions of bytes, for fuzzing and for tools that have no file.
//!
//! Each returns what it found in short, or why the bytes were refused; none may panic, loop, or take memory
//! out of proportion to its input.

use std::path::Path;

use crate::error::{Error, Malformed, Result};
use crate::families::parse_config;
use crate::loxia_json::LoxiaJson;
use crate::pickle::{self, machine, zip};
use crate::weights::safetensors;

/// Number of tensors of a whole safetensors file.
///
/// ```
/// assert!(loxia_model::parse::safetensors_header(&[0; 4]).is_err());
/// ```
pub fn safetensors_header(file: &[u8]) -> Result<usize, Malformed> {
    safetensors::parse_header(file).map(|entries| entries.len())
}

/// Names of what a pickle asked for and did not get.
///
/// ```
/// assert_eq!(loxia_model::parse::pickle(b"cos\nsystem\n.").unwrap(), Vec::<String>::new());
/// ```
pub fn pickle(program: &[u8]) -> Result<Vec<String>, Malformed> {
    machine::run(program).map(|program| program.opaque())
}

/// Bytes in the entries of a zip archive.
pub fn zip(file: &[u8]) -> Result<usize, Malformed> {
    Ok(zip::parse_directory(file)?.iter().map(|entry| entry.content(file).len()).sum())
}

/// Number of tensors of a PyTorch checkpoint.
pub fn torch_file(file: &[u8]) -> Result<usize, Malformed> {
    pickle::read_checkpoint(file).map(|(_, tensors, _)| tensors.len())
}

/// A `loxia.json`.
pub fn loxia_json(text: &[u8]) -> Result<LoxiaJson, Malformed> {
    LoxiaJson::parse(text)
}

/// Number of layers a `config.json` describes.
pub fn config_json(text: &[u8]) -> Result<usize> {
    let path = Path::new("config.json");
    let value = serde_json::from_slice(text).map_err(|e| Error::malformed(path, e.to_string()))?;
    parse_config(path, value).map(|config| config.architecture.shape.layers)
}
