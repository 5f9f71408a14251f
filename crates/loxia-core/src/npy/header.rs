//! The header: a magic string, a version, a length, and a Python dictionary as text.
//!
//! The dictionary is read by a parser for exactly the literals NumPy writes there, not by anything that
//! evaluates.

use std::fmt;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Data begins at a multiple of this, so that a file can be mapped.
const ALIGNMENT: usize = 64;
/// NumPy leaves room for the first extent to grow to this many digits in place.
const GROWTH_DIGITS: usize = 21;
/// Largest header text that is read; a matrix needs about 100 bytes.
const LARGEST_HEADER: usize = 1 << 20;

/// Type of the numbers in a file; all little endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NpyDtype {
    /// Half precision (`<f2`).
    F16,
    /// Single precision (`<f4`).
    F32,
    /// Double precision (`<f8`).
    F64,
    /// Unsigned 16-bit integers (`<u2`).
    U16,
}

impl NpyDtype {
    /// Bytes of one number.
    pub fn size(self) -> usize {
        match self {
            NpyDtype::F16 | NpyDtype::U16 => 2,
            NpyDtype::F32 => 4,
            NpyDtype::F64 => 8,
        }
    }

    /// NumPy's name of the type.
    pub fn descr(self) -> &'static str {
        match self {
            NpyDtype::F16 => "<f2",
            NpyDtype::F32 => "<f4",
            NpyDtype::F64 => "<f8",
            NpyDtype::U16 => "<u2",
        }
    }

    fn from_descr(descr: &str) -> Result<Self, String> {
        let known = [NpyDtype::F16, NpyDtype::F32, NpyDtype::F64, NpyDtype::U16];
        if let Some(dtype) = known.into_iter().find(|dtype| dtype.descr() == descr) {
            return Ok(dtype);
        }
        if descr.starts_with('>') {
            return Err(format!("big-endian numbers ({descr}) are not read; save array.astype('<f4')"));
        }
        Err(format!("numbers of type {descr} are not read; save array.astype('<f4')"))
    }
}

impl fmt::Display for NpyDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.descr())
    }
}

/// What a header says.
///
/// ```
/// use loxia_core::npy::{NpyDtype, NpyHeader};
/// let header = NpyHeader { dtype: NpyDtype::F32, fortran_order: false, shape: vec![2, 3] };
/// let bytes = header.to_bytes();
/// assert_eq!(NpyHeader::parse(&bytes), Ok((header, 128)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpyHeader {
    /// Type of the numbers.
    pub dtype: NpyDtype,
    /// Whether the first extent varies fastest.
    pub fortran_order: bool,
    /// Extents, outermost first; none for a single number.
    pub shape: Vec<u64>,
}

impl NpyHeader {
    /// Length of the longest prefix of a file that [`parse`](NpyHeader::parse) needs.
    pub(super) const LARGEST: usize = LARGEST_HEADER + 12;

    /// Reads the header at the start of a file and returns it with the position of the first number.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), String> {
        let cut = || "the file ends within its header".to_owned();
        if !bytes.starts_with(MAGIC) {
            return Err("not an npy file: it does not begin with \\x93NUMPY".to_owned());
        }
        let version = bytes.get(6..8).ok_or_else(cut)?;
        let (length, start) = match version {
            [1, 0] => {
                let field = bytes.get(8..10).ok_or_else(cut)?;
                (usize::from(u16::from_le_bytes([field[0], field[1]])), 10)
            }
            [2 | 3, 0] => {
                let field = bytes.get(8..12).ok_or_else(cut)?;
                (u32::from_le_bytes([field[0], field[1], field[2], field[3]]) as usize, 12)
            }
            _ => return Err(format!("npy version {}.{}; 1.0, 2.0 and 3.0 are read", version[0], version[1])),
        };
        if length > LARGEST_HEADER {
            return Err(format!("a header of {length} bytes; a matrix needs about 100"));
        }
        let text = bytes.get(start..start + length).ok_or_else(cut)?;
        // Version 1 and 2 are Latin-1; what lies beyond ASCII occurs only in names of structure fields.
        let text = std::str::from_utf8(text).map_err(|_| "the header is not UTF-8".to_owned())?;
        Ok((Dictionary::new(text).parse()?, start + length))
    }

    /// The bytes that `numpy.save` writes for this header.
    pub fn to_bytes(&self) -> Vec<u8> {
        let order = if self.fortran_order { "True" } else { "False" };
        let extents: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        let comma = if extents.len() == 1 { "," } else { "" };
        let growing = if self.fortran_order { extents.last() } else { extents.first() };
        let growth = growing.map_or(0, |extent| GROWTH_DIGITS.saturating_sub(extent.len()));
        let mut text = format!(
            "{{'descr': '{}', 'fortran_order': {order}, 'shape': ({}{comma}), }}{:growth$}",
            self.dtype,
            extents.join(", "),
            "",
        );
        // A short shape always fits the 16-bit length of version 1.
        let prefix = if text.len() + ALIGNMENT < usize::from(u16::MAX) { 10 } else { 12 };
        let padding = ALIGNMENT - (prefix + text.len() + 1) % ALIGNMENT;
        text.extend(std::iter::repeat_n(' ', padding));
        text.push('\n');
        let mut bytes = MAGIC.to_vec();
        if prefix == 10 {
            bytes.extend([1, 0]);
            bytes.extend((text.len() as u16).to_le_bytes());
        } else {
            bytes.extend([2, 0]);
            bytes.extend((text.len() as u32).to_le_bytes());
        }
        bytes.extend(text.as_bytes());
        bytes
    }

    /// Bytes of all numbers together, unless that overflows.
    pub fn data_length(&self) -> Option<u64> {
        self.shape.iter().try_fold(self.dtype.size() as u64, |bytes, &extent| bytes.checked_mul(extent))
    }

    /// Whether row-major code may read the data: C order, or a shape for which both orders agree.
    pub(super) fn is_row_major(&self) -> bool {
        !self.fortran_order || self.shape.iter().filter(|&&extent| extent != 1).count() <= 1
    }
}

/// A reader of `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
struct Dictionary<'a> {
    rest: &'a str,
}

impl<'a> Dictionary<'a> {
    fn new(text: &'a str) -> Self {
        Dictionary { rest: text }
    }

    fn parse(mut self) -> Result<NpyHeader, String> {
        let (mut dtype, mut fortran_order, mut shape) = (None, None, None);
        self.expect('{')?;
        while !self.accept('}') {
            let key = self.string()?;
            self.expect(':')?;
            let repeated = match key {
                "descr" => dtype.replace(self.dtype()?).is_some(),
                "fortran_order" => fortran_order.replace(self.boolean()?).is_some(),
                "shape" => shape.replace(self.extents()?).is_some(),
                _ => return Err(format!("unknown key {key:?} in the header")),
            };
            if repeated {
                return Err(format!("key {key:?} twice in the header"));
            }
            if !self.accept(',') {
                self.expect('}')?;
                break;
            }
        }
        if !self.rest.trim().is_empty() {
            return Err("more text after the header's dictionary".to_owned());
        }
        let missing = |key: &str| format!("no {key:?} in the header");
        Ok(NpyHeader {
            dtype: dtype.ok_or_else(|| missing("descr"))?,
            fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    fn accept(&mut self, symbol: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(symbol) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, symbol: char) -> Result<(), String> {
        if self.accept(symbol) { Ok(()) } else { Err(self.unexpected(&format!("{symbol:?}"))) }
    }

    fn unexpected(&self, wanted: &str) -> String {
        let found: String = self.rest.chars().take(20).collect();
        format!("the header has {found:?} where {wanted} should be")
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let quote = if self.accept('\'') {
            '\''
        } else if self.accept('"') {
            '"'
        } else {
            return Err(self.unexpected("a string"));
        };
        let (text, rest) = self.rest.split_once(quote).ok_or_else(|| self.unexpected("a closed string"))?;
        self.rest = rest;
        Ok(text)
    }

    fn dtype(&mut self) -> Result<NpyDtype, String> {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with('[') {
            return Err("structured numbers are not read; save one field with array['name']".to_owned());
        }
        NpyDtype::from_descr(self.string()?)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        self.rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False"))
    }

    fn extents(&mut self) -> Result<Vec<u64>, String> {
        let mut extents = Vec::new();
        self.expect('(')?;
        while !self.accept(')') {
            let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = self.rest.split_at(digits);
            extents.push(number.parse().map_err(|_| self.unexpected("an extent below 2^64"))?);
            // Python 2 wrote long integers with this letter.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if extents.len() > 32 {
                return Err("more than 32 extents in the header".to_owned());
            }
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(extents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(dictionary: &str) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((dictionary.len() as u16).to_le_bytes());
        bytes.extend(dictionary.as_bytes());
        bytes
    }

    #[test]
    fn refusals_say_what_to_do() {
        let message = |dictionary: &str| NpyHeader::parse(&file(dictionary)).unwrap_err();
        assert!(message("{'descr': '>f4', }").contains("big-endian"));
        assert!(message("{'descr': [('a', '<f4')], }").contains("structured"));
        assert!(message("{'descr': '<i8', }").contains("<i8"));
        assert!(message("{'descr': '<f4', 'descr': '<f4'}").contains("twice"));
        assert!(message("{'descr': '<f4', 'shape': (1,)}").contains("fortran_order"));
        assert!(message("{'shape': (99999999999999999999,)}").contains("below 2^64"));
        assert!(message("{'shape': (-1,)}").contains("below 2^64"));
        assert!(message("{'other': 1}").contains("other"));
        assert!(NpyHeader::parse(b"PK\x03\x04").unwrap_err().contains("not an npy file"));
        assert!(NpyHeader::parse(b"\x93NUMPY\x04\x00..").unwrap_err().contains("4.0"));
        assert!(NpyHeader::parse(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").unwrap_err().contains("4294967295"));
    }

    #[test]
    fn data_length_does_not_wrap() {
        let shape = vec![1 << 60, 1 << 60];
        let header = NpyHeader { dtype: NpyDtype::F32, fortran_order: false, shape };
        assert_eq!(header.data_length(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn headers_come_back(shape in prop::collection::vec(any::<u64>(), 0..5), fortran_order: bool) {
            let header = NpyHeader { dtype: NpyDtype::F64, fortran_order, shape };
            let bytes = header.to_bytes();
            prop_assert_eq!(bytes.len() % 64, 0);
            prop_assert_eq!(NpyHeader::parse(&bytes), Ok((header, bytes.len())));
        }

        #[test]
        fn no_input_panics(dictionary in "[{}():, '0-9a-zA-Z<]{0,60}", bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = NpyHeader::parse(&file(&dictionary));
            let _ = NpyHeader::parse(&[&MAGIC[..], &bytes].concat());
        }
    }
}
