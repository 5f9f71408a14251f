//! Models that are broken in some way, and the message each gets.

use std::path::{Path, PathBuf};

use loxia_model::{
    ConvertOptions, CrossEncoder, ModelOptions, ModelSpec, SaveOptions, check, convert, inspect, parse,
    save_cross_encoder,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture;

/// A copy of a fixture that a test may break.
fn copy(name: &str) -> (TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("model");
    std::fs::create_dir(&directory).unwrap();
    for entry in std::fs::read_dir(fixture(&format!("models/{name}"))).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), directory.join(entry.file_name())).unwrap();
    }
    (scratch, directory)
}

fn message(directory: &Path) -> String {
    match CrossEncoder::open(&ModelSpec::from(directory), &ModelOptions::default()) {
        Ok(_) => panic!("opened"),
        Err(error) => error.to_string(),
    }
}

fn change(directory: &Path, edit: impl FnOnce(&mut Value)) {
    let path = directory.join("config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    edit(&mut config);
    std::fs::write(&path, config.to_string()).unwrap();
}

/// Changes the header of `model.safetensors`, keeping the data.
fn change_header(directory: &Path, edit: impl FnOnce(&mut Value)) {
    let path = directory.join("model.safetensors");
    let file = std::fs::read(&path).unwrap();
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&file[8..8 + length]).unwrap();
    edit(&mut header);
    let header = header.to_string();
    let mut changed = (header.len() as u64).to_le_bytes().to_vec();
    changed.extend(header.as_bytes());
    changed.extend(&file[8 + length..]);
    std::fs::write(&path, changed).unwrap();
}

#[test]
fn all_missing_and_unexpected_tensors_are_named() {
    let (_scratch, directory) = copy("bert-odd");
    change(&directory, |config| config["num_hidden_layers"] = json!(3));
    let found = message(&directory);
    assert!(
        found.contains("missing: ") && found.contains("bert.encoder.layer.2.output.LayerNorm.bias"),
        "{found}"
    );
    assert!(found.contains("bert.encoder.layer.2.attention.self.query.weight"), "{found}");
    change(&directory, |config| config["num_hidden_layers"] = json!(1));
    let found = message(&directory);
    assert!(
        found.contains("unexpected: ") && found.contains("bert.encoder.layer.1.output.dense.weight"),
        "{found}"
    );
}

#[test]
fn wrong_shapes_name_found_and_expected() {
    let (_scratch, directory) = copy("bert-odd");
    change(&directory, |config| config["intermediate_size"] = json!(51));
    let found = message(&directory);
    assert!(
        found.contains("bert.encoder.layer.0.intermediate.dense.weight is [50, 36], expected [51, 36]"),
        "{found}"
    );
    assert!(
        found.contains("bert.encoder.layer.1.output.dense.weight is [36, 50], expected [36, 51]"),
        "{found}"
    );
}

#[test]
fn unknown_computations_are_refused() {
    for (key, value, part) in [
        ("model_type", json!("llama"), "the families read here are bert, roberta"),
        ("hidden_act", json!("mish"), "hidden_act is \"mish\""),
        ("is_decoder", json!(true), "only encoders"),
        ("position_embedding_type", json!("relative_key"), "only absolute positions"),
    ] {
        let (_scratch, directory) = copy("bert-odd");
        change(&directory, |config| config[key] = value);
        let found = message(&directory);
        assert!(found.contains(part) && found.contains("config.json"), "{found}");
    }
}

#[test]
fn a_tokenizer_of_another_model_is_refused() {
    let (_scratch, directory) = copy("bert-odd");
    std::fs::copy(fixture("tokenizers/wordpiece/tokenizer.json"), directory.join("tokenizer.json")).unwrap();
    let found = message(&directory);
    assert!(found.contains("8191") && found.contains("120"), "{found}");
}

#[test]
fn lying_and_truncated_weights_name_file_and_tensor() {
    let (_scratch, directory) = copy("bert-odd");
    let path = directory.join("model.safetensors");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 10]).unwrap();
    let found = message(&directory);
    assert!(found.contains("model.safetensors: tensor ") && found.contains("truncated"), "{found}");
    std::fs::write(&path, &whole).unwrap();
    change_header(&directory, |header| {
        header["bert.pooler.dense.bias"]["data_offsets"] = json!([0, 72]);
    });
    let found = message(&directory);
    assert!(found.contains("overlap") || found.contains("gap"), "{found}");
    std::fs::write(&path, &whole).unwrap();
    change_header(&directory, |header| header["bert.pooler.dense.bias"]["shape"] = json!([1_u64 << 60]));
    assert!(message(&directory).contains("bert.pooler.dense.bias of shape [1152921504606846976]"));
    std::fs::write(&path, b"").unwrap();
    assert!(message(&directory).contains("model.safetensors"));
}

#[test]
fn shards_cannot_lie_elsewhere() {
    let (_scratch, directory) = copy("bert-odd");
    std::fs::rename(directory.join("model.safetensors"), directory.join("model-00001-of-00001.safetensors"))
        .unwrap();
    let index = |shard: &str| {
        let map = json!({ "weight_map": { "classifier.bias": shard } });
        std::fs::write(directory.join("model.safetensors.index.json"), map.to_string()).unwrap();
    };
    index("model-00001-of-00001.safetensors");
    assert!(CrossEncoder::open(&ModelSpec::from(directory.as_path()), &ModelOptions::default()).is_ok());
    for shard in ["../model.safetensors", "/etc/passwd", "", "a/b", ".."] {
        index(shard);
        assert!(message(&directory).contains("paths that lead elsewhere are refused"), "{shard}");
    }
}

#[test]
fn weights_that_are_not_numbers_are_found() {
    let (_scratch, directory) = copy("bert-one-head");
    let path = directory.join("model.safetensors");
    let mut file = std::fs::read(&path).unwrap();
    let end = file.len();
    file[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&path, file).unwrap();
    let lines = check(&ModelSpec::from(directory.as_path()), &ModelOptions::default()).unwrap();
    assert!(lines[0].found.starts_with("not finite: ") && !lines[0].ok, "{lines:?}");
    let refusal = message(&directory);
    let tensor = lines[0].found.strip_prefix("not finite: ").unwrap();
    assert!(refusal.contains("NaN or infinity") && refusal.contains(tensor), "{refusal}");
}

#[test]
fn a_sound_model_passes_and_is_described() {
    let spec = ModelSpec::from(fixture("models/electra-odd").as_path());
    let lines = check(&spec, &ModelOptions::default()).unwrap();
    assert!(lines.iter().all(|line| line.ok), "{lines:?}");
    let summary = inspect(&spec, &ModelOptions::default()).unwrap();
    let encoder = &summary.encoder;
    assert_eq!((encoder.layers, encoder.hidden, encoder.heads, encoder.positions), (2, 36, 3, 44));
    assert_eq!((summary.labels, summary.default_activation), (Some(1), Some("sigmoid")));
    assert!(summary.because.contains("ElectraForSequenceClassification"));
    assert!(serde_json::to_string(&summary).unwrap().contains("\"family\":\"electra\""));
    assert!(!encoder.dtypes.contains(&loxia_model::Dtype::I64), "position ids are not read");
}

#[test]
fn places_without_a_model_say_what_is_missing() {
    let scratch = tempfile::tempdir().unwrap();
    assert!(message(scratch.path()).contains("no config.json"));
    assert!(message(&scratch.path().join("nothing")).contains("no such directory"));
    let (_scratch, directory) = copy("bert-odd");
    std::fs::rename(directory.join("model.safetensors"), directory.join("weights.ckpt")).unwrap();
    assert!(message(&directory).contains("found weights.ckpt: convert with `loxia model convert`"));
}

#[test]
fn loxia_json_is_checked() {
    let (_scratch, directory) = copy("bert-odd");
    let write = |value: Value| std::fs::write(directory.join("loxia.json"), value.to_string()).unwrap();
    write(json!({ "format": 2, "variant": "cls", "layout": { "kind": "pair" } }));
    assert!(message(&directory).contains("format is 2, this version reads 1"));
    write(json!({ "format": 1, "variant": "cls", "layout": { "kind": "pair" }, "poling": "cls" }));
    assert!(message(&directory).contains("poling"));
    let evil = json!({
        "format": 1, "variant": "dual", "layout": { "kind": "pair" }, "towers": { "query": "../x", "item": "b" }
    });
    write(evil.clone());
    assert!(message(&directory).contains("is not a directory beside this file"));
    assert!(parse::loxia_json(evil.to_string().as_bytes()).is_err());
    let towers = json!({ "query": "a", "item": "b" });
    write(json!({ "format": 1, "variant": "dual", "layout": { "kind": "pair" }, "towers": towers }));
    assert!(message(&directory).contains("each tower has its own"));
}

#[test]
fn lists_in_place_of_objects_are_errors() {
    for file in ["config.json", "tokenizer_config.json"] {
        let (_scratch, directory) = copy("bert-odd");
        std::fs::write(directory.join(file), "[]").unwrap();
        let (spec, target) = (ModelSpec::from(directory.as_path()), directory.with_file_name("saved"));
        let saved = save_cross_encoder(&spec, &ModelOptions::default(), &target, &SaveOptions::default());
        let error = saved.unwrap_err().to_string();
        assert!(error.contains(file), "{error}");
        let base = ConvertOptions { base: Some(directory), ..ConvertOptions::default() };
        let error = convert(&fixture("checkpoints/anncur-cls.ckpt"), &target, &base).unwrap_err().to_string();
        assert!(error.contains(".json"), "{error}");
    }
}

#[test]
fn a_head_without_labels_is_refused() {
    let (_scratch, directory) = copy("bert-odd");
    change(&directory, |config| {
        config["id2label"] = json!({});
        config["label2id"] = json!({});
    });
    change_header(&directory, |header| {
        let tensors = header.as_object_mut().unwrap();
        tensors.remove("__metadata__");
        // The only label's weights become part of the tensor before them.
        for name in ["classifier.weight", "classifier.bias"] {
            tensors.remove(name);
        }
    });
    let file = std::fs::read(directory.join("model.safetensors")).unwrap();
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&file[8..8 + length]).unwrap();
    let (mut data, mut kept) = (0_u64, Vec::new());
    let mut tensors: Vec<(String, Value)> = header.as_object().unwrap().clone().into_iter().collect();
    tensors.sort_by_key(|(_, tensor)| tensor["data_offsets"][0].as_u64());
    for (name, tensor) in tensors {
        let at = |index: usize| tensor["data_offsets"][index].as_u64().unwrap() as usize;
        kept.extend_from_slice(&file[8 + length + at(0)..8 + length + at(1)]);
        let end = data + (at(1) - at(0)) as u64;
        header[&name]["data_offsets"] = json!([data, end]);
        data = end;
    }
    header["classifier.weight"] = json!({ "dtype": "F32", "shape": [0, 36], "data_offsets": [data, data] });
    header["classifier.bias"] = json!({ "dtype": "F32", "shape": [0], "data_offsets": [data, data] });
    let header = header.to_string();
    let mut changed = (header.len() as u64).to_le_bytes().to_vec();
    changed.extend(header.as_bytes());
    changed.extend(kept);
    std::fs::write(directory.join("model.safetensors"), changed).unwrap();
    for label in [None, Some(0)] {
        let options = ModelOptions { label, ..ModelOptions::default() };
        let opened = CrossEncoder::open(&ModelSpec::from(directory.as_path()), &options);
        assert!(opened.err().unwrap().to_string().contains("has no label"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_parser_panics_on_noise(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse::safetensors_header(&bytes);
        let _ = parse::pickle(&bytes);
        let _ = parse::zip(&bytes);
        let _ = parse::torch_file(&bytes);
        let _ = parse::loxia_json(&bytes);
        let _ = parse::config_json(&bytes);
    }

    #[test]
    fn flipped_bits_never_panic(place in 0_usize..4096, bit in 0_u32..8) {
        let mut file = std::fs::read(fixture("models/bert-one-head/model.safetensors")).unwrap();
        file[place] ^= 1_u8 << bit;
        let _ = parse::safetensors_header(&file);
    }
}
