//! A file of kept scores: a header that names the scorer, then records of one size.
//!
//! ```text
//! header   "loxscore", u32 version, u32 bytes of the scorer's digest, the digest, u32 CRC-32 of all that
//! record   16 bytes key, f32 score, u32 CRC-32 of these
//! ```
//!
//! All little endian. Records are only ever appended, so whatever a crash leaves is a whole prefix and at
//! most one torn record; each record answers for itself, so damage in the middle costs what it hit.

use loxia_core::artefact::Digester;
use loxia_core::{Item, Query, QueryText};

const MAGIC: &[u8; 8] = b"loxscore";
const VERSION: u32 = 1;
/// Digests are 64 bytes; functions may have long names.
const LONGEST_DIGEST: usize = 4096;
/// Bytes of a record.
pub(super) const RECORD: usize = 24;

/// What a pair of texts is found by.
pub(super) type Key = u128;

/// The header of a scorer's files.
pub(super) fn header(digest: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MAGIC.len() + 12 + digest.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(digest.len() as u32).to_le_bytes());
    bytes.extend_from_slice(digest.as_bytes());
    let crc = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

/// One record.
pub(super) fn record(key: Key, score: f32) -> [u8; RECORD] {
    let mut bytes = [0; RECORD];
    bytes[..16].copy_from_slice(&key.to_le_bytes());
    bytes[16..20].copy_from_slice(&score.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..20]);
    bytes[20..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Key and score of a record, if its checksum holds and the score is a number.
pub(super) fn read_record(bytes: &[u8; RECORD]) -> Option<(Key, f32)> {
    let (key, rest) = bytes.split_first_chunk::<16>()?;
    let (score, crc) = rest.split_first_chunk::<4>()?;
    let score = f32::from_le_bytes(*score);
    let sound = crc == crc32fast::hash(&bytes[..20]).to_le_bytes() && score.is_finite();
    sound.then(|| (Key::from_le_bytes(*key), score))
}

/// A digest that fits into a header.
pub(super) fn bounded(digest: &str) -> String {
    if digest.len() <= LONGEST_DIGEST {
        return digest.to_owned();
    }
    loxia_core::artefact::digest_bytes(digest.as_bytes())
}

/// Digest of a query's text. Parts are told apart by their lengths: "a b" + "c" is not "a" + "b c".
pub(super) fn digest_query(query: &Query) -> String {
    match &query.text {
        QueryText::Plain(text) => digest_parts("plain", &[text]),
        QueryText::Mention { left, mention, right } => digest_parts("mention", &[left, mention, right]),
    }
}

/// Digest of an item's title and text.
pub(super) fn digest_item(item: &Item) -> String {
    match &item.title {
        Some(title) => digest_parts("titled", &[title, &item.text]),
        None => digest_parts("untitled", &[&item.text]),
    }
}

/// The key of a pair, from the digests of its texts.
pub(super) fn key(query: &str, item: &str) -> Key {
    let digest = digest_parts("pair", &[query, item]);
    // 128 of the 256 bits: among a billion pairs two of one key are expected once in 10^20 collections.
    digest.bytes().take(32).fold(0, |key, digit| {
        let value = (digit as char).to_digit(16).expect("digests are hexadecimal");
        key << 4 | Key::from(value)
    })
}

fn digest_parts(kind: &str, parts: &[&str]) -> String {
    let mut digester = Digester::new();
    digester.update(kind.as_bytes());
    for part in parts {
        digester.update(&(part.len() as u64).to_le_bytes());
        digester.update(part.as_bytes());
    }
    digester.finish()
}
