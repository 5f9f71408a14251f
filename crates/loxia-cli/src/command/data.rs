//! `loxia data`: look at data sets and runs, and turn one layout into another.

use anyhow::Result;
use clap::{Args, Subcommand};

use super::{data_convert, data_inspect};
use crate::context::Context;
use crate::exit::Outcome;

/// Inspect and convert data sets, runs and judgements.
#[derive(Debug, Args)]
pub(crate) struct DataCommandFlags {
    #[command(subcommand)]
    command: DataCommand,
}

#[derive(Debug, Subcommand)]
enum DataCommand {
    Inspect(data_inspect::InspectFlags),
    Convert(data_convert::ConvertFlags),
}

/// Runs the command.
pub(crate) fn run(flags: DataCommandFlags, context: &Context) -> Result<Outcome> {
    match flags.command {
        DataCommand::Inspect(flags) => data_inspect::run(flags, context),
        DataCommand::Convert(flags) => data_convert::run(flags, context),
    }
}
