//! A full disk and a read-only directory: a clear error, and work that can be resumed.
//!
//! Both need a mount; where that is not allowed the test says so and passes.

use std::path::Path;
use std::process::Command;

use crate::program::{asset, content, model, run, succeed};

/// A small tmpfs, unmounted on drop.
struct Mount<'a>(&'a Path);

impl<'a> Mount<'a> {
    fn new(path: &'a Path, options: &str) -> Option<Self> {
        std::fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path).output();
        match mounted {
            Ok(output) if output.status.success() => Some(Mount(path)),
            _ => {
                eprintln!("skipped: mounting a tmpfs is not allowed here");
                None
            }
        }
    }

    fn remount(&self, options: &str) {
        let done = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(self.0).status();
        assert!(done.unwrap().success());
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

fn arguments(output: &Path) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["score", "--split", "test", "--world", "verb.motion", "--rows", "0..4", "--tile-pairs", "500"]
            .map(String::from)
            .to_vec();
    arguments.extend(["--model".into(), model(), "--data".into(), asset("worlds")]);
    arguments.extend(["--output".into(), output.display().to_string()]);
    arguments
}

#[test]
fn a_full_disk_ends_in_a_clear_error_and_can_be_resumed() {
    let scratch = tempfile::tempdir().unwrap();
    let disk = scratch.path().join("disk");
    let Some(mount) = Mount::new(&disk, "size=44k") else { return };
    let output = disk.join("scores");
    let mut arguments = arguments(&output);
    run(&arguments).fails_with(1, &["scores", "tile", "No space left on device"]);
    mount.remount("size=16m");
    arguments.push("--resume".into());
    succeed(&arguments);

    let elsewhere = scratch.path().join("scores");
    arguments.pop();
    *arguments.last_mut().unwrap() = elsewhere.display().to_string();
    succeed(&arguments);
    for ((name, resumed), (_, whole)) in content(&output).iter().zip(content(&elsewhere)) {
        assert!(*resumed == whole || name == "manifest.json", "{name} differs");
    }
}

#[test]
fn a_read_only_directory_ends_in_a_clear_error() {
    let scratch = tempfile::tempdir().unwrap();
    let disk = scratch.path().join("disk");
    let Some(mount) = Mount::new(&disk, "size=16m") else { return };
    mount.remount("ro");
    let output = disk.join("scores");
    let mut arguments = arguments(&output);
    run(&arguments).fails_with(1, &["scores", "cannot", "Read-only file system"]);
    mount.remount("rw");
    arguments.push("--resume".into());
    succeed(&arguments);
}
