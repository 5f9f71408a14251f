//! As much of the zip format as PyTorch writes: the central directory (with its 64-bit extension) and stored
//! entries. PyTorch never compresses, and what is not unpacked cannot be a bomb. Every offset is checked before
//! it is used.

use std::ops::Range;

use crate::error::Malformed;

type Result<T> = std::result::Result<T, Malformed>;

const END: &[u8; 4] = b"PK\x05\x06";
const END64: &[u8; 4] = b"PK\x06\x06";
const END64_LOCATOR: &[u8; 4] = b"PK\x06\x07";
const CENTRAL: &[u8; 4] = b"PK\x01\x02";
const LOCAL: &[u8; 4] = b"PK\x03\x04";

const END_LEN: usize = 22;
const LOCATOR_LEN: usize = 20;

/// An entry of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Its bytes in the file.
    data: Range<usize>,
}

/// The entries of an archive.
pub(crate) fn parse_directory(file: &[u8]) -> Result<Vec<Entry>> {
    let (mut at, count, end) = find_directory(file)?;
    // Each record takes at least 46 bytes, so a lying count cannot make this large.
    let mut entries = Vec::with_capacity(count.min((end - at) / 46));
    for index in 0..count {
        let (entry, next) = central_record(file, at, end).ok_or_else(|| {
            Malformed::new(format!("zip directory is cut or damaged at entry {index} of {count}"))
        })??;
        entries.push(entry);
        at = next;
    }
    refuse_overlaps(&entries)?;
    Ok(entries)
}

/// Entries that share bytes are no archive's that PyTorch wrote.
fn refuse_overlaps(entries: &[Entry]) -> Result<()> {
    let mut order: Vec<&Entry> = entries.iter().filter(|entry| !entry.data.is_empty()).collect();
    order.sort_by_key(|entry| entry.data.start);
    match order.windows(2).find(|pair| pair[1].data.start < pair[0].data.end) {
        None => Ok(()),
        Some(pair) => {
            Err(Malformed::new(format!("zip entries {} and {} overlap", pair[0].name, pair[1].name)))
        }
    }
}

/// Start of the directory, number of entries, end of the directory.
fn find_directory(file: &[u8]) -> Result<(usize, usize, usize)> {
    let lowest = file.len().saturating_sub(END_LEN + usize::from(u16::MAX));
    let end = (lowest..=file.len().saturating_sub(END_LEN))
        .rev()
        .find(|&at| file[at..].starts_with(END) && file.len() - at >= END_LEN)
        .ok_or_else(|| Malformed::new("no end of zip directory found: not a zip archive, or truncated"))?;
    let mut count = u64::from(u16_at(file, end + 10).unwrap_or(0));
    let mut length = u64::from(u32_at(file, end + 12).unwrap_or(0));
    let mut start = u64::from(u32_at(file, end + 16).unwrap_or(0));
    if let Some(locator) = end.checked_sub(LOCATOR_LEN).filter(|&at| file[at..].starts_with(END64_LOCATOR)) {
        let at = u64_at(file, locator + 8).and_then(|at| usize::try_from(at).ok()).unwrap_or(usize::MAX);
        if file.get(at..).is_none_or(|rest| !rest.starts_with(END64)) {
            return Err(Malformed::new("the 64-bit end of zip directory is not where the locator says"));
        }
        let field =
            |offset| u64_at(file, at.saturating_add(offset)).ok_or_else(|| Malformed::new("zip end is cut"));
        (count, length, start) = (field(32)?, field(40)?, field(48)?);
    }
    match start.checked_add(length) {
        Some(stop) if stop <= end as u64 => Ok((start as usize, count.min(length) as usize, stop as usize)),
        _ => Err(Malformed::new(format!(
            "zip directory of {length} bytes at {start} does not fit into the file of {} bytes",
            file.len()
        ))),
    }
}

/// One record of the directory and where the next begins; `None` if the record itself is cut.
fn central_record(file: &[u8], at: usize, end: usize) -> Option<Result<(Entry, usize)>> {
    if !file.get(at..end)?.starts_with(CENTRAL) {
        return None;
    }
    let flags = u16_at(file, at + 8)?;
    let method = u16_at(file, at + 10)?;
    let mut packed = u64::from(u32_at(file, at + 20)?);
    let mut length = u64::from(u32_at(file, at + 24)?);
    let (name_len, extra_len, comment_len) =
        (u16_at(file, at + 28)? as usize, u16_at(file, at + 30)? as usize, u16_at(file, at + 32)? as usize);
    let mut offset = u64::from(u32_at(file, at + 42)?);
    let name = file.get(at + 46..at + 46 + name_len)?;
    let extra = file.get(at + 46 + name_len..at + 46 + name_len + extra_len)?;
    let next = at + 46 + name_len + extra_len + comment_len;
    if next > end {
        return None;
    }
    widen_from_extra(extra, &mut [&mut length, &mut packed, &mut offset]);
    let name = String::from_utf8_lossy(name).into_owned();
    Some(locate(file, name, flags, method, packed, length, offset).map(|entry| (entry, next)))
}

/// 64-bit values stand in the extra field, in order, for each 32-bit field that is all ones.
fn widen_from_extra(mut extra: &[u8], fields: &mut [&mut u64]) {
    while let (Some(id), Some(len)) = (u16_at(extra, 0), u16_at(extra, 2)) {
        let Some(body) = extra.get(4..4 + len as usize) else { return };
        if id == 1 {
            let wide = fields.iter_mut().filter(|field| ***field == u64::from(u32::MAX));
            for (field, value) in wide.zip(body.chunks_exact(8)) {
                **field = u64::from_le_bytes(value.try_into().expect("chunks of eight"));
            }
            return;
        }
        extra = &extra[4 + len as usize..];
    }
}

fn locate(
    file: &[u8],
    name: String,
    flags: u16,
    method: u16,
    packed: u64,
    length: u64,
    offset: u64,
) -> Result<Entry> {
    if flags & 1 != 0 {
        return Err(Malformed::new(format!("zip entry {name} is encrypted")));
    }
    if method != 0 {
        return Err(Malformed::new(format!(
            "zip entry {name} is compressed, which PyTorch never does; load it there and save it again"
        )));
    }
    if packed != length {
        return Err(Malformed::new(format!("zip entry {name} claims two lengths, {packed} and {length}")));
    }
    let data = data_range(file, packed, offset).ok_or_else(|| {
        Malformed::new(format!("zip entry {name} ({packed} bytes at {offset}) does not lie in the file"))
    })?;
    Ok(Entry { name, data })
}

/// The local header repeats name and extra field with lengths of its own.
fn data_range(file: &[u8], packed: u64, offset: u64) -> Option<Range<usize>> {
    let at = usize::try_from(offset).ok()?;
    if !file.get(at..)?.starts_with(LOCAL) {
        return None;
    }
    let start = at + 30 + u16_at(file, at + 26)? as usize + u16_at(file, at + 28)? as usize;
    let end = start.checked_add(usize::try_from(packed).ok()?)?;
    (end <= file.len()).then_some(start..end)
}

impl Entry {
    /// Length of its content.
    pub(crate) fn len(&self) -> usize {
        self.data.len()
    }

    /// Where its content is in the file.
    pub(crate) fn range(&self) -> Range<usize> {
        self.data.clone()
    }

    /// The entry's content.
    pub(crate) fn content<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        &file[self.data.clone()]
    }
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive with one entry, as Python's zipfile writes it.
    fn archive(method: u16, packed: &[u8], length: u32) -> Vec<u8> {
        let mut file = Vec::new();
        file.extend(LOCAL);
        file.extend([0; 22]);
        file.extend(1_u16.to_le_bytes());
        file.extend([0, 0, b'a']);
        file.extend(packed);
        let start = file.len() as u32;
        file.extend(CENTRAL);
        file.extend([0; 6]);
        file.extend(method.to_le_bytes());
        file.extend([0; 8]);
        file.extend((packed.len() as u32).to_le_bytes());
        file.extend(length.to_le_bytes());
        file.extend(1_u16.to_le_bytes());
        file.extend([0; 16]);
        file.push(b'a');
        let size = file.len() as u32 - start;
        file.extend(END);
        file.extend([0; 6]);
        file.extend(1_u16.to_le_bytes());
        file.extend(size.to_le_bytes());
        file.extend(start.to_le_bytes());
        file.extend([0; 2]);
        file
    }

    #[test]
    fn stored_entries_are_read() {
        let stored = archive(0, b"hello", 5);
        let entries = parse_directory(&stored).unwrap();
        assert_eq!(entries[0].content(&stored), b"hello");
    }

    #[test]
    fn compression_and_lies_are_refused() {
        let message = |file: &[u8]| parse_directory(file).unwrap_err().to_string();
        assert!(message(&archive(8, b"abc", 1000)).contains("entry a is compressed"));
        assert!(message(&archive(0, b"abc", 4)).contains("claims two lengths"));
        assert!(message(b"PK\x03\x04").contains("not a zip archive"));
        let whole = archive(0, b"hello", 5);
        for cut in 0..whole.len() {
            assert!(parse_directory(&whole[..cut]).is_err());
        }
    }
}
