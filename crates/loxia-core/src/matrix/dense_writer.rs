//! Dense matrices, filled tile by tile.

use std::path::{Path, PathBuf};

use super::mapped::{map_file, tile_crc};
use super::partial::PartialMatrix;
use super::tile_log::{LogContent, TileLog, TileRecord, read_log};
use super::{MatrixSpec, Storage, TileGrid};
use crate::artefact::Existing;
use crate::{Error, Result};

/// Fills a dense matrix directory so that `kill -9` costs at most the tile in flight.
///
/// It works in `<name>.partial`: a tile's data is written and synced, then its record is appended to the
/// log and synced, then the next tile may come. After an error (disk full, read-only file system) drop the
/// writer; [`resume`](MatrixWriter::resume) goes on from the last durable tile.
///
/// ```
/// use loxia_core::{IdTable, artefact::Existing, matrix::*};
/// let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("scores");
/// let queries = IdTable::try_from(&["q1", "q2"][..]).unwrap();
/// let items = IdTable::try_from(&["d1", "d2", "d3"][..]).unwrap();
/// let spec = MatrixSpec::dense(&queries, &items).tile(TileShape { rows: 1, cols: 3 });
///
/// let mut writer = MatrixWriter::create(&path, &spec, Existing::Refuse).unwrap();
/// writer.write_tile(0, &[1.0, 2.0, 3.0]).unwrap();
/// drop(writer); // Power is lost here.
///
/// let mut writer = MatrixWriter::resume(&path, &spec, Existing::Refuse).unwrap().unwrap();
/// assert_eq!(writer.missing_tiles().collect::<Vec<_>>(), [1]);
/// writer.write_tile(1, &[4.0, 5.0, 6.0]).unwrap();
/// writer.finish().unwrap();
/// assert_eq!(ScoreMatrix::open(&path).unwrap().get(1, 2).unwrap(), Some(6.0));
/// ```
#[derive(Debug)]
pub struct MatrixWriter {
    partial: PartialMatrix,
    log: TileLog,
    present: Vec<bool>,
    dropped: u64,
}

impl MatrixWriter {
    /// Begins a matrix that will be at `path`.
    ///
    /// Unfinished work in `<name>.partial` is refused as [`Error::Exists`] or, with
    /// [`Existing::Overwrite`], discarded; a finished matrix stays until the new one is complete.
    pub fn create(path: &Path, spec: &MatrixSpec<'_>, existing: Existing) -> Result<Self> {
        check_storage(spec)?;
        Self::recover(PartialMatrix::create(path, spec, existing)?)
    }

    /// Goes on with unfinished work, or begins if there is none; `None` if the matrix is complete.
    ///
    /// Work that was begun for other ids, tiles or digests is refused with both values named. The data of
    /// every recorded tile is read and compared with its checksum; tiles that fail are missing again and
    /// counted in [`dropped`](MatrixWriter::dropped).
    pub fn resume(path: &Path, spec: &MatrixSpec<'_>, existing: Existing) -> Result<Option<Self>> {
        check_storage(spec)?;
        PartialMatrix::resume(path, spec, existing)?.map(Self::recover).transpose()
    }

    fn recover(partial: PartialMatrix) -> Result<Self> {
        let grid = partial.grid;
        let bytes = grid.rows() * grid.cols() * 4;
        // A file that lost its end gets its length back; the checksums find what was in it.
        partial.set_data_length(bytes as u64)?;
        let content = read_log(&partial.directory, grid.tiles())?;
        let map = map_file(&partial.data, &partial.data_path, bytes)?;
        let (sound, present) = sound_records(&grid, &content, map.as_deref().unwrap_or_default());
        let dropped = (content.records.len() - sound.len()) as u64;
        let log = TileLog::open(&partial.directory, &content, &sound)?;
        Ok(MatrixWriter { partial, log, present, dropped })
    }

    /// The tiles of the matrix.
    pub fn grid(&self) -> &TileGrid {
        &self.partial.grid
    }

    /// Tiles still to be written, ascending.
    pub fn missing_tiles(&self) -> impl Iterator<Item = usize> + '_ {
        self.present.iter().enumerate().filter(|(_, present)| !**present).map(|(tile, _)| tile)
    }

    /// Records found on resuming whose own checksum or whose tile's checksum failed. A record that a crash
    /// cut short is not counted: its tile was never finished.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Writes a tile, its rows one after the other, and returns when it is durable.
    ///
    /// A score that is not finite is refused as [`Error::NotFinite`] before anything is written.
    ///
    /// # Panics
    /// If the matrix has no such tile or `scores` does not have its number of cells.
    pub fn write_tile(&mut self, tile: usize, scores: &[f32]) -> Result<()> {
        let grid = self.partial.grid;
        assert_eq!(scores.len(), grid.cells_of(tile), "one score for each cell of tile {tile}");
        if self.present[tile] {
            return Err(Error::Invalid(format!("tile {tile} is already written")));
        }
        let (rows, cols) = (grid.rows_of(tile), grid.cols_of(tile));
        if let Some(place) = scores.iter().position(|score| !score.is_finite()) {
            let (row, col) = (rows.start + place / cols.len(), cols.start + place % cols.len());
            return Err(Error::NotFinite { row, col, value: scores[place] });
        }
        let action = self.partial.action(tile);
        let bytes: &[u8] = bytemuck::cast_slice(scores);
        let mut rest = bytes;
        for segment in grid.segments(tile) {
            let (row, after) = rest.split_at(segment.len());
            self.partial.write_data(segment.start as u64, row, &action)?;
            rest = after;
        }
        self.partial.sync_data(&action)?;
        self.log.append(record_of(&grid, tile, crc32fast::hash(bytes)), &action)?;
        self.present[tile] = true;
        Ok(())
    }

    /// Gives the complete matrix its name and returns it.
    pub fn finish(self) -> Result<PathBuf> {
        let missing = self.missing_tiles().count();
        if let Some(first) = self.missing_tiles().next() {
            let name = self.partial.grid.name(first);
            return Err(Error::Invalid(format!("{missing} tiles are not written, the first is {name}")));
        }
        self.log.finish(&self.partial.directory)?;
        self.partial.finish()
    }
}

fn check_storage(spec: &MatrixSpec<'_>) -> Result<()> {
    match spec.storage {
        Storage::Dense => Ok(()),
        Storage::Sparse => Err(Error::Invalid("a sparse matrix is written by SparseMatrixWriter".to_owned())),
    }
}

/// The record a tile has.
pub(super) fn record_of(grid: &TileGrid, tile: usize, crc: u32) -> TileRecord {
    let offset = grid.segments(tile).next().map_or(0, |segment| segment.start as u64);
    TileRecord { tile: tile as u64, offset, length: grid.cells_of(tile) as u64 * 4, crc }
}

/// The records that the data bears out, in file order, and which tiles they stand for.
fn sound_records(grid: &TileGrid, content: &LogContent, data: &[u8]) -> (Vec<TileRecord>, Vec<bool>) {
    let mut present = vec![false; grid.tiles()];
    let mut sound = Vec::with_capacity(content.records.len());
    for record in content.records.iter().flatten() {
        let Some(tile) = usize::try_from(record.tile).ok().filter(|&tile| tile < grid.tiles()) else {
            continue;
        };
        if !present[tile] && *record == record_of(grid, tile, tile_crc(grid, tile, data)) {
            present[tile] = true;
            sound.push(*record);
        }
    }
    (sound, present)
}
