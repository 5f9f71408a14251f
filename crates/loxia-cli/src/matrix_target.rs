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
    /// Where the row ids go, for an npy file that needs them.
    id_list: Option<PathBuf>,
    npy: bool,
    resume: bool,
    /// Work of an earlier run is there to go on with.
    begun: bool,
    existing: Existing,
}

impl MatrixTarget {
    /// Decides on the form; an output that is in the way is refused before any work is done. `list_rows` puts
    /// the row ids beside an npy file.
    pub(crate) fn new(output: &OutputFlags, resume: bool, list_rows: bool) -> Result<Self> {
        if output.is_stdout() {
            return usage("a matrix cannot go to stdout; give --output a directory or a name ending in .npy");
        }
        if resume && output.overwrite {
            return usage("--resume goes on and --overwrite begins again; give one of them");
        }
        let shown = output.output.clone();
        let npy = shown.extension().is_some_and(|extension| extension == "npy");
        let matrix = if npy { beside(&shown, ".matrix") } else { shown.clone() };
        let id_list = (npy && list_rows).then(|| beside(&shown, ".ids"));
        let begun = resume && (beside(&matrix, ".partial").exists() || npy && matrix.exists());
        // What is begun under --overwrite may be finished under --resume.
        let existing = if begun { Existing::Overwrite } else { output.existing() };
        let target = MatrixTarget { shown, matrix, id_list, npy, resume, begun, existing };
        if !resume {
            target.refuse_or_clear(output.overwrite)?;
        }
        Ok(target)
    }

    fn refuse_or_clear(&self, overwrite: bool) -> Result<()> {
        let exists = |path: &Path, resumable| {
            Err(loxia::core::Error::Exists { path: path.to_owned(), resumable }.into())
        };
        // A complete matrix without its npy is what a crash during the export leaves.
        let left_over = self.npy && self.matrix.exists();
        if !overwrite {
            if left_over {
                return exists(&self.matrix, true);
            }
            if let Some(path) =
                [Some(&self.shown), self.id_list.as_ref()].into_iter().flatten().find(|p| p.exists())
            {
                return exists(path, false);
            }
        } else if left_over {
            remove(&self.matrix)?;
        }
        Ok(())
    }

    /// Whether there is a finished npy file and nothing to go on with. A finished directory is compared with
    /// the work asked for by [`MatrixTarget::writer`]; an npy file says nothing about its making.
    pub(crate) fn is_complete(&self) -> bool {
        self.resume && self.npy && !self.begun && self.shown.exists()
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

    /// Turns the complete matrix into what was asked for.
    pub(crate) fn deliver(&self, kind: ArtefactKind) -> Result<()> {
        if !self.npy {
            return Ok(());
        }
        let matrix = ScoreMatrix::open_kind(&self.matrix, kind)?;
        if let Some(path) = &self.id_list {
            write_file_atomically(path, self.existing, |file| {
                write_id_list(matrix.row_ids(), file).map_err(|error| file.error(error))
            })?;
        }
        matrix.export_npy(&self.shown, self.existing)?;
        remove(&self.matrix)
    }
}

/// The command line, for the manifest.
pub(crate) fn command_line() -> String {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// A name with a suffix, in the same directory.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn remove(directory: &Path) -> Result<()> {
    std::fs::remove_dir_all(directory).with_context(|| format!("{}: cannot remove", directory.display()))
}
