//! The commands, one file each.

mod bench;
mod completions;
mod data;
mod data_convert;
mod data_inspect;
mod demo;
mod doctor;
mod embed;
mod eval;
mod first_stage;
mod index;
mod model;
mod precision_loss;
mod rerank;
mod retrieve;
mod score;
mod search;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::context::{Context, GlobalFlags};
use crate::exit::Outcome;

const FOOTER: &str = "\
Every flag can also be given in the environment (--max-query as LOXIA_MAX_QUERY) or in a TOML file \
(--config FILE); the command line wins, then the environment, then the file.
Ranges are half-open (0..500); - is stdin or stdout.
LOXIA_KERNEL chooses the instructions to compute with (loxia doctor lists them).
Exit codes: 0 done, 1 failed, 2 usage, 3 done but some inputs were skipped, 4 artefact refused or corrupt, \
130 cancelled.";

/// Rank with cross-encoders: score, search, train, measure.
#[derive(Debug, Parser)]
#[command(name = "loxia", version, after_help = FOOTER, arg_required_else_help = true, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalFlags,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Rerank(rerank::RerankFlags),
    Score(score::ScoreFlags),
    Embed(embed::EmbedFlags),
    Retrieve(retrieve::RetrieveFlags),
    Search(Box<search::SearchFlags>),
    #[command(subcommand)]
    Index(index::IndexCommand),
    Data(data::DataCommandFlags),
    #[command(subcommand)]
    Eval(eval::EvalCommand),
    #[command(subcommand)]
    Model(model::ModelCommand),
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    Demo(demo::DemoFlags),
    Doctor(doctor::DoctorFlags),
    Completions(completions::CompletionFlags),
    Man(completions::ManFlags),
}

/// Runs a parsed command.
pub(crate) fn run(command: Command, context: &Context) -> Result<Outcome> {
    match command {
        Command::Rerank(flags) => rerank::run(flags, context),
        Command::Score(flags) => score::run(flags, context),
        Command::Embed(flags) => embed::run(flags, context),
        Command::Retrieve(flags) => retrieve::run(flags, context),
        Command::Search(flags) => search::run(*flags, context),
        Command::Index(command) => index::run(command, context),
        Command::Data(flags) => data::run(flags, context),
        Command::Eval(command) => eval::run(command, context),
        Command::Model(command) => model::run(command, context),
        Command::Bench(command) => bench::run(command, context),
        Command::Demo(flags) => demo::run(flags, context),
        Command::Doctor(flags) => doctor::run(flags, context),
        Command::Completions(flags) => completions::completions(flags),
        Command::Man(flags) => completions::man(flags, context),
    }
}
