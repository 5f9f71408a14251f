//! `loxia rerank`.

use std::io::Write;

use serde_json::json;

use crate::program::{beir, model, run, run_with_input, succeed};

/// (query, item, rank, score) of a TREC run.
fn trec(text: &str) -> Vec<(String, String, usize, f64)> {
    text.lines()
        .map(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(columns.len(), 6, "{line}");
            (columns[0].into(), columns[2].into(), columns[3].parse().unwrap(), columns[4].parse().unwrap())
        })
        .collect()
}

#[test]
fn a_trec_run_is_reranked_with_the_texts_of_a_data_set() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 30);
    let run_file = scratch.path().join("bm25.trec");
    let mut lines = String::new();
    for (query, items) in [("q2", 0..20), ("q1", 5..25)] {
        for (rank, item) in items.enumerate() {
            lines += &format!("{query} Q0 d{item} {} {} bm25\n", rank + 1, 100 - rank);
        }
    }
    lines += "q1 Q0 d5 99 1 bm25\n";
    std::fs::write(&run_file, lines).unwrap();
    let output = scratch.path().join("out.trec");
    let arguments = |output: &str| {
        [
            "rerank",
            "--json",
            "--model",
            &model(),
            "--data",
            &data.display().to_string(),
            "--depth",
            "10",
            "--run",
            &run_file.display().to_string(),
            "--output",
            output,
        ]
        .map(String::from)
    };
    let said = succeed(&arguments(&output.display().to_string()));
    assert_eq!(said.json()["pairs"], 20);
    assert_eq!(said.json()["duplicates_dropped"], 1);
    assert_eq!(said.json()["beyond_depth"], 20);
    let reranked = trec(&std::fs::read_to_string(&output).unwrap());
    assert_eq!(reranked.len(), 20);
    assert_eq!(reranked[0].0, "q2", "queries keep the run's order");
    for query in reranked.chunks(10) {
        assert!(query.windows(2).all(|pair| pair[0].3 >= pair[1].3), "{query:?}");
        assert_eq!(query.iter().map(|line| line.2).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
    }
    let mut items: Vec<&str> = reranked[..10].iter().map(|line| line.1.as_str()).collect();
    items.sort_unstable();
    let mut expected: Vec<String> = (0..10).map(|n| format!("d{n}")).collect();
    expected.sort_unstable();
    assert_eq!(items, expected);

    run(&arguments(&output.display().to_string())).fails_with(1, &["out.trec exists", "--overwrite"]);
    // A pair's score does not depend on the way it was asked for.
    let matrix = scratch.path().join("scores");
    succeed(&[
        "score",
        "--quiet",
        "--model",
        &model(),
        "--data",
        &data.display().to_string(),
        "--output",
        &matrix.display().to_string(),
    ]);
    let scores = loxia::core::matrix::ScoreMatrix::open(&matrix).unwrap();
    for (query, item, _, score) in &reranked {
        let row = scores.row_ids().position(query).unwrap() as usize;
        let exact = scores.get(row, scores.col_ids().position(item).unwrap()).unwrap().unwrap();
        assert_eq!(*score as f32, exact);
    }
}

#[test]
fn json_lines_bring_their_texts_plain_or_gzipped() {
    let scratch = tempfile::tempdir().unwrap();
    let lines = concat!(
        r#"{"qid":"1","query":"cross the road","docno":"a","text":"to eat","rank":1,"score":3.0}"#,
        "\n",
        r#"{"qid":"1","query":"cross the road","docno":"b","text":"walk across a road","rank":2,"score":2.0}"#,
        "\n",
        r#"{"qid":7,"query":"fall down","docno":"a","text":"to eat","rank":1,"score":3.0}"#,
        "\n",
    );
    let plain = scratch.path().join("run.jsonl");
    std::fs::write(&plain, lines).unwrap();
    let gz = scratch.path().join("run.jsonl.gz");
    let mut encoder =
        flate2::write::GzEncoder::new(std::fs::File::create(&gz).unwrap(), flate2::Compression::fast());
    encoder.write_all(lines.as_bytes()).unwrap();
    encoder.finish().unwrap();
    let rerank = |file: &std::path::Path| {
        succeed(&["rerank", "--model", &model(), "--run", &file.display().to_string(), "--quiet"]).stdout
    };
    let text = rerank(&plain);
    assert_eq!(trec(&text).len(), 3);
    assert_eq!(rerank(&gz), text);
    let output = scratch.path().join("out.jsonl");
    succeed(&[
        "rerank",
        "--model",
        &model(),
        "--run",
        &plain.display().to_string(),
        "--output",
        &output.display().to_string(),
        "--quiet",
    ]);
    let first: serde_json::Value =
        serde_json::from_str(std::fs::read_to_string(&output).unwrap().lines().next().unwrap()).unwrap();
    assert_eq!((first["qid"].as_str(), first["rank"].as_u64()), (Some("1"), Some(1)));
    assert!(first["text"].is_string() && first["query"] == "cross the road");
}

#[test]
fn one_query_ranks_the_lines_of_stdin() {
    let arguments =
        ["rerank", "--model", &model(), "--query", "They [[walked]] home", "--data", "-", "--quiet"];
    let said = run_with_input(&arguments, "to eat\nuse one's feet to advance; advance by steps\nto boil\n");
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(trec(&said.stdout).len(), 3);
}

#[test]
fn unknown_ids_are_skipped_counted_and_change_the_exit_code() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 5);
    let file = scratch.path().join("run");
    std::fs::write(&file, "q1 Q0 d1 1 2 x\nq1 Q0 nowhere 2 1 x\nq9 Q0 d1 1 2 x\n").unwrap();
    let said = run(&[
        "rerank",
        "--model",
        &model(),
        "--run",
        &file.display().to_string(),
        "--data",
        &data.display().to_string(),
    ]);
    said.fails_with(3, &["skipped 2 inputs", "item \"nowhere\" of query \"q1\"", "query \"q9\""]);
    assert_eq!(trec(&said.stdout).len(), 1);
}

#[test]
fn texts_that_a_run_lacks_come_from_the_data_set() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 5);
    let file = scratch.path().join("run.jsonl");
    let lines = concat!(
        r#"{"qid":"q1","query":"run across","docno":"elsewhere","text":"to run"}"#,
        "\n",
        r#"{"qid":"q1","docno":"d1"}"#,
        "\n",
    );
    std::fs::write(&file, lines).unwrap();
    let arguments = [
        "rerank",
        "--quiet",
        "--model",
        &model(),
        "--run",
        &file.display().to_string(),
        "--data",
        &data.display().to_string(),
    ];
    assert_eq!(trec(&succeed(&arguments).stdout).len(), 2);
}

#[test]
fn a_run_without_texts_asks_for_the_data_set() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("run");
    std::fs::write(&file, "q1 Q0 d1 1 2 x\n").unwrap();
    run(&["rerank", "--model", &model(), "--run", &file.display().to_string()])
        .fails_with(2, &["lacks texts of queries", "--data"]);
}

#[test]
fn ids_that_a_trec_run_cannot_hold_are_refused_before_a_model_is_opened() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let lines = [("q", "d1"), ("q", "d 2")].map(|(query, item)| {
        json!({ "qid": query, "query": "to move", "docno": item, "text": "to walk" }).to_string()
    });
    std::fs::write(path("run.jsonl"), lines.join("\n")).unwrap();
    let rerank = |model: &str, output: &str| {
        run(&["rerank", "--model", model, "--run", &path("run.jsonl"), "--output", &path(output)])
    };
    rerank("/nowhere", "out.trec").fails_with(1, &["cannot write the item id \"d 2\"", "JSON lines"]);
    // JSON holds any id.
    assert_eq!(rerank(&model(), "out.jsonl").code, 0);
}
