//! `loxia eval`: runs against judgements, runs joined into one, and search against exact search.

mod comparison;
mod fuse;
mod knn;
mod matrix;
mod measure_runs;
mod output;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Subcommand;
use loxia::core::{Qrels, Run};
use loxia::data::ReadOptions;
use loxia::eval::Error as EvalError;

use crate::context::Context;
use crate::exit::Outcome;
use crate::report::grouped;

/// Measure runs against judgements, join runs, and compare search methods.
#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    Run(measure_runs::RunFlags),
    Fuse(fuse::FuseFlags),
    Knn(Box<knn::KnnFlags>),
    Matrix(matrix::MatrixFlags),
}

/// Runs a parsed `eval` command.
pub(crate) fn run(command: EvalCommand, context: &Context) -> Result<Outcome> {
    match command {
        EvalCommand::Run(flags) => measure_runs::run(flags, context),
        EvalCommand::Fuse(flags) => fuse::run(flags, context),
        EvalCommand::Knn(flags) => knn::run(*flags, context),
        EvalCommand::Matrix(flags) => matrix::run(flags, context),
    }
}

/// A run with the name it goes by in tables.
#[derive(Debug)]
struct NamedRun {
    name: String,
    path: PathBuf,
    run: Run,
}

/// Reads runs; each is called after its file, or by the whole path where two files share a name.
fn read_runs(paths: &[PathBuf]) -> Result<Vec<NamedRun>> {
    let stdin = paths.iter().filter(|path| path.as_os_str() == "-").count();
    if stdin > 1 {
        return crate::exit::usage("--run - reads standard input, which can be read only once");
    }
    paths.iter().map(|path| read_one_run(path, name_among(path, paths))).collect()
}

fn read_one_run(path: &Path, name: String) -> Result<NamedRun> {
    let file = loxia::data::read_run(path, &ReadOptions::default())?;
    if let Some((query, item)) = file.duplicates.first.first() {
        // A reader may keep the first of two lines; a measure must not depend on which.
        return Err(EvalError::DuplicateItem { run: name.clone(), query: query.clone(), item: item.clone() })
            .with_context(|| path.display().to_string());
    }
    Ok(NamedRun { name, path: path.to_owned(), run: file.run })
}

fn name_among(path: &Path, paths: &[PathBuf]) -> String {
    match path.file_name() {
        Some(name) if paths.iter().filter(|other| other.file_name() == Some(name)).count() == 1 => {
            name.to_string_lossy().into_owned()
        }
        _ => path.display().to_string(),
    }
}

/// Reads judgements; lines that repeat one are said.
fn read_qrels(path: &Path, context: &Context) -> Result<Qrels> {
    let file = loxia::data::read_qrels(path, &ReadOptions::default())?;
    if file.repeated > 0 {
        let (path, repeated) = (path.display(), grouped(file.repeated));
        context
            .say(format!("{path}: {repeated} lines repeat a judgement with the same level (counted once)"));
    }
    Ok(file.qrels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_called_after_their_files_unless_two_share_a_name() {
        let paths = ["a/x.run", "b/x.run", "b/y.run", "-"].map(PathBuf::from);
        let names: Vec<String> = paths.iter().map(|path| name_among(path, &paths)).collect();
        assert_eq!(names, ["a/x.run", "b/x.run", "y.run", "-"]);
    }
}
