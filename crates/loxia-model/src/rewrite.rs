//! A model directory with its PyTorch weights written as safetensors and everything else copied.

use std::fs;
use std::path::Path;

use loxia_core::artefact::ArtefactWriter;
use serde_json::{Map, Value};

use crate::convert::Conversion;
use crate::error::{Error, Result};
use crate::json::read_json;
use crate::loxia_json::{FILE_NAME, LoxiaJson};
use crate::save::{SaveOptions, add_json, add_weights, create_directory, set_dtype};
use crate::weights::WeightStore;

/// Modules within modules: a router in a directory of its own, its modules in theirs. A link that leads back
/// up would never end.
const MAX_DEPTH: usize = 6;

/// Endings of the files a model is read from; other formats of weights stay behind.
const COPIED: [&str; 5] = [".json", ".txt", ".model", ".md", ".safetensors"];

/// Rewrites a directory of Hugging Face or sentence-transformers.
pub(crate) fn rewrite_directory(input: &Path, output: &Path, save: &SaveOptions) -> Result<Conversion> {
    let mut report = Conversion {
        source: "directory with PyTorch weights".into(),
        variant: None,
        tensors: 0,
        unread: Vec::new(),
        opaque: Vec::new(),
    };
    let mut writer = ArtefactWriter::create_marked(output, save.existing, FILE_NAME)?;
    rewrite_into(&mut writer, input, "", MAX_DEPTH, save, &mut report)?;
    if report.tensors == 0 {
        return Err(Error::NotAModel {
            path: input.to_owned(),
            what: "no PyTorch weights to convert".into(),
        });
    }
    if !writer.directory().join(FILE_NAME).exists() {
        // It says nothing the other files do not, but marks the directory as one that may be replaced.
        add_json(&mut writer, FILE_NAME, &LoxiaJson::bare())?;
    }
    writer.commit()?;
    Ok(report)
}

fn rewrite_into(
    writer: &mut ArtefactWriter,
    input: &Path,
    at: &str,
    depth: usize,
    save: &SaveOptions,
    report: &mut Conversion,
) -> Result<()> {
    let names = list(input)?;
    let torch =
        names.iter().any(|(name, _)| name == "pytorch_model.bin" || name == "pytorch_model.bin.index.json");
    let converts = torch && !names.iter().any(|(name, _)| name.starts_with("model.safetensors"));
    if converts {
        let store = WeightStore::open(input)?;
        report.opaque.extend(store.opaque());
        write_all(writer, &format!("{at}model.safetensors"), &store, save, report)?;
    }
    for (name, is_directory) in names {
        let path = input.join(&name);
        let place = format!("{at}{name}");
        if is_directory {
            if holds_module(&path, depth)? {
                create_directory(writer, &place)?;
                rewrite_into(writer, &path, &format!("{place}/"), depth - 1, save, report)?;
            }
        } else if converts && name == "config.json" {
            let mut config: Map<String, Value> = read_json(&path)?;
            // Modules have a config.json too, and no number format in it.
            if config.contains_key("model_type") {
                set_dtype(&mut config, save);
            }
            add_json(writer, &place, &config)?;
        } else if COPIED.iter().any(|end| name.ends_with(end)) && !name.starts_with("pytorch_model") {
            let bytes = fs::read(&path).map_err(|e| Error::io(&path, "read", e))?;
            writer.add_file(&place, |file| file.write_bytes(&bytes))?;
        }
    }
    Ok(())
}

/// Names in a directory, sorted, and whether each is a directory itself.
fn list(directory: &Path) -> Result<Vec<(String, bool)>> {
    let failed = |e| Error::io(directory, "list", e);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let name = entry.file_name().into_string().map_err(|name| Error::NotAModel {
            path: path.clone(),
            what: format!("the name {name:?} is not UTF-8; rename or remove it"),
        })?;
        let metadata = fs::metadata(&path).map_err(|e| Error::io(&path, "look up", e))?;
        names.push((name, metadata.is_dir()));
    }
    names.sort();
    Ok(names)
}

/// Whether a module of sentence-transformers is in a directory or below it; hidden directories and those of
/// other formats (`onnx`) hold none.
fn holds_module(directory: &Path, depth: usize) -> Result<bool> {
    let hidden = directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    if hidden || depth == 0 {
        return Ok(false);
    }
    let names = list(directory)?;
    if names.iter().any(|(name, _)| name == "config.json" || name == "router_config.json") {
        return Ok(true);
    }
    for (name, is_directory) in names {
        if is_directory && holds_module(&directory.join(name), depth - 1)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn write_all(
    writer: &mut ArtefactWriter,
    name: &str,
    store: &WeightStore,
    save: &SaveOptions,
    report: &mut Conversion,
) -> Result<()> {
    let mut values = Vec::new();
    for name in store.names() {
        if store.is_weight(name) {
            values.push((name.to_owned(), store.read(name)?));
        } else {
            report.unread.push(name.to_owned());
        }
    }
    report.tensors += values.len();
    let tensors = values
        .iter()
        .map(|(name, values)| (name.as_str(), store.shape(name).unwrap_or_default(), values.as_slice()));
    add_weights(writer, name, tensors, save)
}
