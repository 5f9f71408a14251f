//! `tiles.log`: which tiles are on disk, and what their bytes must be.
//!
//! Records have a fixed size and a checksum of their own, are appended after the tile's data is durable,
//! and are durable themselves before the next tile begins. A record torn by a crash is shorter than the
//! others or fails its checksum; either way it does not count.

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::LOG_FILE;
use crate::Result;
use crate::artefact::{io_error, rename_durably};

/// One tile that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TileRecord {
    pub(super) tile: u64,
    /// Where the tile begins in the data file, in bytes.
    pub(super) offset: u64,
    /// Bytes of the tile.
    pub(super) length: u64,
    /// CRC-32 of those bytes.
    pub(super) crc: u32,
}

impl TileRecord {
    pub(super) const SIZE: usize = 32;

    fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.tile.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.length.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.crc.to_le_bytes());
        let own_crc = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&own_crc.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::SIZE]) -> Option<Self> {
        let u64_at = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("within 32 bytes"));
        let u32_at = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("within 32 bytes"));
        let record = TileRecord { tile: u64_at(0), offset: u64_at(8), length: u64_at(16), crc: u32_at(24) };
        (crc32fast::hash(&bytes[..28]) == u32_at(28)).then_some(record)
    }
}

/// What a log holds: records in order, `None` for those whose checksum fails, and how many bytes the file
/// has beyond them.
#[derive(Debug)]
pub(super) struct LogContent {
    pub(super) records: Vec<Option<TileRecord>>,
    pub(super) excess: u64,
}

/// Reads at most `most` records; a sound log never has more than the matrix has tiles.
pub(super) fn read_log(directory: &Path, most: usize) -> Result<LogContent> {
    let path = directory.join(LOG_FILE);
    let file = File::open(&path).map_err(io_error(&path, "open"))?;
    let length = file.metadata().map_err(io_error(&path, "look up"))?.len();
    let count = (length / TileRecord::SIZE as u64).min(most as u64);
    let mut reader = BufReader::new(file);
    let mut records = Vec::with_capacity(count as usize);
    let mut bytes = [0; TileRecord::SIZE];
    for _ in 0..count {
        reader.read_exact(&mut bytes).map_err(io_error(&path, "read"))?;
        records.push(TileRecord::from_bytes(&bytes));
    }
    Ok(LogContent { records, excess: length - count * TileRecord::SIZE as u64 })
}

/// The log of a matrix being written.
#[derive(Debug)]
pub(super) struct TileLog {
    path: PathBuf,
    file: File,
    records: u64,
    last_tile: Option<u64>,
    ascending: bool,
}

impl TileLog {
    /// Opens the log for appending, leaving in it exactly `sound`. The file is replaced only if that is not
    /// what it holds already.
    pub(super) fn open(directory: &Path, content: &LogContent, sound: &[TileRecord]) -> Result<Self> {
        let path = directory.join(LOG_FILE);
        // Left by a crash within `replace`.
        let _ = fs::remove_file(directory.join(NEW_LOG_FILE));
        let kept = content.records.len() >= sound.len()
            && content.records.iter().zip(sound).all(|(found, kept)| found.as_ref() == Some(kept));
        if !kept {
            replace(directory, sound)?;
        }
        let file = OpenOptions::new().write(true).open(&path).map_err(io_error(&path, "open"))?;
        let ascending = sound.windows(2).all(|pair| pair[0].tile < pair[1].tile);
        let last_tile = sound.last().map(|record| record.tile);
        let mut log = TileLog { path, file, records: sound.len() as u64, last_tile, ascending };
        log.cut_tail()?;
        Ok(log)
    }

    /// Removes whatever follows the last counted record.
    fn cut_tail(&mut self) -> Result<()> {
        let length = self.records * TileRecord::SIZE as u64;
        self.file.set_len(length).map_err(io_error(&self.path, "cut off a torn record"))?;
        self.file.sync_data().map_err(io_error(&self.path, "sync"))
    }

    /// Appends a record and waits until it is durable. `action` says what for.
    pub(super) fn append(&mut self, record: TileRecord, action: &str) -> Result<()> {
        // At its place and not at the end, so that a retry after an error covers the torn record.
        let position = SeekFrom::Start(self.records * TileRecord::SIZE as u64);
        self.file.seek(position).map_err(io_error(&self.path, action))?;
        self.file.write_all(&record.to_bytes()).map_err(io_error(&self.path, action))?;
        self.file.sync_data().map_err(io_error(&self.path, action))?;
        self.records += 1;
        self.ascending &= self.last_tile.is_none_or(|last| last < record.tile);
        self.last_tile = Some(record.tile);
        Ok(())
    }

    /// Brings the records of a complete matrix into ascending order, the order of uninterrupted work.
    pub(super) fn finish(mut self, directory: &Path) -> Result<()> {
        self.cut_tail()?;
        if self.ascending {
            return Ok(());
        }
        let content = read_log(directory, self.records as usize)?;
        let mut records: Vec<TileRecord> = content.records.into_iter().flatten().collect();
        records.sort_unstable_by_key(|record| record.tile);
        replace(directory, &records)
    }
}

const NEW_LOG_FILE: &str = "tiles.log.new";

/// Replaces the log as a whole.
fn replace(directory: &Path, records: &[TileRecord]) -> Result<()> {
    let new = directory.join(NEW_LOG_FILE);
    let bytes: Vec<u8> = records.iter().flat_map(|record| record.to_bytes()).collect();
    let mut file = File::create(&new).map_err(io_error(&new, "create"))?;
    file.write_all(&bytes).map_err(io_error(&new, "write"))?;
    file.sync_all().map_err(io_error(&new, "sync"))?;
    rename_durably(&new, &directory.join(LOG_FILE))
}
