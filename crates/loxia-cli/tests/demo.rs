//! `loxia demo`: on the embedded world, and on data of one's own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use super::program::{Said, assets, dual, loxia, model};

/// Runs the demo in a directory of its own, where it leaves its report.
fn demo(directory: &Path, arguments: &[&str]) -> Said {
    let mut command = loxia();
    command.current_dir(directory).arg("demo").args(arguments);
    Said::of(command.output().expect("the program starts"))
}

/// The first lines of a gzipped asset, gzipped again.
fn cut(name: &str, lines: usize, to: &Path) {
    let file = std::fs::File::open(assets().join("worlds").join(name)).unwrap();
    std::fs::create_dir_all(to.join(name).parent().unwrap()).unwrap();
    let out = std::fs::File::create(to.join(name)).unwrap();
    let mut out = flate2::write::GzEncoder::new(out, flate2::Compression::fast());
    for line in BufReader::new(flate2::read::GzDecoder::new(file)).lines().take(lines) {
        writeln!(out, "{}", line.unwrap()).unwrap();
    }
    out.finish().unwrap();
}

/// The embedded world with fewer senses and mentions.
pub(crate) fn small_world(directory: &Path) -> String {
    let world = directory.join("world");
    cut("documents/verb.motion.jsonl.gz", 150, &world);
    cut("mentions/test.jsonl.gz", 30, &world);
    world.display().to_string()
}

#[test]
fn the_embedded_demo_compares_shows_and_reports() {
    let scratch = tempfile::tempdir().unwrap();
    let said = demo(scratch.path(), &["--anchors", "9", "--searches", "3"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    for part in [
        "1,408 senses",
        "50 pairs",
        "rerank ",
        "anncur ",
        "adacur ",
        "axn ",
        "posterior ",
        "What reranking misses",
        "[[",
        "anchors are too few to calibrate",
        "loxia-demo.html",
        "What to try next",
    ] {
        assert!(said.stdout.contains(part), "{part:?} is not in {}", said.stdout);
    }
    assert!(said.stderr.contains("pairs/s"), "times are on stderr: {}", said.stderr);
    let html = std::fs::read_to_string(scratch.path().join("loxia-demo.html")).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("Recall against cost"));
}

#[test]
fn ones_own_data_with_a_recall_target_twice_the_same() {
    let scratch = tempfile::tempdir().unwrap();
    let (world, model, dual) = (small_world(scratch.path()), model(), dual());
    let arguments =
        ["--data", &world, "--world", "verb.motion", "--split", "test", "--model", &model, "--dual", &dual];
    let first = demo(scratch.path(), &arguments);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(first.stdout.contains("150 items, 30 queries"), "{}", first.stdout);
    assert!(first.stdout.contains("for the target 0.90"), "{}", first.stdout);
    let report = scratch.path().join("loxia-demo.html");
    let html = std::fs::read(&report).unwrap();

    let one_thread: Vec<&str> = arguments.iter().copied().chain(["--threads", "1"]).collect();
    let again = demo(scratch.path(), &one_thread);
    assert_eq!((again.code, &again.stdout), (0, &first.stdout), "{}", again.stderr);
    assert_eq!(std::fs::read(&report).unwrap(), html, "the default report is replaced by the same bytes");

    let named: Vec<&str> = arguments.iter().copied().chain(["--report", "loxia-demo.html"]).collect();
    demo(scratch.path(), &named).fails_with(1, &["loxia-demo.html", "--overwrite"]);
}

#[test]
fn without_a_dual_encoder_and_as_json() {
    let scratch = tempfile::tempdir().unwrap();
    let (world, model) = (small_world(scratch.path()), model());
    let said = demo(
        scratch.path(),
        &[
            "--json",
            "--data",
            &world,
            "--world",
            "verb.motion",
            "--split",
            "test",
            "--model",
            &model,
            "--searches",
            "4",
            "--report",
            "r.html",
        ],
    );
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("TF-IDF"), "{}", said.stderr);
    let json = said.json();
    assert_eq!((json["anchors"].as_u64(), json["searches"].as_u64()), (Some(26), Some(4)));
    // Five methods, two costs below 150 items, three ks.
    assert_eq!(json["methods"].as_array().unwrap().len(), 30);
    assert_eq!(json["shown"].as_array().unwrap().len(), 3);
    assert!(json["recall_target"]["mean_recall"].as_f64().unwrap() > 0.5);
    assert!(scratch.path().join("r.html").exists());
}

#[test]
fn in_int8() {
    let scratch = tempfile::tempdir().unwrap();
    let (world, model, dual) = (small_world(scratch.path()), model(), dual());
    let arguments = |precision: &'static str| {
        let own = ["--data", &world, "--world", "verb.motion", "--split", "test", "--model", &model];
        let rest = ["--dual", &dual, "--json", "--precision", precision];
        demo(scratch.path(), &[&own[..], &rest[..]].concat())
    };
    let (exact, other) = (arguments("f32"), arguments("int8"));
    assert_eq!((exact.code, other.code), (0, 0), "{}", other.stderr);
    assert_ne!(exact.json()["shown"], other.json()["shown"], "scores differ a little");
    let recall = other.json()["recall_target"]["mean_recall"].as_f64().unwrap();
    assert!(recall > 0.5, "{recall}");
}

#[test]
fn the_embedded_models_compute_in_8_bits_too() {
    let scratch = tempfile::tempdir().unwrap();
    let shown = |precision| {
        let said =
            demo(scratch.path(), &["--anchors", "9", "--searches", "3", "--json", "--precision", precision]);
        assert_eq!(said.code, 0, "{}", said.stderr);
        said.json()["shown"].clone()
    };
    assert_ne!(shown("f32"), shown("int8"), "scores differ a little");
}

#[test]
fn what_does_not_fit_is_said_before_any_work() {
    let scratch = tempfile::tempdir().unwrap();
    let (world, model) = (small_world(scratch.path()), model());
    demo(scratch.path(), &["--data", &world]).fails_with(2, &["belong together"]);
    demo(scratch.path(), &["--dual", &model]).fails_with(2, &["--dual", "embedded"]);
    demo(scratch.path(), &["--overwrite"]).fails_with(2, &["--report"]);
    demo(scratch.path(), &["--anchors", "150", "--searches", "60"]).fails_with(2, &["210", "200"]);
    let few = super::program::beir(scratch.path(), 20).display().to_string();
    demo(scratch.path(), &["--data", &few, "--model", &model]).fails_with(2, &["20 items are too few"]);
}
