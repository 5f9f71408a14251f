//! `loxia bench encoder`: what it tells, not how fast it is.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::{asset, model, run, run_with_input, succeed};

/// The tiny item tower as an encoder of plain texts.
fn plain_encoder(directory: &Path) -> String {
    let source = asset("tiny-models/dual-item");
    for name in ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(Path::new(&source).join(name), directory.join(name)).unwrap();
    }
    let layout = json!({ "format": 1, "variant": "dual", "pooling": "mean", "similarity": "dot",
        "layout": { "kind": "pair", "max_length": 64 } });
    std::fs::write(directory.join("loxia.json"), layout.to_string()).unwrap();
    directory.display().to_string()
}

/// Sends commands to a worker and gives its answers.
fn worker(commands: &[Value]) -> Vec<Value> {
    let input: String = commands.iter().map(|command| format!("{command}\n")).collect();
    let said = run_with_input(&["bench", "encoder", "--worker"], &input);
    assert_eq!(said.code, 0, "{}", said.stderr);
    said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_measurement_tells_what_was_computed() {
    for (model, lengths, tokens) in [(model(), "30x4", 120), (asset("tiny-models/dual-item"), "12x3", 36)] {
        let arguments =
            ["bench", "encoder", "--json", "--seconds", "0", "--lengths", lengths, "--model", &model];
        let found = succeed(&arguments).json();
        assert_eq!((found["tokens"].as_u64(), found["runs"].as_u64()), (Some(tokens), Some(3)), "{found}");
        for fact in [
            "tokens_a_second",
            "useful_GFLOP_a_second",
            "peak_GFLOP_a_second",
            "share_of_peak",
            "scratch_memory",
        ] {
            assert!(found[fact].as_f64().unwrap() > 0.0, "{fact} of {found}");
        }
    }
}

#[test]
fn lengths_that_a_model_cannot_have_are_refused() {
    let measure = |lengths: &str| run(&["bench", "encoder", "--model", &model(), "--lengths", lengths]);
    measure("2000x1").fails_with(1, &["longer than the model's"]);
    measure("3x1").fails_with(1, &["too short"]);
    measure("nowhere").fails_with(2, &["nowhere", "no file of lengths", "No such file"]);
    measure("32..3000x4").fails_with(2, &["32..3000", "beyond"]);
    run(&["bench", "encoder"]).fails_with(2, &["--model"]);
}

#[test]
fn a_worker_computes_token_ids_and_goes_on_after_errors() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = plain_encoder(scratch.path());
    let tokenizer: Value =
        serde_json::from_slice(&std::fs::read(scratch.path().join("tokenizer.json")).unwrap()).unwrap();
    let ids =
        ["[CLS]", "move", "fall", "run", "[SEP]"].map(|token| tokenizer["model"]["vocab"][token].clone());
    let load =
        json!({ "do": "load", "model": "m", "directory": directory, "precision": "f32", "threads": 1 });
    let workload =
        |ids: &[Value]| json!({ "do": "workload", "workload": "w", "model": "m", "ids": [ids, ids] });
    let run = json!({ "do": "run", "model": "m", "workload": "w", "repeat": 2, "values": true });
    let answers = worker(&[
        json!({ "do": "machine" }),
        run.clone(),
        load,
        workload(&ids[1..]),
        workload(&ids),
        run,
        json!({ "do": "nothing" }),
        json!({ "do": "drop", "model": "m" }),
    ]);
    let ok: Vec<bool> = answers.iter().map(|answer| answer["ok"].as_bool().unwrap()).collect();
    assert_eq!(ok, [true, false, true, false, true, true, false, true], "{answers:?}");
    assert!(answers[1]["error"].as_str().unwrap().contains("no model"));
    assert!(answers[3]["error"].as_str().unwrap().contains("cannot be written as text"));
    assert_eq!(answers[5]["tokens"], 10);
    let values = answers[5]["values"].as_array().unwrap();
    let (first, second) = values.split_at(values.len() / 2);
    assert_eq!(first, second);
}

#[test]
fn a_worker_reranks_as_the_command_does() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let lines: String = ["fall. move downward", "run. move fast", "carry. move while supporting"]
        .iter()
        .enumerate()
        .map(|(n, text)| json!({ "qid": "q", "query": "a man fell", "docno": n.to_string(), "text": text }))
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(path("run.jsonl"), lines).unwrap();
    succeed(&["rerank", "--model", &model(), "--run", &path("run.jsonl"), "--output", &path("command.trec")]);
    let answers = worker(&[
        json!({ "do": "load", "model": "m", "directory": model() }),
        json!({ "do": "workload", "workload": "w", "model": "m", "run": [path("run.jsonl"), path("worker.trec")] }),
        json!({ "do": "run", "model": "m", "workload": "w", "repeat": 2 }),
    ]);
    assert!(answers.iter().all(|answer| answer["ok"] == true), "{answers:?}");
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    assert_eq!(read("worker.trec"), read("command.trec"));
}
