//! `loxia bench`: how fast this machine computes with a model.
//!
//! `encoder.rs` is the command for people, `worker.rs` the process that `bench/peers.py` drives. Both run a
//! `Workload` (`workload.rs`) through a `Subject` (`subject.rs`: an opened model) and time it (`process.rs`).
//! `operations.rs` counts what had to be computed, `peak.rs` measures what the machine could have.

mod encoder;
mod lengths;
mod operations;
mod peak;
mod process;
mod subject;
mod worker;
mod workload;

use anyhow::Result;
use clap::Subcommand;

use crate::context::Context;
use crate::exit::Outcome;

/// Measure how fast this machine computes.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Encoder(encoder::EncoderFlags),
}

/// Runs a parsed `bench` command.
pub(crate) fn run(command: BenchCommand, context: &Context) -> Result<Outcome> {
    match command {
        BenchCommand::Encoder(flags) => encoder::run(flags, context),
    }
}
