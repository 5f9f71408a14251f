//! `loxia eval knn` and `loxia eval matrix`.

use std::path::Path;

use loxia::core::artefact::Existing;
use loxia::core::matrix::ScoreMatrix;
use loxia::core::npy::NpyWriter;
use loxia::core::{IdTable, Seed};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Said, beir, loxia, model, succeed};

const QUERIES: usize = 60;
const ITEMS: usize = 150;
const WIDTH: usize = 5;

/// A directory with `s.npy`, `q.npy` and `e.npy`: scores that lean on vectors, with noise.
fn directory() -> TempDir {
    let mut stream = Seed(5).stream("knn");
    let mut normals = |rows: usize, cols: usize| -> Vec<Vec<f32>> {
        (0..rows).map(|_| (0..cols).map(|_| stream.normal() as f32).collect()).collect()
    };
    let (queries, items, noise) = (normals(QUERIES, WIDTH), normals(ITEMS, WIDTH), normals(QUERIES, ITEMS));
    let score = |q: &Vec<f32>, e: &Vec<f32>| {
        let dot: f32 = q.iter().zip(e).map(|(a, b)| a * b).sum();
        10.0 + dot + 2.0 * q[0] * e[1]
    };
    let rows = queries.iter().zip(&noise);
    let scores: Vec<Vec<f32>> = rows
        .map(|(q, noise)| items.iter().zip(noise).map(|(e, noise)| score(q, e) + 0.3 * noise).collect())
        .collect();
    let directory = tempfile::tempdir().unwrap();
    for (name, rows) in [("s.npy", &scores), ("q.npy", &queries), ("e.npy", &items)] {
        write(&directory.path().join(name), rows);
    }
    directory
}

fn write(path: &Path, rows: &[Vec<f32>]) {
    let file = std::fs::File::create(path).unwrap();
    let shape = [rows.len() as u64, rows[0].len() as u64];
    let mut writer = NpyWriter::<f32, _>::new(file, &shape).unwrap();
    rows.iter().for_each(|row| writer.write_row(row).unwrap());
    writer.finish().unwrap();
}

fn run(directory: &Path, arguments: &str) -> Said {
    Said::of(loxia().current_dir(directory).args(arguments.split_whitespace()).output().unwrap())
}

const INPUT: &str =
    "eval knn --scores s.npy --item-vectors e.npy --query-vectors q.npy --anchors 0..40 --test 40..60";

#[test]
fn recalls_of_all_methods_as_json() {
    let directory = directory();
    let methods = "rerank,anncur,adacur,axn,posterior,anncur+,exact";
    let arguments = format!("{INPUT} --methods {methods} --k 1,5 --cost 15,40 --rounds 4 --seeds 0,1 --json");
    let said = run(directory.path(), &arguments);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let records: Vec<Value> = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(records.len(), 6 * 4 + 2);
    let recall = |method: &str, cost: u64, k: u64| {
        let cell = |r: &&Value| r["method"] == method && r["cost"] == cost && r["k"] == k;
        records.iter().find(cell).unwrap()["recall"].as_f64().unwrap()
    };
    for record in &records {
        let number = |name: &str| record[name].as_f64().unwrap();
        assert!(number("low") <= number("recall") && number("recall") <= number("high"), "{record}");
        assert!(
            (0.0..=1.0).contains(&number("recall")) && number("mean_pairs") <= number("cost"),
            "{record}"
        );
        assert_eq!(record["anchors"], 40);
        let drawn = record["method"].as_str().unwrap().starts_with("anncur");
        assert_eq!(record["seeds"], if drawn { 2 } else { 1 }, "{record}");
    }
    assert_eq!(recall("exact", 150, 5), 1.0);
    assert!(recall("posterior", 15, 5) > recall("rerank", 15, 5));
    assert!(recall("posterior", 40, 5) >= recall("posterior", 15, 5));
}

#[test]
fn the_answer_does_not_depend_on_threads_and_matrices_may_be_directories() {
    let directory = directory();
    let arguments = "--methods anncur,posterior --k 5 --cost 20 --rounds 3 --anchor-counts 20,40";
    let one = run(directory.path(), &format!("{INPUT} {arguments} --threads 1"));
    let three = run(directory.path(), &format!("{INPUT} {arguments} --threads 3"));
    assert_eq!((one.code, &one.stdout), (0, &three.stdout), "{}", one.stderr);
    assert!(
        one.stdout.contains("anchors") && one.stdout.contains("posterior, 20 anchors: transform"),
        "{}",
        one.stdout
    );
    assert!(one.stdout.contains("posterior against methods as published"), "{}", one.stdout);

    let convert = "eval matrix --scores s.npy --anchor-queries 10 --anchor-items 10 --quiet";
    assert_eq!(run(directory.path(), convert).code, 0);
    let ids = |count: usize, letter: char| {
        let names: Vec<String> = (0..count).map(|n| format!("{letter}{n}")).collect();
        loxia::core::IdTable::try_from(names.as_slice()).unwrap()
    };
    let path = directory.path().join("s.npy");
    let (matrix, _) =
        loxia::core::matrix::ScoreMatrix::from_npy(&path, ids(QUERIES, 'q'), ids(ITEMS, 'd')).unwrap();
    let refuse = loxia::core::artefact::Existing::Refuse;
    matrix.save(&directory.path().join("s"), refuse, &Default::default(), "a test").unwrap();
    let of_directory = run(directory.path(), &format!("{INPUT} {arguments}").replace("s.npy", "s"));
    assert_eq!(of_directory.stdout, one.stdout, "{}", of_directory.stderr);
}

#[test]
fn a_report_holds_the_plots_and_the_estimate() {
    let directory = directory();
    let arguments = format!(
        "{INPUT} --methods rerank,posterior --k 1,5 --cost 15,40 --rounds 4 --report r.html --markdown"
    );
    let said = run(directory.path(), &arguments);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.contains("| rerank"), "{}", said.stdout);
    assert!(said.stdout.contains("recall as posterior estimates it"), "{}", said.stdout);
    let html = std::fs::read_to_string(directory.path().join("r.html")).unwrap();
    assert_eq!(html.matches("<svg").count(), 4, "two curves and two calibrations");
    assert!(!html.contains("NaN") && !html.contains("<script") && !html.contains("http"));
    let again = run(directory.path(), &arguments);
    again.fails_with(1, &["r.html", "overwrite"]);
}

#[test]
fn without_vectors_some_methods_still_run() {
    let directory = directory();
    let input = "eval knn --scores s.npy --anchors 0..40 --test 40..45 --k 5 --cost 20 --rounds 3 --seeds 0";
    let said = run(directory.path(), &format!("{input} --methods posterior,adacur,axn+"));
    assert_eq!(said.code, 0, "{}", said.stderr);
    run(directory.path(), &format!("{input} --methods rerank")).fails_with(1, &["rerank needs", "vectors"]);
}

#[test]
fn published_accounting_and_items_in_the_query_slot() {
    let directory = directory();
    let square: Vec<Vec<f32>> =
        (0..ITEMS).map(|a| (0..30).map(|b| ((a * 7 + b * 3) % 11) as f32).collect()).collect();
    write(&directory.path().join("i.npy"), &square);
    let arguments = format!(
        "{INPUT} --methods rerank,anncur,itemcur,fixed-item,anncur-oracle --item-scores i.npy --k 5 --cost 20,40 \
         --seeds 0 --accounting"
    );
    let recalls = |accounting: &str| -> Vec<f64> {
        let said = run(directory.path(), &format!("{arguments} {accounting} --json"));
        assert_eq!(said.code, 0, "{}", said.stderr);
        let records: Vec<Value> = serde_json::from_str(&said.stdout).unwrap();
        records.iter().map(|record| record["recall"].as_f64().unwrap()).collect()
    };
    let (once, paper) = (recalls("once"), recalls("paper"));
    assert_eq!((once.len(), paper.len()), (10, 10));
    assert_eq!(once[..2], paper[..2], "reranking is counted the same way");
    assert_ne!(once[2..], paper[2..]);
    let table = run(directory.path(), &format!("{arguments} paper"));
    assert!(table.stdout.contains("anncur: counted as published"), "{}", table.stdout);
    run(directory.path(), &format!("{INPUT} --methods itemcur"))
        .fails_with(1, &["itemcur needs scores of items"]);
    run(directory.path(), &format!("{INPUT} --item-scores q.npy"))
        .fails_with(2, &["one side must be all of them"]);
}

#[test]
fn without_vectors_the_usual_methods_are_those_that_need_none() {
    let directory = directory();
    let said = run(
        directory.path(),
        "eval knn --scores s.npy --anchors 0..40 --test 40..60 --k 10 --cost 50 --json",
    );
    let methods: Vec<String> = serde_json::from_str::<Vec<serde_json::Value>>(&said.stdout)
        .unwrap()
        .iter()
        .filter_map(|row| row["method"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(methods, ["anncur", "adacur", "axn", "posterior"]);
}

#[test]
fn damaged_scores_are_refused() {
    let directory = directory();
    let matrix = directory.path().join("matrix");
    let ids = |count: usize| {
        let ids: Vec<String> = (0..count).map(|at| at.to_string()).collect();
        IdTable::try_from(ids.as_slice()).unwrap()
    };
    let scores = (0..60 * 150).map(|at| (at * 37 % 101) as f32).collect();
    let made = ScoreMatrix::dense(ids(60), ids(150), scores).unwrap();
    made.save(&matrix, Existing::Refuse, &Default::default(), "a test").unwrap();
    let arguments = "eval knn --scores matrix --anchors 0..40 --test 40..60 --k 10 --cost 50";
    assert_eq!(run(directory.path(), arguments).code, 0);
    let file = matrix.join("scores.f32");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[5000] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    for arguments in [arguments, "eval matrix --scores matrix", "index build --scores matrix --output index"]
    {
        run(directory.path(), arguments).fails_with(4, &["scores.f32", "CRC-32"]);
    }
}

#[test]
fn mistakes_are_explained() {
    let directory = directory();
    write(&directory.path().join("few.npy"), &vec![vec![1.0; WIDTH]; 10]);
    let mut damaged = vec![vec![1.0; 4]; 3];
    damaged[1][2] = f32::NAN;
    write(&directory.path().join("nan.npy"), &damaged);
    let cases = [
        (format!("{INPUT} --methods anncurr"), 2, "there are exact, rerank"),
        (INPUT.replace("40..60", "39..60"), 2, "share rows"),
        (INPUT.replace("40..60", "40..61"), 2, "there are 60 rows"),
        (INPUT.replace("e.npy", "few.npy"), 2, "10 vectors, but there are 150 items"),
        (INPUT.replace("--query-vectors q.npy", ""), 2, "belong together"),
        (format!("{INPUT} --vectors none"), 2, "--query-vectors has no effect here"),
        (format!("{INPUT} --anchor-counts 41"), 2, "--anchors holds 40 rows"),
        (format!("{INPUT} --cost 0"), 2, "at least 1"),
        (format!("{INPUT} --json --markdown"), 2, "--markdown has no effect here"),
        ("eval knn --scores nan.npy --anchors 0..2 --test 2..3".to_owned(), 1, "row 1, column 2 is NaN"),
        ("eval knn --scores missing.npy --anchors 0..2 --test 2..3".to_owned(), 1, "missing.npy"),
        ("eval matrix --scores s.npy --link published --ridge 1".to_owned(), 2, "--ridge has no effect here"),
        ("eval matrix --scores s.npy --ridge 0".to_owned(), 2, "above 0"),
    ];
    for (arguments, code, message) in cases {
        run(directory.path(), &arguments).fails_with(code, &[message]);
    }
}

#[test]
fn a_matrix_is_studied() {
    let directory = directory();
    let low_rank: Vec<Vec<f32>> =
        (0..20).map(|row| (0..30).map(|col| (row * col % 7 + row) as f32).collect()).collect();
    write(&directory.path().join("low.npy"), &low_rank);
    let arguments = "eval matrix --scores s.npy --anchor-queries 20,40,90 --anchor-items 20,100 --seeds 0,1 \
                     --k 5 --retrieve 20 --link published,ridge,oracle --bins 40";
    let said = run(directory.path(), &format!("{arguments} --json"));
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("90 anchor queries left out: the matrix has 60"), "{}", said.stderr);
    let study = said.json();
    assert_eq!((study["rows"].as_u64(), study["items"].as_u64()), (Some(60), Some(150)));
    assert_eq!(study["rank"], 60, "noise fills every direction");
    let counted: u64 =
        study["histogram"]["counts"].as_array().unwrap().iter().map(|c| c.as_u64().unwrap()).sum();
    assert_eq!(counted, 60 * 150);
    let cells = study["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3 * 2 * 2);
    let recall = |link: &str| {
        let of = cells.iter().filter(|cell| cell["link"] == link);
        of.map(|cell| cell["recall"].as_f64().unwrap()).sum::<f64>()
    };
    assert!(recall("ridge") > recall("published") && recall("oracle") > recall("published"));

    let said = run(directory.path(), &format!("{arguments} --report m.html --quiet"));
    assert!(said.stdout.contains("rank    60 of 60"), "{}", said.stdout);
    let html = std::fs::read_to_string(directory.path().join("m.html")).unwrap();
    assert_eq!(html.matches("<svg").count(), 2 + 3 * 2);
    assert!(!html.contains("NaN"));

    let said =
        run(directory.path(), "eval matrix --scores low.npy --anchor-queries 5 --anchor-items 5 --json");
    let rank = said.json()["rank"].as_u64().unwrap();
    // numpy.linalg.matrix_rank of the same matrix.
    assert_eq!(rank, 5);
}

#[test]
fn a_model_scores_what_is_compared_and_kept_scores_are_free() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 25).display().to_string();
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let (model, scores, kept) = (model(), path("scores"), path("kept"));
    succeed(&["score", "--model", &model, "--data", &data, "--output", &scores]);
    let eval = |flags: &[&str]| {
        let common = ["eval", "knn", "--data", &data, "--anchors", "1..3", "--test", "0..1"];
        let methods = ["--methods", "rerank,adacur,posterior", "--k", "1,5", "--cost", "8"];
        succeed(&[&common[..], &methods, flags].concat())
    };
    let stored = eval(&["--scores", &scores, "--vectors", "tfidf", "--json"]);
    let live = ["--model", &model, "--keep-scores", &kept];
    assert_eq!(eval(&[&live[..], &["--json"]].concat()).stdout, stored.stdout);
    let again = eval(&live);
    let facts: Vec<&str> = again.stderr.lines().filter(|line| line.starts_with("pairs")).collect();
    let numbers: Vec<&str> = facts.iter().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(numbers, ["0", "75"], "{}", again.stderr);
}

#[test]
fn scores_come_from_one_place_and_models_need_texts() {
    let directory = directory();
    let refused = |flags: &str, message: &str| {
        let said = run(directory.path(), &format!("eval knn --anchors 0..40 --test 40..60 {flags}"));
        assert_eq!(said.code, 2, "{flags}");
        assert!(said.stderr.contains(message), "{}", said.stderr);
    };
    refused("", "give --scores MATRIX, or --model DIR with --data PATH");
    refused("--scores s.npy --model m", "leave out --model");
    refused("--model m", "--model needs the texts: give --data");
    refused("--scores s.npy --keep-scores k", "--keep-scores");
    refused("--scores s.npy --dual d", "--dual needs the texts: give --data");
}

#[test]
fn targets_and_first_stages_are_compared() {
    let directory = directory();
    let said = run(
        directory.path(),
        &format!("{INPUT} --methods posterior --k 40 --cost 60 --target 0.5,0.95 --json"),
    );
    assert_eq!(said.code, 0, "{}", said.stderr);
    let records: Vec<Value> = serde_json::from_str(&said.stdout).unwrap();
    let targets: Vec<&Value> = records.iter().filter(|record| !record["target"].is_null()).collect();
    assert_eq!((records.len(), targets.len()), (3, 2));
    let number = |at: usize, name: &str| targets[at][name].as_f64().unwrap();
    assert!(number(0, "recall") > 0.4 && number(1, "recall") > 0.9, "{targets:?}");
    assert!(number(0, "cost") < number(1, "cost") && number(1, "even_budget") <= 150.0, "{targets:?}");
    let table = run(directory.path(), &format!("{INPUT} --methods posterior --k 5 --cost 20 --target 0.9"));
    assert!(table.stdout.contains("stopping at a recall target"), "{}", table.stdout);
    let beyond = format!("{INPUT} --methods posterior --k 5 --cost 20 --target 0.6,1");
    let said = run(directory.path(), &format!("{beyond} --json"));
    assert!(said.stderr.contains("target 1 for k = 5 cannot be certified"), "{}", said.stderr);
    let records: Vec<Value> = serde_json::from_str(&said.stdout).unwrap();
    let (within, beyond_it) = (&records[1], &records[2]);
    assert_eq!((&within["certifiable"], &beyond_it["certifiable"]), (&true.into(), &false.into()));
    assert_eq!((beyond_it["cost"].as_f64(), beyond_it["recall"].as_f64()), (Some(150.0), Some(1.0)));
    assert!(beyond_it["largest_target"].as_f64().unwrap() < 1.0);
    assert!(run(directory.path(), &beyond).stdout.contains("target 1 for k = 5 cannot be certified"));
    let estimated = format!("{INPUT} --methods posterior --k 5,120 --cost 130 --estimate");
    assert!(run(directory.path(), &estimated).stdout.contains("not calibrated for k = 120"));
    run(directory.path(), &format!("{INPUT} --target 1.5")).fails_with(2, &["--target"]);

    let data = beir(directory.path(), ITEMS);
    let queries: String =
        (0..QUERIES).map(|n| format!("{{\"_id\":\"q{n}\",\"text\":\"carry or run {n} times\"}}\n")).collect();
    std::fs::write(data.join("queries.jsonl"), queries).unwrap();
    std::fs::write(directory.path().join("first.trec"), "q41 Q0 d3 1 2.0 x\nq42 Q0 d5 1 2.0 x\n").unwrap();
    for (stage, axn) in [("bm25", 20.0), ("tfidf", 20.0), ("first.trec", 20.0)] {
        let flags =
            format!("--methods rerank,adacur,axn --first-stage {stage} --data beir --k 5 --cost 20 --json");
        let said = run(directory.path(), &format!("{INPUT} {flags}"));
        assert_eq!(said.code, 0, "{}", said.stderr);
        let records: Vec<Value> = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(records[2]["mean_pairs"].as_f64().unwrap(), axn, "{stage}");
        let reranked = records[0]["mean_pairs"].as_f64().unwrap();
        // Two of twenty queries have one candidate each.
        assert_eq!(reranked, if stage == "first.trec" { 0.1 } else { 20.0 }, "{stage}");
    }
    run(directory.path(), &format!("{INPUT} --first-stage bm25")).fails_with(2, &["--data"]);
    let report = format!("{INPUT} --methods rerank --k 5 --cost 20 --report r.html --study-matrix");
    assert_eq!(run(directory.path(), &report).code, 0);
    let html = std::fs::read_to_string(directory.path().join("r.html")).unwrap();
    for part in ["Recall against cost", "CUR approximation: published", "Singular values"] {
        assert!(html.contains(part), "{part}");
    }
}
