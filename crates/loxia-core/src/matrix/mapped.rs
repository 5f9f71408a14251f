//! Matrices used where they lie: a finished directory, mapped into memory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{Mmap, MmapOptions};

use super::dense_writer::record_of;
use super::partial::data_name;
use super::sparse_block::{BlockRows, fault};
use super::sparse_writer::block_bytes;
use super::spec::{id_digests, layout_of};
use super::tile_log::{TileRecord, read_log};
use super::{COL_IDS_FILE, LOG_FILE, ROW_IDS_FILE, RowView, SparseRow, Storage, TileGrid};
use crate::artefact::{ArtefactKind, MANIFEST_FILE, Manifest, io_error, read_counted_id_list};
use crate::{Error, IdTable, Result};

/// Maps the first `length` bytes of a file that has at least so many; nothing for an empty file, which
/// cannot be mapped.
pub(super) fn map_file(file: &File, path: &Path, length: usize) -> Result<Option<Mmap>> {
    if length == 0 {
        return Ok(None);
    }
    // SAFETY: the map is only read. Its file is ours: an unfinished one is locked against other writers, a
    // finished one is never written again but replaced as a whole. A foreign process that cuts the file
    // short ends this one with SIGBUS, as with every program that maps files.
    let map = unsafe { MmapOptions::new().len(length).map(file) };
    map.map(Some).map_err(io_error(path, "map into memory"))
}

/// CRC-32 of a dense tile's cells, row after row.
pub(super) fn tile_crc(grid: &TileGrid, tile: usize, data: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    grid.segments(tile).for_each(|segment| hasher.update(&data[segment]));
    hasher.finalize()
}

/// Where a sparse row lies, in words of four bytes.
#[derive(Debug, Clone, Copy)]
struct RowPlace {
    columns: usize,
    scores: usize,
    count: u32,
}

#[derive(Debug)]
pub(super) struct MappedMatrix {
    data_path: PathBuf,
    pub(super) manifest: Manifest,
    pub(super) storage: Storage,
    pub(super) grid: TileGrid,
    records: Vec<TileRecord>,
    data: Option<Mmap>,
    /// Of a sparse matrix, where each row lies.
    places: Vec<RowPlace>,
    /// A bit for each row that was looked through.
    checked: Vec<AtomicU64>,
}

impl MappedMatrix {
    /// Opens a directory and returns it with its ids. Sizes are compared before anything is allocated.
    pub(super) fn open(directory: &Path, kind: ArtefactKind) -> Result<(Self, IdTable, IdTable)> {
        let manifest = Manifest::read(directory, kind)?;
        let manifest_path = directory.join(MANIFEST_FILE);
        let (storage, grid) = layout_of(&manifest).map_err(|what| Error::corrupt(&manifest_path, what))?;
        let [rows_digest, cols_digest] = id_digests(&manifest);
        let row_ids = open_ids(&directory.join(ROW_IDS_FILE), grid.rows(), rows_digest)?;
        let col_ids = open_ids(&directory.join(COL_IDS_FILE), grid.cols(), cols_digest)?;
        let records = open_log(directory, &grid)?;
        let data_path = directory.join(data_name(storage));
        let file = File::open(&data_path).map_err(io_error(&data_path, "open"))?;
        let found = file.metadata().map_err(io_error(&data_path, "look up"))?.len();
        let expected = match storage {
            Storage::Dense => grid.rows() as u64 * grid.cols() as u64 * 4,
            Storage::Sparse => records.iter().fold(0, |end: u64, record| end.saturating_add(record.length)),
        };
        if found != expected {
            return Err(Error::corrupt(
                data_path,
                format!("{found} bytes, expected {expected}; score it again"),
            ));
        }
        let length = usize::try_from(found).map_err(|error| Error::corrupt(&data_path, error.to_string()))?;
        let data = map_file(&file, &data_path, length)?;
        let checked = (0..grid.rows().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let mut matrix =
            MappedMatrix { data_path, manifest, storage, grid, records, data, places: Vec::new(), checked };
        if storage == Storage::Sparse {
            matrix.places = matrix.find_rows()?;
        }
        Ok((matrix, row_ids, col_ids))
    }

    fn bytes(&self) -> &[u8] {
        self.data.as_deref().unwrap_or_default()
    }

    fn words<T: bytemuck::Pod>(&self) -> &[T] {
        // Maps begin at a page; whole words were made sure of when the file was opened.
        self.data.as_deref().map_or(&[], bytemuck::cast_slice)
    }

    fn find_rows(&self) -> Result<Vec<RowPlace>> {
        if !self.bytes().len().is_multiple_of(4) {
            return Err(Error::corrupt(&self.data_path, "its length is not a multiple of 4; score it again"));
        }
        let mut places = Vec::new();
        let mut end = 0;
        for (tile, record) in self.records.iter().enumerate() {
            let corrupt = |what: &str| self.corrupt(tile, what);
            if record.offset != end || !record.offset.is_multiple_of(4) {
                return Err(corrupt(&format!("its record says byte {}, expected {end}", record.offset)));
            }
            end += record.length;
            let bytes =
                block_bytes(record, self.bytes()).ok_or_else(|| corrupt("it lies beyond the file"))?;
            let words =
                bytemuck::try_cast_slice(bytes).map_err(|_| corrupt("its length is not a multiple of 4"))?;
            let rows =
                BlockRows::parse(words, self.grid.rows_of(tile).len()).map_err(|what| corrupt(&what))?;
            let start = record.offset as usize / 4;
            places.extend(rows.places().map(|(columns, scores, count)| RowPlace {
                columns: start + columns,
                scores: start + scores,
                count,
            }));
        }
        // A matrix without columns has no tiles, but rows.
        let empty = RowPlace { columns: 0, scores: 0, count: 0 };
        places.resize(self.grid.rows(), empty);
        Ok(places)
    }

    /// A row, looked through the first time.
    pub(super) fn row(&self, row: usize) -> Result<RowView<'_>> {
        let view = self.unchecked_row(row);
        let (word, bit) = (&self.checked[row / 64], 1 << (row % 64));
        // Nothing else is published with the bit, and looking twice does no harm.
        if word.load(Ordering::Relaxed) & bit == 0 {
            self.check_row(row, &view)?;
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Ok(view)
    }

    fn unchecked_row(&self, row: usize) -> RowView<'_> {
        match self.storage {
            Storage::Dense => RowView::Dense(&self.words()[row * self.grid.cols()..][..self.grid.cols()]),
            Storage::Sparse => {
                let RowPlace { columns, scores, count } = self.places[row];
                RowView::Sparse(SparseRow {
                    columns: &self.words()[columns..][..count as usize],
                    scores: &self.words()[scores..][..count as usize],
                })
            }
        }
    }

    fn check_row(&self, row: usize, view: &RowView<'_>) -> Result<()> {
        if let RowView::Sparse(sparse) = view
            && let Some(what) = fault(sparse, self.grid.cols())
        {
            return Err(Error::corrupt(&self.data_path, format!("row {row}: {what}; score it again")));
        }
        match view.iter().find(|(_, score)| !score.is_finite()) {
            None => Ok(()),
            Some((col, score)) => {
                let what = format!("score of row {row}, column {col} is {score}; score the matrix again");
                Err(Error::corrupt(&self.data_path, what))
            }
        }
    }

    /// Compares every tile with its checksum and looks through every row.
    pub(super) fn verify(&self) -> Result<()> {
        for (tile, record) in self.records.iter().enumerate() {
            if self.storage == Storage::Dense && *record != record_of(&self.grid, tile, record.crc) {
                return Err(self.corrupt(tile, "its record speaks of other bytes"));
            }
            let found = match self.storage {
                Storage::Dense => tile_crc(&self.grid, tile, self.bytes()),
                // Opening has made sure that the bytes are there.
                Storage::Sparse => crc32fast::hash(block_bytes(record, self.bytes()).unwrap_or_default()),
            };
            if found != record.crc {
                let expected = record.crc;
                return Err(
                    self.corrupt(tile, &format!("CRC-32 {found:08x}, its record says {expected:08x}"))
                );
            }
        }
        (0..self.grid.rows()).try_for_each(|row| self.check_row(row, &self.unchecked_row(row)))
    }

    fn corrupt(&self, tile: usize, what: &str) -> Error {
        Error::corrupt(&self.data_path, format!("{}: {what}; score it again", self.grid.name(tile)))
    }
}

fn open_ids(path: &Path, expected: usize, digest: &str) -> Result<IdTable> {
    let (ids, found) = read_counted_id_list(path, expected)?;
    if found != digest {
        let what = format!("SHA-256 {found}, the manifest says {digest}; score the matrix again");
        return Err(Error::corrupt(path, what));
    }
    Ok(ids)
}

/// The records of a finished matrix: one for each tile, in order.
fn open_log(directory: &Path, grid: &TileGrid) -> Result<Vec<TileRecord>> {
    let path = directory.join(LOG_FILE);
    let content = read_log(directory, grid.tiles())?;
    if content.records.len() != grid.tiles() || content.excess != 0 {
        let bytes = content.records.len() as u64 * TileRecord::SIZE as u64 + content.excess;
        let (tiles, needed) = (grid.tiles(), grid.tiles() * TileRecord::SIZE);
        let what = format!("{bytes} bytes, but {tiles} tiles need {needed}; resume it or score it again");
        return Err(Error::corrupt(path, what));
    }
    let sound = |(tile, record): (usize, Option<TileRecord>)| {
        record.filter(|record| record.tile == tile as u64).ok_or_else(|| {
            Error::corrupt(&path, format!("the record of {} is damaged; score it again", grid.name(tile)))
        })
    };
    content.records.into_iter().enumerate().map(sound).collect()
}
