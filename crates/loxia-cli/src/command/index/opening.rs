//! Opening an index: what is wrong with one is told from a path that is none.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::Result;
use loxia::core::artefact::MANIFEST_FILE;
use loxia::core::{Error as Core, NoProgress};
use loxia::search::{Error, Index};

use super::anchor_matrix::{anchors_path, are_of_a_build, unfinished};
use crate::context::Context;

const SCORE: &str = "remove the directory, or score it again with `index build --overwrite`";

/// Opens an index; a file that it lacks is damage, and of a build that is unfinished it is said how to go on.
pub(crate) fn open_index(path: &Path) -> Result<Index> {
    let error = match Index::open(path, &[]) {
        Ok(index) => return Ok(index),
        Err(Error::Core(error)) => lost_file(error, path, "build the index again"),
        Err(error) => return Err(error.into()),
    };
    let anchors = anchors_path(path);
    let begun = [unfinished(&anchors), anchors].into_iter().find(|path| path.is_dir());
    let Some(begun) = begun.filter(|_| is_not_there(&error)) else { return Err(error.into()) };
    let advice = if are_of_a_build(&begun) {
        "`loxia index build --resume`, with the other flags as they were, finishes it"
    } else {
        "where it was to be the --output of an addition, `loxia index add --resume`, with the other flags as they \
         were, finishes it; where it was lost, build it again with --overwrite"
    };
    let seen = format!("{} is not there, but {} is", path.display(), begun.display());
    Err(anyhow::Error::new(error).context(format!("{seen}: {advice}")))
}

/// What was read of anchor scores; a file that they lack is damage.
pub(super) fn or_lost<T>(read: Result<T, Core>, scores: &Path) -> Result<T, Core> {
    read.map_err(|error| match lost_file(error, scores, SCORE) {
        error if is_not_there(&error) => Core::corrupt(scores, format!("it holds no manifest; {SCORE}")),
        error => error,
    })
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
