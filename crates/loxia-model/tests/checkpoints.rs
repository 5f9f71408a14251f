//! PyTorch checkpoints: what is read equals what PyTorch wrote, nothing in them runs, and conversions open.
//!
//! Fixtures are made by `tools/golden/pickles.py`.

use std::path::{Path, PathBuf};

use loxia_core::artefact::Existing;
use loxia_core::{Cancel, Item, NoProgress, PairScorer, Query, QueryText};
use loxia_model::layout::{Compat, LayoutKind};
use loxia_model::{
    ConvertOptions, CrossEncoder, ModelOptions, ModelSpec, Pooling, SaveOptions, StoredWeights, TextEncoder,
    Variant, convert, parse,
};
use serde_json::Value;

use crate::fixture;

fn checkpoint(name: &str) -> PathBuf {
    fixture("checkpoints").join(name)
}

fn golden() -> Value {
    serde_json::from_slice(&std::fs::read(checkpoint("golden.json")).unwrap()).unwrap()
}

fn options() -> ConvertOptions {
    ConvertOptions { base: Some(checkpoint("base")), save: SaveOptions::default() }
}

/// Name, shape and values of every tensor of a safetensors file.
fn tensors(path: &Path) -> Vec<(String, Vec<u64>, Vec<f32>)> {
    let file = std::fs::read(path).unwrap();
    assert!(parse::safetensors_header(&file).is_ok());
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&file[8..8 + length]).unwrap();
    let data = &file[8 + length..];
    let header = header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__");
    header
        .map(|(name, entry)| {
            let numbers =
                |key: &str| entry[key].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
            let (shape, offsets): (Vec<u64>, Vec<u64>) = (numbers("shape"), numbers("data_offsets"));
            let bytes = &data[offsets[0] as usize..offsets[1] as usize];
            let values = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
            (name.clone(), shape, values)
        })
        .collect()
}

/// Compares written tensors with what PyTorch said about them; `rename` maps a file's name to golden's.
fn compare(path: &Path, golden: &Value, rename: impl Fn(&str) -> Option<String>) -> usize {
    let mut count = 0;
    for (name, shape, values) in tensors(path) {
        let Some(known) = rename(&name) else { continue };
        let expected = &golden[&known];
        assert_eq!(serde_json::json!(shape), expected[0], "{name}");
        let sum: f64 = values.iter().map(|&value| f64::from(value)).sum();
        assert!((sum - expected[1].as_f64().unwrap()).abs() < 1e-4, "{name}");
        assert!((f64::from(*values.last().unwrap()) - expected[2].as_f64().unwrap()).abs() < 1e-6, "{name}");
        count += 1;
    }
    count
}

#[test]
fn views_halves_and_parameters_are_read_as_pytorch_sees_them() {
    let scratch = tempfile::tempdir().unwrap();
    let (input, output) = (scratch.path().join("in"), scratch.path().join("out"));
    std::fs::create_dir(&input).unwrap();
    std::fs::copy(checkpoint("plain.bin"), input.join("pytorch_model.bin")).unwrap();
    std::fs::write(input.join("config.json"), "{}").unwrap();
    let report = convert(&input, &output, &ConvertOptions::default()).unwrap();
    assert_eq!(report.unread, ["position_ids"]);
    assert_eq!(compare(&output.join("model.safetensors"), &golden()["plain"], |name| Some(name.into())), 5);
}

#[test]
fn every_protocol_is_read() {
    for protocol in 3..=5 {
        let file = std::fs::read(checkpoint(&format!("protocol-{protocol}.bin"))).unwrap();
        assert_eq!(parse::torch_file(&file).unwrap(), 1);
    }
}

#[test]
fn code_in_a_checkpoint_is_named_and_never_run() {
    let scratch = tempfile::tempdir().unwrap();
    let (input, output) = (scratch.path().join("in"), scratch.path().join("out"));
    std::fs::create_dir(&input).unwrap();
    std::fs::copy(checkpoint("evil.bin"), input.join("pytorch_model.bin")).unwrap();
    std::fs::write(input.join("config.json"), "{}").unwrap();
    let message = convert(&input, &output, &ConvertOptions::default()).unwrap_err().to_string();
    assert!(message.contains("tensor weight depends on posix.system"), "{message}");
    assert!(!output.exists());
}

#[test]
fn damaged_checkpoints_are_refused() {
    let whole = std::fs::read(checkpoint("plain.bin")).unwrap();
    for cut in (0..whole.len()).step_by(41) {
        assert!(parse::torch_file(&whole[..cut]).is_err(), "cut at {cut}");
    }
    for place in (0..whole.len()).step_by(3) {
        let mut flipped = whole.clone();
        flipped[place] ^= 0x55;
        let _ = parse::torch_file(&flipped);
    }
    let legacy = std::fs::read(checkpoint("legacy.bin")).unwrap();
    assert!(parse::torch_file(&legacy).unwrap_err().to_string().contains("before version 1.6"));
}

#[test]
fn checkpoints_need_the_model_they_were_trained_from() {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("out");
    let message =
        convert(&checkpoint("anncur-cls.ckpt"), &output, &ConvertOptions::default()).unwrap_err().to_string();
    assert!(message.contains("--base DIR"), "{message}");
    let message = convert(&checkpoint("plain.bin"), &output, &options()).unwrap_err().to_string();
    assert!(message.contains("named as in no system known here"), "{message}");
}

fn mention(left: &str, mention: &str) -> Query {
    let right = "burns logs".into();
    Query { id: "q".into(), text: QueryText::Mention { left: left.into(), mention: mention.into(), right } }
}

fn stove() -> Item {
    Item { id: "d".into(), title: Some("stove".into()), text: "burns wood".into() }
}

#[test]
fn cross_encoders_of_both_systems_open_after_conversion() {
    let (query, item) = (mention("a wood", "stove"), stove());
    for (name, variant, kind, compat, prefix) in [
        ("anncur-cls.ckpt", Variant::Cls, LayoutKind::Anncur, Compat::Anncur, "bert."),
        ("anncur-emb.ckpt", Variant::Emb, LayoutKind::Anncur, Compat::Anncur, ""),
        ("hard-nce-full.pt", Variant::HardNce, LayoutKind::HardNce, Compat::HardNce, "bert."),
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let output = scratch.path().join("out");
        let report = convert(&checkpoint(name), &output, &options()).unwrap();
        assert_eq!(report.variant, Some(variant));
        assert!(report.opaque.iter().any(|class| class.ends_with("Config") || class.ends_with("Namespace")));
        let encoder = |name: &str| {
            name.strip_prefix(prefix).filter(|rest| !rest.starts_with("classifier")).map(str::to_owned)
        };
        assert!(compare(&output.join("model.safetensors"), &golden()["query"], encoder) >= 37);
        if variant != Variant::Emb {
            let linear = |name: &str| name.strip_prefix("classifier.").map(str::to_owned);
            assert_eq!(compare(&output.join("model.safetensors"), &golden()["linear"], linear), 2);
        }
        let model = CrossEncoder::open(&ModelSpec::from(output.as_path()), &ModelOptions::default()).unwrap();
        assert_eq!((model.facts().variant, model.facts().layout.kind), (variant, kind));
        assert_eq!(model.facts().layout.compat, Some(compat));
        let mut scores = [0.0];
        let (queries, items) = ([query.clone()], [item.clone()]);
        model.score(&queries, &items, &[(0, 0)], &mut scores, &NoProgress, &Cancel::new()).unwrap();
        let expected = golden()["scores"][name].as_f64().unwrap();
        assert!((f64::from(scores[0]) - expected).abs() < 1e-4, "{name}: {}, expected {expected}", scores[0]);
        let refused = convert(&checkpoint(name), &output, &options()).unwrap_err().to_string();
        assert!(refused.contains("--overwrite"), "{refused}");
    }
}

#[test]
fn dual_encoders_of_both_systems_become_two_towers() {
    for (name, compat) in [("anncur-dual.ckpt", Compat::Anncur), ("hard-nce-dual.pt", Compat::HardNce)] {
        let scratch = tempfile::tempdir().unwrap();
        let output = scratch.path().join("out");
        convert(&checkpoint(name), &output, &options()).unwrap();
        let same = |name: &str| Some(name.to_owned());
        assert_eq!(compare(&output.join("query/model.safetensors"), &golden()["query"], same), 37);
        assert_eq!(compare(&output.join("item/model.safetensors"), &golden()["item"], same), 37);
        let model = TextEncoder::open(&ModelSpec::from(output.as_path()), &ModelOptions::default()).unwrap();
        let facts = model.facts();
        assert!(!facts.shared);
        assert_eq!((facts.query.pooling, facts.query.layout.compat), (Pooling::Cls, Some(compat)));
        let (queries, items) = ([mention("a wood", "stove")], [stove()]);
        let vectors = model.encode_items(&items, &NoProgress, &Cancel::new()).unwrap();
        let query = model.encode_queries(&queries, &NoProgress, &Cancel::new()).unwrap();
        for (side, found) in [&query, &vectors].into_iter().enumerate() {
            let expected = golden()["vectors"][name][side].as_array().unwrap().clone();
            assert_eq!(found.vectors.len(), expected.len());
            for (found, expected) in found.vectors.iter().zip(&expected) {
                assert!((f64::from(*found) - expected.as_f64().unwrap()).abs() < 1e-4, "{name}");
            }
        }
        let both = format!("{0}/query,{0}/item", output.display());
        let towers = TextEncoder::open(&both.parse().unwrap(), &ModelOptions::default()).unwrap();
        assert_eq!(towers.encode_items(&items, &NoProgress, &Cancel::new()).unwrap(), vectors);
    }
}

/// A pair that loses its marks under compat stops neither itself nor the others: the original of such a model
/// stops there, so the pair is laid out as without compat.
#[test]
fn marks_that_compat_would_cut_are_kept_for_scores_at_marks() {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("out");
    convert(&checkpoint("anncur-emb.ckpt"), &output, &options()).unwrap();
    let spec = ModelSpec::from(output.as_path());
    let model = CrossEncoder::open(&spec, &ModelOptions::default()).unwrap();
    let long = "stove ".repeat(200);
    let queries = [mention("a wood", "stove"), mention("a wood", ""), mention(&long, &long)];
    let items = [stove(), Item { id: "long".into(), title: Some(long), text: "burns".into() }];
    let pairs: Vec<(u32, u32)> = (0..3).flat_map(|query| [(query, 0), (query, 1)]).collect();
    let mut scores = [f32::NAN; 6];
    model.score(&queries, &items, &pairs, &mut scores, &NoProgress, &Cancel::new()).unwrap();
    let expected = golden()["scores"]["anncur-emb.ckpt"].as_f64().unwrap();
    assert!((f64::from(scores[0]) - expected).abs() < 1e-4);
    let options = ModelOptions { compat: Some(Compat::None), ..ModelOptions::default() };
    let plain = CrossEncoder::open(&spec, &options).unwrap();
    assert_eq!(plain.facts().layout.compat, None);
    assert_ne!(plain.info().digest, model.info().digest);
    let mut without = [f32::NAN; 6];
    plain.score(&queries, &items, &pairs, &mut without, &NoProgress, &Cancel::new()).unwrap();
    assert_ne!(without[0], scores[0], "items are at other positions");
}

/// A directory of a fixture's configuration with a PyTorch file as weights.
fn torch_directory(root: &Path, weights: &str) -> PathBuf {
    let input = root.join("in");
    std::fs::create_dir(&input).unwrap();
    for name in ["config.json", "tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(checkpoint("base").join(name), input.join(name)).unwrap();
    }
    std::fs::copy(checkpoint(weights), input.join("pytorch_model.bin")).unwrap();
    input
}

#[test]
fn halves_are_written_only_where_they_hold_the_values() {
    let scratch = tempfile::tempdir().unwrap();
    let input = torch_directory(scratch.path(), "plain.bin");
    let half = ConvertOptions {
        save: SaveOptions { weights: StoredWeights::F16, ..SaveOptions::default() },
        base: None,
    };
    let output = scratch.path().join("out");
    convert(&input, &output, &half).unwrap();
    let config: Value = serde_json::from_slice(&std::fs::read(output.join("config.json")).unwrap()).unwrap();
    assert_eq!((&config["dtype"], &config["torch_dtype"]), (&"float16".into(), &"float16".into()));
    std::fs::copy(checkpoint("large.bin"), input.join("pytorch_model.bin")).unwrap();
    let output = scratch.path().join("large");
    let error = convert(&input, &output, &half).unwrap_err().to_string();
    assert!(error.contains("tensor weight has values beyond f16"), "{error}");
    assert!(!output.exists());
}

#[test]
fn a_directory_nobody_here_wrote_is_never_replaced() {
    let scratch = tempfile::tempdir().unwrap();
    let input = torch_directory(scratch.path(), "plain.bin");
    let save = SaveOptions { existing: Existing::Overwrite, ..SaveOptions::default() };
    let options = ConvertOptions { save, base: None };
    let precious = scratch.path().join("precious");
    std::fs::create_dir(&precious).unwrap();
    std::fs::write(precious.join("config.json"), "{}").unwrap();
    let error = convert(&input, &precious, &options).unwrap_err().to_string();
    assert!(error.contains("loxia.json") && precious.join("config.json").is_file(), "{error}");
    let output = scratch.path().join("out");
    convert(&input, &output, &options).unwrap();
    assert!(output.join("loxia.json").is_file());
    convert(&input, &output, &options).unwrap();
}

#[test]
fn modules_within_modules_are_copied() {
    let scratch = tempfile::tempdir().unwrap();
    let input = torch_directory(scratch.path(), "plain.bin");
    for (directory, file) in [("0_Router/query_0/1_Dense", "config.json"), ("onnx", "model.onnx")] {
        std::fs::create_dir_all(input.join(directory)).unwrap();
        std::fs::write(input.join(directory).join(file), "{}").unwrap();
    }
    std::fs::copy(checkpoint("plain.bin"), input.join("0_Router/query_0/1_Dense/pytorch_model.bin")).unwrap();
    let output = scratch.path().join("out");
    convert(&input, &output, &ConvertOptions::default()).unwrap();
    let dense = output.join("0_Router/query_0/1_Dense");
    assert!(dense.join("model.safetensors").is_file());
    assert_eq!(std::fs::read_to_string(dense.join("config.json")).unwrap().trim(), "{}");
    assert!(!output.join("onnx").exists());
}

#[test]
fn opaque_values_matter_only_where_a_tensor_is_wanted() {
    let open = |name: &str| {
        let scratch = tempfile::tempdir().unwrap();
        let input = torch_directory(scratch.path(), name);
        let options = ModelOptions {
            variant: Some(Variant::Dual),
            pooling: Some(Pooling::Cls),
            ..ModelOptions::default()
        };
        TextEncoder::open(&ModelSpec::from(input.as_path()), &options)
    };
    let error = open("opaque-wanted.bin").err().unwrap().to_string();
    assert!(error.contains("embeddings.LayerNorm.weight depends on"), "{error}");
    let model = open("opaque-unwanted.bin").unwrap();
    assert_eq!(model.facts().query.unread, ["extra_state"]);
}
