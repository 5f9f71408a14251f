//! The name under which an output grows: `<name>.partial-<process>-<number>`, beside its target.
//!
//! Dropped, it is removed. A process that is killed cannot do that, so each holds a lock on its temporary;
//! the next writer of the same target removes those whose lock nobody holds. What is to be removed in any
//! case gets such a name first, so that nobody takes half of it for the whole.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::durable::{exists, io_error, sibling};
use crate::{Error, Result};

const STEM: &str = ".partial-";

/// Names tried for a temporary. One is lost only to a clean-up in the microseconds before it is locked.
const ATTEMPTS: usize = 64;

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
        Self::claim(target, |path| fs::create_dir(path))
    }

    /// An empty file for what will be `target`.
    pub(super) fn file(target: &Path) -> Result<(Self, File)> {
        let temporary = Self::claim(target, |path| File::create_new(path).map(|_| ()))?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).open(&temporary.path);
        let file = file.map_err(io_error(&temporary.path, "open"))?;
        Ok((temporary, file))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes something under a name of its own and locks it. Another writer may have found it unlocked and
    /// be about to remove it; then the next name is tried.
    fn claim(target: &Path, make: impl Fn(&Path) -> io::Result<()>) -> Result<Self> {
        remove_orphans(target);
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let path = sibling(target, &unique_suffix(STEM))?;
            match make(&path) {
                // Process numbers repeat where several machines or containers share a disk.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    last = Some((path, error));
                    continue;
                }
                made => made.map_err(io_error(&path, "create"))?,
            }
            let lock = lock(&path);
            if !matches!(lock, Lock::Taken) && exists(&path)? {
                return Ok(Temporary { path, _lock: lock.held() });
            }
            last = Some((path, io::Error::new(io::ErrorKind::WouldBlock, "others remove it at once")));
        }
        let (path, error) = last.expect("at least one name was tried");
        Err(Error::io(path, "create", error))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// What came of the wish for a lock.
#[derive(Debug)]
pub(super) enum Lock {
    Held(File),
    /// Someone else has it.
    Taken,
    /// There is nothing to lock, or the file system has no locks; care is then the user's.
    None,
}

impl Lock {
    pub(super) fn held(self) -> Option<File> {
        match self {
            Lock::Held(file) => Some(file),
            Lock::Taken | Lock::None => None,
        }
    }
}

/// Tries to lock a file or directory until the lock is dropped.
pub(super) fn lock(path: &Path) -> Lock {
    let Ok(file) = File::open(path) else { return Lock::None };
    match file.try_lock() {
        Ok(()) => Lock::Held(file),
        Err(TryLockError::WouldBlock) => Lock::Taken,
        Err(TryLockError::Error(_)) => Lock::None,
    }
}

/// Removes temporaries of `target` that a killed process left. Whatever cannot be removed stays: it is only
/// in the way of disk space.
pub(super) fn remove_orphans(target: &Path) {
    for path in left_behind(target, STEM) {
        // Held until it is gone: its maker, if it was not yet locked, sees from that that it is lost.
        if let Lock::Held(_lock) = lock(&path) {
            remove(&path);
        }
    }
}

/// Removes a directory of `target`'s that nobody needs any more: out of its name at once and for good, and
/// from the disk as far as that is possible. What stays there the next writer of `target` tries again.
pub(crate) fn discard_directory(path: &Path, target: &Path) -> Result<()> {
    let aside = sibling(target, &unique_suffix(STEM))?;
    fs::rename(path, &aside).map_err(io_error(path, "move aside"))?;
    remove(&aside);
    Ok(())
}

/// Everything beside `target` that is named `<name><stem><process>-<number>`.
pub(super) fn left_behind(target: &Path, stem: &str) -> Vec<PathBuf> {
    let (Some(parent), Some(name)) = (target.parent(), target.file_name().and_then(|name| name.to_str()))
    else {
        return Vec::new();
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(|entry| is_named(entry, name, stem)))
        .map(|entry| entry.path())
        .collect()
}

fn is_named(entry: &str, name: &str, stem: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    entry
        .strip_prefix(name)
        .and_then(|rest| rest.strip_prefix(stem))
        .and_then(|rest| rest.split_once('-'))
        .is_some_and(|(process, count)| number(process) && number(count))
}

fn remove(path: &Path) {
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

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

    #[cfg(unix)]
    #[test]
    fn a_name_lost_before_it_is_locked_is_given_up() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("scores");
        // Another writer has locked the first and has removed the second; the third is someone else's.
        let (seen, locks) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let made = Temporary::claim(&target, |path| {
            fs::create_dir(path)?;
            seen.borrow_mut().push(path.to_owned());
            match seen.borrow().len() {
                1 => locks.borrow_mut().push(lock(path).held().unwrap()),
                2 => fs::remove_dir(path)?,
                3 => fs::create_dir(path)?,
                _ => {}
            }
            Ok(())
        });
        let made = made.unwrap();
        assert_eq!(seen.borrow().len(), 4);
        assert_eq!(made.path(), seen.borrow()[3]);
        assert!(matches!(lock(made.path()), Lock::Taken));
        let failed = Temporary::claim(&target, |_| Err(io::ErrorKind::AlreadyExists.into()));
        assert!(failed.unwrap_err().to_string().contains("scores.partial-"));
    }

    #[cfg(unix)]
    #[test]
    fn writers_that_begin_together_keep_their_temporaries() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("scores");
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let made = Temporary::directory(&target).unwrap();
                        fs::write(made.path().join("data"), "all").expect("nobody removes it");
                    }
                });
            }
        });
    }
}
