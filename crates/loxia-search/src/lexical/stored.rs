//! [`TfidfVectors`] as bytes, for artefacts that hold them.
//!
//! Little endian throughout:
//!
//! ```text
//! "loxtfidf", u32 version, u64 items, u32 parts
//! for each part: u8 analyser (0 words, 1 characters), u8 shortest, u8 longest, u8 sublinear,
//!                u32 terms, u64 bytes of their text, u32 x terms lengths, the text, u32 x terms frequencies
//! u32 dims, f32 x dims singular values, f32 x terms x dims basis
//! u32 CRC-32 of everything before
//! ```
//!
//! Reading trusts nothing: the checksum first, then every count against the bytes that are left before
//! anything is allocated for it.

use std::io::{self, Write};
use std::path::Path;

use loxia_core::IdTable;

use super::vocabulary::Vocabulary;
use super::{Analyser, TfidfVectors};
use crate::Result;
use crate::linalg::Dense;

const MAGIC: &[u8; 8] = b"loxtfidf";
const VERSION: u32 = 1;
/// Words and character runs.
const PARTS: u32 = 2;

impl TfidfVectors {
    /// Writes everything that [`TfidfVectors::parse`] needs.
    ///
    /// ```
    /// use loxia_core::{Cancel, Item};
    /// use loxia_search::{TfidfSettings, TfidfVectors};
    /// let items = vec![Item::plain("a", "pine and fir"), Item::plain("b", "fir and spruce")];
    /// let (tfidf, _) = TfidfVectors::fit(&items, &TfidfSettings::default(), &Cancel::new()).unwrap();
    /// let mut bytes = Vec::new();
    /// tfidf.write_to(&mut bytes).unwrap();
    /// let path = "index/tfidf.bin".as_ref();
    /// let again = TfidfVectors::parse(path, &bytes).unwrap();
    /// assert_eq!(again.encode_text("spruce"), tfidf.encode_text("spruce"));
    /// bytes[20] ^= 1;
    /// assert!(TfidfVectors::parse(path, &bytes).is_err());
    /// ```
    pub fn write_to(&self, writer: &mut dyn Write) -> io::Result<()> {
        let mut out = Checked { writer, crc: crc32fast::Hasher::new() };
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&self.items().to_le_bytes())?;
        out.write_all(&(self.parts.len() as u32).to_le_bytes())?;
        for part in &self.parts {
            write_part(part, &mut out)?;
        }
        out.write_all(&(self.dims() as u32).to_le_bytes())?;
        for value in self.singular_values.iter().chain(self.basis.values()) {
            out.write_all(&value.to_le_bytes())?;
        }
        let crc = out.crc.clone().finalize();
        out.writer.write_all(&crc.to_le_bytes())
    }

    /// Reads what [`TfidfVectors::write_to`] wrote; anything else is an error that names `path`.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        let content = bytes.len().saturating_sub(4);
        let (content, crc) = bytes.split_at(content);
        let mut input = Input { path, rest: content };
        if input.take(MAGIC.len() as u64)? != MAGIC {
            return input.corrupt("these are no TF-IDF vectors");
        }
        let version = input.u32()?;
        if version != VERSION {
            return input.corrupt(format!("format version {version}; this program reads {VERSION}"));
        }
        let computed = crc32fast::hash(content);
        if crc != computed.to_le_bytes() {
            return input.corrupt("the checksum does not fit the content; make the vectors again");
        }
        let items = input.u64()?;
        let parts = input.u32()?;
        if parts != PARTS {
            return input.corrupt(format!("{parts} parts of terms, expected {PARTS}"));
        }
        let parts: Vec<Vocabulary> =
            (0..parts).map(|_| read_part(items, &mut input)).collect::<Result<_>>()?;
        let dims = input.u32()?;
        let terms: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if dims == 0 || u64::from(dims) > terms || terms > u64::from(u32::MAX) {
            return input.corrupt(format!("{dims} dimensions for {terms} terms"));
        }
        let singular_values = input.floats(u64::from(dims), "singular values")?;
        let basis = input.floats(terms * u64::from(dims), "basis")?;
        if !input.rest.is_empty() {
            return input.corrupt(format!("{} bytes follow their end", input.rest.len()));
        }
        let basis = Dense::new(terms as usize, dims as usize, basis)?;
        Ok(TfidfVectors { parts, basis, singular_values })
    }
}

fn write_part(part: &Vocabulary, out: &mut dyn Write) -> io::Result<()> {
    let (kind, shortest, longest) = match part.analyser() {
        Analyser::Words => (0, 0, 0),
        Analyser::Characters { shortest, longest } => (1, shortest, longest),
    };
    out.write_all(&[kind, shortest, longest, u8::from(part.is_sublinear())])?;
    out.write_all(&(part.len() as u32).to_le_bytes())?;
    let terms = || (0..part.len() as u32).map(|term| part.terms().get(term));
    let text: u64 = terms().map(|term| term.len() as u64).sum();
    out.write_all(&text.to_le_bytes())?;
    terms().try_for_each(|term| out.write_all(&(term.len() as u32).to_le_bytes()))?;
    terms().try_for_each(|term| out.write_all(term.as_bytes()))?;
    part.frequencies().iter().try_for_each(|count| out.write_all(&count.to_le_bytes()))
}

fn read_part(items: u64, input: &mut Input<'_>) -> Result<Vocabulary> {
    let [kind, shortest, longest, sublinear] = input.array()?;
    let analyser = match kind {
        0 => Analyser::Words,
        1 if shortest > 0 && shortest <= longest => Analyser::Characters { shortest, longest },
        _ => {
            return input.corrupt(format!("analyser {kind} with runs of {shortest} to {longest} characters"));
        }
    };
    let count = u64::from(input.u32()?);
    let text_length = input.u64()?;
    let lengths = input.u32s(count)?;
    let text = input.take(text_length)?;
    let text = std::str::from_utf8(text).or_else(|_| input.corrupt("terms that are not UTF-8"))?;
    let frequencies: Vec<u32> = input.u32s(count)?.collect();
    if let Some(wrong) = frequencies.iter().find(|&&n| n == 0 || u64::from(n) > items) {
        return input.corrupt(format!("a term in {wrong} of {items} items"));
    }
    let (mut terms, mut rest) = (IdTable::new(), text);
    for length in lengths {
        let Some((term, later)) = rest.split_at_checked(length as usize) else {
            return input.corrupt("a term that ends within a character or beyond the text");
        };
        terms.push(term)?;
        rest = later;
    }
    if !rest.is_empty() {
        return input.corrupt(format!("{} bytes of text that belong to no term", rest.len()));
    }
    terms.shrink_to_fit();
    Ok(Vocabulary::new(analyser, sublinear != 0, items, terms, frequencies))
}

/// Passes bytes on and sums them up.
struct Checked<'a> {
    writer: &'a mut dyn Write,
    crc: crc32fast::Hasher,
}

impl Write for Checked<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.write(bytes)?;
        self.crc.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// What is still to be read.
struct Input<'a> {
    path: &'a Path,
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn corrupt<T>(&self, found: impl Into<String>) -> Result<T> {
        Err(loxia_core::Error::corrupt(self.path, found).into())
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8]> {
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let Some((taken, rest)) = split else {
            return self.corrupt(format!("{} bytes where {length} should follow", self.rest.len()));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn u32s(&mut self, count: u64) -> Result<impl Iterator<Item = u32> + use<'a>> {
        let taken = self.take(count.saturating_mul(4))?;
        Ok(taken.as_chunks::<4>().0.iter().map(|&bytes| u32::from_le_bytes(bytes)))
    }

    fn floats(&mut self, count: u64, what: &str) -> Result<Vec<f32>> {
        let values: Vec<f32> = self.u32s(count)?.map(f32::from_bits).collect();
        match values.iter().find(|value| !value.is_finite()) {
            None => Ok(values),
            Some(value) => self.corrupt(format!("{value} among the {what}")),
        }
    }
}
