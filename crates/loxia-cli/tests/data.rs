//! `loxia data convert` and `loxia data inspect`.

use std::path::Path;

use crate::program::{run, succeed};

fn write(path: &Path, text: &str) -> String {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_run_keeps_its_scores_from_json_to_trec_and_back() {
    let scratch = tempfile::tempdir().unwrap();
    let json = "{\"qid\": 1, \"docno\": \"a\", \"score\": 0.1}\n{\"qid\": 1, \"docno\": \"b\", \"score\": 2.5}\n\
                {\"qid\": 1, \"docno\": \"a\", \"score\": 9}\n";
    let input = write(&scratch.path().join("run.jsonl"), json);
    let trec = scratch.path().join("run.trec").display().to_string();
    let said =
        succeed(&["data", "convert", "--json", "--input", &input, "--to", "trec-run", "--output", &trec]);
    assert_eq!(
        (said.json()["lines"].as_u64(), said.json()["duplicates_dropped"].as_u64()),
        (Some(2), Some(1))
    );
    assert_eq!(std::fs::read_to_string(&trec).unwrap(), "1 Q0 b 1 2.5 loxia\n1 Q0 a 2 0.1 loxia\n");
    run(&["data", "convert", "--input", &input, "--to", "trec-run", "--output", &trec])
        .fails_with(1, &["run.trec exists", "--overwrite"]);

    let corpus = "{\"_id\": \"a\", \"text\": \"A\"}\n{\"_id\": \"b\", \"text\": \"B\"}\n";
    write(&scratch.path().join("beir/corpus.jsonl"), corpus);
    write(&scratch.path().join("beir/queries.jsonl"), "{\"_id\": \"1\", \"text\": \"one\"}\n");
    let data = scratch.path().join("beir").display().to_string();
    let back = succeed(&[
        "data",
        "convert",
        "--quiet",
        "--input",
        &trec,
        "--to",
        "jsonl-run",
        "--data",
        &data,
        "--output",
        "-",
    ]);
    let first = back.stdout.lines().next().unwrap();
    assert_eq!(first, r#"{"qid":"1","query":"one","docno":"b","text":"B","rank":1,"score":2.5}"#);
}

#[test]
fn a_data_set_is_converted_and_inspected() {
    let scratch = tempfile::tempdir().unwrap();
    write(&scratch.path().join("m/collection.tsv"), "0\tfirst one\n1\tsecond\n");
    write(&scratch.path().join("m/queries.dev.tsv"), "9\tnine\n");
    write(&scratch.path().join("m/qrels.dev.tsv"), "9\t0\t1\t1\n");
    let input = scratch.path().join("m").display().to_string();
    let output = scratch.path().join("b").display().to_string();
    let said =
        succeed(&["data", "convert", "--json", "--input", &input, "--to", "beir", "--output", &output]);
    assert_eq!((said.json()["from"].as_str(), said.json()["items"].as_u64()), (Some("msmarco"), Some(2)));
    let found = succeed(&["data", "inspect", &output, "--json"]).json();
    assert_eq!((&found["format"], &found["items"]["count"]), (&"beir".into(), &2.into()));
    assert_eq!(found["splits"][0]["judgements"]["judged_queries"], 1);
    let shown = succeed(&["data", "inspect", &output]).stdout;
    assert!(shown.contains("items       2 of 1.50 words in the mean, median 1, at most 2"), "{shown}");
}

#[test]
fn what_cannot_be_is_said() {
    let scratch = tempfile::tempdir().unwrap();
    let empty = scratch.path().display().to_string();
    run(&["data", "inspect", &empty]).fails_with(1, &["no data set recognised", "beir: corpus.jsonl"]);
    run(&["data", "convert", "--input", &empty, "--to", "beir", "--output", "-"])
        .fails_with(2, &["--output DIR"]);
    let half = write(&scratch.path().join("half.jsonl"), "{\"qid\": 1, \"docno\": 2}\n{\"qid\": 1, \"do");
    run(&["data", "inspect", &half, "--as", "run"])
        .fails_with(1, &["half.jsonl:2: column 14: the JSON ends"]);
}
