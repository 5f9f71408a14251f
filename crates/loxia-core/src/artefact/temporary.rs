//! The name under which an output grows: `<name>.partial-<process>-<number>`, beside its target.
//!
//! Dropped, it is removed. A process that is killed cannot do that, so each holds a lock on its temporary;
//! the next writer of the same target removes those whose lock nobody holds.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::durable::{io_error, sibling};
use crate::Result;

const STEM: &str = ".partial-";

/// A suffix no other writer of this machine uses at the moment.
pub(super) fn unique_suffix(stem: &str) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    format!("{stem}{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed))
}

/// A temporary file or directory; gone when dropped, unless it was renamed before.
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
    _lock: Option<File>,
}

impl Temporary {
    /// An empty directory for what will be `target`.
    pub(super) fn directory(target: &Path) -> Result<Self> {
        let path = Self::name(target)?;
        fs::create_dir(&path).map_err(io_error(&path, "create"))?;
        let _lock = File::open(&path).ok().and_then(locked);
        Ok(Temporary { path, _lock })
    }

    /// An empty file for what will be `target`.
    pub(super) fn file(target: &Path) -> Result<(Self, File)> {
        let path = Self::name(target)?;
        let file = File::create_new(&path).map_err(io_error(&path, "create"))?;
        let _lock = file.try_clone().ok().and_then(locked);
        Ok((Temporary { path, _lock }, file))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn name(target: &Path) -> Result<PathBuf> {
        let path = sibling(target, &unique_suffix(STEM))?;
        remove_orphans(target);
        Ok(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// The file, if its lock is ours now.
fn locked(file: File) -> Option<File> {
    file.try_lock().is_ok().then_some(file)
}

/// Removes temporaries of `target` that a killed process left. Whatever cannot be removed stays: it is only
/// in the way of disk space.
fn remove_orphans(target: &Path) {
    let (Some(parent), Some(name)) = (target.parent(), target.file_name().and_then(|name| name.to_str()))
    else {
        return;
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(|entry| is_temporary_of(entry, name));
        if ours && File::open(entry.path()).ok().and_then(locked).is_some() {
            remove(&entry.path());
        }
    }
}

fn is_temporary_of(entry: &str, name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    entry
        .strip_prefix(name)
        .and_then(|rest| rest.strip_prefix(STEM))
        .and_then(|rest| rest.split_once('-'))
        .is_some_and(|(process, count)| number(process) && number(count))
}

fn remove(path: &Path) {
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orphans_are_removed_and_live_ones_are_not() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("scores");
        let orphan = parent.path().join("scores.partial-1-0");
        fs::create_dir(&orphan).unwrap();
        fs::write(orphan.join("data"), "half").unwrap();
        let others = ["scores.partial", "scores.partial-x-0", "scores2.partial-1-0", "scores.partial-1"];
        others.iter().for_each(|name| fs::write(parent.path().join(name), "").unwrap());
        let first = Temporary::directory(&target).unwrap();
        let (second, _) = Temporary::file(&target).unwrap();
        assert!(!orphan.exists());
        assert!(first.path().is_dir() && second.path().is_file());
        assert!(others.iter().all(|name| parent.path().join(name).exists()));
        drop((first, second));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), others.len());
    }
}
