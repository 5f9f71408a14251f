//! Matrices as inputs: a matrix directory of ours, or an npy file.

use std::path::Path;

use anyhow::{Context as _, Result};
use loxia::core::artefact::ArtefactKind;
use loxia::core::matrix::{EMBEDDINGS_KIND, MATRIX_KIND, ScoreMatrix};
use loxia::core::npy::read_npy_matrix;
use loxia::search::linalg::Dense;

use crate::context::Context;
use crate::exit::usage;
use crate::report::grouped;

/// Scores of queries (rows) against items (columns).
pub(crate) fn read_scores(path: &Path, context: &Context) -> Result<Dense> {
    let scores = read(path, MATRIX_KIND, context)?;
    scores.check_finite("score matrix").with_context(|| path.display().to_string())?;
    Ok(scores)
}

/// The first `rows` vectors of a file; more are left out, and it is said, fewer are refused.
pub(crate) fn read_vectors(path: &Path, rows: usize, of: &str, context: &Context) -> Result<Dense> {
    let vectors = read(path, EMBEDDINGS_KIND, context)?;
    if vectors.rows() < rows {
        return usage(format!(
            "{}: {} vectors, but there are {} {of}; row i must be the vector of the i-th of them",
            path.display(),
            grouped(vectors.rows() as u64),
            grouped(rows as u64)
        ));
    }
    if vectors.rows() > rows {
        let (found, extra) = (grouped(vectors.rows() as u64), grouped((vectors.rows() - rows) as u64));
        context.say(format!("{}: {found} vectors, the last {extra} are not used", path.display()));
    }
    Ok(vectors.select_rows(&(0..rows).collect::<Vec<_>>()))
}

fn read(path: &Path, kind: ArtefactKind, context: &Context) -> Result<Dense> {
    if path.is_dir() {
        return from_directory(path, kind);
    }
    let matrix = read_npy_matrix(path)?;
    if matrix.rounded > 0 {
        let (path, rounded) = (path.display(), grouped(matrix.rounded));
        context.say(format!("{path}: {rounded} numbers in double precision were rounded to single"));
    }
    Ok(Dense::new(matrix.rows, matrix.cols, matrix.values)?)
}

fn from_directory(path: &Path, kind: ArtefactKind) -> Result<Dense> {
    let matrix = ScoreMatrix::open_kind(path, kind)?;
    // All of it is wanted in memory, so that looking for damage costs little.
    matrix.verify()?;
    // The file holds as many numbers: `open_kind` has compared.
    let mut values = Vec::with_capacity(matrix.rows() * matrix.cols());
    for row in 0..matrix.rows() {
        match matrix.row(row)?.as_dense() {
            Some(row) => values.extend_from_slice(row),
            None => return usage(format!("{}: sparse; every pair must have a score", path.display())),
        }
    }
    Ok(Dense::new(matrix.rows(), matrix.cols(), values)?)
}
