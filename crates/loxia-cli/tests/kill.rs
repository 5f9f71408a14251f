//! `kill -9` at twenty random moments of `score`: each resume finishes with the same bytes, and at most the tile
//! in flight is computed twice.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::program::{Said, asset, content, loxia, model};

const KILLS: u32 = 20;
/// Bytes of a record of `tiles.log` (FORMATS.md).
const RECORD: u64 = 32;

fn command(output: &Path, resume: bool) -> std::process::Command {
    let mut command = loxia();
    command.args([
        "score",
        "--split",
        "test",
        "--world",
        "verb.motion",
        "--rows",
        "0..3",
        "--json",
        "--tile-pairs",
        "300",
    ]);
    command.args(["--model", &model(), "--data", &asset("worlds"), "--threads", "1"]);
    command.arg("--output").arg(output);
    if resume {
        command.arg("--resume");
    }
    command
}

/// Tiles that are durable: whole records in the log.
fn durable_tiles(partial: &Path) -> u64 {
    let log = std::fs::metadata(partial.join("tiles.log")).map_or(0, |file| file.len());
    log / RECORD
}

#[test]
fn kill_and_resume_ends_with_the_same_bytes() {
    let scratch = tempfile::tempdir().unwrap();
    // One name for all: the manifest records the command.
    let output = scratch.path().join("scores");
    let started = Instant::now();
    let unbroken = Said::of(command(&output, false).output().unwrap());
    let took = started.elapsed();
    assert_eq!(unbroken.code, 0, "{}", unbroken.stderr);
    let tiles = unbroken.json()["tiles"].as_u64().unwrap();
    assert!(tiles >= 3, "{tiles} tiles are too few to be killed between");
    let expected = content(&output);
    std::fs::rename(&output, scratch.path().join("unbroken")).unwrap();

    let (mut killed, mut between_tiles) = (0, 0);
    let mut stream = loxia::core::Seed(u64::from(std::process::id())).stream("kill");
    for round in 0..KILLS {
        let mut child = command(&output, false).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let partial = scratch.path().join("scores.partial");
        // A random number of tiles, then a random part of the next: progress, not time, which varies with
        // what else the machine does. None at all is a moment of the start.
        let wanted = stream.below(tiles);
        while durable_tiles(&partial) < wanted && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        let part = if wanted == 0 { 0.5 } else { 1.0 / tiles as f64 };
        std::thread::sleep(took.mul_f64(part * stream.unit()));
        child.kill().unwrap();
        let finished = child.wait().unwrap().success();
        killed += u32::from(!finished);
        let partial_left = partial.exists();
        let durable = durable_tiles(&partial);
        let resumed = Said::of(command(&output, true).output().unwrap());
        assert_eq!(resumed.code, 0, "round {round}: {}", resumed.stderr);
        if !finished && durable > 0 && partial_left {
            between_tiles += 1;
            let computed = resumed.json()["tiles_computed"].as_u64().unwrap();
            assert_eq!(computed, tiles - durable, "round {round}: a durable tile was computed again");
        }
        let found = content(&output);
        for ((name, expected), (_, found)) in expected.iter().zip(&found) {
            assert!(expected == found || name == "manifest.json", "round {round}: {name} differs");
        }
        assert_eq!(found.len(), expected.len());
        std::fs::remove_dir_all(&output).unwrap();
    }
    assert!(killed >= KILLS / 2, "only {killed} of {KILLS} were killed before they ended");
    assert!(between_tiles >= 3, "only {between_tiles} of {KILLS} were killed between two tiles");
}
