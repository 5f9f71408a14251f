//! Number formats of stored tensors.

use std::fmt;

use half::{bf16, f16};

/// How a tensor's elements are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Dtype {
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I16,
    I8,
    U8,
    Bool,
}

impl Dtype {
    /// The type a safetensors header names.
    pub(crate) fn from_name(name: &str) -> Option<Dtype> {
        Some(match name {
            "F64" => Dtype::F64,
            "F32" => Dtype::F32,
            "F16" => Dtype::F16,
            "BF16" => Dtype::BF16,
            "I64" => Dtype::I64,
            "I32" => Dtype::I32,
            "I16" => Dtype::I16,
            "I8" => Dtype::I8,
            "U8" => Dtype::U8,
            "BOOL" => Dtype::Bool,
            _ => return None,
        })
    }

    /// Bytes an element takes.
    pub(crate) fn size(self) -> usize {
        match self {
            Dtype::F64 | Dtype::I64 => 8,
            Dtype::F32 | Dtype::I32 => 4,
            Dtype::F16 | Dtype::BF16 | Dtype::I16 => 2,
            Dtype::I8 | Dtype::U8 | Dtype::Bool => 1,
        }
    }

    /// Whether weights may be stored so. Doubles are not: reading them as f32 would lose digits silently.
    pub(crate) fn is_weight(self) -> bool {
        matches!(self, Dtype::F32 | Dtype::F16 | Dtype::BF16)
    }

    /// Appends little-endian elements as f32; `bytes` must be whole elements of a weight type.
    pub(crate) fn widen(self, bytes: &[u8], out: &mut Vec<f32>) {
        debug_assert!(self.is_weight() && bytes.len().is_multiple_of(self.size()));
        match self {
            Dtype::F32 => {
                out.extend(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])))
            }
            Dtype::F16 => {
                out.extend(bytes.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()))
            }
            Dtype::BF16 => {
                out.extend(bytes.chunks_exact(2).map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32()))
            }
            _ => unreachable!("callers ask is_weight first"),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dtype::F64 => "f64",
            Dtype::F32 => "f32",
            Dtype::F16 => "f16",
            Dtype::BF16 => "bf16",
            Dtype::I64 => "i64",
            Dtype::I32 => "i32",
            Dtype::I16 => "i16",
            Dtype::I8 => "i8",
            Dtype::U8 => "u8",
            Dtype::Bool => "bool",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_weight_type_widens_to_the_same_number() {
        for (dtype, bytes) in [
            (Dtype::F32, 1.5_f32.to_le_bytes().to_vec()),
            (Dtype::F16, f16::from_f32(1.5).to_le_bytes().to_vec()),
            (Dtype::BF16, bf16::from_f32(1.5).to_le_bytes().to_vec()),
        ] {
            let mut out = Vec::new();
            dtype.widen(&bytes, &mut out);
            assert_eq!(out, [1.5], "{dtype}");
        }
    }
}
