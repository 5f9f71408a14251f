//! Opening an index: what is wrong with one is told from a path that is none.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::Result;
use loxia::core::artefact::MANIFEST_FILE;
use loxia::core::matrix::ScoreMatrix;
use loxia::core::{Error as Core, NoProgress};
use loxia::search::{Error, Index};

use super::scoring::{anchors_path, are_of_a_build};
use crate::context::Context;
use crate::matrix_target::beside;

const SCORE: &str = "remove the directory, or score it again with `index build --overwrite`";

/// Opens an index; a file that it lacks is damage, and of a build that is unfinished it is said how to go on.
pub(crate) fn open_index(path: &Path) -> Result<Index> {
    let error = match Index::open(path, &[]) {
        Ok(index) => return Ok(index),
        Err(Error::Core(error)) => lost_file(error, path, "build the index again"),
        Err(error) => return Err(error.into()),
    };
    let anchors = anchors_path(path);
    let begun = [beside(&anchors, ".partial"), anchors].into_iter().find(|path| path.is_dir());
    match begun.filter(|_| is_not_there(&error)) {
        None => Err(error.into()),
        Some(begun) => {
            let verb = if are_of_a_build(&begun) { "build" } else { "add" };
            Err(anyhow::Error::new(error).context(format!(
                "{} is not there yet, but {} is: `loxia index {verb} --resume`, with the other flags as they were, \
                 finishes it",
                path.display(),
                begun.display()
            )))
        }
    }
}

/// Compares the anchor scores beside an index with their checksums; whether there are any.
pub(super) fn check_kept_scores(index: &Path) -> Result<bool> {
    let path = anchors_path(index);
    if !path.is_dir() {
        return Ok(false);
    }
    let checked = ScoreMatrix::open(&path).and_then(|scores| scores.verify());
    checked.map_err(|error| match lost_file(error, &path, SCORE) {
        error if is_not_there(&error) => Core::corrupt(&path, format!("it holds no manifest; {SCORE}")),
        error => error,
    })?;
    Ok(true)
}

/// The error of a search, or the damage that it came from: stored numbers are not looked at until then.
pub(crate) fn or_damage(error: Error, path: &Path, context: &Context) -> anyhow::Error {
    if !matches!(error, Error::NotFinite { .. }) {
        return error.into();
    }
    let checked = Index::open(path, &[]).and_then(|index| index.check(&NoProgress, &context.cancel));
    checked.err().unwrap_or(error).into()
}

/// A file that an artefact with a manifest lacks.
fn lost_file(error: Core, artefact: &Path, advice: &str) -> Core {
    match error {
        Core::Io { path, source, .. }
            if source.kind() == ErrorKind::NotFound && path != artefact.join(MANIFEST_FILE) =>
        {
            Core::corrupt(path, format!("it is missing; {advice}"))
        }
        error => error,
    }
}

fn is_not_there(error: &Core) -> bool {
    matches!(error, Core::Io { source, .. } if source.kind() == ErrorKind::NotFound)
}
