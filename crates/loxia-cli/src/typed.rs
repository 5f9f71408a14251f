//! Which flags stand on the command line itself.
//!
//! A flag without effect is a mistake when it was typed, and harmless when it comes from the environment
//! or a configuration file, where `seed` or `data` is meant for other commands too. Clap's `requires` and
//! `conflicts_with` cannot tell: for them the environment counts as typed, and a value from a file does not
//! count at all.

use std::collections::BTreeSet;

use anyhow::Result;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

/// The flags of a command that were typed. In a struct of flags it comes first and flattened: later fields
/// take their values out of the matches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Typed(BTreeSet<String>);

impl Typed {
    /// Whether `--flag` was typed.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.0.contains(&flag.replace('-', "_"))
    }

    /// A usage error with a reason if one of the flags was typed.
    pub(crate) fn refuse(&self, flags: &[&str], reason: &str) -> Result<()> {
        match flags.iter().find(|flag| self.has(flag)) {
            Some(flag) => crate::exit::usage(format!("--{flag} has no effect here: {reason}")),
            None => Ok(()),
        }
    }
}

impl FromArgMatches for Typed {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        Ok(Typed(matches.ids().filter(typed).map(|id| id.as_str().to_owned()).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Typed::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Typed {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
