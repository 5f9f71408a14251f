//! All weight files of a directory as one map from names to tensors.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};

use indexmap::IndexMap;
use loxia_nn::restore_rows;
use serde::Deserialize;

use super::safetensors::SafetensorsFile;
use super::{Dtype, StoredFile, TensorBytes};
use crate::error::{Error, Result};
use crate::json::read_json;
use crate::pickle::TorchFile;

/// Which kind of file the weights come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WeightKind {
    Safetensors,
    Torch,
}

enum WeightFile {
    Safetensors(SafetensorsFile),
    Torch(TorchFile),
}

struct Slot {
    file: usize,
    index: usize,
    dtype: Dtype,
    shape: Vec<usize>,
    /// Index of the steps of 8-bit weights, in the same file.
    steps: Option<usize>,
}

/// Numbers that are read at once, in whole rows: a MiB of them, which caches hold until they are packed.
const PIECE: usize = 1 << 18;

/// What the name of a weight's steps ends in, after the weight's own.
pub(crate) const STEPS: &str = "_steps";

/// The tensors of one or several weight files.
pub(crate) struct WeightStore {
    kind: WeightKind,
    files: Vec<WeightFile>,
    tensors: IndexMap<String, Slot>,
}

/// `*.index.json` of sharded weights.
#[derive(Deserialize)]
struct ShardIndex {
    weight_map: IndexMap<String, String>,
}

impl WeightStore {
    /// The weights of a directory: safetensors before PyTorch's own files, whole before sharded.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let (kind, paths, index) = Self::locate(directory)?;
        let mut store = WeightStore { kind, files: Vec::new(), tensors: IndexMap::new() };
        for path in &paths {
            store.add(path)?;
        }
        if let Some((index_path, index)) = index {
            store.check_index(&index_path, &index, &paths)?;
        }
        store.join_steps();
        Ok(store)
    }

    /// The files [`WeightStore::open`] would read, in order; an index of shards is among them.
    pub(crate) fn paths(directory: &Path) -> Result<Vec<PathBuf>> {
        let (_, mut paths, index) = Self::locate(directory)?;
        paths.extend(index.map(|(path, _)| path));
        Ok(paths)
    }

    /// One checkpoint file of PyTorch.
    pub(crate) fn open_torch(path: &Path) -> Result<Self> {
        let mut store = WeightStore { kind: WeightKind::Torch, files: Vec::new(), tensors: IndexMap::new() };
        store.add(path)?;
        Ok(store)
    }

    #[allow(clippy::type_complexity)]
    fn locate(directory: &Path) -> Result<(WeightKind, Vec<PathBuf>, Option<(PathBuf, ShardIndex)>)> {
        for (kind, whole) in
            [(WeightKind::Safetensors, "model.safetensors"), (WeightKind::Torch, "pytorch_model.bin")]
        {
            let path = directory.join(whole);
            if path.is_file() {
                return Ok((kind, vec![path], None));
            }
            let index_path = directory.join(format!("{whole}.index.json"));
            if index_path.is_file() {
                let index: ShardIndex = read_json(&index_path)?;
                let shards = shard_paths(directory, &index_path, &index)?;
                return Ok((kind, shards, Some((index_path, index))));
            }
        }
        Err(Error::NotAModel {
            path: directory.to_owned(),
            what: format!(
                "no weights: looked for model.safetensors, pytorch_model.bin and their .index.json{}",
                other_weights(directory)
            ),
        })
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        let file = self.files.len();
        let (opened, tensors): (_, Vec<(String, Dtype, Vec<usize>)>) = match self.kind {
            WeightKind::Safetensors => {
                let opened = SafetensorsFile::open(path)?;
                let list =
                    opened.entries().iter().map(|e| (e.name.clone(), e.dtype, e.shape.clone())).collect();
                (WeightFile::Safetensors(opened), list)
            }
            WeightKind::Torch => {
                let opened = TorchFile::open(path)?;
                let list =
                    opened.tensors().iter().map(|t| (t.name.clone(), t.dtype, t.shape.clone())).collect();
                (WeightFile::Torch(opened), list)
            }
        };
        self.files.push(opened);
        for (index, (name, dtype, shape)) in tensors.into_iter().enumerate() {
            let name = modern_name(name);
            if self.tensors.insert(name.clone(), Slot { file, index, dtype, shape, steps: None }).is_some() {
                return Err(Error::malformed(path, format!("tensor {name} is in these weights twice")));
            }
        }
        Ok(())
    }

    fn check_index(&self, index_path: &Path, index: &ShardIndex, paths: &[PathBuf]) -> Result<()> {
        for (name, shard) in &index.weight_map {
            let found = self.tensors.get(&modern_name(name.clone())).map(|slot| &paths[slot.file]);
            if found.and_then(|path| path.file_name()) != Some(shard.as_ref()) {
                return Err(Error::malformed(index_path, format!("tensor {name} is not in {shard}")));
            }
        }
        Ok(())
    }

    /// Makes one tensor of 8-bit weights and their steps, wherever the two fit together.
    fn join_steps(&mut self) {
        let is_weight = |slot: &Slot| slot.dtype == Dtype::I8 && slot.shape.len() == 2;
        let quantised = self.tensors.iter().filter(|(_, slot)| is_weight(slot)).map(|(name, _)| name.clone());
        for name in quantised.collect::<Vec<_>>() {
            let (of_steps, slot) = (format!("{name}{STEPS}"), &self.tensors[&name]);
            let fits = |steps: &Slot| {
                steps.file == slot.file && steps.dtype == Dtype::F32 && steps.shape[..] == slot.shape[..1]
            };
            if let Some(index) = self.tensors.get(&of_steps).filter(|steps| fits(steps)).map(|s| s.index) {
                self.tensors.shift_remove(&of_steps);
                self.tensors[&name].steps = Some(index);
            }
        }
    }

    /// Gives tensors other names; those without one are dropped.
    pub(crate) fn rename(&mut self, mut name: impl FnMut(&str) -> Option<String>) {
        let tensors = std::mem::take(&mut self.tensors);
        self.tensors = tensors.into_iter().filter_map(|(old, slot)| Some((name(&old)?, slot))).collect();
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub(crate) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|slot| slot.shape.as_slice())
    }

    pub(crate) fn dtype(&self, name: &str) -> Option<Dtype> {
        self.tensors.get(name).map(|slot| slot.dtype)
    }

    /// Whether a tensor can be read as f32.
    pub(crate) fn is_weight(&self, name: &str) -> bool {
        self.tensors.get(name).is_some_and(|slot| slot.dtype.is_weight() || slot.steps.is_some())
    }

    /// Number formats of some tensors, without repetition.
    pub(crate) fn dtypes<'a>(&self, names: impl Iterator<Item = &'a String>) -> Vec<Dtype> {
        let mut dtypes: Vec<Dtype> = names.filter_map(|name| self.dtype(name)).collect();
        dtypes.sort_unstable();
        dtypes.dedup();
        dtypes
    }

    /// Non-tensor values of PyTorch files that were left opaque.
    pub(crate) fn opaque(&self) -> Vec<String> {
        let torch = self.files.iter().filter_map(|file| match file {
            WeightFile::Torch(file) => Some(file.opaque()),
            WeightFile::Safetensors(_) => None,
        });
        torch.flatten().cloned().collect()
    }

    /// The error of reading a name that stands for something other than a tensor.
    pub(crate) fn opaque_tensor(&self, name: &str) -> Option<Error> {
        let slot = self.tensors.get(name)?;
        match &self.files[slot.file] {
            WeightFile::Torch(file) => file.opaque_tensor(slot.index),
            WeightFile::Safetensors(_) => None,
        }
    }

    /// A tensor's values as f32.
    ///
    /// # Panics
    /// If the name is unknown or the type is not a weight type: ask first.
    pub(crate) fn read(&self, name: &str) -> Result<Vec<f32>> {
        let mut values = Vec::with_capacity(self.tensors[name].shape.iter().product());
        self.rows(name, &mut |rows| {
            values.extend_from_slice(rows);
            ControlFlow::Continue(())
        })?;
        Ok(values)
    }

    /// Gives a tensor's values as f32 to `take`, some whole rows at a time, until it has seen enough.
    ///
    /// # Panics
    /// If the name is unknown or the type is not a weight type: ask first.
    pub(crate) fn rows(&self, name: &str, take: &mut dyn FnMut(&[f32]) -> ControlFlow<()>) -> Result<()> {
        let slot = &self.tensors[name];
        let (bytes, file) = self.bytes(slot.file, slot.index)?;
        let mut buffer = Vec::new();
        let steps = match slot.steps {
            None => None,
            Some(index) => {
                let (bytes, file) = self.bytes(slot.file, index)?;
                let mut steps = Vec::new();
                Dtype::F32.widen(bytes.piece(file, 0..bytes.len(), &mut buffer)?, &mut steps);
                Some(steps)
            }
        };
        let width = slot.shape.iter().skip(1).product::<usize>().max(1);
        let rows = (PIECE / width).max(1);
        let at_once = rows * width * slot.dtype.size();
        let mut values = Vec::new();
        for (index, start) in (0..bytes.len()).step_by(at_once).enumerate() {
            let piece = bytes.piece(file, start..bytes.len().min(start + at_once), &mut buffer)?;
            match &steps {
                None => {
                    values.clear();
                    slot.dtype.widen(piece, &mut values);
                }
                Some(steps) => {
                    let codes: Vec<i8> = piece.iter().map(|&code| code as i8).collect();
                    values = restore_rows(&codes, &steps[index * rows..], width);
                }
            }
            if take(&values).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The bytes of a tensor, and the file they are in.
    fn bytes(&self, file: usize, index: usize) -> Result<(TensorBytes, &StoredFile)> {
        Ok(match &self.files[file] {
            WeightFile::Safetensors(file) => (file.bytes(index), file.file()),
            WeightFile::Torch(file) => (file.bytes(index)?, file.file()),
        })
    }
}

/// Layer norms were called gamma and beta in the first BERT checkpoints.
fn modern_name(name: String) -> String {
    match (name.strip_suffix("LayerNorm.gamma"), name.strip_suffix("LayerNorm.beta")) {
        (Some(stem), _) => format!("{stem}LayerNorm.weight"),
        (_, Some(stem)) => format!("{stem}LayerNorm.bias"),
        _ => name,
    }
}

fn shard_paths(directory: &Path, index_path: &Path, index: &ShardIndex) -> Result<Vec<PathBuf>> {
    let mut names: Vec<&str> = index.weight_map.values().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let mut paths = Vec::with_capacity(names.len());
    for name in names {
        let mut parts = Path::new(name).components();
        let plain = matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none();
        if !plain || name.contains(['/', '\\']) {
            return Err(Error::malformed(
                index_path,
                format!(
                    "shard {name:?} is not a file of this directory; paths that lead elsewhere are refused"
                ),
            ));
        }
        paths.push(directory.join(name));
    }
    Ok(paths)
}

/// Tells a user who has the weights in a format nobody here reads.
fn other_weights(directory: &Path) -> String {
    let others: Vec<String> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| {
            [".ckpt", ".pt", ".torch", ".h5", ".msgpack", ".onnx"].iter().any(|end| name.ends_with(end))
        })
        .collect();
    if others.is_empty() {
        String::new()
    } else {
        format!("; found {}: convert with `loxia model convert`, or save as safetensors", others.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::safetensors::{Outgoing, Values, write};
    use super::*;

    #[test]
    fn pieces_of_large_tensors_are_the_whole() {
        // Rows that no piece is a multiple of; three pieces and a bit.
        let (rows, width) = (801, 1000);
        let values: Vec<f32> = (0..rows * width).map(|n| (n as f32 * 0.37).sin()).collect();
        let (codes, steps) = loxia_nn::quantise_rows(&values, width);
        let restored = restore_rows(&codes, &steps, width);
        let outgoing = |name: &str, shape: &[usize], values| Outgoing {
            name: name.into(),
            shape: shape.to_vec(),
            values,
        };
        let tensors = [
            outgoing("plain", &[rows, width], Values::F32((&values[..]).into())),
            outgoing("half", &[rows, width], Values::F16(&values)),
            outgoing("codes", &[rows, width], Values::I8(codes)),
            outgoing("codes_steps", &[rows], Values::F32(steps.into())),
            outgoing("nothing", &[0, 3], Values::F32(Vec::new().into())),
        ];
        let directory = tempfile::tempdir().unwrap();
        let mut file = fs::File::create(directory.path().join("model.safetensors")).unwrap();
        write(&mut file, &tensors).unwrap();
        let store = WeightStore::open(directory.path()).unwrap();
        assert_eq!(store.read("plain").unwrap(), values);
        let halves: Vec<f32> = values.iter().map(|&x| half::f16::from_f32(x).to_f32()).collect();
        assert_eq!(store.read("half").unwrap(), halves);
        assert_eq!(store.read("codes").unwrap(), restored);
        assert!(store.read("nothing").unwrap().is_empty());
        let mut pieces = Vec::new();
        store
            .rows("plain", &mut |rows| {
                pieces.push(rows.len());
                if pieces.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
        assert_eq!(pieces, [262_000, 262_000], "whole rows, and no more than were wanted");
    }
}
