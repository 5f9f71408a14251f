//! Dual encoders end to end.

use std::path::Path;

use loxia_core::{Cancel, Item, NoProgress, Query};
use loxia_model::{
    ModelOptions, ModelSpec, Pooling, SaveOptions, Similarity, TextEncoder, Variant, save_text_encoder,
};

use serde_json::json;

use crate::fixture;

fn open(directory: &Path, options: &ModelOptions) -> TextEncoder {
    TextEncoder::open(&ModelSpec::from(directory), options).unwrap()
}

fn dual(pooling: Pooling) -> ModelOptions {
    ModelOptions { variant: Some(Variant::Dual), pooling: Some(pooling), ..ModelOptions::default() }
}

fn items() -> Vec<Item> {
    (0..9).map(|n| Item::plain(format!("d{n}"), "finch family lives in forests ".repeat(n))).collect()
}

#[test]
fn vectors_do_not_depend_on_company() {
    for pooling in [Pooling::Cls, Pooling::Tanh, Pooling::Mean, Pooling::Max, Pooling::Lse] {
        let model = open(&fixture("models/bert-odd"), &dual(pooling));
        let together = model.encode_items(&items(), &NoProgress, &Cancel::new()).unwrap();
        assert_eq!(together.vectors.len(), 9 * model.dim());
        for (item, expected) in items().iter().zip(together.vectors.chunks(model.dim())) {
            let alone = model.encode_items(std::slice::from_ref(item), &NoProgress, &Cancel::new()).unwrap();
            assert_eq!(alone.vectors, expected, "{pooling}");
        }
    }
}

#[test]
fn what_cannot_be_decided_is_asked_for() {
    let spec = ModelSpec::from(fixture("models/bert-odd").as_path());
    let message = TextEncoder::open(&spec, &ModelOptions::default()).err().unwrap().to_string();
    assert!(
        message.contains("this is a cross-encoder") && message.contains("--variant dual --pooling"),
        "{message}"
    );
    let options = ModelOptions { variant: Some(Variant::Dual), ..ModelOptions::default() };
    let message = TextEncoder::open(&spec, &options).err().unwrap().to_string();
    assert!(message.contains("--pooling cls, tanh, mean"), "{message}");
    let electra = ModelSpec::from(fixture("models/electra-odd").as_path());
    let message = TextEncoder::open(&electra, &dual(Pooling::Tanh)).err().unwrap().to_string();
    assert!(message.contains("electra models have no tanh pooler"), "{message}");
}

#[test]
fn a_saved_encoder_needs_no_flags_and_keeps_its_vectors() {
    for pooling in [Pooling::Mean, Pooling::Tanh, Pooling::Lse] {
        let scratch = tempfile::tempdir().unwrap();
        let target = scratch.path().join("saved");
        let source = fixture("models/bert-odd");
        let options = ModelOptions { similarity: Some(Similarity::Dot), ..dual(pooling) };
        save_text_encoder(&ModelSpec::from(source.as_path()), &options, &target, &SaveOptions::default())
            .unwrap();
        let (before, after) = (open(&source, &options), open(&target, &ModelOptions::default()));
        assert_eq!(after.similarity(), Similarity::Dot);
        assert_eq!(after.facts().query.pooling, pooling);
        let queries = [Query::plain("q", "which birds wander far")];
        let encode =
            |model: &TextEncoder| model.encode_queries(&queries, &NoProgress, &Cancel::new()).unwrap();
        assert_eq!(encode(&before), encode(&after));
        assert_eq!(target.join("modules.json").exists(), pooling == Pooling::Mean);
    }
}

#[test]
fn two_directories_make_one_model() {
    let Some(models) = crate::test_data("tiny-models") else { return };
    let spec = format!("{0}/dual-query,{0}/dual-item", models.display()).parse().unwrap();
    let model = TextEncoder::open(&spec, &dual(Pooling::Cls)).unwrap();
    assert!(!model.facts().shared);
    assert_eq!((model.dim(), model.similarity()), (128, Similarity::Dot));
    assert_eq!(model.info().unwrap().digest.len(), 64);
}

/// Writes a sentence-transformers directory with its transformer in `place` and this Pooling configuration.
fn sentence_directory(root: &Path, place: &str, pooling: serde_json::Value) {
    let transformer = root.join(place);
    std::fs::create_dir_all(&transformer).unwrap();
    for name in ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(fixture("models/mpnet-odd").join(name), transformer.join(name)).unwrap();
    }
    std::fs::create_dir(root.join("1_Pooling")).unwrap();
    std::fs::write(root.join("1_Pooling/config.json"), pooling.to_string()).unwrap();
    let module = |path: &str, class: &str| json!({ "idx": 0, "name": "", "path": path, "type": class });
    let modules = json!([
        module(place, "sentence_transformers.models.Transformer"),
        module("1_Pooling", "sentence_transformers.models.Pooling"),
        module("2_Normalize", "sentence_transformers.models.Normalize"),
    ]);
    std::fs::write(root.join("modules.json"), modules.to_string()).unwrap();
}

#[test]
fn both_generations_of_sentence_transformers_are_read() {
    let scratch = tempfile::tempdir().unwrap();
    let (old, new) = (scratch.path().join("old"), scratch.path().join("new"));
    sentence_directory(
        &old,
        "0_Transformer",
        json!({ "word_embedding_dimension": 36, "pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false }),
    );
    sentence_directory(
        &new,
        "",
        json!({ "embedding_dimension": 36, "pooling_mode": "mean", "include_prompt": true }),
    );
    let encode = |root: &Path| {
        let model = open(root, &ModelOptions::default());
        assert_eq!((model.similarity(), model.facts().query.pooling), (Similarity::Cosine, Pooling::Mean));
        model.encode_items(&items(), &NoProgress, &Cancel::new()).unwrap()
    };
    let vectors = encode(&old);
    assert_eq!(vectors, encode(&new));
    let length: f32 = vectors.vectors[..vectors.dim].iter().map(|value| value * value).sum();
    assert!((length - 1.0).abs() < 1e-5);
}

#[test]
fn modules_nobody_computes_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("model");
    sentence_directory(&root, "", json!({ "pooling_mode_weightedmean_tokens": true }));
    let message = |root: &Path| {
        TextEncoder::open(&ModelSpec::from(root), &ModelOptions::default()).err().unwrap().to_string()
    };
    assert!(message(&root).contains("one of cls, mean and max is computed"));
    let modules = json!([{ "idx": 0, "name": "", "path": "../..", "type": "sentence_transformers.models.Transformer" }]);
    std::fs::write(root.join("modules.json"), modules.to_string()).unwrap();
    assert!(message(&root).contains("leads out of the model directory"));
    let modules =
        json!([{ "idx": 0, "name": "", "path": "", "type": "sentence_transformers.models.CLIPModel" }]);
    std::fs::write(root.join("modules.json"), modules.to_string()).unwrap();
    assert!(message(&root).contains("CLIPModel"));
}
