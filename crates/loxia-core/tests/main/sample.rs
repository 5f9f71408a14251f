//! Small matrices, and directories compared byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use loxia_core::artefact::Existing;
use loxia_core::matrix::{MatrixSpec, MatrixWriter, SparseMatrixWriter, SparseRow, TileGrid, TileShape};
use loxia_core::{IdTable, Seed};

/// A directory for tests that sync thousands of times: in memory where the system has such a place.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub(crate) fn ids(prefix: &str, count: usize) -> IdTable {
    let mut ids = IdTable::new();
    for number in 0..count {
        ids.push(&format!("{prefix}{number}")).unwrap();
    }
    ids
}

/// A score for each cell, the same on every call.
pub(crate) fn score(row: usize, col: usize) -> f32 {
    (row as f32 * 37.0 + col as f32 * 11.0) % 29.0 - 14.0 + (row as f32) / 64.0
}

pub(crate) fn tile_scores(grid: &TileGrid, tile: usize) -> Vec<f32> {
    grid.rows_of(tile).flat_map(|row| grid.cols_of(tile).map(move |col| score(row, col))).collect()
}

/// Every file of a directory with its bytes.
pub(crate) fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for (name, bytes) in files(from) {
        fs::write(to.join(name), bytes).unwrap();
    }
}

pub(crate) fn partial(path: &Path) -> PathBuf {
    path.with_file_name(format!("{}.partial", path.file_name().unwrap().to_str().unwrap()))
}

/// Rows, columns and tiles of a matrix that tests fill again and again.
pub(crate) struct Sample {
    pub(crate) rows: IdTable,
    pub(crate) cols: IdTable,
    pub(crate) tile: TileShape,
}

impl Sample {
    /// Six tiles, those at the edges smaller.
    pub(crate) fn small() -> Self {
        Sample { rows: ids("q", 5), cols: ids("d", 7), tile: TileShape { rows: 2, cols: 4 } }
    }

    pub(crate) fn dense(&self) -> MatrixSpec<'_> {
        MatrixSpec::dense(&self.rows, &self.cols).tile(self.tile).digest("model", "12ab").command("test")
    }

    pub(crate) fn sparse(&self) -> MatrixSpec<'_> {
        MatrixSpec::sparse(&self.rows, &self.cols).tile(self.tile).digest("model", "12ab")
    }

    /// Goes on with the dense matrix and writes at most `most` tiles.
    pub(crate) fn fill(&self, path: &Path, most: usize) -> MatrixWriter {
        let mut writer = MatrixWriter::resume(path, &self.dense(), Existing::Refuse).unwrap().unwrap();
        let missing: Vec<usize> = writer.missing_tiles().take(most).collect();
        for tile in missing {
            let scores = tile_scores(writer.grid(), tile);
            writer.write_tile(tile, &scores).unwrap();
        }
        writer
    }

    /// Goes on with the sparse matrix and writes at most `most` tiles.
    pub(crate) fn fill_sparse(&self, path: &Path, most: usize) -> SparseMatrixWriter {
        let mut writer = SparseMatrixWriter::resume(path, &self.sparse(), Existing::Refuse).unwrap().unwrap();
        for _ in 0..most {
            let Some(tile) = writer.next_tile() else { break };
            let rows: Vec<(Vec<u32>, Vec<f32>)> =
                writer.grid().rows_of(tile).map(|row| sparse_row(row, self.cols.len())).collect();
            let views: Vec<SparseRow<'_>> =
                rows.iter().map(|(columns, scores)| SparseRow { columns, scores }).collect();
            writer.write_rows(&views).unwrap();
        }
        writer
    }
}

/// Some columns of a row, none of some rows.
pub(crate) fn sparse_row(row: usize, cols: usize) -> (Vec<u32>, Vec<f32>) {
    let mut stream = Seed(row as u64).stream("columns");
    let columns = stream.sample(cols as u64, row % 4);
    columns.into_iter().map(|col| (col as u32, score(row, col as usize))).unzip()
}
