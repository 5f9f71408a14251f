//! A directory in the place of another.
//!
//! Where the system can, the two exchange their names in one step, and the old one is removed from the name
//! that the new one had. Elsewhere there is a moment without either: the old one is then called
//! `<name>.replaced-<process>-<number>`, and whoever writes there next gives it its name back.

use std::fs;
use std::path::Path;

use super::Existing;
use super::durable::{exists, io_error, rename_durably, sibling, sync_parent};
use super::temporary::{discard_directory, left_behind, lock, remove_orphans, unique_suffix};
use crate::{Error, Result};

const STEM: &str = ".replaced-";

/// Whether `existing` and what is at `target` allow a new directory there.
pub(crate) fn check_replaceable(target: &Path, existing: Existing, marker: &str) -> Result<()> {
    if !exists(target)? {
        return Ok(());
    }
    if existing == Existing::Refuse {
        return Err(Error::Exists { path: target.to_owned(), resumable: false });
    }
    let metadata = fs::symlink_metadata(target).map_err(io_error(target, "look up"))?;
    let refuse = |what: &str| Err(Error::Invalid(format!("{}: {what}, not replaced", target.display())));
    if !metadata.is_dir() {
        return refuse("not a directory");
    }
    let empty = fs::read_dir(target).map_err(io_error(target, "list"))?.next().is_none();
    if empty || exists(&target.join(marker))? {
        Ok(())
    } else {
        refuse(&format!("a directory without {marker} is no artefact"))
    }
}

/// Gives `from` the name `target`. On error the old one, if any, is in its place; that it could not be
/// removed afterwards is no error.
pub(crate) fn replace_directory(from: &Path, target: &Path, existing: Existing, marker: &str) -> Result<()> {
    check_replaceable(target, existing, marker)?;
    if !exists(target)? {
        rename_durably(from, target)?;
    } else if exchange(from, target) {
        if let Err(error) = sync_parent(target) {
            exchange(from, target);
            return Err(error);
        }
        let _ = discard_directory(from, target);
    } else {
        replace_in_two_steps(from, target)?;
    }
    recover(target);
    Ok(())
}

fn replace_in_two_steps(from: &Path, target: &Path) -> Result<()> {
    let aside = sibling(target, &unique_suffix(STEM))?;
    // So that nobody takes it for one that a killed process left.
    let _lock = lock(target);
    fs::rename(target, &aside).map_err(io_error(target, "move aside"))?;
    if let Err(error) = rename_durably(from, target) {
        // Best effort: the first error is the one to report.
        let _ = fs::rename(&aside, target);
        return Err(error);
    }
    let _ = discard_directory(&aside, target);
    Ok(())
}

/// Clears up what killed writers of `target` left: an old directory gets its name back if nothing else has
/// it. Best effort; nobody else's work is touched.
pub(crate) fn recover(target: &Path) {
    remove_orphans(target);
    let left: Vec<_> = left_behind(target, STEM)
        .into_iter()
        .filter_map(|path| lock(&path).held().map(|lock| (path, lock)))
        .collect();
    match exists(target) {
        Ok(true) => left.iter().for_each(|(path, _)| {
            let _ = discard_directory(path, target);
        }),
        Ok(false) => {
            let newest =
                left.iter().max_by_key(|(_, lock)| lock.metadata().and_then(|data| data.modified()).ok());
            if let Some((path, _)) = newest {
                let _ = rename_durably(path, target);
            }
        }
        Err(_) => {}
    }
}

/// Exchanges two names in one step, or does nothing and returns `false`.
#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> bool {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    let name = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let (Ok(one), Ok(other)) = (name(one), name(other)) else { return false };
    let here = libc::AT_FDCWD;
    // The system call itself, as not every C library has the function.
    // SAFETY: both names end with a zero and outlive the call, which only reads them.
    let status = unsafe {
        libc::syscall(libc::SYS_renameat2, here, one.as_ptr(), here, other.as_ptr(), libc::RENAME_EXCHANGE)
    };
    status == 0
}

/// Other systems do it in two steps.
#[cfg(not(target_os = "linux"))]
fn exchange(_one: &Path, _other: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(path: &Path, content: &str) {
        fs::create_dir(path).unwrap();
        fs::write(path.join("manifest.json"), content).unwrap();
    }

    #[test]
    fn both_ways_replace_and_leave_nothing() {
        for way in ["exchange", "two steps"] {
            let parent = tempfile::tempdir().unwrap();
            let (from, target) = (parent.path().join("new"), parent.path().join("vectors"));
            directory(&from, "new");
            directory(&target, "old");
            if way == "exchange" {
                replace_directory(&from, &target, Existing::Overwrite, "manifest.json").unwrap();
            } else {
                replace_in_two_steps(&from, &target).unwrap();
            }
            assert_eq!(fs::read(target.join("manifest.json")).unwrap(), b"new", "{way}");
            assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1, "{way}");
        }
    }

    #[test]
    fn a_failed_step_puts_the_old_one_back() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("vectors");
        directory(&target, "old");
        assert!(replace_in_two_steps(&parent.path().join("nothing"), &target).is_err());
        assert_eq!(fs::read(target.join("manifest.json")).unwrap(), b"old");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn an_old_one_between_two_steps_of_a_living_process_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let (target, aside) = (parent.path().join("vectors"), parent.path().join("vectors.replaced-1-0"));
        directory(&aside, "old");
        let held = lock(&aside);
        recover(&target);
        assert!(aside.exists() && !target.exists());
        drop(held);
        recover(&target);
        assert!(!aside.exists() && target.exists());
    }
}
