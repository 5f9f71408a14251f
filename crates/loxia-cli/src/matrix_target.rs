//! Where a command's matrix goes: a matrix directory, or an npy file made from one at the end.
//!
//! An npy file cannot be continued, so `OUT.npy` is filled as the matrix `OUT.npy.matrix` (unfinished:
//! `OUT.npy.matrix.partial`) and exported when that is complete. Every step can be killed and resumed.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use loxia::core::artefact::{ArtefactKind, Existing, write_file_atomically, write_id_list};
use loxia::core::matrix::{MatrixSpec, MatrixWriter, ScoreMatrix};

use crate::exit::usage;
use crate::flags::OutputFlags;

/// The output of `score` or `embed`.
pub(crate) struct MatrixTarget {
    shown: PathBuf,
    matrix: PathBuf,
    npy: bool,
    existing: Existing,
    resume: bool,
}

impl MatrixTarget {
    /// Decides on the form; an output that is in the way is refused before any work is done.
    pub(crate) fn new(output: &OutputFlags, resume: bool) -> Result<Self> {
        if output.is_stdout() {
            return usage("a matrix cannot go to stdout; give --output a directory or a name ending in .npy");
        }
        let shown = output.output.clone();
        let npy = shown.extension().is_some_and(|extension| extension == "npy");
        let matrix = if npy { beside(&shown, ".matrix") } else { shown.clone() };
        let target = MatrixTarget { shown, matrix, npy, existing: output.existing(), resume };
        if !resume {
            target.refuse_or_clear(output.overwrite)?;
        }
        Ok(target)
    }

    fn refuse_or_clear(&self, overwrite: bool) -> Result<()> {
        let exists = |path: &Path, resumable| {
            Err(loxia::core::Error::Exists { path: path.to_owned(), resumable }.into())
        };
        if self.shown.exists() && !overwrite {
            return exists(&self.shown, false);
        }
        // A complete matrix without its npy is what a crash during the export leaves.
        if self.npy && self.matrix.exists() {
            if !overwrite {
                return exists(&self.matrix, true);
            }
            remove(&self.matrix)?;
        }
        Ok(())
    }

    /// Whether there is nothing left to do.
    pub(crate) fn is_complete(&self) -> bool {
        self.resume && self.shown.exists()
    }

    /// The result's name.
    pub(crate) fn shown(&self) -> String {
        self.shown.display().to_string()
    }

    /// Begins or goes on; `None` if every tile is there already.
    pub(crate) fn writer(&self, spec: &MatrixSpec<'_>) -> Result<Option<MatrixWriter>> {
        if self.resume {
            return Ok(MatrixWriter::resume(&self.matrix, spec, self.existing)?);
        }
        Ok(Some(MatrixWriter::create(&self.matrix, spec, self.existing)?))
    }

    /// Turns the complete matrix into what was asked for; `list_rows` puts the row ids beside an npy file.
    pub(crate) fn deliver(&self, kind: ArtefactKind, list_rows: bool) -> Result<()> {
        if !self.npy {
            return Ok(());
        }
        let matrix = ScoreMatrix::open_kind(&self.matrix, kind)?;
        if list_rows {
            // A list left by a crash is of this very matrix.
            write_file_atomically(&beside(&self.shown, ".ids"), Existing::Overwrite, |file| {
                write_id_list(matrix.row_ids(), file).map_err(|error| file.error(error))
            })?;
        }
        matrix.export_npy(&self.shown, self.existing)?;
        remove(&self.matrix)
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn remove(directory: &Path) -> Result<()> {
    std::fs::remove_dir_all(directory).with_context(|| format!("{}: cannot remove", directory.display()))
}
