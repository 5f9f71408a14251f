//! `loxia index`: what a search learns before any query, and keeps.

mod add;
mod anchor_choice;
mod anchor_matrix;
mod build;
mod forecast;
mod inspect;
pub(super) mod items;
mod opening;
mod scored_rows;
mod scoring;
mod stand_in;
mod stored_scores;
pub(super) mod vectors;

use std::path::Path;

use anyhow::Result;
use clap::Subcommand;
use loxia::search::Index;

pub(super) use anchor_matrix::{anchors_path, kept_scores};
pub(super) use opening::{open_index, or_damage};

use crate::context::Context;
use crate::exit::Outcome;

/// Build, look at, check and extend the index of a collection.
#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    Build(Box<build::BuildFlags>),
    Inspect(inspect::InspectFlags),
    Check(inspect::CheckFlags),
    Add(Box<add::AddFlags>),
}

/// Runs the command.
pub(crate) fn run(command: IndexCommand, context: &Context) -> Result<Outcome> {
    match command {
        IndexCommand::Build(flags) => build::run(*flags, context),
        IndexCommand::Inspect(flags) => inspect::inspect(&flags, context),
        IndexCommand::Check(flags) => inspect::check(&flags, context),
        IndexCommand::Add(flags) => add::run(*flags, context),
    }
}

/// Refuses an index that another model's scores are in; one that does not say is told.
pub(super) fn check_model(index: &Index, path: &Path, digest: &str, context: &Context) -> Result<()> {
    match index.manifest() {
        Some(manifest) if manifest.digests.contains_key("model") => {
            Ok(manifest.check_digest(path, "model", digest)?)
        }
        _ => {
            context.say(format_args!(
                "{} does not say which model its scores are from: not compared",
                path.display()
            ));
            Ok(())
        }
    }
}
