//! Sparse matrices, filled by blocks of rows.

use std::path::{Path, PathBuf};

use super::mapped::map_file;
use super::partial::PartialMatrix;
use super::sparse_block::{BlockRows, encode, fault};
use super::tile_log::{LogContent, TileLog, TileRecord, read_log};
use super::{MatrixSpec, SparseRow, Storage, TileGrid};
use crate::artefact::{Existing, io_error};
use crate::{Error, Result};

/// Fills a sparse matrix directory, with the promise of [`MatrixWriter`](super::MatrixWriter).
///
/// A tile is a block of whole rows, and blocks are written in order, because each begins where the one
/// before ends. If a block's checksum fails on resuming, it and all later ones are written again.
///
/// ```
/// use loxia_core::{IdTable, artefact::Existing, matrix::*};
/// let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("scores");
/// let queries = IdTable::try_from(&["q1", "q2"][..]).unwrap();
/// let items = IdTable::try_from(&["d1", "d2", "d3"][..]).unwrap();
/// let mut writer =
///     SparseMatrixWriter::create(&path, &MatrixSpec::sparse(&queries, &items), Existing::Refuse).unwrap();
/// while let Some(tile) = writer.next_tile() {
///     let row = SparseRow { columns: &[0, 2], scores: &[0.5, 1.5] };
///     writer.write_rows(&vec![row; writer.grid().rows_of(tile).len()]).unwrap();
/// }
/// writer.finish().unwrap();
/// assert_eq!(ScoreMatrix::open(&path).unwrap().get(1, 1).unwrap(), None);
/// ```
#[derive(Debug)]
pub struct SparseMatrixWriter {
    partial: PartialMatrix,
    log: TileLog,
    written: usize,
    end: u64,
    dropped: u64,
}

impl SparseMatrixWriter {
    /// Begins a matrix, as [`MatrixWriter::create`](super::MatrixWriter::create) does.
    pub fn create(path: &Path, spec: &MatrixSpec<'_>, existing: Existing) -> Result<Self> {
        check_storage(spec)?;
        Self::recover(PartialMatrix::create(path, spec, existing)?)
    }

    /// Goes on with a matrix, as [`MatrixWriter::resume`](super::MatrixWriter::resume) does.
    pub fn resume(path: &Path, spec: &MatrixSpec<'_>, existing: Existing) -> Result<Option<Self>> {
        check_storage(spec)?;
        PartialMatrix::resume(path, spec, existing)?.map(Self::recover).transpose()
    }

    fn recover(partial: PartialMatrix) -> Result<Self> {
        let content = read_log(&partial.directory, partial.grid.tiles())?;
        let length = partial.data.metadata().map_err(io_error(&partial.data_path, "look up"))?.len();
        let length =
            usize::try_from(length).map_err(|error| Error::corrupt(&partial.data_path, error.to_string()))?;
        let map = map_file(&partial.data, &partial.data_path, length)?;
        let sound = sound_records(&partial.grid, &content, map.as_deref().unwrap_or_default());
        drop(map);
        let end = sound.last().map_or(0, |record| record.offset + record.length);
        partial.set_data_length(end)?;
        let dropped = (content.records.len() - sound.len()) as u64;
        let log = TileLog::open(&partial.directory, &content, &sound)?;
        Ok(SparseMatrixWriter { partial, log, written: sound.len(), end, dropped })
    }

    /// The tiles of the matrix; each spans all columns.
    pub fn grid(&self) -> &TileGrid {
        &self.partial.grid
    }

    /// The tile to write next; `None` when all are written.
    pub fn next_tile(&self) -> Option<usize> {
        (self.written < self.partial.grid.tiles()).then_some(self.written)
    }

    /// Records found on resuming that were not borne out by the data, or followed one that was not.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Writes the rows of the next tile and returns when they are durable.
    ///
    /// Columns that do not ascend or do not exist, and scores that are not finite, are refused before
    /// anything is written.
    ///
    /// # Panics
    /// If all tiles are written or `rows` is not the tile's number of rows.
    pub fn write_rows(&mut self, rows: &[SparseRow<'_>]) -> Result<()> {
        let tile = self.next_tile().expect("a tile is left to write");
        let numbers = self.partial.grid.rows_of(tile);
        assert_eq!(rows.len(), numbers.len(), "all rows of tile {tile}");
        for (row, view) in numbers.zip(rows) {
            if let Some(what) = fault(view, self.partial.grid.cols()) {
                return Err(Error::Invalid(format!("row {row}: {what}")));
            }
            if let Some(place) = view.scores.iter().position(|score| !score.is_finite()) {
                let (col, value) = (view.columns[place] as usize, view.scores[place]);
                return Err(Error::NotFinite { row, col, value });
            }
        }
        let bytes = encode(rows);
        let action = self.partial.action(tile);
        self.partial.write_data(self.end, &bytes, &action)?;
        self.partial.sync_data(&action)?;
        let (length, crc) = (bytes.len() as u64, crc32fast::hash(&bytes));
        self.log.append(TileRecord { tile: tile as u64, offset: self.end, length, crc }, &action)?;
        self.end += length;
        self.written += 1;
        Ok(())
    }

    /// Gives the complete matrix its name and returns it.
    pub fn finish(self) -> Result<PathBuf> {
        if let Some(first) = self.next_tile() {
            let grid = &self.partial.grid;
            let (missing, name) = (grid.tiles() - first, grid.name(first));
            return Err(Error::Invalid(format!("{missing} tiles are not written, the first is {name}")));
        }
        // A failed write may have left bytes beyond the last block.
        self.partial.set_data_length(self.end)?;
        self.log.finish(&self.partial.directory)?;
        self.partial.finish()
    }
}

fn check_storage(spec: &MatrixSpec<'_>) -> Result<()> {
    match spec.storage {
        Storage::Sparse => Ok(()),
        Storage::Dense => Err(Error::Invalid("a dense matrix is written by MatrixWriter".to_owned())),
    }
}

/// The leading records that are in order and that the data bears out.
fn sound_records(grid: &TileGrid, content: &LogContent, data: &[u8]) -> Vec<TileRecord> {
    let mut sound = Vec::new();
    let mut end = 0;
    for (tile, record) in content.records.iter().enumerate() {
        let Some(record) = record.filter(|record| record.tile == tile as u64 && record.offset == end) else {
            break;
        };
        let Some(bytes) = block_bytes(&record, data) else { break };
        let words = bytemuck::try_cast_slice(bytes).unwrap_or_default();
        if crc32fast::hash(bytes) != record.crc || BlockRows::parse(words, grid.rows_of(tile).len()).is_err()
        {
            break;
        }
        end += record.length;
        sound.push(record);
    }
    sound
}

/// The bytes a record speaks of, if the file has them.
pub(super) fn block_bytes<'a>(record: &TileRecord, data: &'a [u8]) -> Option<&'a [u8]> {
    let start = usize::try_from(record.offset).ok()?;
    let end = start.checked_add(usize::try_from(record.length).ok()?)?;
    data.get(start..end)
}
