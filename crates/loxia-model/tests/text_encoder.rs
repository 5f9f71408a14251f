//! Dual encoders end to end.

use std::path::Path;

use loxia_core::{Cancel, Item, NoProgress, Query};
use loxia_model::{
    ModelOptions, ModelSpec, Pooling, SaveOptions, Similarity, TextEncoder, Variant, save_text_encoder,
};

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
