//! A checkpoint file: the archive, its pickle, and tensors as views of storages.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::machine;
use super::value::{MAX_NAME, Program, Tensor, Value};
use super::zip;
use crate::error::{Error, Malformed, Result};
use crate::weights::{Dtype, StoredFile, TensorBytes};

/// A pickle holds names and sizes, not numbers; this is far beyond any checkpoint's.
const MAX_PICKLE: usize = 16 << 20;

/// Keys under which trainers keep the weights: Lightning's, and hard-nce's.
const WEIGHT_KEYS: [&str; 3] = ["state_dict", "sd", "model_state_dict"];

/// A tensor of a checkpoint, checked to lie in its storage.
#[derive(Debug)]
pub(crate) struct TorchTensor {
    pub(crate) name: String,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    strides: Vec<usize>,
    offset: usize,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// Number of the archive's entry.
    Entry(usize),
    /// A class that is never run would have made it.
    Opaque(Arc<str>),
}

/// A checkpoint file.
pub(crate) struct TorchFile {
    file: StoredFile,
    entries: Vec<zip::Entry>,
    tensors: Vec<TorchTensor>,
    opaque: Vec<String>,
}

impl TorchFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = StoredFile::open(path)?;
        let (entries, tensors, opaque) = read(&file).map_err(|e| e.at(path))?;
        Ok(TorchFile { file, entries, tensors, opaque })
    }

    pub(crate) fn file(&self) -> &StoredFile {
        &self.file
    }

    pub(crate) fn tensors(&self) -> &[TorchTensor] {
        &self.tensors
    }

    /// Classes and functions the pickle asked for and did not get.
    pub(crate) fn opaque(&self) -> &[String] {
        &self.opaque
    }

    /// The error of reading a name whose value is not a tensor.
    pub(crate) fn opaque_tensor(&self, index: usize) -> Option<Error> {
        match &self.tensors[index] {
            TorchTensor { name, source: Source::Opaque(class), .. } => Some(self.unresolved(name, class)),
            _ => None,
        }
    }

    fn unresolved(&self, tensor: &str, class: &str) -> Error {
        Error::Opaque { path: self.file.path().to_owned(), tensor: tensor.into(), class: class.into() }
    }

    /// A tensor's bytes in row-major order.
    pub(crate) fn bytes(&self, index: usize) -> Result<TensorBytes> {
        let tensor = &self.tensors[index];
        match &tensor.source {
            Source::Entry(entry) => Ok(tensor.gather(&self.file, self.entries[*entry].range())),
            Source::Opaque(class) => Err(self.unresolved(&tensor.name, class)),
        }
    }
}

type Contents = (Vec<zip::Entry>, Vec<TorchTensor>, Vec<String>);

/// Everything but the numbers of a checkpoint.
pub(crate) fn read(file: &[u8]) -> Result<Contents, Malformed> {
    refuse_other_formats(file)?;
    let entries = zip::parse_directory(file)?;
    let pickle = entries
        .iter()
        .find(|entry| entry.name == "data.pkl" || entry.name.ends_with("/data.pkl"))
        .ok_or_else(|| Malformed::new("the archive has no data.pkl: not a PyTorch checkpoint"))?;
    if pickle.len() > MAX_PICKLE {
        return Err(Malformed::new(format!(
            "data.pkl is {} bytes long, at most {MAX_PICKLE} are read",
            pickle.len()
        )));
    }
    let root = pickle.name.strip_suffix("data.pkl").unwrap_or_default();
    if let Some(order) = entries.iter().find(|entry| entry.name == format!("{root}byteorder"))
        && order.content(file).starts_with(b"big")
    {
        return Err(Malformed::new("the numbers are big-endian; save the weights again as safetensors"));
    }
    let program = machine::run(pickle.content(file))?;
    let storages: HashMap<&str, usize> = entries
        .iter()
        .enumerate()
        .filter_map(|(index, entry)| Some((entry.name.strip_prefix(root)?.strip_prefix("data/")?, index)))
        .collect();
    let tensors = collect(&program, &entries, &storages)?;
    let opaque = program.opaque();
    Ok((entries, tensors, opaque))
}

fn refuse_other_formats(file: &[u8]) -> Result<(), Malformed> {
    const ADVICE: &str = "load it with PyTorch (`torch.load(path, weights_only=True)`) and save it again";
    if file.starts_with(b"PK") {
        return Ok(());
    }
    if file.starts_with(b"\x80") {
        return Err(Malformed::new(format!("a PyTorch file of the format before version 1.6; {ADVICE}")));
    }
    if file.get(257..262) == Some(b"ustar") {
        return Err(Malformed::new(format!("a PyTorch file of the oldest (tar) format; {ADVICE}")));
    }
    if file.starts_with(b"version https://git-lfs") {
        return Err(Malformed::new("a Git LFS pointer, not the weights; fetch them with `git lfs pull`"));
    }
    Err(Malformed::new("not a PyTorch checkpoint (no zip archive)"))
}

fn collect(
    program: &Program,
    entries: &[zip::Entry],
    storages: &HashMap<&str, usize>,
) -> Result<Vec<TorchTensor>, Malformed> {
    let root = program.root();
    let weights = WEIGHT_KEYS.iter().find_map(|key| program.lookup(root, key)).unwrap_or(root);
    let Value::Dict(named) = weights else {
        return Err(Malformed::new("the checkpoint is no dictionary of tensors"));
    };
    let mut tensors = Vec::new();
    let mut names: HashSet<&str> = HashSet::new();
    for &(name, value) in named {
        let Value::Text(name) = program.get(name) else { continue };
        let value = program.get(value);
        if !matches!(value, Value::Tensor(_) | Value::Opaque(_)) {
            continue;
        }
        if name.len() > MAX_NAME {
            return Err(Malformed::new(format!("the name of a tensor is {} bytes long", name.len())));
        }
        // One name for many tensors would be copied for each of them.
        if !names.insert(name) {
            return Err(Malformed::new(format!("tensor {name} is in the checkpoint twice")));
        }
        match value {
            Value::Tensor(tensor) => tensors.push(resolve(name, tensor, entries, storages)?),
            Value::Opaque(class) => tensors.push(TorchTensor {
                name: name.to_string(),
                dtype: Dtype::F32,
                shape: Vec::new(),
                strides: Vec::new(),
                offset: 0,
                source: Source::Opaque(class.clone()),
            }),
            _ => {}
        }
    }
    if tensors.is_empty() {
        return Err(Malformed::new("no tensors found (looked in the dictionary itself, state_dict and sd)"));
    }
    Ok(tensors)
}

/// Checks that a tensor lies in its storage and its storage in the archive.
fn resolve(
    name: &str,
    tensor: &Tensor,
    entries: &[zip::Entry],
    storages: &HashMap<&str, usize>,
) -> Result<TorchTensor, Malformed> {
    let Tensor { storage, offset, shape, strides } = tensor;
    let key = &*storage.key;
    let &entry = storages.get(key).ok_or_else(|| {
        Malformed::new(format!("tensor {name} lives in storage {key}, which the archive lacks"))
    })?;
    let available = (entries[entry].len() / storage.dtype.size()) as u64;
    let elements = shape.iter().try_fold(1_u64, |product, &side| product.checked_mul(side));
    // One past the last element: offset + sum (side - 1) * stride + 1, or nothing for an empty tensor.
    let reach = if shape.contains(&0) {
        Some(0)
    } else {
        shape
            .iter()
            .zip(strides)
            .try_fold(offset.checked_add(1), |reach, (&side, &stride)| {
                Some((side - 1).checked_mul(stride).and_then(|step| reach?.checked_add(step)))
            })
            .flatten()
    };
    match (elements, reach) {
        // More elements than the storage has means a broadcast view: tiny files could ask for any memory.
        (Some(elements), Some(reach))
            if reach <= available && elements <= available && available >= storage.elements => {}
        _ => {
            return Err(Malformed::new(format!(
                "tensor {name} of shape {shape:?}, strides {strides:?} and offset {offset} does not fit into \
                 its storage {key} of {available} elements ({} claimed)",
                storage.elements
            )));
        }
    }
    let narrow = |values: &[u64]| values.iter().map(|&value| value as usize).collect::<Vec<_>>();
    Ok(TorchTensor {
        name: name.to_owned(),
        dtype: storage.dtype,
        shape: narrow(shape),
        strides: narrow(strides),
        offset: *offset as usize,
        source: Source::Entry(entry),
    })
}

impl TorchTensor {
    fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        self.shape.iter().zip(&self.strides).rev().all(|(&side, &stride)| {
            let fits = side <= 1 || stride == expected;
            expected *= side.max(1);
            fits
        })
    }

    fn gather(&self, file: &StoredFile, storage: Range<usize>) -> TensorBytes {
        let width = self.dtype.size();
        let elements: usize = self.shape.iter().product();
        if elements == 0 {
            return TensorBytes::Gathered(Vec::new());
        }
        if self.is_contiguous() {
            let start = storage.start + self.offset * width;
            return TensorBytes::Stored(start..start + elements * width);
        }
        let bytes = &file[storage.clone()];
        let mut out = Vec::with_capacity(elements * width);
        let mut index = vec![0_usize; self.shape.len()];
        for _ in 0..elements {
            let position: usize = index.iter().zip(&self.strides).map(|(i, stride)| i * stride).sum();
            let at = (self.offset + position) * width;
            out.extend_from_slice(&bytes[at..at + width]);
            for (i, &side) in index.iter_mut().zip(&self.shape).rev() {
                *i += 1;
                if *i < side {
                    break;
                }
                *i = 0;
            }
        }
        file.release(storage);
        TensorBytes::Gathered(out)
    }
}
