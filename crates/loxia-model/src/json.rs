//! Reading JSON files of unknown origin.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Configuration files are small; an index of shards is the largest of them.
const MAX_JSON: u64 = 64 << 20;

/// Parses a JSON file; the error names the file, the line and the column.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = read_bounded(path, MAX_JSON)?;
    serde_json::from_slice(&bytes)
        .map_err(|e| Error::malformed(path, format!("not the JSON expected here: {e}")))
}

/// Parses a JSON file that may be absent.
pub(crate) fn read_json_if_present<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if path.is_file() { read_json(path).map(Some) } else { Ok(None) }
}

fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|e| Error::io(path, "read", e))?;
    if bytes.len() as u64 > limit {
        return Err(Error::malformed(
            path,
            format!("longer than {limit} bytes, which no configuration file is"),
        ));
    }
    Ok(bytes)
}
