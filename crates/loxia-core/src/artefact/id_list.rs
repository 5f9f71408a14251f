//! Ids beside numbers: one a line, UTF-8, each line ended by a line feed.
//!
//! The format has no escapes, so an id with a line break in it cannot be kept and is refused; so is one of
//! more than 65,536 bytes, which lets a reader stop within a file that has no lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use super::{Digester, io_error};
use crate::{Error, IdTable, Result};

/// Most bytes of an id in a list.
const LONGEST_ID: usize = 1 << 16;

/// Writes ids, one a line.
///
/// ```
/// use loxia_core::{IdTable, artefact::write_id_list};
/// let mut text = Vec::new();
/// write_id_list(&IdTable::try_from(&["d1", "d2"][..]).unwrap(), &mut text).unwrap();
/// assert_eq!(text, b"d1\nd2\n");
/// ```
pub fn write_id_list(ids: &IdTable, writer: &mut dyn Write) -> io::Result<()> {
    for (position, id) in ids.iter().enumerate() {
        if id.contains(['\n', '\r']) {
            let what =
                format!("id {id:?} at position {position} has a line break; an id list cannot hold it");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        if id.len() > LONGEST_ID {
            let length = id.len();
            let what = format!(
                "the id at position {position} has {length} bytes; an id list holds at most {LONGEST_ID}"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        writer.write_all(id.as_bytes())?;
        writer.write_all(b"\n")?;
    }
    Ok(())
}

/// SHA-256 of the list that [`write_id_list`] would write.
pub fn digest_ids(ids: &IdTable) -> Result<String> {
    let mut digester = Digester::new();
    write_id_list(ids, &mut digester).map_err(|error| Error::Invalid(error.to_string()))?;
    Ok(digester.finish())
}

/// Reads an id list and the digest of its bytes. Duplicates, lines longer than any id, a last line without
/// an end (a file cut short) and invalid UTF-8 are refused with their line.
///
/// It takes as much memory as the file has ids; where their number is known from elsewhere, a longer list
/// should not be read at all.
pub fn read_id_list(path: &Path) -> Result<(IdTable, String)> {
    read_lines(path, None)
}

/// Reads an id list that must have `expected` ids, and nothing of a longer one beyond the first too many.
pub fn read_counted_id_list(path: &Path, expected: usize) -> Result<(IdTable, String)> {
    let (ids, digest) = read_lines(path, Some(expected))?;
    if ids.len() == expected {
        return Ok((ids, digest));
    }
    let what = format!("{} ids, but the manifest's shape says {expected}; make it again", ids.len());
    Err(Error::corrupt(path, what))
}

fn read_lines(path: &Path, most: Option<usize>) -> Result<(IdTable, String)> {
    let mut reader = BufReader::new(File::open(path).map_err(io_error(path, "open"))?);
    let mut ids = IdTable::new();
    let mut digester = Digester::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        // One byte for the line feed and one to tell a line that is too long from one that is cut short.
        let mut bounded = reader.by_ref().take(LONGEST_ID as u64 + 2);
        bounded.read_until(b'\n', &mut line).map_err(io_error(path, "read"))?;
        if line.is_empty() {
            return Ok((ids, digester.finish()));
        }
        if let Some(most) = most.filter(|&most| ids.len() == most) {
            let what = format!("more ids than the {most} of the manifest's shape; make it again");
            return Err(Error::corrupt(path, what));
        }
        digester.update(&line);
        push_line(&mut ids, &line)
            .map_err(|what| Error::corrupt(path, format!("line {}: {what}", ids.len() + 1)))?;
    }
}

fn push_line(ids: &mut IdTable, line: &[u8]) -> Result<(), String> {
    if line.len() > LONGEST_ID + 1 {
        return Err(format!("more than {LONGEST_ID} bytes, which no id has; is it another file?"));
    }
    let id = line.strip_suffix(b"\n").ok_or("no line break at the end; the file is cut short")?;
    let id = std::str::from_utf8(id).map_err(|error| error.to_string())?;
    if id.contains('\r') {
        return Err("a carriage return; ids are ended by a line feed alone".to_owned());
    }
    ids.push(id).map(|_| ()).map_err(|error| error.to_string())
}
