//! `loxia bench encoder --worker`: a process that opens models and runs workloads as it is told, so that
//! another program can interleave it with other engines.
//!
//! A command is one JSON object a line on stdin, an answer one on stdout: `{"ok": true, ...}`, or
//! `{"ok": false, "error": "..."}`, after which it goes on. bench/README.md lists the commands.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use loxia::model::ModelOptions;
use loxia::nn::Kernel;
use serde::Deserialize;
use serde_json::{Value, json};

use super::process;
use super::subject::Subject;
use super::workload::Workload;
use crate::context::Context;
use crate::exit::Outcome;
use crate::output::print_line;

/// What the worker can be told.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
enum Command {
    /// Opens a model under a name.
    Load { model: String, directory: PathBuf, precision: Option<String>, threads: Option<usize> },
    /// Keeps a workload under a name, for an open model.
    Workload {
        workload: String,
        model: String,
        #[serde(flatten)]
        content: Content,
    },
    /// Runs a workload and tells how long it took.
    Run {
        model: String,
        workload: String,
        #[serde(default = "once")]
        repeat: u32,
        #[serde(default)]
        values: bool,
    },
    /// Forgets a model.
    Drop { model: String },
    /// Tells what this machine computes with.
    Machine,
    /// Tells how much memory is and was in use.
    Memory,
}

/// What a workload is given as.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Content {
    /// Token ids, the model's template included.
    Ids(Vec<Vec<u32>>),
    /// A run with texts to rerank, and where to write the result.
    Run([PathBuf; 2]),
}

fn once() -> u32 {
    1
}

/// Obeys until stdin ends.
pub(super) fn run(context: &Context) -> Result<Outcome> {
    let mut worker = Worker { subjects: HashMap::new(), workloads: HashMap::new(), context };
    for line in std::io::stdin().lock().lines() {
        let line = line.context("stdin")?;
        let answer = serde_json::from_str(&line)
            .map_err(|error| anyhow::anyhow!("no command: {error}"))
            .and_then(|command| worker.obey(command));
        print_line(answer.unwrap_or_else(|error| json!({ "ok": false, "error": format!("{error:#}") })))?;
    }
    Ok(Outcome::Done)
}

struct Worker<'a> {
    subjects: HashMap<String, Subject>,
    workloads: HashMap<String, Workload>,
    context: &'a Context,
}

impl Worker<'_> {
    fn obey(&mut self, command: Command) -> Result<Value> {
        match command {
            Command::Load { model, directory, precision, threads } => {
                let precision = precision.map(|name| name.parse()).transpose()?;
                let options = ModelOptions { precision, threads, ..ModelOptions::default() };
                let subject = Subject::open(&directory.as_path().into(), &options)?;
                let answer = json!({ "ok": true, "engine": subject.engine() });
                self.subjects.insert(model, subject);
                Ok(answer)
            }
            Command::Workload { workload, model, content } => {
                let made = match content {
                    Content::Ids(sequences) => Workload::of_ids(self.subject(&model)?, &sequences)?,
                    Content::Run([run, output]) => Workload::RunFile { run, output },
                };
                let answer = json!({ "ok": true, "sequences": made.len() });
                self.workloads.insert(workload, made);
                Ok(answer)
            }
            Command::Run { model, workload, repeat, values } => {
                let subject = self.subject(&model)?;
                let Some(work) = self.workloads.get(&workload) else { bail!("no workload {workload:?}") };
                let (output, took) = process::timed(|| {
                    let runs = (1..repeat.max(1)).try_for_each(|_| subject.run(work, self.context).map(drop));
                    runs.and_then(|()| subject.run(work, self.context))
                });
                let output = output?;
                let values = values.then_some(output.values);
                Ok(json!({
                    "ok": true, "wall": took.wall, "cpu": took.cpu, "tokens": output.tokens, "values": values,
                }))
            }
            Command::Drop { model } => Ok(json!({ "ok": self.subjects.remove(&model).is_some() })),
            Command::Machine => Ok(json!({
                "ok": true,
                "version": env!("CARGO_PKG_VERSION"),
                "kernel": Kernel::detect()?.name(),
                "features": Kernel::features(),
            })),
            Command::Memory => {
                Ok(json!({ "ok": true, "peak": process::peak_memory(), "now": process::memory() }))
            }
        }
    }

    fn subject(&self, model: &str) -> Result<&Subject> {
        self.subjects.get(model).with_context(|| format!("no model {model:?}"))
    }
}
