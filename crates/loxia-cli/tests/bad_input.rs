//! Bad input, each with the message a user sees: what, where, and what to do.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::program::{Said, assets, beir, model, run};

/// A copy of the embedded cross-encoder that a test may damage.
fn copy_of_model(scratch: &Path) -> PathBuf {
    let copy = scratch.join("model");
    std::fs::create_dir(&copy).unwrap();
    for entry in std::fs::read_dir(assets().join("tiny-models/emb-cross-encoder")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    copy
}

/// Scores a small data set with a model that is expected to be refused.
fn score_with(model: &Path, scratch: &Path) -> Said {
    let data = beir(scratch, 3).display().to_string();
    let output = scratch.join("scores").display().to_string();
    run(&["score", "--model", &model.display().to_string(), "--data", &data, "--output", &output])
}

/// Edits a JSON file of the model.
fn edit_json(path: &Path, edit: impl FnOnce(&mut serde_json::Value)) {
    let mut value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    edit(&mut value);
    std::fs::write(path, value.to_string()).unwrap();
}

/// Replaces the header of a safetensors file; the data stay.
fn edit_header(path: &Path, edit: impl FnOnce(&mut serde_json::Value)) {
    let bytes = std::fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    edit(&mut header);
    let header = header.to_string();
    let mut edited = (header.len() as u64).to_le_bytes().to_vec();
    edited.extend(header.as_bytes());
    edited.extend(&bytes[8 + length..]);
    std::fs::write(path, edited).unwrap();
}

const WORD: &str = "embeddings.word_embeddings.weight";
const TYPES: &str = "embeddings.token_type_embeddings.weight";

#[track_caller]
fn damaged(damage: impl FnOnce(&Path), parts: &[&str]) {
    let scratch = tempfile::tempdir().unwrap();
    let model = copy_of_model(scratch.path());
    damage(&model);
    score_with(&model, scratch.path()).fails_with(1, parts);
    assert!(!scratch.path().join("scores").exists() && !scratch.path().join("scores.partial").exists());
}

#[test]
fn truncated_safetensors() {
    damaged(
        |model| {
            let path = model.join("model.safetensors");
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        },
        &["model.safetensors", "bytes"],
    );
}

#[test]
fn safetensors_with_flipped_bits_in_its_header() {
    damaged(
        |model| {
            let path = model.join("model.safetensors");
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[8] ^= 0xff;
            std::fs::write(path, bytes).unwrap();
        },
        &["model.safetensors", "header"],
    );
}

#[test]
fn overlapping_tensors() {
    damaged(
        |model| {
            edit_header(&model.join("model.safetensors"), |header| {
                header[TYPES]["data_offsets"] = serde_json::json!([0, 512]);
            });
        },
        &["model.safetensors", "overlap"],
    );
}

#[test]
fn tensors_of_absurd_size() {
    damaged(
        |model| {
            edit_header(&model.join("model.safetensors"), |header| {
                header[WORD]["shape"] = serde_json::json!([1u64 << 60, 1u64 << 60]);
            });
        },
        &["model.safetensors", WORD],
    );
}

#[test]
fn wrong_shapes_name_the_tensor_and_both_shapes() {
    damaged(
        |model| edit_json(&model.join("config.json"), |config| config["intermediate_size"] = 500.into()),
        &["encoder.layer.0.intermediate.dense.weight", "512", "500"],
    );
}

#[test]
fn missing_and_unexpected_tensors_are_all_named() {
    damaged(
        |model| {
            edit_header(&model.join("model.safetensors"), |header| {
                let header = header.as_object_mut().unwrap();
                let tensor = header.remove(TYPES).unwrap();
                header.insert("encoder.gate.weight".into(), tensor);
            });
        },
        &["missing", TYPES, "encoder.gate.weight"],
    );
}

#[test]
fn unknown_activation_and_model_type() {
    damaged(
        |model| edit_json(&model.join("config.json"), |config| config["hidden_act"] = "wavelet".into()),
        &["config.json", "wavelet", "gelu"],
    );
    damaged(
        |model| edit_json(&model.join("config.json"), |config| config["model_type"] = "mamba".into()),
        &["config.json", "mamba", "bert"],
    );
}

#[test]
fn tokenizer_and_vocabulary_that_disagree() {
    damaged(
        |model| {
            edit_json(&model.join("tokenizer.json"), |tokenizer| {
                tokenizer["model"]["vocab"]["zyzzyva"] = 9000.into();
            });
        },
        &["9000", "8192"],
    );
}

#[test]
fn an_undecidable_directory_is_refused_with_the_flags_to_give() {
    damaged(
        |model| std::fs::remove_file(model.join("loxia.json")).unwrap(),
        &["--variant emb", "--variant dual"],
    );
}

/// A zip archive with one stored file, as PyTorch writes checkpoints.
fn stored_zip(name: &str, content: &[u8]) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(content);
    let mut fields = Vec::new();
    fields.extend([20u16, 0, 0, 0, 0].iter().flat_map(|field| field.to_le_bytes()));
    fields.extend(crc.sum().to_le_bytes());
    fields.extend([content.len() as u32, content.len() as u32].iter().flat_map(|field| field.to_le_bytes()));
    fields.extend([name.len() as u16, 0].iter().flat_map(|field| field.to_le_bytes()));
    let mut zip = [b"PK\x03\x04".as_slice(), &fields, name.as_bytes(), content].concat();
    let directory = zip.len() as u32;
    zip.extend([b"PK\x01\x02\x14\x00".as_slice(), &fields].concat());
    zip.extend([0; 14]);
    zip.extend(name.as_bytes());
    let size = zip.len() as u32 - directory;
    zip.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    zip.extend([size, directory].iter().flat_map(|field| field.to_le_bytes()));
    zip.extend([0, 0]);
    zip
}

#[test]
fn a_malicious_pickle_runs_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let checkpoint = scratch.path().join("evil.ckpt");
    let canary = scratch.path().join("canary");
    let pickle = format!("\u{2}\u{2}cos\nsystem\n(S'touch {}'\ntR.", canary.display());
    let mut pickle = pickle.into_bytes();
    pickle[0] = 0x80;
    std::fs::write(&checkpoint, stored_zip("evil/data.pkl", &pickle)).unwrap();
    let output = scratch.path().join("out").display().to_string();
    let said = run(&[
        "model",
        "convert",
        "--input",
        &checkpoint.display().to_string(),
        "--base",
        &model(),
        "--output",
        &output,
    ]);
    said.fails_with(1, &["evil.ckpt"]);
    assert!(!said.stderr.contains("zip archive"), "the archive itself is sound: {}", said.stderr);
    assert!(!canary.exists());
}

/// Scores with the embedded model on a data set that is expected to be refused.
#[track_caller]
fn bad_data(prepare: impl FnOnce(&Path), code: i32, parts: &[&str]) {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 3);
    prepare(&data);
    let output = scratch.path().join("scores").display().to_string();
    run(&["score", "--model", &model(), "--data", &data.display().to_string(), "--output", &output])
        .fails_with(code, parts);
}

#[test]
fn an_empty_query() {
    bad_data(
        |data| std::fs::write(data.join("queries.jsonl"), "{\"_id\":\"q1\",\"text\":\"  \"}\n").unwrap(),
        1,
        &["query \"q1\"", "row 0", "empty"],
    );
    let said = run(&["rerank", "--model", &model(), "--query", "", "--data", "/dev/null"]);
    said.fails_with(2, &["--query is empty"]);
}

#[test]
fn duplicate_ids_name_both_lines() {
    bad_data(
        |data| {
            let line = "{\"_id\":\"d1\",\"text\":\"x\"}\n";
            std::fs::write(
                data.join("corpus.jsonl"),
                format!("{line}{{\"_id\":\"d2\",\"text\":\"y\"}}\n{line}"),
            )
            .unwrap();
        },
        1,
        &["corpus.jsonl:3", "\"d1\"", "first at", "corpus.jsonl:1;"],
    );
}

#[test]
fn invalid_utf8_and_half_a_json_line_name_file_and_line() {
    bad_data(
        |data| std::fs::write(data.join("corpus.jsonl"), b"{\"_id\":\"d1\",\"text\":\"\xff\"}\n").unwrap(),
        1,
        &["corpus.jsonl:1", "UTF-8"],
    );
    bad_data(
        |data| {
            std::fs::write(data.join("corpus.jsonl"), "{\"_id\":\"d1\",\"text\":\"x\"}\n{\"_id\":\"d2\",\"te")
                .unwrap()
        },
        1,
        &["corpus.jsonl:2"],
    );
}

#[test]
fn a_gzip_bomb_is_stopped() {
    bad_data(
        |data| {
            std::fs::remove_file(data.join("corpus.jsonl")).unwrap();
            let file = std::fs::File::create(data.join("corpus.jsonl.gz")).unwrap();
            let mut bomb = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
            let text = " ".repeat(1 << 20);
            for line in 0..1100 {
                writeln!(bomb, "{{\"_id\":\"d{line}\",\"text\":\"{text}\"}}").unwrap();
            }
            bomb.finish().unwrap();
        },
        1,
        &["corpus.jsonl.gz", "inflate"],
    );
}

#[test]
fn a_text_of_a_megabyte_is_truncated_and_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 1);
    let long = "walk across the road ".repeat(50_000);
    std::fs::write(data.join("corpus.jsonl"), format!("{{\"_id\":\"d1\",\"text\":\"{long}\"}}\n")).unwrap();
    let output = scratch.path().join("scores.npy").display().to_string();
    let said = run(&[
        "score",
        "--json",
        "--model",
        &model(),
        "--data",
        &data.display().to_string(),
        "--output",
        &output,
    ]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(said.json()["truncated_pairs"], 3);
}

#[test]
fn a_damaged_matrix_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 3).display().to_string();
    let output = scratch.path().join("vectors");
    let dual = crate::program::dual();
    let shown = output.display().to_string();
    crate::program::succeed(&[
        "embed", "--model", &dual, "--data", &data, "--side", "item", "--output", &shown, "--quiet",
    ]);
    let numbers = output.join("scores.f32");
    let mut bytes = std::fs::read(&numbers).unwrap();
    bytes[..4].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&numbers, bytes).unwrap();
    run(&["retrieve", "--dual", &dual, "--data", &data, "--vectors", &shown])
        .fails_with(4, &["scores.f32", "NaN"]);
}
