//! `loxia demo`: the whole idea on an embedded default, with nothing to download.
//!
//! Anchor mentions are scored against every sense and make an index. Other mentions are then searched with each
//! method at equal cost; their exact rows, scored too, are the truth to compare with. What goes to stdout
//! depends on models, data and kernel alone; times go to stderr.

mod comparison;
mod material;
mod page;
mod shown;
mod stopping;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use loxia::core::artefact::Existing;
use loxia::model::ModelOptions;
use loxia::search::{Index, IndexOptions, Schedule};

use crate::context::Context;
use crate::exit::{Outcome, usage};
use crate::flags::{DataFlags, ModelFlags};
use crate::output::print_line;
use crate::report::{duration, grouped};
use crate::text_output::{claim, write_text_to};
use crate::typed::Typed;
use comparison::Comparison;
use material::{Material, Source};
use shown::Shown;
use stopping::Stopping;

/// Where the report goes unless a file is named.
const REPORT: &str = "loxia-demo.html";
/// Rounds of every method that has rounds: the default of all commands.
const ROUNDS: usize = 10;

/// See search under a cross-encoder work, on embedded models and data or on your own.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia demo
  loxia demo --data BEIR_DIR --split test --model MODEL_DIR --dual DUAL_DIR
  loxia demo --data WORLDS_DIR --world verb.motion --split test --model MODEL_DIR --anchors 300

The first --anchors queries are scored against every item and make the index; the next --searches queries are \
searched, and scored against every item as well, to know what there was to find. That is (anchors + searches) x \
items pairs: choose fewer for a large collection or a slow model. Without --dual, TF-IDF vectors of the texts stand \
in for a dual encoder.")]
pub(crate) struct DemoFlags {
    #[command(flatten)]
    typed: Typed,
    /// Your own data set with queries and items [default: embedded]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Your own cross-encoder: a directory, or hf:owner/name[@revision]
    #[arg(long, value_name = "DIR")]
    model: Option<String>,
    /// Your own dual encoder: a directory, or QUERY_DIR,ITEM_DIR [default: TF-IDF]
    #[arg(long, value_name = "DIR")]
    dual: Option<String>,
    /// Queries that the index is made from [default: 120, or two thirds of what there is]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    anchors: Option<u32>,
    /// Queries that are searched [default: 60, or what the anchors leave]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    searches: Option<u32>,
    /// Where to write the report [default: loxia-demo.html here, replacing an earlier one]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Replace an existing --report
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    model_flags: ModelFlags,
    #[command(flatten)]
    data_flags: DataFlags,
}

/// Runs the command.
pub(crate) fn run(flags: DemoFlags, context: &Context) -> Result<Outcome> {
    let (report, existing) = match &flags.report {
        Some(path) => (path.as_path(), claim(path, flags.overwrite)?),
        None => {
            flags.typed.refuse(&["overwrite"], "it is for --report")?;
            (Path::new(REPORT), Existing::Overwrite)
        }
    };
    let material = Material::gather(&source(&flags)?, flags.anchors, flags.searches, context)?;
    if !context.json {
        print_line(material.introduction())?;
    }

    let anchors = material.anchor_set()?;
    let options = IndexOptions::default();
    let bar = context.bar(options.steps(&anchors), "steps");
    let built = Index::build(&anchors, material.item_ids()?, &options, &bar, &context.cancel);
    let (_, took) = bar.finish();
    let index = built?.0.with_schedule(Schedule::Even { rounds: ROUNDS });
    context.say(format_args!("index built in {} (constants chosen, estimate calibrated)", duration(took)));

    let comparison = Comparison::run(&material, &anchors, &index, context)?;
    let shown = Shown::choose(&material, &anchors, &index, &context.cancel)?;
    let stopping = Stopping::run(&material, &index, &context.cancel)?;
    let html = page::render(&material, &comparison, &shown, &stopping);
    write_text_to(report, existing, |out| Ok(out.write_all(html.as_bytes())?))?;

    if context.json {
        print_line(serde_json::json!({
            "items": material.items.len(), "anchors": material.anchors, "searches": material.searched().len(),
            "rounds": ROUNDS, "methods": comparison.json(), "shown": shown.json(&material),
            "recall_target": stopping.json(&material), "report": report.display().to_string(),
        }))?;
    } else {
        print_line(comparison.text(&material))?;
        print_line(shown.text(&material))?;
        print_line(stopping.text(&material))?;
        print_line(closing(report, material.is_embedded))?;
    }
    context.say(format_args!(
        "{} pairs scored, all done in {}",
        grouped(material.pairs()),
        duration(context.started.elapsed())
    ));
    Ok(Outcome::Done)
}

/// Where models and data come from. A value that only the environment or a file gives is meant for other commands
/// as well, so one of the two alone does not stop the embedded demo.
fn source(flags: &DemoFlags) -> Result<Source<'_>> {
    let model_flags = &flags.model_flags;
    match (&flags.data, &flags.model) {
        (Some(data), Some(model)) => Ok(Source::Own {
            data,
            model,
            dual: flags.dual.as_deref(),
            model_flags,
            flags: &flags.data_flags,
        }),
        _ if flags.typed.has("data") || flags.typed.has("model") => {
            usage("--data and --model belong together; give both, or neither for the embedded ones")
        }
        _ => {
            let alone = "the embedded data brings its own; give --data and --model";
            flags.typed.refuse(&["dual", "data-format", "world", "split"], alone)?;
            let own: Vec<&str> =
                model_flags.given().into_iter().filter(|&name| name != "precision").collect();
            flags.typed.refuse(&own, alone)?;
            Ok(Source::Embedded {
                options: ModelOptions {
                    precision: model_flags.options().precision,
                    ..ModelOptions::default()
                },
            })
        }
    }
}

fn closing(report: &Path, embedded: bool) -> String {
    let mut text = format!("Plots of all this are in {}. What to try next:\n", report.display());
    if embedded {
        text += "\n  loxia demo --data DATA --model DIR --dual DIR     the same on your own queries, items and models";
    }
    text += "\n  loxia index build --model DIR --dual DIR --data DATA --output INDEX     an index to keep\
             \n  loxia search --index INDEX --model DIR --dual DIR --data DATA --query \"...\" --k 10 --recall 0.95\
             \n  loxia eval knn --help     compare methods on stored scores\n\
             \ndocs/search.md leads from a reranker and a corpus to a search with a recall target.";
    text
}
