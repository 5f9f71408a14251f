//! Matrices from and to npy files.

use std::path::Path;

use super::{ScoreMatrix, Storage};
use crate::artefact::{Existing, write_file_atomically};
use crate::npy::{NpyReader, NpyWriter};
use crate::{Error, IdTable, Result};

impl ScoreMatrix {
    /// Reads a dense matrix from an npy file, and how many of its scores `f32` had to round.
    ///
    /// Scores that are not finite are refused with their row and column.
    pub fn from_npy(path: &Path, row_ids: IdTable, col_ids: IdTable) -> Result<(Self, u64)> {
        let mut reader = NpyReader::open(path)?;
        let (rows, cols) = (reader.rows(), reader.cols());
        if (rows, cols) != (row_ids.len(), col_ids.len()) {
            return Err(Error::Mismatch {
                path: path.to_owned(),
                field: "shape".to_owned(),
                found: format!("{rows} x {cols}"),
                expected: format!("{} x {}", row_ids.len(), col_ids.len()),
                advice: "give the ids of the matrix's rows and columns".to_owned(),
            });
        }
        let mut scores = vec![0.0; rows * cols];
        for (number, row) in scores.chunks_exact_mut(cols.max(1)).enumerate() {
            reader.read_row(row)?;
            if let Some(col) = row.iter().position(|score| !score.is_finite()) {
                let what =
                    format!("score of row {number}, column {col} is {}; scores must be finite", row[col]);
                return Err(Error::corrupt(path, what));
            }
        }
        Ok((ScoreMatrix::dense(row_ids, col_ids, scores)?, reader.rounded()))
    }

    /// Writes a dense matrix as an npy file, row by row and atomically. A sparse one is refused: npy has no
    /// way to say that a cell has no score.
    ///
    /// ```
    /// use loxia_core::{IdTable, artefact::Existing, matrix::ScoreMatrix};
    /// let ids = || IdTable::try_from(&["a", "b"][..]).unwrap();
    /// let matrix = ScoreMatrix::dense(ids(), ids(), vec![1.0, 2.0, 3.0, 4.0]).unwrap();
    /// let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("scores.npy");
    /// matrix.export_npy(&path, Existing::Refuse).unwrap();
    /// let (again, rounded) = ScoreMatrix::from_npy(&path, ids(), ids()).unwrap();
    /// assert_eq!((again.get(1, 0).unwrap(), rounded), (Some(3.0), 0));
    /// ```
    pub fn export_npy(&self, path: &Path, existing: Existing) -> Result<()> {
        if self.storage() == Storage::Sparse {
            let what = format!("{}: a sparse matrix has no npy form; export a dense one", path.display());
            return Err(Error::Invalid(what));
        }
        write_file_atomically(path, existing, |file| {
            let shape = [self.rows() as u64, self.cols() as u64];
            let write = |error| Error::io(path, "write", error);
            let mut writer = NpyWriter::<f32, _>::new(file, &shape).map_err(write)?;
            for row in 0..self.rows() {
                writer.write_row(self.row(row)?.as_dense().expect("the matrix is dense")).map_err(write)?;
            }
            writer.finish().map(|_| ()).map_err(write)
        })
    }
}
