//! Processes killed, disks full, directories read-only.
//!
//! A test that needs another process runs this binary again with one `child` test and a task in the
//! environment; without a task the child tests do nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use loxia_core::artefact::{ArtefactWriter, Existing};
use loxia_core::matrix::{MatrixWriter, TileShape};
use loxia_core::{Error, Seed};

use crate::sample::*;

const TASK: &str = "LOXIA_TEST_CHILD";
const ALL: usize = usize::MAX;

/// Sixteen tiles of 16 KiB, each one contiguous.
fn sample() -> Sample {
    Sample { rows: ids("q", 64), cols: ids("d", 1024), tile: TileShape { rows: 4, cols: 1024 } }
}

fn this_binary() -> PathBuf {
    std::env::current_exe().unwrap()
}

#[test]
fn killed_at_any_moment_at_most_one_tile_is_lost() {
    let parent = tempfile::tempdir().unwrap();
    let sample = sample();
    let unbroken = sample.fill(&parent.path().join("unbroken"), ALL).finish().unwrap();
    let expected = files(&unbroken);
    let mut stream = Seed(11).stream("moments");
    for round in 0..20 {
        let path = parent.path().join(format!("killed{round}"));
        let mut child = Command::new(this_binary())
            .args(["--exact", "faults::child_that_is_killed", "--nocapture"])
            .env(TASK, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Every fourth is killed while it begins; the others after a random tile, within the next ones.
        let mut seen = Vec::new();
        if round % 4 != 0 {
            let wait_for = format!("durable {}", stream.below(14));
            while seen.last() != Some(&wait_for) {
                seen.push(lines.next().expect("the child writes every tile").unwrap());
            }
        }
        std::thread::sleep(Duration::from_micros(stream.below(4000)));
        child.kill().unwrap();
        child.wait().unwrap();
        seen.extend(lines.map_while(Result::ok));
        let durable = seen.iter().filter(|line| line.starts_with("durable")).count();
        if let Some(writer) = MatrixWriter::resume(&path, &sample.dense(), Existing::Refuse).unwrap() {
            assert_eq!(writer.dropped(), 0);
            let missing = writer.missing_tiles().count();
            assert!(missing <= 16 - durable, "{durable} tiles were durable, {missing} are missing");
            drop(writer);
            sample.fill(&path, ALL).finish().unwrap();
        }
        assert_eq!(files(&path), expected, "round {round}");
        fs::remove_dir_all(&path).unwrap();
    }
    let left: Vec<_> = fs::read_dir(parent.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["unbroken"], "nothing temporary is left");
}

#[test]
fn child_that_is_killed() {
    let Some(path) = std::env::var_os(TASK) else { return };
    let sample = sample();
    let mut writer = MatrixWriter::create(path.as_ref(), &sample.dense(), Existing::Refuse).unwrap();
    println!();
    for tile in 0..writer.grid().tiles() {
        let scores = tile_scores(writer.grid(), tile);
        writer.write_tile(tile, &scores).unwrap();
        println!("durable {tile}");
    }
    writer.finish().unwrap();
}

#[test]
fn killed_while_it_discards_unfinished_work_another_can_begin() {
    let parent = tempfile::tempdir().unwrap();
    let sample = sample();
    let path = parent.path().join("discarded");
    drop(sample.fill(&path, 2));
    let manifest = partial(&path).join("manifest.json");
    // Enough that it is killed within.
    (0..3000).for_each(|number| fs::write(partial(&path).join(format!("x{number}")), "").unwrap());
    let mut child = Command::new(this_binary())
        .args(["--exact", "faults::child_that_discards", "--nocapture"])
        .env(TASK, &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while manifest.exists() && child.try_wait().unwrap().is_none() {}
    child.kill().unwrap();
    child.wait().unwrap();
    let writer = MatrixWriter::create(&path, &sample.dense(), Existing::Overwrite).unwrap();
    assert_eq!(writer.missing_tiles().count(), 16);
    drop(writer);
    sample.fill(&path, ALL).finish().unwrap();
    let left: Vec<_> = fs::read_dir(parent.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["discarded"], "nothing temporary is left");
}

#[test]
fn child_that_discards() {
    let Some(path) = std::env::var_os(TASK) else { return };
    MatrixWriter::create(path.as_ref(), &sample().dense(), Existing::Overwrite).unwrap();
}

#[test]
fn killed_between_two_renames_the_new_one_is_finished_or_the_old_one_comes_back() {
    let parent = scratch();
    let sample = Sample::small();
    let path = parent.path().join("matrix");
    let aside = parent.path().join("matrix.replaced-1-0");
    let expected = files(&sample.fill(&path, ALL).finish().unwrap());
    fs::rename(&path, &aside).unwrap();
    // With nothing else there the old one is the matrix.
    assert!(MatrixWriter::resume(&path, &sample.dense(), Existing::Refuse).unwrap().is_none());
    assert!(path.exists() && !aside.exists());

    // All tiles of the new one are there: it is finished, and the old one goes.
    let changed = sample.dense().digest("model", "new");
    let mut writer = MatrixWriter::create(&path, &changed, Existing::Overwrite).unwrap();
    for tile in 0..6 {
        let scores = tile_scores(writer.grid(), tile);
        writer.write_tile(tile, &scores).unwrap();
    }
    drop(writer);
    fs::rename(&path, &aside).unwrap();
    let writer = MatrixWriter::resume(&path, &changed, Existing::Refuse).unwrap().unwrap();
    assert_eq!(writer.missing_tiles().count(), 0);
    assert!(aside.exists());
    writer.finish().unwrap();
    assert_ne!(files(&path), expected);
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn every_directory_of_an_artefact_is_synced() {
    let parent = tempfile::tempdir().unwrap();
    let trace = parent.path().join("trace");
    let child = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=fsync", "-o"])
        .arg(&trace)
        .arg(this_binary())
        .args(["--exact", "faults::child_that_writes_an_inner_directory"])
        .env(TASK, parent.path().join("artefact"))
        .output();
    if !child.is_ok_and(|output| output.status.success()) {
        println!("skipped: no strace that works here");
        return;
    }
    let calls = fs::read_to_string(trace).unwrap();
    assert!(calls.lines().any(|call| call.contains("/inner>")), "{calls}");
}

#[cfg(target_os = "linux")]
#[test]
fn child_that_writes_an_inner_directory() {
    let Some(path) = std::env::var_os(TASK) else { return };
    let mut writer = ArtefactWriter::create(path, Existing::Refuse).unwrap();
    fs::create_dir(writer.directory().join("inner")).unwrap();
    writer.add_file("inner/data", |file| file.write_bytes(b"1")).unwrap();
    writer.commit().unwrap();
}

/// Writes tiles until the system refuses, and checks how that is told.
fn fill_until_refused(path: &Path) -> String {
    let sample = sample();
    let mut writer = MatrixWriter::resume(path, &sample.dense(), Existing::Refuse).unwrap().unwrap();
    let missing: Vec<usize> = writer.missing_tiles().collect();
    for tile in missing {
        let scores = tile_scores(writer.grid(), tile);
        match writer.write_tile(tile, &scores) {
            Ok(()) => {}
            Err(error @ Error::Io { .. }) => {
                let message = error.to_string();
                assert!(message.contains(&format!("cannot write tile {tile} of 16")), "{message}");
                assert!(message.contains(".partial"), "{message}");
                return message;
            }
            Err(error) => panic!("another error: {error}"),
        }
    }
    panic!("nothing was refused");
}

#[cfg(unix)]
#[test]
fn a_write_that_fails_halfway_leaves_a_resumable_state() {
    let parent = tempfile::tempdir().unwrap();
    let sample = sample();
    let expected = files(&sample.fill(&parent.path().join("unbroken"), ALL).finish().unwrap());
    let path = parent.path().join("limited");
    drop(sample.fill(&path, 2));
    // No file may grow beyond 90 blocks of 512 or 1024 bytes: within a tile either way.
    let script = "ulimit -f 90; trap '' XFSZ; exec \"$0\" --exact faults::child_with_a_limit --nocapture";
    let child = Command::new("sh").args(["-c", script]).arg(this_binary()).env(TASK, &path).output().unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && output.contains("refused: "), "{output}");
    let writer = sample.fill(&path, 0);
    assert!((1..16).contains(&writer.missing_tiles().count()));
    drop(writer);
    sample.fill(&path, ALL).finish().unwrap();
    assert_eq!(files(&path), expected);
}

#[test]
fn child_with_a_limit() {
    let Some(path) = std::env::var_os(TASK) else { return };
    println!("refused: {}", fill_until_refused(path.as_ref()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_and_a_read_only_one_are_told_and_resumable() {
    let parent = tempfile::tempdir().unwrap();
    const NO_MOUNT: i32 = 97;
    let script = "mount -t tmpfs -o size=128k loxia \"$1\" || exit 97; \
                  exec \"$0\" --exact faults::child_on_a_small_disk --nocapture";
    let child = Command::new("unshare")
        .args(["-m", "sh", "-c", script])
        .arg(this_binary())
        .arg(parent.path())
        .env(TASK, parent.path())
        .output();
    match child {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("No space left on device") && text.contains("Read-only"), "{text}");
        }
        Ok(output) if output.status.code() == Some(NO_MOUNT) || output.status.code() == Some(1) => {
            println!("skipped: mounting is not permitted here");
        }
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stdout)),
        Err(_) => println!("skipped: no unshare command"),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn child_on_a_small_disk() {
    let Some(disk) = std::env::var_os(TASK).map(PathBuf::from) else { return };
    let remount = |options: &str| {
        let status = Command::new("mount").arg("-o").arg(format!("remount,{options}")).arg(&disk).status();
        assert!(status.unwrap().success());
    };
    let elsewhere = tempfile::tempdir().unwrap();
    let sample = sample();
    let expected = files(&sample.fill(&elsewhere.path().join("unbroken"), ALL).finish().unwrap());
    let path = disk.join("matrix");
    println!("{}", fill_until_refused(&path));
    let written = 16 - sample.fill(&path, 0).missing_tiles().count();
    assert!((1..16).contains(&written));

    remount("ro");
    let error = MatrixWriter::resume(&path, &sample.dense(), Existing::Refuse).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    println!("{error}");
    let error = MatrixWriter::create(&disk.join("other"), &sample.dense(), Existing::Refuse).unwrap_err();
    assert!(error.to_string().contains("other.partial"), "{error}");

    remount("rw,size=4m");
    sample.fill(&path, ALL).finish().unwrap();
    assert_eq!(files(&path), expected);
}

#[cfg(unix)]
#[test]
fn a_directory_without_permission_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let locked = parent.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(locked.join("probe"), "").is_ok() {
        println!("skipped: this user may write anywhere");
        return;
    }
    let error =
        MatrixWriter::create(&locked.join("matrix"), &sample().dense(), Existing::Refuse).unwrap_err();
    assert!(matches!(error, Error::Io { .. }) && error.to_string().contains("matrix.partial"), "{error}");
}
