//! `--precision int8`: near f32, the same whatever the batch; and `loxia model check` that tells how near.

use std::path::Path;

use loxia::nn::Kernel;
use serde_json::{Value, json};

use crate::program::{Said, asset, beir, dual, loxia, model, npy, run, succeed};

/// What the program computes with here.
fn kernel() -> &'static str {
    Kernel::detect().unwrap().name()
}

/// So many texts, one a line.
fn texts(directory: &Path, count: usize) -> String {
    let verbs = ["run", "walk", "fall", "turn", "carry", "fly", "spread"];
    let line = |n: usize| {
        format!("{} {} to move about {}", verbs[n % 7], verbs[n / 7 % 7], "or stay ".repeat(n % 5))
    };
    let path = directory.join("texts.txt");
    std::fs::write(&path, (0..count).map(line).collect::<Vec<_>>().join("\n")).unwrap();
    path.display().to_string()
}

/// The loss that `loxia model check --json` tells.
fn loss(model: &str, texts: &str, more: &[&str]) -> Value {
    let mut arguments =
        vec!["model", "check", "--json", "--precision", "int8", "--model", model, "--texts", texts];
    arguments.extend(more);
    succeed(&arguments).json()["loss"].take()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn the_loss_is_told_to_people() {
    let scratch = tempfile::tempdir().unwrap();
    let texts = texts(scratch.path(), 40);
    let told = |model: &str| {
        succeed(&["model", "check", "--precision", "int8", "--model", model, "--texts", &texts]).stdout
    };
    let kernel = format!("int8, {} kernel", kernel());
    let parts = [
        &kernel,
        "int8 against f32, 40 texts, 40 of them as queries",
        "Spearman in a query",
        "overlap of top 10",
    ];
    for (model, own) in [
        (dual(), &["cosine of queries", "cosine of items", "worst texts (cosine)"][..]),
        (model(), &["score difference", "standard deviation", "worst texts (Spearman)", "as query"]),
    ] {
        let told = told(&model);
        for part in parts.iter().chain(own) {
            assert!(told.contains(part), "{part:?} is not in {told}");
        }
        assert_eq!(told.lines().filter(|line| line.starts_with("    line ")).count(), 5, "{told}");
    }
}

#[test]
fn the_loss_is_small_but_there() {
    let scratch = tempfile::tempdir().unwrap();
    let texts = texts(scratch.path(), 40);
    let of_vectors = loss(&dual(), &texts, &[]);
    for side in ["queries", "items"] {
        let (mean, worst) =
            (number(&of_vectors["cosine"][side]["mean"]), number(&of_vectors["cosine"][side]["worst"]));
        assert!(0.98 < worst && worst < mean && mean < 1.0, "{of_vectors}");
    }
    let of_scores = loss(&model(), &texts, &[]);
    assert!(number(&of_scores["score_difference"]["mean"]) > 0.0, "{of_scores}");
    assert!(of_scores["cosine"].is_null());
    assert!(number(&of_scores["score_deviation"]) > number(&of_scores["score_difference"]["mean"]));
    for loss in [&of_vectors, &of_scores] {
        assert_eq!((&loss["precision"], &loss["texts"]), (&Value::from("int8"), &Value::from(40)));
        assert_eq!(loss["kernel"], kernel());
        assert!((0.9..1.0).contains(&number(&loss["spearman"]["mean"])), "{loss}");
        assert!((0.5..=1.0).contains(&number(&loss["top_overlap"]["mean"])), "{loss}");
        let worst: Vec<f64> =
            loss["worst"].as_array().unwrap().iter().map(|text| number(&text["value"])).collect();
        assert!(worst.len() == 5 && worst.is_sorted(), "{loss}");
    }
}

#[test]
fn texts_left_out_and_cut_are_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let path = texts(scratch.path(), 20);
    let long = "move ".repeat(400);
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{whole}\n\n  \n{long}\n")).unwrap();
    let (of_vectors, of_scores) = (loss(&dual(), &path, &[]), loss(&model(), &path, &[]));
    for loss in [&of_vectors, &of_scores] {
        assert_eq!((&loss["texts"], &loss["blank_lines"]), (&Value::from(21), &Value::from(2)));
    }
    assert_eq!(of_vectors["truncated_texts"], json!({ "queries": 1, "items": 1 }));
    assert!(number(&of_scores["truncated_pairs"]) >= 20.0, "{of_scores}");
    let told = succeed(&["model", "check", "--precision", "int8", "--model", &dual(), "--texts", &path]);
    assert!(told.stdout.contains("blank lines left out") && told.stdout.contains("truncated as items"));
}

#[test]
fn summaries_name_precision_and_kernel() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 4).display().to_string();
    let output = scratch.path().join("out").display().to_string();
    let (model, dual) = (model(), dual());
    for command in [&["score", "--model", &model][..], &["embed", "--model", &dual, "--side", "item"]] {
        let common = ["--data", &data, "--output", &output, "--overwrite"];
        let told = succeed(&[command, &common, &["--precision", "int8"]].concat());
        assert!(told.stderr.contains(&format!("int8, {} kernel", kernel())), "{}", told.stderr);
        let facts = succeed(&[command, &common, &["--json"]].concat()).json();
        assert_eq!((&facts["precision"], &facts["kernel"]), (&Value::from("f32"), &Value::from(kernel())));
        assert!(facts.get("computed_in").is_none(), "{facts}");
        // Too short a run to say.
        assert!(facts["peak_GFLOP_a_second"].is_null() && facts["share_of_peak"].is_null(), "{facts}");
    }
}

#[test]
fn a_model_is_not_converted_to_a_precision() {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("out").display().to_string();
    let model = model();
    let arguments = ["model", "convert", "--input", &model, "--output", &output];
    for precision in ["int8", "f32"] {
        run(&[&arguments[..], &["--precision", precision]].concat())
            .fails_with(2, &["--precision has no effect here", "--weights int8"]);
    }
    // In the environment it is meant for other commands too.
    let with_environment = |arguments: &[&str]| {
        Said::of(loxia().env("LOXIA_PRECISION", "int8").args(arguments).output().unwrap())
    };
    let said = with_environment(&arguments);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let checkpoint = scratch.path().join("old.ckpt");
    std::fs::write(&checkpoint, "nothing").unwrap();
    let (checkpoint, other) = (checkpoint.display().to_string(), format!("{output}-2"));
    with_environment(&["model", "convert", "--input", &checkpoint, "--base", &model, "--output", &other])
        .fails_with(1, &["old.ckpt"]);
}

#[test]
fn both_towers_are_measured() {
    let scratch = tempfile::tempdir().unwrap();
    let texts = texts(scratch.path(), 30);
    let item = asset("tiny-models/dual-item");
    let (both, items_only) = (loss(&dual(), &texts, &[]), loss(&format!("{item},{item}"), &texts, &[]));
    assert_eq!(both["cosine"]["items"], items_only["cosine"]["items"]);
    assert_ne!(both["cosine"]["queries"], items_only["cosine"]["queries"]);
}

#[test]
fn vectors_are_compared_as_the_model_says() {
    let scratch = tempfile::tempdir().unwrap();
    let texts = texts(scratch.path(), 40);
    let by = |similarity: &str| loss(&dual(), &texts, &["--similarity", similarity]);
    let (dot, cosine) = (by("dot"), by("cosine"));
    assert_eq!(loss(&dual(), &texts, &[]), dot, "the model says dot");
    assert_ne!(dot["spearman"], cosine["spearman"]);
}

#[test]
fn few_texts_make_a_shorter_top_and_too_few_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = texts(scratch.path(), 11);
    assert_eq!(loss(&model(), &path, &[])["top"], 5);
    assert_eq!(loss(&dual(), &path, &[])["top"], 5);
    let few = texts(scratch.path(), 10);
    let check = |precision: &str| {
        run(&["model", "check", "--precision", precision, "--model", &model(), "--texts", &few])
    };
    check("int8").fails_with(1, &["10 texts", "at least 11"]);
    check("f32").fails_with(2, &["--precision int8"]);
    assert!(succeed(&["model", "check", "--help"]).stdout.contains("at least 11"));
}

/// Asserts that numbers are near the exact ones, and not just them.
#[track_caller]
fn assert_near(found: &[f32], exact: &[f32]) {
    assert_eq!(found.len(), exact.len());
    let mean = exact.iter().sum::<f32>() / exact.len() as f32;
    let spread = exact.iter().map(|value| (value - mean).powi(2)).sum::<f32>();
    let lost = exact.iter().zip(found).map(|(exact, found)| (exact - found).powi(2)).sum::<f32>();
    assert!(0.0 < lost && lost < 0.02 * spread, "{lost} of {spread} lost");
}

/// Asserts that a command makes numbers in int8 that are near those of f32, and the same whatever the batch.
fn check_batches(make: impl Fn(&str, &[&str]) -> Vec<f32>) {
    let exact = make("f32", &[]);
    let found = make("int8", &[]);
    assert_near(&found, &exact);
    for more in [&["--token-budget", "40"][..], &["--token-budget", "100000"], &["--threads", "1"]] {
        assert_eq!(make("int8", more), found, "{more:?}");
    }
}

#[test]
fn int8_scores_and_vectors_are_near_and_do_not_depend_on_the_batch() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 40).display().to_string();
    let output = scratch.path().join("out.npy");
    let shown = output.display().to_string();
    let make = |arguments: &[&str], precision: &str, more: &[&str]| {
        let common =
            ["--data", &data, "--output", &shown, "--overwrite", "--quiet", "--precision", precision];
        succeed(&[arguments, &common, more].concat());
        npy(&output).1
    };
    let (model, dual) = (model(), dual());
    check_batches(|precision, more| make(&["score", "--model", &model], precision, more));
    for side in ["query", "item"] {
        check_batches(|precision, more| make(&["embed", "--model", &dual, "--side", side], precision, more));
    }
}

#[test]
fn int8_reranks_nearly_as_f32_does() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 40).display().to_string();
    let model = model();
    check_batches(|precision, more| {
        let arguments = [
            "rerank",
            "--model",
            &model,
            "--query",
            "bend and fall",
            "--data",
            &data,
            "--quiet",
            "--precision",
            precision,
        ];
        let said = succeed(&[&arguments[..], more].concat());
        // By item, so that the order is the same.
        let mut scores: Vec<(&str, f32)> = said
            .stdout
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .map(|columns| (columns[2], columns[4].parse().unwrap()))
            .collect();
        scores.sort_by_key(|(item, _)| *item);
        scores.into_iter().map(|(_, score)| score).collect()
    });
}
