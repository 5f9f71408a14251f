//! Scores of queries (rows) against items (columns), in memory and on disk.
//!
//! - [`ScoreMatrix`] is what others read: dense or sparse rows, with their ids, in memory or mapped from a
//!   finished directory. [`RowView`] is one query's row.
//! - [`MatrixWriter`] and [`SparseMatrixWriter`] fill a directory tile by tile. Each tile is durable, and
//!   recorded with its checksum, before the next is begun: after `kill -9` at any moment at most the tile
//!   in flight is lost, and the finished directory is the same to the bit as one never interrupted.
//! - [`ScoreMatrix::from_npy`] and [`ScoreMatrix::export_npy`] exchange matrices with NumPy.
//!
//! **No silent NaN.** Every way in refuses a score that is not finite: the constructors, the writers and the
//! import. A mapped file may have changed since, so [`ScoreMatrix::row`] looks through a mapped row the
//! first time it is asked for and fails rather than hand out a NaN; [`ScoreMatrix::verify`] looks through
//! everything and compares checksums as well.
//!
//! The format is described byte by byte in `FORMATS.md`.

#[cfg(target_endian = "big")]
compile_error!(
    "score matrices are little-endian files that are used in place: big-endian machines are not supported"
);

mod dense_writer;
mod exchange;
mod grid;
mod mapped;
mod partial;
mod row;
mod score_matrix;
mod sparse_block;
mod sparse_writer;
mod spec;
mod tile_log;

pub use dense_writer::MatrixWriter;
pub use grid::{TileGrid, TileShape};
pub use row::{RowView, SparseRow};
pub use score_matrix::ScoreMatrix;
pub use sparse_writer::SparseMatrixWriter;
pub use spec::{MATRIX_KIND, MatrixSpec, Storage};

const ROW_IDS_FILE: &str = "rows.ids";
const COL_IDS_FILE: &str = "cols.ids";
const DENSE_FILE: &str = "scores.f32";
const SPARSE_FILE: &str = "rows.csr";
const LOG_FILE: &str = "tiles.log";
