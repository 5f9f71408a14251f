//! Where a flag's value comes from: the command line, else the environment (`LOXIA_MAX_QUERY` for
//! `--max-query`), else a configuration file, else the default.
//!
//! The file is TOML. A key at the top holds for every command that has the flag; a table named after a
//! command (`[rerank]`, `["eval run"]`) holds for that command only and wins.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Arg, ArgAction, Command};
use toml::{Table, Value};

/// Gives every long flag of every command its environment variable.
pub(crate) fn with_environment(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.get_long() {
        // `help` and `version` are actions, not settings.
        Some("help" | "version") | None => arg,
        Some(long) => {
            let variable = format!("LOXIA_{}", long.replace('-', "_").to_uppercase());
            let arg = if matches!(arg.get_action(), ArgAction::SetTrue) {
                arg.value_parser(clap::builder::FalseyValueParser::new())
            } else {
                arg
            };
            arg.env(variable).hide_env(true)
        }
    });
    command.mut_subcommands(with_environment)
}

/// The configuration file named on the command line or in `LOXIA_CONFIG`.
pub(crate) fn path_from(arguments: &[OsString]) -> Option<PathBuf> {
    let mut rest = arguments.iter().skip(1);
    while let Some(argument) = rest.next() {
        let Some(text) = argument.to_str() else { continue };
        if text == "--" {
            break;
        }
        if text == "--config" {
            return rest.next().map(PathBuf::from);
        }
        if let Some(path) = text.strip_prefix("--config=") {
            return Some(PathBuf::from(path));
        }
    }
    std::env::var_os("LOXIA_CONFIG").map(PathBuf::from)
}

/// Makes the values of a configuration file the defaults of the flags they name.
pub(crate) fn with_file(command: Command, path: &Path) -> Result<Command> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{}: cannot read the configuration file", path.display()))?;
    let table: Table = text.parse().with_context(|| format!("{}: not valid TOML", path.display()))?;
    with_table(command, &table).with_context(|| path.display().to_string())
}

fn with_table(command: Command, table: &Table) -> Result<Command> {
    let mut flags = BTreeSet::new();
    let mut commands = BTreeSet::new();
    collect_names(&command, "", &mut flags, &mut commands);
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                if !commands.contains(key) {
                    bail!("[{key}] is no command; commands are {}", join(&commands));
                }
                if let Some(unknown) = inner.keys().find(|inner| !flags.contains(*inner)) {
                    bail!("[{key}] {unknown} is no flag; flags are {}", join(&flags));
                }
            }
            _ if !flags.contains(key) => bail!("{key} is no flag; flags are {}", join(&flags)),
            _ => {}
        }
    }
    apply(command, "", table)
}

fn collect_names(
    command: &Command,
    path: &str,
    flags: &mut BTreeSet<String>,
    commands: &mut BTreeSet<String>,
) {
    flags.extend(command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned));
    for sub in command.get_subcommands() {
        let name = format!("{path} {}", sub.get_name()).trim().to_owned();
        collect_names(sub, &name, flags, commands);
        commands.insert(name);
    }
}

fn join(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn apply(mut command: Command, path: &str, table: &Table) -> Result<Command> {
    let own = table.get(path).and_then(Value::as_table);
    let longs: Vec<(clap::Id, String)> = command
        .get_arguments()
        .filter_map(|arg| Some((arg.get_id().clone(), arg.get_long()?.to_owned())))
        .collect();
    for (id, long) in longs {
        let value = own.and_then(|own| own.get(&long)).or_else(|| table.get(&long));
        if let Some(value) = value {
            let texts = texts_of(value).with_context(|| format!("value of {long}"))?;
            command = command.mut_arg(id, |arg: Arg| arg.default_values(texts).required(false));
        }
    }
    let subs: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in subs {
        let sub_path = format!("{path} {name}").trim().to_owned();
        let mut failure = None;
        command = command.mut_subcommand(&name, |sub| {
            apply(sub.clone(), &sub_path, table).unwrap_or_else(|error| {
                failure = Some(error);
                sub
            })
        });
        if let Some(error) = failure {
            return Err(error);
        }
    }
    Ok(command)
}

fn texts_of(value: &Value) -> Result<Vec<String>> {
    Ok(match value {
        Value::String(text) => vec![text.clone()],
        Value::Integer(number) => vec![number.to_string()],
        Value::Float(number) => vec![number.to_string()],
        Value::Boolean(flag) => vec![flag.to_string()],
        Value::Array(values) => {
            let mut texts = Vec::new();
            for value in values {
                texts.extend(texts_of(value)?);
            }
            texts
        }
        Value::Table(_) | Value::Datetime(_) => bail!("a flag takes text, numbers, true or a list of them"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        Command::new("loxia").subcommand(
            Command::new("rerank")
                .arg(Arg::new("model").long("model").required(true))
                .arg(Arg::new("depth").long("depth"))
                .arg(Arg::new("json").long("json").action(ArgAction::SetTrue)),
        )
    }

    fn parsed(file: &str, arguments: &[&str]) -> clap::ArgMatches {
        let command = with_table(with_environment(command()), &file.parse().unwrap()).unwrap();
        command.try_get_matches_from(arguments).unwrap().subcommand().unwrap().1.clone()
    }

    #[test]
    fn flags_win_over_tables_and_tables_over_the_top() {
        let file = "model = 'a'\ndepth = 5\njson = true\n[rerank]\ndepth = 7\n";
        let matches = parsed(file, &["loxia", "rerank", "--model", "b"]);
        assert_eq!(matches.get_one::<String>("model").unwrap(), "b");
        assert_eq!(matches.get_one::<String>("depth").unwrap(), "7");
        assert!(matches.get_flag("json"));
    }

    #[test]
    fn unknown_keys_are_named() {
        let error = with_table(command(), &"modell = 'a'".parse().unwrap()).unwrap_err();
        assert!(error.to_string().starts_with("modell is no flag; flags are"), "{error}");
        let error = with_table(command(), &"[rank]\nmodel = 'a'".parse().unwrap()).unwrap_err();
        assert!(error.to_string().starts_with("[rank] is no command"), "{error}");
    }
}
