//! What the fuzz targets share: files and directories made from an input.
//!
//! Parsers that take bytes are called directly. Those that open a path get one from a [`Scratch`] directory,
//! in memory (`/dev/shm`) where the system has that.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

/// A directory that lives as long as the process and is emptied before each input.
pub struct Scratch(TempDir);

impl Scratch {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        Scratch(
            tempfile::Builder::new().prefix("loxia-fuzz").tempdir_in(parent).expect("a scratch directory"),
        )
    }

    fn clear(&self) {
        for entry in fs::read_dir(self.0.path()).expect("the scratch directory is there").flatten() {
            let path = entry.path();
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.expect("what was written can be removed");
        }
    }
}

/// Calls `body` with an empty directory.
pub fn with_directory(body: impl FnOnce(&Path)) {
    thread_local!(static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new()));
    SCRATCH.with_borrow(|scratch| {
        scratch.clear();
        body(scratch.0.path());
    });
}

/// Calls `body` with a file of these bytes.
pub fn with_file(bytes: &[u8], body: impl FnOnce(&Path)) {
    with_directory(|directory| {
        let path = directory.join("input");
        fs::write(&path, bytes).expect("the scratch directory has room");
        body(&path);
    });
}

/// Cuts an input into files: one byte chooses the name, two (little endian) give the length, then the
/// content, again and again. A length beyond the end takes what is left.
pub fn files_of<'a>(mut input: &'a [u8], names: &[&'static str]) -> Vec<(&'static str, &'a [u8])> {
    let mut files = Vec::new();
    while let Some((&[name, low, high], rest)) = input.split_first_chunk::<3>() {
        let length = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        let (content, after) = rest.split_at(length);
        files.push((names[usize::from(name) % names.len()], content));
        input = after;
    }
    files
}

/// Writes files below a directory.
pub fn write_files<B: AsRef<[u8]>>(directory: &Path, files: &[(&str, B)]) {
    for (name, content) in files {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().expect("a file lies in a directory")).expect("room for a directory");
        fs::write(path, content).expect("the scratch directory has room");
    }
}
