//! Where a flag's value comes from: the command line, else the environment (`LOXIA_MAX_QUERY` for
//! `--max-query`), else a configuration file, else the default.
//!
//! The file is TOML. A key at the top holds for every command that has the flag; a table named after a
//! command (`[rerank]`, `["eval run"]`) holds for that command only and wins.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use toml::{Table, Value};

use crate::exit::Usage;

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

/// Parses the command line with the values of a configuration file as defaults of the flags they name.
///
/// Two things are known only after a first look at the command line: which command's table holds for global
/// flags, and which flags were given. A flag that was given drives out values of the file that exclude it.
pub(crate) fn matches_with_file(command: Command, path: &Path, arguments: &[OsString]) -> Result<ArgMatches> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{}: cannot read the configuration file", path.display()))?;
    let table: Table = text.parse().with_context(|| format!("{}: not valid TOML", path.display()))?;
    check_names(&command, &table).map_err(|error| Usage(format!("{}: {error}", path.display())))?;
    let apply = |command: &Command, chosen: &Chosen| {
        apply(command.clone(), "", &table, chosen).with_context(|| path.display().to_string())
    };
    // The first look is lenient: what is missing or wrong shows in the second.
    let first = apply(&command, &Chosen::default())?.ignore_errors(true).try_get_matches_from(arguments)?;
    let chosen = Chosen::of(&command, &first);
    Ok(apply(&command, &chosen)?.try_get_matches_from(arguments)?)
}

/// What the command line says.
#[derive(Default)]
struct Chosen {
    /// The command, `eval run` for instance.
    command: String,
    /// Flags that values given on the command line or in the environment exclude.
    excluded: BTreeSet<String>,
}

impl Chosen {
    fn of(root: &Command, matches: &ArgMatches) -> Self {
        let mut chosen = Chosen::default();
        let (mut command, mut matches) = (root, matches);
        while let Some((name, inner)) = matches.subcommand() {
            let Some(sub) = command.find_subcommand(name) else { break };
            chosen.command = format!("{} {name}", chosen.command).trim().to_owned();
            (command, matches) = (sub, inner);
        }
        let given = |arg: &Arg| {
            let source = matches
                .try_contains_id(arg.get_id().as_str())
                .ok()
                .and(matches.value_source(arg.get_id().as_str()));
            matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
        };
        for arg in command.get_arguments() {
            for other in command.get_arg_conflicts_with(arg) {
                // Exclusion is mutual, whichever flag declares it.
                for (one, two) in [(arg, other), (other, arg)] {
                    if given(one) {
                        chosen.excluded.extend(two.get_long().map(str::to_owned));
                    }
                }
            }
        }
        chosen
    }
}

/// Every key must be a flag: at the top of any command, in a table of that command.
fn check_names(root: &Command, table: &Table) -> Result<(), String> {
    let mut commands = Vec::new();
    collect_commands(root, "", &mut commands);
    let longs = |command: &Command| {
        command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let global = longs(root);
    let all: BTreeSet<String> =
        commands.iter().flat_map(|(_, command)| longs(command)).chain(global.clone()).collect();
    for (key, value) in table {
        let Value::Table(inner) = value else {
            if !all.contains(key) {
                return Err(format!("{key} is no flag; flags are {}", join(&all)));
            }
            continue;
        };
        let Some((_, command)) = commands.iter().find(|(name, _)| name == key) else {
            let names = commands.iter().map(|(name, _)| name.clone()).collect();
            return Err(format!("[{key}] is no command; commands are {}", join(&names)));
        };
        let own: BTreeSet<String> = longs(command).union(&global).cloned().collect();
        if let Some(unknown) = inner.keys().find(|name| !own.contains(*name)) {
            return Err(format!("[{key}] has no flag {unknown}; it has {}", join(&own)));
        }
    }
    Ok(())
}

fn collect_commands<'a>(command: &'a Command, path: &str, commands: &mut Vec<(String, &'a Command)>) {
    for sub in command.get_subcommands() {
        let name = format!("{path} {}", sub.get_name()).trim().to_owned();
        collect_commands(sub, &name, commands);
        commands.push((name, sub));
    }
}

fn join(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Gives the flags of a command and those below it the file's values as defaults.
fn apply(mut command: Command, path: &str, table: &Table, chosen: &Chosen) -> Result<Command> {
    // Global flags stand at the root; the chosen command's table holds for them too.
    let own_path = if path.is_empty() { &chosen.command } else { path };
    let own = table.get(own_path).and_then(Value::as_table);
    let longs: Vec<(clap::Id, String)> = command
        .get_arguments()
        .filter_map(|arg| Some((arg.get_id().clone(), arg.get_long()?.to_owned())))
        .collect();
    for (id, long) in longs {
        let value = own.and_then(|own| own.get(&long)).or_else(|| table.get(&long));
        let Some(value) = value.filter(|_| !chosen.excluded.contains(&long)) else { continue };
        let texts = texts_of(value).with_context(|| format!("value of {long}"))?;
        command = command.mut_arg(id, |arg: Arg| arg.default_values(texts).required(false));
    }
    let subs: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in subs {
        let sub_path = format!("{path} {name}").trim().to_owned();
        let mut failure = None;
        command = command.mut_subcommand(&name, |sub| {
            apply(sub.clone(), &sub_path, table, chosen).unwrap_or_else(|error| {
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
        let threads = Arg::new("threads").long("threads").global(true);
        Command::new("loxia").arg(threads).subcommand(
            Command::new("rerank")
                .arg(Arg::new("model").long("model").required(true))
                .arg(Arg::new("depth").long("depth"))
                .arg(Arg::new("query").long("query").conflicts_with("run"))
                .arg(Arg::new("run").long("run"))
                .arg(Arg::new("json").long("json").action(ArgAction::SetTrue)),
        )
    }

    fn parsed(file: &str, arguments: &[&str]) -> Result<ArgMatches> {
        let path = std::env::temp_dir().join(format!("loxia-config-{}-{}", std::process::id(), file.len()));
        std::fs::write(&path, file).unwrap();
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let matches = matches_with_file(with_environment(command()), &path, &arguments);
        std::fs::remove_file(path).unwrap();
        Ok(matches?.subcommand().unwrap().1.clone())
    }

    #[test]
    fn flags_win_over_tables_and_tables_over_the_top() {
        let file = "model = 'a'\ndepth = 5\njson = true\nthreads = 1\n[rerank]\ndepth = 7\nthreads = 2\n";
        let matches = parsed(file, &["loxia", "rerank", "--model", "b"]).unwrap();
        let text = |name: &str| matches.get_one::<String>(name).unwrap().as_str();
        assert_eq!((text("model"), text("depth"), text("threads")), ("b", "7", "2"));
        assert!(matches.get_flag("json"));
    }

    #[test]
    fn a_given_flag_drives_out_what_it_excludes() {
        let file = "model = 'a'\nquery = 'hello'\n";
        let matches = parsed(file, &["loxia", "rerank", "--run", "r.trec"]).unwrap();
        assert_eq!(matches.get_one::<String>("query"), None);
        assert!(parsed(file, &["loxia", "rerank", "--run", "r.trec", "--query", "x"]).is_err());
    }

    #[test]
    fn unknown_keys_are_named() {
        let error = parsed("modell = 'a'", &["loxia", "rerank"]).unwrap_err().to_string();
        assert!(error.contains("modell is no flag; flags are"), "{error}");
        let error = parsed("[rank]\nmodel = 'a'", &["loxia", "rerank"]).unwrap_err().to_string();
        assert!(error.contains("[rank] is no command"), "{error}");
        let error = parsed("[rerank]\nqrels = 'a'", &["loxia", "rerank"]).unwrap_err().to_string();
        assert!(error.contains("[rerank] has no flag qrels"), "{error}");
    }
}
