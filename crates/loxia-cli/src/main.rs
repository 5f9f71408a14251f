//! The command `loxia`: parse, run, exit code.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | failed |
//! | 2 | usage: flags that are missing, unknown or do not fit together |
//! | 3 | done, but some inputs were skipped (counted and listed) |
//! | 4 | an artefact was refused or is corrupt |
//! | 130 | cancelled |

// Doc comments of flags are the help text, where brackets are brackets.
#![allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]

mod command;
mod config;
mod context;
mod embedded;
mod exit;
mod flags;
mod kept_scores;
mod matrix_source;
mod matrix_target;
mod output;
mod ranked_output;
mod report;
mod report_html;
mod text_output;
mod typed;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => return exit::of_error(&error),
    };
    let context = match context::Context::new(&cli.global) {
        Ok(context) => context,
        Err(error) => return exit::of_error(&error),
    };
    match command::run(cli.command, &context) {
        Ok(outcome) => outcome.into(),
        Err(error) => exit::of_error(&error),
    }
}

/// Parses the command line on top of the environment and the configuration file.
fn parse() -> anyhow::Result<command::Cli> {
    let arguments: Vec<_> = std::env::args_os().collect();
    let command = config::with_environment(command::Cli::command());
    let matches = match config::path_from(&arguments) {
        Some(path) => config::matches_with_file(command, &path, &arguments)?,
        None => command.try_get_matches_from(arguments)?,
    };
    Ok(command::Cli::from_arg_matches(&matches)?)
}
