//! One digest over everything that decides a score.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use loxia_core::artefact::Digester;

use crate::error::{Error, Result};
use crate::weights::WeightStore;

/// Tokenizer files, in the order they are hashed.
pub(crate) const TOKENIZER_FILES: [&str; 7] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
];

/// SHA-256 of files (names and contents) and settings, computed when first asked for: a large model takes a
/// second to hash, and not every command needs it. Paths do not enter, so it is the same on every machine.
pub(crate) struct ModelDigest {
    files: Vec<PathBuf>,
    settings: String,
    hex: OnceLock<String>,
}

impl ModelDigest {
    pub(crate) fn new(files: Vec<PathBuf>, settings: String) -> Self {
        ModelDigest { files, settings, hex: OnceLock::new() }
    }

    pub(crate) fn hex(&self) -> Result<&str> {
        if let Some(hex) = self.hex.get() {
            return Ok(hex);
        }
        let hex = self.compute()?;
        Ok(self.hex.get_or_init(|| hex))
    }

    fn compute(&self) -> Result<String> {
        let mut hash = Digester::new();
        for path in &self.files {
            let mut file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
            let length = file.metadata().map_err(|e| Error::io(path, "inspect", e))?.len();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // Lengths before contents, so that no two lists of files hash alike.
            hash.update(&(name.len() as u64).to_le_bytes());
            hash.update(name.as_bytes());
            hash.update(&length.to_le_bytes());
            io::copy(&mut file, &mut hash).map_err(|e| Error::io(path, "read", e))?;
        }
        hash.update(self.settings.as_bytes());
        Ok(hash.finish())
    }
}

/// The files of an encoder's directory that decide what it computes.
pub(crate) fn encoder_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = vec![directory.join("config.json")];
    files.extend(WeightStore::paths(directory)?);
    files.extend(TOKENIZER_FILES.iter().map(|name| directory.join(name)).filter(|path| path.is_file()));
    Ok(files)
}
