//! Matrices out of npy files, as `f32`.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use half::f16;

use super::{NpyDtype, NpyHeader};
use crate::artefact::io_error;
use crate::{Error, Result};

/// Largest extent of a matrix without numbers.
const LARGEST_EMPTY: usize = 1 << 24;

/// Reads a matrix row by row; a vector is a matrix of one row.
///
/// ```
/// use loxia_core::npy::{NpyReader, NpyWriter};
/// let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("a.npy");
/// let mut writer = NpyWriter::<f32, _>::new(std::fs::File::create(&path).unwrap(), &[2, 2]).unwrap();
/// writer.write_row(&[1.0, 2.0]).unwrap();
/// writer.write_row(&[3.0, 4.0]).unwrap();
/// writer.finish().unwrap();
///
/// let mut reader = NpyReader::open(&path).unwrap();
/// let mut row = vec![0.0; reader.cols()];
/// while reader.read_row(&mut row).unwrap() {}
/// assert_eq!(row, [3.0, 4.0]);
/// ```
#[derive(Debug)]
pub struct NpyReader {
    path: PathBuf,
    file: BufReader<File>,
    dtype: NpyDtype,
    rows: usize,
    cols: usize,
    next_row: usize,
    rounded: u64,
    raw: Vec<u8>,
}

impl NpyReader {
    /// Opens a file and checks its header and length.
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = BufReader::new(File::open(path).map_err(io_error(path, "open"))?);
        let mut start = Vec::new();
        let longest = NpyHeader::LARGEST as u64;
        file.by_ref().take(longest).read_to_end(&mut start).map_err(io_error(path, "read"))?;
        let (header, data) = NpyHeader::parse(&start).map_err(|what| Error::corrupt(path, what))?;
        let length = file.get_ref().metadata().map_err(io_error(path, "look up"))?.len();
        let (rows, cols) =
            matrix_shape(&header, length, data as u64).map_err(|what| Error::corrupt(path, what))?;
        file.seek(SeekFrom::Start(data as u64)).map_err(io_error(path, "read"))?;
        // Without rows the length of the file does not vouch for the columns.
        let raw = vec![0; if rows == 0 { 0 } else { cols * header.dtype.size() }];
        let path = path.to_owned();
        Ok(NpyReader { path, file, dtype: header.dtype, rows, cols, next_row: 0, rounded: 0, raw })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Type of the numbers in the file.
    pub fn dtype(&self) -> NpyDtype {
        self.dtype
    }

    /// How many of the finite numbers read so far are not exactly the number in the file: `f8` values that
    /// `f32` had to round.
    pub fn rounded(&self) -> u64 {
        self.rounded
    }

    /// Reads the next row, or returns `false` after the last. Not-a-number and infinities come as they are.
    ///
    /// # Panics
    /// If `row` does not have [`cols`](NpyReader::cols) places.
    pub fn read_row(&mut self, row: &mut [f32]) -> Result<bool> {
        assert_eq!(row.len(), self.cols, "one place for each column");
        if self.next_row == self.rows {
            return Ok(false);
        }
        let action = || format!("read row {} of {}", self.next_row, self.rows);
        self.file.read_exact(&mut self.raw).map_err(|error| Error::io(&self.path, action(), error))?;
        self.next_row += 1;
        match self.dtype {
            NpyDtype::F32 => convert(&self.raw, row, f32::from_le_bytes),
            NpyDtype::F16 => convert(&self.raw, row, |bytes| f16::from_le_bytes(bytes).to_f32()),
            NpyDtype::U16 => convert(&self.raw, row, |bytes| f32::from(u16::from_le_bytes(bytes))),
            NpyDtype::F64 => {
                let rounded = &mut self.rounded;
                convert(&self.raw, row, |bytes| {
                    let value = f64::from_le_bytes(bytes);
                    let single = value as f32;
                    *rounded += u64::from(value.is_finite() && f64::from(single) != value);
                    single
                });
            }
        }
        Ok(true)
    }
}

fn convert<const N: usize>(raw: &[u8], row: &mut [f32], mut number: impl FnMut([u8; N]) -> f32) {
    let (numbers, _) = raw.as_chunks::<N>();
    for (bytes, place) in numbers.iter().zip(row) {
        *place = number(*bytes);
    }
}

/// Rows and columns, if the header's data is what the file has after `data`.
fn matrix_shape(header: &NpyHeader, file_length: u64, data: u64) -> Result<(usize, usize), String> {
    let shape = &header.shape;
    let (rows, cols) = match shape[..] {
        [cols] => (1, cols),
        [rows, cols] => (rows, cols),
        _ => return Err(format!("{} extents {shape:?}; a matrix has two, a vector one", shape.len())),
    };
    let found = file_length.saturating_sub(data);
    match header.data_length() {
        Some(expected) if expected == found => {}
        Some(expected) => {
            return Err(format!("{found} bytes of numbers, but shape {shape:?} needs {expected}"));
        }
        None => return Err(format!("shape {shape:?} is beyond any file")),
    }
    if !header.is_row_major() {
        return Err("Fortran order is not read; save numpy.ascontiguousarray(array)".to_owned());
    }
    let too_large = |_| format!("shape {shape:?} is beyond this machine");
    let (rows, cols) = (usize::try_from(rows).map_err(too_large)?, usize::try_from(cols).map_err(too_large)?);
    // With no rows the length says nothing about the columns, which a reader allocates, nor with no columns
    // about the rows, which it counts off.
    if rows.min(cols) == 0 && rows.max(cols) > LARGEST_EMPTY {
        Err(format!(
            "shape {shape:?} is beyond an empty matrix; expected at most {LARGEST_EMPTY} rows or columns"
        ))
    } else {
        Ok((rows, cols))
    }
}

/// A whole file in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct NpyMatrix {
    /// Number of rows; 1 for a vector.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Row after row.
    pub values: Vec<f32>,
    /// Type of the numbers in the file.
    pub dtype: NpyDtype,
    /// How many values `f32` had to round.
    pub rounded: u64,
}

/// Reads a whole matrix, or a vector as one row.
pub fn read_npy_matrix(path: &Path) -> Result<NpyMatrix> {
    let mut reader = NpyReader::open(path)?;
    let (rows, cols) = (reader.rows(), reader.cols());
    // The file holds this many numbers: `open` has compared.
    let mut values = vec![0.0; rows * cols];
    if cols > 0 {
        for row in values.chunks_exact_mut(cols) {
            reader.read_row(row)?;
        }
    }
    Ok(NpyMatrix { rows, cols, values, dtype: reader.dtype(), rounded: reader.rounded() })
}
