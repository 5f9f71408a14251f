//! `loxia data convert` and `loxia data inspect`.

use std::path::Path;

use crate::program::{Said, loxia, run, succeed};

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

/// An entity-linking directory with one mention whose gold entity is there and one whose is not.
fn worlds(root: &Path) -> String {
    write(&root.join("w/documents/lego.jsonl"), "{\"document_id\": \"L1\", \"text\": \"a\"}\n");
    write(&root.join("w/documents/pets.jsonl"), "{\"document_id\": \"P1\", \"text\": \"b\"}\n");
    let mention = |id: &str, world: &str, label: &str| {
        format!(
            "{{\"mention_id\": \"{id}\", \"world\": \"{world}\", \"context_left\": \"\", \"mention\": \"x\", \
             \"context_right\": \"\", \"label_document_id\": \"{label}\"}}\n"
        )
    };
    let mentions = [mention("m1", "lego", "L1"), mention("m2", "lego", "L9"), mention("m3", "pets", "P1")];
    write(&root.join("w/mentions/test.jsonl"), &mentions.concat());
    root.join("w").display().to_string()
}

#[test]
fn flags_that_choose_in_a_data_set_are_refused_for_a_run() {
    let scratch = tempfile::tempdir().unwrap();
    let input = write(&scratch.path().join("run.trec"), "q Q0 d 1 2 x\n");
    let convert = |more: &[&str]| {
        run(&[&["data", "convert", "--input", &input, "--to", "trec-run", "--output", "-"], more].concat())
    };
    convert(&["--split", "test"]).fails_with(2, &["--split has no effect here"]);
    convert(&["--world", "lego"]).fails_with(2, &["--world has no effect here"]);
    convert(&["--mentions", "marked"]).fails_with(2, &["--mentions has no effect here"]);
    convert(&["--data", "x"]).fails_with(2, &["--data has no effect here"]);
    // In the environment they are meant for other commands too.
    let said = loxia()
        .envs([("LOXIA_SPLIT", "test"), ("LOXIA_MENTIONS", "marked"), ("LOXIA_DATA", "/nowhere")])
        .args(["data", "convert", "--input", &input, "--to", "trec-run", "--output", "-"])
        .output();
    let said = Said::of(said.unwrap());
    assert_eq!((said.code, said.stdout.as_str()), (0, "q Q0 d 1 2 x\n"), "{}", said.stderr);
}

#[test]
fn a_world_of_judgements_and_the_mentions_left_out() {
    let scratch = tempfile::tempdir().unwrap();
    let input = worlds(scratch.path());
    let said = succeed(&[
        "data",
        "convert",
        "--input",
        &input,
        "--to",
        "trec-qrels",
        "--world",
        "pets",
        "--output",
        "-",
    ]);
    assert_eq!(said.stdout, "m3 0 P1 1\n");

    let output = scratch.path().join("blink").display().to_string();
    let said = run(&["data", "convert", "--input", &input, "--to", "blink", "--output", &output]);
    said.fails_with(3, &["skipped 1 inputs", "mention m2: its gold entity L9 is not among"]);
    let beir = scratch.path().join("beir").display().to_string();
    let said = loxia()
        .env("LOXIA_DATA", "/nowhere")
        .args(["data", "convert", "--input", &input, "--to", "beir", "--output", &beir])
        .output();
    assert_eq!(Said::of(said.unwrap()).code, 0);
}

#[test]
fn a_json_run_takes_from_a_file_of_items_what_it_lacks() {
    let scratch = tempfile::tempdir().unwrap();
    let run_file = write(&scratch.path().join("run.trec"), "a Q0 b 1 2 x\n");
    let corpus = "{\"_id\": \"a\", \"text\": \"A\"}\n{\"_id\": \"b\", \"text\": \"B\"}\n";
    let corpus = write(&scratch.path().join("corpus.jsonl"), corpus);
    let arguments = ["data", "convert", "--input", &run_file, "--to", "jsonl-run", "--data", &corpus];
    let said = succeed(&[&arguments[..], &["--output", "-"]].concat());
    // The item a is not the query a.
    assert_eq!(said.stdout, "{\"qid\":\"a\",\"docno\":\"b\",\"text\":\"B\",\"rank\":1,\"score\":2.0}\n");
    assert!(said.stderr.contains("lines without texts"), "{}", said.stderr);
}

#[test]
fn queries_that_no_split_judges_are_kept_and_counted() {
    let scratch = tempfile::tempdir().unwrap();
    write(&scratch.path().join("in/corpus.jsonl"), "{\"_id\": \"d\", \"text\": \"a\"}\n");
    let queries = "{\"_id\": \"q1\", \"text\": \"one\"}\n{\"_id\": \"q2\", \"text\": \"two\"}\n";
    write(&scratch.path().join("in/queries.jsonl"), queries);
    let qrels = "query-id\tcorpus-id\tscore\nq1\td\t1\nq1\td\t1\n";
    write(&scratch.path().join("in/qrels/test.tsv"), qrels);
    let input = scratch.path().join("in").display().to_string();
    let output = scratch.path().join("out").display().to_string();
    let arguments = ["data", "convert", "--json", "--input", &input, "--to", "beir", "--output", &output];
    let said = succeed(&arguments).json();
    assert_eq!((&said["queries"], &said["repeated_judgements"]), (&2.into(), &1.into()));
    assert_eq!(std::fs::read_to_string(scratch.path().join("out/queries.jsonl")).unwrap().lines().count(), 2);

    let shown = succeed(&["data", "inspect", &input]).stdout;
    assert!(shown.contains("queries     2 of "), "{shown}");
    assert!(shown.contains("1 are judged in no split shown"), "{shown}");
    assert!(shown.contains("1 lines repeat a judgement"), "{shown}");
    let arguments = ["data", "convert", "--json", "--input", &input, "--to", "trec-qrels", "--output", "-"];
    let said = succeed(&arguments);
    assert!(said.stderr.contains("\"repeated_judgements\":1"), "{}", said.stderr);
}
