//! Weights that are packed as they are read make the bits of weights that were all read first, whatever they are kept in.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use loxia_core::artefact::Existing;
use loxia_nn::{CpuEncoder, EncoderBackend, Kernel, PackedBatch, Precision};

use super::*;
use crate::families::{Family, ModelConfig};
use crate::network::{Network, Top};
use crate::options::{ModelOptions, StoredWeights};
use crate::save::{SaveOptions, save_cross_encoder};
use crate::spec::ModelSpec;
use crate::weights::safetensors::{Outgoing, Values, write};

fn fixtures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn states(encoder: &CpuEncoder) -> Vec<u32> {
    let mut batch = PackedBatch::new();
    let shape = encoder.shape();
    for length in [7, 12] {
        let ids: Vec<u32> = (0..length).map(|at| (at * 5 + 2) % shape.vocab as u32).collect();
        let positions: Vec<u32> = (0..length).collect();
        batch.push(&ids, &vec![0; ids.len()], &positions).unwrap();
    }
    encoder.all_states(&batch).unwrap().concat().iter().map(|value| value.to_bits()).collect()
}

fn check(store: &WeightStore, config: &ModelConfig, top: Top) {
    let whole = Network::load(Path::new("whole"), config, top, store).unwrap();
    for (kernel, precision) in Kernel::available()
        .into_iter()
        .flat_map(|kernel| [(kernel, Precision::F32), (kernel, Precision::Int8)])
    {
        let shape = &config.architecture.shape;
        let plain = CpuEncoder::new(shape.clone(), whole.encoder.clone(), kernel, precision).unwrap();
        let mut source = StoredEncoder::new(store, &config.architecture);
        let read = CpuEncoder::read(shape.clone(), &mut source, kernel, precision).unwrap();
        assert_eq!(states(&read), states(&plain), "{}, {kernel}, {precision}", config.architecture.family);
        assert!(source.not_finite().is_empty());
    }
}

fn check_directory(directory: &Path) {
    let config = ModelConfig::read(&directory.join("config.json")).unwrap();
    let top = Top::Classifier(config.facts.labels());
    check(&WeightStore::open(directory).unwrap(), &config, top);
}

#[test]
fn every_family_and_every_stored_precision() {
    for family in Family::ALL {
        let original = fixtures(&format!("models/{family}-even"));
        check_directory(&original);
        for weights in [StoredWeights::F16, StoredWeights::Int8] {
            let scratch = tempfile::tempdir().unwrap();
            let target = scratch.path().join("kept");
            let save = SaveOptions { weights, existing: Existing::Refuse };
            let model = ModelSpec::from(original.as_path());
            save_cross_encoder(&model, &ModelOptions::default(), &target, &save).unwrap();
            check_directory(&target);
        }
    }
}

#[test]
fn shards() {
    let original = fixtures("models/bert-odd");
    let config = ModelConfig::read(&original.join("config.json")).unwrap();
    let store = WeightStore::open(&original).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let mut shards = [Vec::new(), Vec::new()];
    let mut map = serde_json::Map::new();
    for (index, name) in store.names().filter(|name| store.is_weight(name)).enumerate() {
        shards[index % 2].push(Outgoing {
            name: name.to_owned(),
            shape: store.shape(name).unwrap().to_vec(),
            values: Values::F32(store.read(name).unwrap().into()),
        });
        map.insert(name.to_owned(), format!("part-{}.safetensors", index % 2).into());
    }
    for (index, tensors) in shards.iter().enumerate() {
        let mut file = File::create(scratch.path().join(format!("part-{index}.safetensors"))).unwrap();
        write(&mut file, tensors).unwrap();
    }
    let index = serde_json::json!({ "weight_map": map }).to_string();
    let mut file = File::create(scratch.path().join("model.safetensors.index.json")).unwrap();
    file.write_all(index.as_bytes()).unwrap();
    check(&WeightStore::open(scratch.path()).unwrap(), &config, Top::Classifier(config.facts.labels()));
}

#[test]
fn checkpoints_of_pytorch() {
    let base = fixtures("checkpoints/base");
    let mut store = WeightStore::open_torch(&fixtures("checkpoints/anncur-emb.ckpt")).unwrap();
    store.rename(|name| name.split_once("bert_model.").map(|(_, rest)| rest.to_owned()));
    let mut config = ModelConfig::read(&base.join("config.json")).unwrap();
    let words = store.shape("embeddings.word_embeddings.weight").unwrap()[0];
    config.architecture.shape.vocab = words;
    check(&store, &config, Top::Bare);
}
