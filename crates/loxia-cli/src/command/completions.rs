//! `loxia completions` and `loxia man`: what packagers and shells want.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, CommandFactory};

use crate::context::Context;
use crate::exit::Outcome;
use crate::output::Stdout;

/// Write shell completions to stdout.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loxia completions bash > ~/.local/share/bash-completion/completions/loxia")]
pub(crate) struct CompletionFlags {
    /// The shell to write for
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Write manual pages, one for each command.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loxia man --output ~/.local/share/man/man1")]
pub(crate) struct ManFlags {
    /// Directory for the pages
    #[arg(long, value_name = "DIR", default_value = "man")]
    output: PathBuf,
}

/// Prints the completions of a shell.
pub(crate) fn completions(flags: CompletionFlags) -> Result<Outcome> {
    let mut command = super::Cli::command();
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut command, "loxia", &mut script);
    let mut stdout = Stdout::lock();
    stdout.write_all(&script)?;
    stdout.flush()?;
    Ok(Outcome::Done)
}

/// Writes the manual pages.
pub(crate) fn man(flags: ManFlags, context: &Context) -> Result<Outcome> {
    std::fs::create_dir_all(&flags.output)
        .with_context(|| format!("{}: cannot make the directory", flags.output.display()))?;
    clap_mangen::generate_to(super::Cli::command(), &flags.output)
        .with_context(|| format!("{}: cannot write manual pages", flags.output.display()))?;
    context.say(format_args!("manual pages written to {}", flags.output.display()));
    Ok(Outcome::Done)
}
