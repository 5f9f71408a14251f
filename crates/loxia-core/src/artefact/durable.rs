//! Renames and syncs in the order that survives a loss of power.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Adapter for `map_err`: an I/O error with the path and what was tried.
pub(crate) fn io_error(path: &Path, action: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    let action = action.into();
    move |source| Error::io(path, action, source)
}

/// The path beside `path` whose name has `suffix` appended.
pub(crate) fn sibling(path: &Path, suffix: &str) -> Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| Error::Invalid(format!("{}: an output needs a name of its own", path.display())))?;
    let mut name = OsString::from(name);
    name.push(suffix);
    Ok(path.with_file_name(name))
}

/// Whether anything has this name, a dangling link included.
pub(crate) fn exists(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(path, "look up", error)),
    }
}

/// Makes names created in or renamed into `directory` durable.
pub(crate) fn sync_directory(directory: &Path) -> Result<()> {
    // A bare file name has the empty path as its parent.
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    // Only Unix opens directories as files; elsewhere the rename itself is all there is.
    if cfg!(unix) {
        let handle = fs::File::open(directory).map_err(io_error(directory, "open"))?;
        handle.sync_all().map_err(io_error(directory, "sync"))?;
    }
    Ok(())
}

/// Makes every name in `root` and in the directories within it durable, the innermost first.
pub(super) fn sync_tree(root: &Path) -> Result<()> {
    directories(root)?.iter().rev().try_for_each(|directory| sync_directory(directory))
}

/// `root` and all directories within it, each before those that it holds. Links are not followed.
fn directories(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![root.to_owned()];
    let mut next = 0;
    while let Some(directory) = found.get(next).cloned() {
        for entry in fs::read_dir(&directory).map_err(io_error(&directory, "list"))? {
            let entry = entry.map_err(io_error(&directory, "list"))?;
            if entry.file_type().map_err(io_error(&entry.path(), "look up"))?.is_dir() {
                found.push(entry.path());
            }
        }
        next += 1;
    }
    Ok(found)
}

/// Renames and makes the new name durable.
pub(crate) fn rename_durably(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(io_error(to, format!("rename {} to it", from.display())))?;
    sync_parent(to)
}

/// Makes the name of `path` durable, or that it has none.
pub(crate) fn sync_parent(path: &Path) -> Result<()> {
    path.parent().map_or(Ok(()), sync_directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_is_found_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        fs::create_dir(root.join("d")).unwrap();
        fs::write(root.join("a/file"), "").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/", root.join("link")).unwrap();
        let mut found = directories(root).unwrap();
        let place = |name: &str| found.iter().position(|path| *path == root.join(name)).unwrap();
        assert!(place("") < place("a") && place("a") < place("a/b") && place("a/b") < place("a/b/c"));
        found.sort();
        assert_eq!(found, ["", "a", "a/b", "a/b/c", "d"].map(|name| root.join(name)));
        sync_tree(root).unwrap();
    }
}
