//! SHA-256 over bytes, streams and files, as lower-case hexadecimal.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::io_error;
use crate::Result;

/// Takes bytes in pieces and gives their SHA-256; also a [`Write`], so that anything can be written to it.
///
/// ```
/// use loxia_core::artefact::{Digester, digest_bytes};
/// let mut digester = Digester::new();
/// digester.update(b"cross");
/// digester.update(b"bill");
/// assert_eq!(digester.finish(), digest_bytes(b"crossbill"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Digester(Sha256);

impl Digester {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of everything taken: 64 hexadecimal digits.
    pub fn finish(self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity(64);
        for byte in self.0.finalize() {
            text.push(DIGITS[usize::from(byte >> 4)] as char);
            text.push(DIGITS[usize::from(byte & 15)] as char);
        }
        text
    }
}

impl Write for Digester {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// SHA-256 of bytes.
///
/// ```
/// let digest = loxia_core::artefact::digest_bytes(b"abc");
/// assert!(digest.starts_with("ba7816bf") && digest.len() == 64);
/// ```
pub fn digest_bytes(bytes: &[u8]) -> String {
    let mut digester = Digester::new();
    digester.update(bytes);
    digester.finish()
}

/// SHA-256 of everything a reader gives.
pub fn digest_reader(mut reader: impl Read) -> io::Result<String> {
    let mut digester = Digester::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(digester.finish()),
            Ok(count) => digester.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// SHA-256 of a file.
pub fn digest_file(path: &Path) -> Result<String> {
    let file = File::open(path).map_err(io_error(path, "open"))?;
    digest_reader(file).map_err(io_error(path, "read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_value() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest_bytes(b"abc"), expected);
        assert_eq!(digest_reader(&b"abc"[..]).unwrap(), expected);
    }
}
