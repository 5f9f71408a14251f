//! Directories of sentence-transformers: its own vectors, and round trips through our files.
//!
//! `fixtures/sentence/golden.json` is made by `tools/golden/sentence.py`.

use std::path::{Path, PathBuf};

use loxia_core::{Cancel, Item, NoProgress, Query};
use loxia_model::{
    Embeddings, ModelOptions, ModelSpec, Pooling, SaveOptions, Similarity, TextEncoder, Variant, inspect,
    save_text_encoder,
};
use loxia_nn::Kernel;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture;

/// Files of a directory by their path, JSON all of them.
type Files = Vec<(&'static str, Value)>;

fn write(root: &Path, name: &str, value: &Value) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, value.to_string()).unwrap();
}

fn copy_encoder(family: &str, root: &Path) {
    std::fs::create_dir_all(root).unwrap();
    for name in ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(fixture(&format!("models/{family}")).join(name), root.join(name)).unwrap();
    }
}

fn modules(list: &[(&str, &str)]) -> Value {
    let module = |(index, (path, class)): (usize, &(&str, &str))| json!({ "idx": index, "name": "", "path": path, "type": format!("sentence_transformers.models.{class}") });
    list.iter().enumerate().map(module).collect()
}

/// A directory with mean pooling, a Dense layer of 36 x 10 and Normalize, changed by `files`.
fn directory(family: &str, files: Files) -> (TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("model");
    copy_encoder(family, &root);
    let list =
        [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense"), ("3_Normalize", "Normalize")];
    write(&root, "modules.json", &modules(&list));
    write(&root, "1_Pooling/config.json", &json!({ "pooling_mode": "mean" }));
    let dense = json!({
        "in_features": 36, "out_features": 10, "bias": false,
        "activation_function": "torch.nn.modules.activation.Tanh",
    });
    write(&root, "2_Dense/config.json", &dense);
    let header = json!({ "linear.weight": { "dtype": "F32", "shape": [10, 36], "data_offsets": [0, 1440] } });
    let header = header.to_string();
    let mut weights = (header.len() as u64).to_le_bytes().to_vec();
    weights.extend(header.as_bytes());
    weights.extend((0..360).flat_map(|n| ((n * 37 % 101) as f32 / 101.0 - 0.5).to_le_bytes()));
    std::fs::write(root.join("2_Dense/model.safetensors"), weights).unwrap();
    for (name, value) in files {
        write(&root, name, &value);
    }
    (scratch, root)
}

fn open(root: &Path) -> TextEncoder {
    TextEncoder::open(&ModelSpec::from(root), &ModelOptions::default()).unwrap()
}

fn texts(texts: &[&str]) -> (Vec<Query>, Vec<Item>) {
    let queries = texts.iter().map(|text| Query::plain("q", *text)).collect();
    (queries, texts.iter().map(|text| Item::plain("d", *text)).collect())
}

/// Vectors of the same texts as queries and as items.
fn both(model: &TextEncoder) -> [Embeddings; 2] {
    let long = "birds wander far when cones are few ".repeat(5);
    let (queries, items) = texts(&["burns logs", "Crossbills EAT seeds", "", &long]);
    [
        model.encode_queries(&queries, &NoProgress, &Cancel::new()).unwrap(),
        model.encode_items(&items, &NoProgress, &Cancel::new()).unwrap(),
    ]
}

#[test]
fn vectors_are_those_of_sentence_transformers() {
    let golden: Value =
        serde_json::from_slice(&std::fs::read(fixture("sentence/golden.json")).unwrap()).unwrap();
    let strings: Vec<&str> =
        golden["texts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    let (queries, items) = texts(&strings);
    for (name, case) in golden["cases"].as_object().unwrap() {
        let scratch = tempfile::tempdir().unwrap();
        copy_encoder(golden["model"].as_str().unwrap(), scratch.path());
        for (path, value) in case["files"].as_object().unwrap() {
            write(scratch.path(), path, value);
        }
        let model = open(scratch.path());
        for (side, found) in [
            ("query", model.encode_queries(&queries, &NoProgress, &Cancel::new()).unwrap()),
            ("item", model.encode_items(&items, &NoProgress, &Cancel::new()).unwrap()),
        ] {
            let expected: Vec<f64> = case[side]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|row| row.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()))
                .collect();
            assert_eq!(found.vectors.len(), expected.len(), "{name}, {side}");
            for (place, (found, expected)) in found.vectors.iter().zip(&expected).enumerate() {
                let difference = (f64::from(*found) - expected).abs();
                assert!(difference < 1e-4, "{name}, {side} at {place}: {found}, expected {expected}");
            }
        }
    }
}

fn with_everything(root_pooling: &str, limit: usize, truncate: usize) -> Files {
    vec![
        ("1_Pooling/config.json", json!({ "pooling_mode": root_pooling, "include_prompt": false })),
        ("sentence_bert_config.json", json!({ "max_seq_length": limit, "do_lower_case": true })),
        (
            "config_sentence_transformers.json",
            json!({
                "prompts": { "query": "Stove ", "document": "WOOD burns: " },
                "similarity_fn_name": "dot", "truncate_dim": truncate,
            }),
        ),
    ]
}

#[test]
fn a_saved_model_keeps_steps_prompts_case_and_width() {
    let (_scratch, root) = directory("roberta-odd", with_everything("mean", 14, 7));
    let target = root.with_file_name("saved");
    save_text_encoder(
        &ModelSpec::from(root.as_path()),
        &ModelOptions::default(),
        &target,
        &SaveOptions::default(),
    )
    .unwrap();
    let (before, after) = (open(&root), open(&target));
    assert_eq!((after.dim(), after.similarity()), (7, Similarity::Dot));
    assert_eq!(both(&before), both(&after));
    std::fs::remove_file(target.join("loxia.json")).unwrap();
    assert_eq!(both(&before), both(&open(&target)), "what sentence-transformers would read");
}

#[test]
fn two_saved_towers_keep_what_is_their_own() {
    let (_first, query) = directory("roberta-odd", with_everything("cls", 9, 8));
    let (_second, item) = directory("bert-odd", with_everything("max", 30, 8));
    let spec: ModelSpec = format!("{},{}", query.display(), item.display()).parse().unwrap();
    let target = query.with_file_name("saved");
    save_text_encoder(&spec, &ModelOptions::default(), &target, &SaveOptions::default()).unwrap();
    let before = TextEncoder::open(&spec, &ModelOptions::default()).unwrap();
    let after = open(&target);
    let facts = after.facts();
    assert_eq!((facts.query.pooling, facts.item.pooling), (Pooling::Cls, Pooling::Max));
    assert_eq!((facts.query.layout.max_length, facts.item.layout.max_length), (Some(9), Some(30)));
    assert_eq!((facts.query.prompt.as_str(), facts.item.prompt.as_str()), ("Stove ", "WOOD burns: "));
    assert_eq!(both(&before), both(&after));
    let root: Value = serde_json::from_slice(&std::fs::read(target.join("loxia.json")).unwrap()).unwrap();
    assert!(root.get("layout").is_none() && root.get("pooling").is_none(), "{root}");
}

#[test]
fn what_a_pooling_of_ours_cannot_carry_is_refused() {
    let (_scratch, root) = directory("roberta-odd", with_everything("mean", 14, 7));
    let options = ModelOptions { pooling: Some(Pooling::Lse), ..ModelOptions::default() };
    let target = root.with_file_name("saved");
    let error =
        save_text_encoder(&ModelSpec::from(root.as_path()), &options, &target, &SaveOptions::default())
            .unwrap_err()
            .to_string();
    for part in ["pooling lse", "steps after pooling", "prompts", "do_lower_case", "truncate_dim"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(!target.exists());
}

#[test]
fn everything_that_changes_a_vector_changes_the_digest() {
    let plain = || with_everything("mean", 14, 7);
    let digest = |files: Files, kernel: Option<Kernel>| {
        let (_scratch, root) = directory("roberta-odd", files);
        let options = ModelOptions { kernel, ..ModelOptions::default() };
        let model = TextEncoder::open(&ModelSpec::from(root.as_path()), &options).unwrap();
        model.info().unwrap().digest
    };
    let first = digest(plain(), None);
    assert_eq!(first, digest(plain(), None));
    let mut changed = vec![digest(with_everything("mean", 14, 6), None)];
    for (place, value) in [
        (0, json!({ "pooling_mode": "mean", "include_prompt": true })),
        (1, json!({ "max_seq_length": 14, "do_lower_case": false })),
        (
            2,
            json!({ "prompts": { "query": "Stove ", "document": "wood" }, "similarity_fn_name": "dot", "truncate_dim": 7 }),
        ),
    ] {
        let mut files = plain();
        files[place].1 = value;
        changed.push(digest(files, None));
    }
    let kernels: std::collections::HashSet<String> =
        Kernel::available().into_iter().map(|kernel| digest(plain(), Some(kernel))).collect();
    let kinds = Kernel::available().into_iter().map(|kernel| kernel.same_bits(loxia_nn::Precision::F32));
    let kinds: std::collections::HashSet<Kernel> = kinds.collect();
    assert_eq!(kernels.len(), kinds.len(), "every kernel of other bits has its own");
    changed.iter().for_each(|digest| assert_ne!(*digest, first));
}

#[test]
fn inspecting_shows_the_prompt_of_each_side() {
    let (_scratch, root) = directory("roberta-odd", with_everything("mean", 14, 7));
    let summary = inspect(&ModelSpec::from(root.as_path()), &ModelOptions::default()).unwrap();
    assert_eq!(summary.encoder.prompt, "Stove ");
    assert_eq!(summary.item_prompt.as_deref(), Some("WOOD burns: "));
}

#[test]
fn an_unknown_similarity_can_be_replaced() {
    let general = json!({ "similarity_fn_name": "euclidean" });
    let (_scratch, root) = directory("bert-odd", vec![("config_sentence_transformers.json", general)]);
    let spec = ModelSpec::from(root.as_path());
    let error = TextEncoder::open(&spec, &ModelOptions::default()).err().unwrap().to_string();
    assert!(
        error.contains("similarity_fn_name is \"euclidean\"") && error.contains("--similarity"),
        "{error}"
    );
    let options = ModelOptions { similarity: Some(Similarity::Dot), ..ModelOptions::default() };
    assert_eq!(TextEncoder::open(&spec, &options).unwrap().similarity(), Similarity::Dot);
}

#[test]
fn a_text_without_tokens_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    copy_encoder("bert-odd", scratch.path());
    let path = scratch.path().join("tokenizer.json");
    let mut tokenizer: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let text = |id: &str| json!({ "Sequence": { "id": id, "type_id": 0 } });
    tokenizer["post_processor"] = json!({
        "type": "TemplateProcessing", "single": [text("A")], "pair": [text("A"), text("B")], "special_tokens": {},
    });
    std::fs::write(&path, tokenizer.to_string()).unwrap();
    for pooling in [Pooling::Cls, Pooling::Mean, Pooling::Tanh] {
        let options =
            ModelOptions { variant: Some(Variant::Dual), pooling: Some(pooling), ..ModelOptions::default() };
        let model = TextEncoder::open(&ModelSpec::from(scratch.path()), &options).unwrap();
        let error = model.encode_queries(&[Query::plain("q7", "")], &NoProgress, &Cancel::new()).unwrap_err();
        assert!(error.to_string().contains("query q7 has no tokens"), "{error}");
    }
}
