//! `--keep-scores`: what was scored once is free.

use std::fs;

use crate::program::{beir, model, succeed};

#[test]
fn a_second_run_pays_for_new_pairs_only_and_tells_damage() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 30).join("corpus.jsonl").display().to_string();
    let kept = scratch.path().join("kept");
    let output = scratch.path().join("run.trec").display().to_string();
    let rerank = |depth: &str, flags: &[&str]| {
        let model = model();
        let kept = kept.display().to_string();
        let arguments = [
            "rerank",
            "--model",
            &model,
            "--query",
            "run home",
            "--data",
            &data,
            "--depth",
            depth,
            "--json",
            "--overwrite",
            "--output",
            &output,
            "--keep-scores",
            &kept,
        ];
        let summary = succeed(&[&arguments[..], flags].concat()).json();
        let run = fs::read_to_string(&output).unwrap();
        (summary["pairs"].as_u64().unwrap(), summary["pairs_scored_before"].as_u64().unwrap(), summary, run)
    };
    let (paid, cached, _, first) = rerank("10", &[]);
    assert_eq!((paid, cached), (10, 0));
    let (paid, cached, _, second) = rerank("10", &[]);
    assert_eq!((paid, cached), (0, 10));
    assert_eq!(first, second);
    assert_eq!(rerank("12", &[]).0, 2);
    // Another length is another score.
    assert_eq!(rerank("10", &["--max-length", "16"]).0, 10);

    for entry in fs::read_dir(&kept).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let length = bytes.len();
        bytes[length - 20] ^= 1;
        bytes.extend(b"torn");
        fs::write(&path, bytes).unwrap();
    }
    let (paid, _, summary, third) = rerank("10", &[]);
    assert_eq!((&summary["kept_scores_damaged"], &summary["bytes_of_torn_scores"]), (&1.into(), &4.into()));
    assert_eq!(third, first);
    assert!(paid <= 1);
}
