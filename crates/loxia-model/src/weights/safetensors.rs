//! The safetensors format, read from a memory map and written.
//!
//! A file is: header length (u64, little endian), a JSON header `name -> {dtype, shape, data_offsets}`,
//! the data. Nothing in the header is believed before it is checked: sizes multiply without overflow, each
//! tensor's bytes are exactly its shape's, and the tensors tile the data without overlap or gap, so a
//! truncated or lying file is refused before any of it is read.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::{Dtype, StoredFile, TensorBytes};
use crate::error::{Malformed, Result};

/// Longest header accepted, as in the format's reference implementation.
const MAX_HEADER: u64 = 100_000_000;

/// A tensor as the header describes it; `data` is checked to lie in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    /// Bytes of the file.
    pub(crate) data: Range<usize>,
}

/// Reads and checks the header of a whole safetensors file.
pub(crate) fn parse_header(file: &[u8]) -> Result<Vec<Entry>, Malformed> {
    let length_bytes = file.first_chunk::<8>().ok_or_else(|| {
        Malformed::new(format!("file is {} bytes, too short for a safetensors header (8 bytes)", file.len()))
    })?;
    let length = u64::from_le_bytes(*length_bytes);
    if length > MAX_HEADER || length > (file.len() - 8) as u64 {
        return Err(Malformed::new(format!(
            "header says it is {length} bytes long, but the file has {} bytes after the length; \
             not a safetensors file, or truncated",
            file.len() - 8
        )));
    }
    let data_start = 8 + length as usize;
    let RawHeader(raw) = serde_json::from_slice(&file[8..data_start])
        .map_err(|e| Malformed::new(format!("safetensors header is not valid: {e}")))?;
    let mut entries = raw
        .into_iter()
        .map(|(name, raw)| raw.check(name, data_start, file.len()))
        .collect::<Result<Vec<_>, _>>()?;
    check_tiling(&mut entries, data_start, file.len())?;
    Ok(entries)
}

/// Orders entries by offset and refuses overlaps, gaps and bytes no tensor claims.
fn check_tiling(entries: &mut [Entry], data_start: usize, file_len: usize) -> Result<(), Malformed> {
    entries.sort_by_key(|entry| (entry.data.start, entry.data.end));
    let mut end = data_start;
    let mut before = "the header";
    for entry in entries.iter() {
        let (start, found, expected) = (entry.data.start, entry.data.start - data_start, end - data_start);
        if start < end {
            return Err(Malformed::new(format!(
                "tensor {} starts at data offset {found}, inside {before} which ends at {expected}: they overlap",
                entry.name
            )));
        }
        if start > end {
            return Err(Malformed::new(format!(
                "tensor {} starts at data offset {found}, but {before} ends at {expected}: a gap no tensor claims",
                entry.name
            )));
        }
        end = entry.data.end;
        before = &entry.name;
    }
    if end != file_len {
        return Err(Malformed::new(format!(
            "{} bytes follow the last tensor ({before}); the header does not describe this file",
            file_len - end
        )));
    }
    let mut names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Malformed::new(format!("tensor {} is in the header twice", pair[0]))),
        None => Ok(()),
    }
}

#[derive(Deserialize)]
struct RawEntry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl RawEntry {
    fn check(self, name: String, data_start: usize, file_len: usize) -> Result<Entry, Malformed> {
        let Some(dtype) = Dtype::from_name(&self.dtype) else {
            return Err(Malformed::new(format!("tensor {name} has the unknown type {:?}", self.dtype)));
        };
        let bytes =
            self.shape.iter().try_fold(dtype.size() as u64, |product, &side| product.checked_mul(side));
        let (start, end) = self.data_offsets;
        if bytes.is_none() || Some(start) != end.checked_sub(bytes.unwrap_or(0)) {
            return Err(Malformed::new(format!(
                "tensor {name} of shape {:?} and type {dtype} cannot have the data offsets {start}..{end}",
                self.shape
            )));
        }
        let available = (file_len - data_start) as u64;
        if end > available {
            return Err(Malformed::new(format!(
                "tensor {name} ends at data offset {end}, but the file has only {available} bytes of data: \
                 truncated, or the header lies"
            )));
        }
        let shape = self.shape.iter().map(|&side| side as usize).collect();
        Ok(Entry { name, dtype, shape, data: data_start + start as usize..data_start + end as usize })
    }
}

/// The header's map in file order, duplicates kept so that they can be refused.
struct RawHeader(Vec<(String, RawEntry)>);

impl<'de> Deserialize<'de> for RawHeader {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = RawHeader;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawHeader, A::Error> {
                let mut entries = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        entries.push((name, map.next_value()?));
                    }
                }
                Ok(RawHeader(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// A safetensors file.
pub(crate) struct SafetensorsFile {
    file: StoredFile,
    entries: Vec<Entry>,
}

impl SafetensorsFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = StoredFile::open(path)?;
        let entries = parse_header(&file).map_err(|e| e.at(path))?;
        Ok(SafetensorsFile { file, entries })
    }

    pub(crate) fn file(&self) -> &StoredFile {
        &self.file
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn bytes(&self, entry: usize) -> TensorBytes {
        TensorBytes::Stored(self.entries[entry].data.clone())
    }
}

/// A tensor to be written.
pub(crate) struct Outgoing<'a> {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Values<'a>,
}

/// Values and the type to write them as.
pub(crate) enum Values<'a> {
    F32(Cow<'a, [f32]>),
    F16(&'a [f32]),
    I8(Vec<i8>),
}

impl Values<'_> {
    /// The header's name of the type.
    fn dtype(&self) -> &'static str {
        match self {
            Values::F32(_) => "F32",
            Values::F16(_) => "F16",
            Values::I8(_) => "I8",
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Values::F32(values) => 4 * values.len(),
            Values::F16(values) => 2 * values.len(),
            Values::I8(values) => values.len(),
        }
    }

    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        const CHUNK: usize = 1 << 16;
        match self {
            Values::F32(values) => values.chunks(CHUNK).try_for_each(|chunk| {
                out.write_all(&chunk.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
            }),
            Values::F16(values) => values.chunks(CHUNK).try_for_each(|chunk| {
                let halves = chunk.iter().flat_map(|&value| half::f16::from_f32(value).to_le_bytes());
                out.write_all(&halves.collect::<Vec<u8>>())
            }),
            Values::I8(values) => values.chunks(CHUNK).try_for_each(|chunk| {
                out.write_all(&chunk.iter().map(|value| value.to_le_bytes()[0]).collect::<Vec<u8>>())
            }),
        }
    }
}

/// Writes tensors in their order, with the metadata transformers looks for.
pub(crate) fn write(out: &mut dyn Write, tensors: &[Outgoing<'_>]) -> std::io::Result<()> {
    let mut header = serde_json::Map::new();
    header.insert("__metadata__".into(), serde_json::json!({ "format": "pt" }));
    let mut offset = 0;
    for tensor in tensors {
        let end = offset + tensor.values.bytes();
        header.insert(
            tensor.name.clone(),
            serde_json::json!({ "dtype": tensor.values.dtype(), "shape": tensor.shape, "data_offsets": [offset, end] }),
        );
        offset = end;
    }
    let mut header = serde_json::Value::Object(header).to_string().into_bytes();
    // Data starts at a multiple of eight, as the reference implementation writes it.
    header.resize(header.len().next_multiple_of(8), b' ');
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    tensors.iter().try_for_each(|tensor| tensor.values.write(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: usize) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        bytes
    }

    fn message(header: &str, data: usize) -> String {
        parse_header(&file(header, data)).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        let values = [1.0, -2.0, 0.5, 4.0, 3.0, 0.0];
        let tensors = [
            Outgoing { name: "a".into(), shape: vec![2, 2], values: Values::F16(&values[..4]) },
            Outgoing { name: "b".into(), shape: vec![2], values: Values::F16(&values[4..]) },
        ];
        write(&mut bytes, &tensors).unwrap();
        let entries = parse_header(&bytes).unwrap();
        let mut read = Vec::new();
        entries.iter().for_each(|entry| entry.dtype.widen(&bytes[entry.data.clone()], &mut read));
        assert_eq!((entries[0].shape.as_slice(), entries[1].name.as_str()), ([2, 2].as_slice(), "b"));
        assert_eq!(read, values);
    }

    #[test]
    fn lies_are_named() {
        let one = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
        assert!(parse_header(&file(one, 8)).is_ok());
        assert!(message(one, 7).contains("tensor a ends at data offset 8, but the file has only 7 bytes"));
        assert!(message(one, 9).contains("1 bytes follow the last tensor (a)"));
        let overlap = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
            "b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#;
        assert!(message(overlap, 12).contains("tensor b starts at data offset 4, inside a which ends at 8"));
        let gap = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#;
        assert!(message(gap, 8).contains("a gap no tensor claims"));
        let huge =
            r#"{"a":{"dtype":"F32","shape":[1152921504606846976],"data_offsets":[0,4611686018427387904]}}"#;
        assert!(message(huge, 8).contains("tensor a ends at data offset 4611686018427387904"));
        let overflow = r#"{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}"#;
        assert!(message(overflow, 8).contains("cannot have the data offsets 0..8"));
        let twice = r#"{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},
            "a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#;
        assert!(message(twice, 0).contains("tensor a is in the header twice"));
        assert!(
            message(r#"{"a":{"dtype":"Q4","shape":[],"data_offsets":[0,0]}}"#, 0)
                .contains("unknown type \"Q4\"")
        );
        assert!(message("{\"a\":", 0).contains("header is not valid"));
        assert!(parse_header(&[1, 2, 3]).unwrap_err().to_string().contains("too short"));
        let mut long = file(one, 8);
        long[..8].copy_from_slice(&(1_u64 << 60).to_le_bytes());
        assert!(
            parse_header(&long).unwrap_err().to_string().contains("header says it is 1152921504606846976")
        );
    }
}
