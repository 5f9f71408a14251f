//! The matrix others read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::mapped::MappedMatrix;
use super::{MatrixSpec, MatrixWriter, RowView, SparseMatrixWriter, SparseRow, Storage};
use crate::artefact::{Existing, Manifest};
use crate::{Error, IdTable, Result};

/// Scores of queries (rows) against items (columns), with the ids of both; every score is finite.
///
/// ```
/// use loxia_core::{IdTable, matrix::ScoreMatrix};
/// let queries = IdTable::try_from(&["q1", "q2"][..]).unwrap();
/// let items = IdTable::try_from(&["d1", "d2", "d3"][..]).unwrap();
/// let matrix = ScoreMatrix::dense(queries, items, vec![0.1, 0.9, 0.5, 0.3, 0.2, 0.7]).unwrap();
/// assert_eq!(matrix.row(0).unwrap().top(2).items().collect::<Vec<_>>(), [1, 2]);
/// assert_eq!(matrix.get(1, 2).unwrap(), Some(0.7));
/// ```
#[derive(Debug)]
pub struct ScoreMatrix {
    row_ids: IdTable,
    col_ids: IdTable,
    cells: Cells,
}

#[derive(Debug)]
enum Cells {
    Dense(Vec<f32>),
    /// Row `r` has the entries `starts[r]..starts[r + 1]`.
    Sparse {
        starts: Vec<usize>,
        columns: Vec<u32>,
        scores: Vec<f32>,
    },
    Mapped(Box<MappedMatrix>),
}

impl ScoreMatrix {
    /// A dense matrix in memory; `scores` holds row after row.
    pub fn dense(row_ids: IdTable, col_ids: IdTable, scores: Vec<f32>) -> Result<Self> {
        let cols = col_ids.len();
        if row_ids.len().checked_mul(cols) != Some(scores.len()) {
            let (rows, count) = (row_ids.len(), scores.len());
            return Err(Error::Invalid(format!("{rows} x {cols} cells, but {count} scores")));
        }
        if let Some(place) = scores.iter().position(|score| !score.is_finite()) {
            return Err(Error::NotFinite { row: place / cols, col: place % cols, value: scores[place] });
        }
        Ok(ScoreMatrix { row_ids, col_ids, cells: Cells::Dense(scores) })
    }

    /// A sparse matrix in memory from the (column, score) entries of each row, in any order.
    ///
    /// ```
    /// use loxia_core::{IdTable, matrix::ScoreMatrix};
    /// let queries = IdTable::try_from(&["q1"][..]).unwrap();
    /// let items = IdTable::try_from(&["d1", "d2", "d3"][..]).unwrap();
    /// let matrix = ScoreMatrix::sparse(queries, items, [vec![(2, 0.5), (0, 0.25)]]).unwrap();
    /// assert_eq!((matrix.get(0, 2).unwrap(), matrix.get(0, 1).unwrap()), (Some(0.5), None));
    /// ```
    pub fn sparse(
        row_ids: IdTable,
        col_ids: IdTable,
        rows: impl IntoIterator<Item = Vec<(u32, f32)>>,
    ) -> Result<Self> {
        let (mut starts, mut columns, mut scores) = (vec![0], Vec::new(), Vec::new());
        for (row, mut entries) in rows.into_iter().enumerate() {
            entries.sort_by_key(|&(col, _)| col);
            if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(Error::Invalid(format!("row {row} has column {} twice", pair[0].0)));
            }
            if let Some(&(col, _)) = entries.last().filter(|&&(col, _)| col as usize >= col_ids.len()) {
                return Err(Error::Invalid(format!("row {row} has column {col} of {}", col_ids.len())));
            }
            if let Some(&(col, value)) = entries.iter().find(|(_, score)| !score.is_finite()) {
                return Err(Error::NotFinite { row, col: col as usize, value });
            }
            columns.extend(entries.iter().map(|&(col, _)| col));
            scores.extend(entries.iter().map(|&(_, score)| score));
            starts.push(columns.len());
        }
        if starts.len() - 1 != row_ids.len() {
            return Err(Error::Invalid(format!("{} row ids, but {} rows", row_ids.len(), starts.len() - 1)));
        }
        Ok(ScoreMatrix { row_ids, col_ids, cells: Cells::Sparse { starts, columns, scores } })
    }

    /// Maps a finished directory into memory, after checking its manifest, ids, sizes and log.
    ///
    /// Scores are looked at when they are asked for; [`verify`](ScoreMatrix::verify) looks at all.
    pub fn open(directory: &Path) -> Result<Self> {
        let (mapped, row_ids, col_ids) = MappedMatrix::open(directory)?;
        Ok(ScoreMatrix { row_ids, col_ids, cells: Cells::Mapped(Box::new(mapped)) })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.row_ids.len()
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.col_ids.len()
    }

    /// Ids of the rows.
    pub fn row_ids(&self) -> &IdTable {
        &self.row_ids
    }

    /// Ids of the columns.
    pub fn col_ids(&self) -> &IdTable {
        &self.col_ids
    }

    /// Dense or sparse.
    pub fn storage(&self) -> Storage {
        match &self.cells {
            Cells::Dense(_) => Storage::Dense,
            Cells::Sparse { .. } => Storage::Sparse,
            Cells::Mapped(mapped) => mapped.storage,
        }
    }

    /// The manifest of a matrix opened from a directory.
    pub fn manifest(&self) -> Option<&Manifest> {
        match &self.cells {
            Cells::Mapped(mapped) => Some(&mapped.manifest),
            _ => None,
        }
    }

    /// A row. It fails only for a mapped matrix whose file is damaged: a row with a score that is not
    /// finite is never handed out. A mapped row is looked through once; later calls cost nothing.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> Result<RowView<'_>> {
        assert!(row < self.rows(), "row {row} of {}", self.rows());
        match &self.cells {
            Cells::Dense(scores) => Ok(RowView::Dense(&scores[row * self.cols()..][..self.cols()])),
            Cells::Sparse { starts, columns, scores } => {
                let range = starts[row]..starts[row + 1];
                Ok(RowView::Sparse(SparseRow { columns: &columns[range.clone()], scores: &scores[range] }))
            }
            Cells::Mapped(mapped) => mapped.row(row),
        }
    }

    /// The score of a cell, if it has one; fails as [`row`](ScoreMatrix::row) does.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn get(&self, row: usize, col: u32) -> Result<Option<f32>> {
        Ok(self.row(row)?.get(col))
    }

    /// Reads everything: compares each tile with its checksum and looks at each score. The first tile or
    /// cell at fault is named. A matrix in memory was checked when it was made.
    pub fn verify(&self) -> Result<()> {
        match &self.cells {
            Cells::Mapped(mapped) => mapped.verify(),
            _ => Ok(()),
        }
    }

    /// Writes the matrix to a directory, noting what it was made from.
    ///
    /// ```
    /// use loxia_core::{IdTable, artefact::Existing, matrix::ScoreMatrix};
    /// let ids = || IdTable::try_from(&["a", "b"][..]).unwrap();
    /// let matrix = ScoreMatrix::dense(ids(), ids(), vec![1.0, 2.0, 3.0, 4.0]).unwrap();
    /// let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("scores");
    /// matrix.save(&path, Existing::Refuse, &Default::default(), "an example").unwrap();
    /// assert_eq!(ScoreMatrix::open(&path).unwrap().get(1, 0).unwrap(), Some(3.0));
    /// ```
    pub fn save(
        &self,
        path: &Path,
        existing: Existing,
        digests: &BTreeMap<String, String>,
        command: &str,
    ) -> Result<PathBuf> {
        let spec = match self.storage() {
            Storage::Dense => MatrixSpec::dense(&self.row_ids, &self.col_ids),
            Storage::Sparse => MatrixSpec::sparse(&self.row_ids, &self.col_ids),
        };
        let spec = MatrixSpec { digests: digests.clone(), ..spec.command(command) };
        match self.storage() {
            Storage::Dense => self.save_dense(MatrixWriter::create(path, &spec, existing)?),
            Storage::Sparse => self.save_sparse(SparseMatrixWriter::create(path, &spec, existing)?),
        }
    }

    fn save_dense(&self, mut writer: MatrixWriter) -> Result<PathBuf> {
        let grid = *writer.grid();
        let mut cells = Vec::new();
        for tile in 0..grid.tiles() {
            cells.clear();
            for row in grid.rows_of(tile) {
                let row = self.row(row)?.as_dense().expect("the matrix is dense");
                cells.extend_from_slice(&row[grid.cols_of(tile)]);
            }
            writer.write_tile(tile, &cells)?;
        }
        writer.finish()
    }

    fn save_sparse(&self, mut writer: SparseMatrixWriter) -> Result<PathBuf> {
        while let Some(tile) = writer.next_tile() {
            let rows = writer.grid().rows_of(tile).map(|row| {
                self.row(row).map(|view| match view {
                    RowView::Sparse(row) => row,
                    RowView::Dense(_) => unreachable!("the matrix is sparse"),
                })
            });
            let rows: Vec<SparseRow<'_>> = rows.collect::<Result<_>>()?;
            writer.write_rows(&rows)?;
        }
        writer.finish()
    }
}
