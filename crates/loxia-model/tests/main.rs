//! Integration tests of the crate, in one binary.

mod bombs;
mod checkpoints;
mod cross_encoder;
mod damage;
mod layout;
mod sentence;
mod text_encoder;
mod tokenizer;

use std::path::{Path, PathBuf};

/// A file or directory under `tests/fixtures`.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A directory of the shared test data; says that the test is skipped where it is absent.
fn test_data(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("LOXIA_TEST_DATA").map(PathBuf::from);
    let root = root.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let path = root.join(name);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: {} is absent (set LOXIA_TEST_DATA)", path.display());
    None
}
