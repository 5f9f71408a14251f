//! `loxia model`: look into model directories, convert checkpoints, check that a model can be trusted.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use loxia::model::{
    ConvertOptions, EncoderSummary, ModelSpec, ModelSummary, SaveOptions, StoredWeights, Variant,
};

use super::precision_loss::{self, PrecisionLoss};
use crate::context::Context;
use crate::exit::{Outcome, usage};
use crate::flags::{ModelFlags, OutputFlags};
use crate::output::print_line;
use crate::report::{Summary, grouped};
use crate::typed::Typed;

/// Look into, convert and check models.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    Inspect(InspectFlags),
    Convert(ConvertFlags),
    Check(CheckFlags),
}

/// Show what a model is and how it would be used, without computing anything.
#[derive(Debug, Args)]
pub(crate) struct InspectFlags {
    /// A directory, QUERY_DIR,ITEM_DIR, or hf:owner/name[@revision]
    #[arg(long, value_name = "DIR")]
    model: String,
    #[command(flatten)]
    model_flags: ModelFlags,
}

/// Convert a checkpoint to a directory that says what it is.
///
/// The input is a directory with pytorch_model.bin, a Lightning checkpoint of ANNCUR, or a checkpoint of
/// hard-nce-el. Checkpoint files hold neither configuration nor tokenizer: --base names the directory of the
/// model they were trained from. No code in a checkpoint is ever run. A directory with other weights is written
/// anew with the flags given here in its loxia.json.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia model convert --input emb_crossenc_zeshel.ckpt --base bert-base-uncased --output emb-crossencoder
  loxia model convert --input OLD_DIR --output NEW_DIR
  loxia model convert --input MODEL_DIR --variant emb --layout anncur --max-query 64 --output NEW_DIR
  loxia model convert --input MODEL_DIR --weights int8 --output SMALL_DIR")]
pub(crate) struct ConvertFlags {
    #[command(flatten)]
    typed: Typed,
    /// Checkpoint file or model directory
    #[arg(long, value_name = "PATH")]
    input: PathBuf,
    /// Directory with config.json and tokenizer of the base model, for checkpoint files
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,
    /// In which numbers to write the weights: f32, f16, or int8 (layers a quarter as large, for use
    /// with --precision int8; only loxia reads it)
    #[arg(long, value_name = "NAME", default_value = "f32")]
    weights: StoredWeights,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    model_flags: ModelFlags,
}

/// Check a model: tensors, shapes, values, tokenizer against vocabulary, and a score of its own.
///
/// With --precision int8 --texts FILE it also measures what that precision costs on your texts: how near
/// vectors or scores stay to f32, and whether rankings stay the same. It takes at least 11 texts; some hundred say
/// more. The loss depends on the kernel (`loxia doctor`), which is told with it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia model check --model MODEL_DIR
  loxia model check --model MODEL_DIR --precision int8 --texts titles.txt")]
pub(crate) struct CheckFlags {
    /// A directory, QUERY_DIR,ITEM_DIR, or hf:owner/name[@revision]
    #[arg(long, value_name = "DIR")]
    model: String,
    /// Texts, one a line (also .gz), at least 11, to measure the loss of --precision on
    #[arg(long, value_name = "FILE")]
    texts: Option<PathBuf>,
    #[command(flatten)]
    model_flags: ModelFlags,
}

/// Runs the command.
pub(crate) fn run(command: ModelCommand, context: &Context) -> Result<Outcome> {
    match command {
        ModelCommand::Inspect(flags) => inspect(flags, context),
        ModelCommand::Convert(flags) => convert(flags, context),
        ModelCommand::Check(flags) => check(flags, context),
    }
}

fn inspect(flags: InspectFlags, context: &Context) -> Result<Outcome> {
    let spec = flags.model_flags.spec(&flags.model, context)?;
    let model = loxia::model::inspect(&spec, &flags.model_flags.options())?;
    if context.json {
        print_line(serde_json::to_string(&model)?)?;
        return Ok(Outcome::Done);
    }
    summary_of(&model).print_to_stdout(context)?;
    Ok(Outcome::Done)
}

fn summary_of(model: &ModelSummary) -> Summary {
    let mut summary = Summary::default();
    summary.fact("variant", format!("{} ({})", model.variant, model.because));
    match &model.item_encoder {
        None => encoder_facts(&mut summary, &model.encoder),
        Some(item) => {
            summary.fact("", "query tower");
            encoder_facts(&mut summary, &model.encoder);
            summary.fact("", "item tower");
            encoder_facts(&mut summary, item);
        }
    }
    if let Some(prompt) = model.item_prompt.as_ref().filter(|prompt| !prompt.is_empty()) {
        summary.fact("item prompt", format!("{prompt:?} before every item"));
    }
    if let Some(labels) = model.labels {
        summary.fact("labels", labels);
    }
    if let Some(activation) = model.default_activation {
        summary.fact(
            "activation",
            format!("{activation} in sentence-transformers; raw scores here unless asked"),
        );
    }
    if let Some(similarity) = model.similarity {
        summary.fact("similarity", similarity.name());
    }
    summary
}

fn encoder_facts(summary: &mut Summary, encoder: &EncoderSummary) {
    let dtypes: Vec<String> =
        encoder.dtypes.iter().map(|dtype| format!("{dtype:?}").to_lowercase()).collect();
    summary
        .fact("family", format!("{:?}", encoder.family).to_lowercase())
        .fact(
            "encoder",
            format!(
                "{} layers x {}, {} heads, feed-forward {}, {} tokens, {} positions",
                encoder.layers,
                encoder.hidden,
                encoder.heads,
                encoder.intermediate,
                grouped(encoder.vocabulary as u64),
                encoder.positions
            ),
        )
        .fact("parameters", encoder.parameters)
        .fact("weights", dtypes.join(", "))
        .fact("layout", layout_text(encoder));
    if let Some(pooling) = encoder.pooling {
        let steps: Vec<&str> = encoder.steps.iter().map(String::as_str).collect();
        summary.fact("pooling", [&[pooling.name()], steps.as_slice()].concat().join(", then "));
    }
    if !encoder.prompt.is_empty() {
        summary.fact("prompt", format!("{:?} before every text of this side", encoder.prompt));
    }
    if !encoder.unread.is_empty() {
        summary.fact("unread tensors", encoder.unread.join(", "));
    }
    if !encoder.opaque.is_empty() {
        summary.fact("unresolved classes", encoder.opaque.join(", "));
    }
}

fn layout_text(encoder: &EncoderSummary) -> String {
    let layout = &encoder.layout;
    let mut text = layout.kind.name().to_owned();
    for (name, limit) in
        [("query", layout.max_query), ("item", layout.max_item), ("together", layout.max_length)]
    {
        if let Some(limit) = limit {
            text += &format!(", {name} {limit}");
        }
    }
    match layout.compat {
        Some(compat) => text + ", compat " + compat.name(),
        None => text,
    }
}

fn convert(flags: ConvertFlags, context: &Context) -> Result<Outcome> {
    if flags.output.is_stdout() {
        return usage("a model is a directory; it cannot go to stdout");
    }
    flags
        .typed
        .refuse(&["precision"], "it is about computing; use --weights int8 to keep weights in 8 bits")?;
    let save = SaveOptions { weights: flags.weights, existing: flags.output.existing() };
    let mut summary = Summary::default();
    if flags.input.is_dir() && has_safetensors(&flags.input) {
        if flags.base.is_some() {
            return usage(
                "--base is for checkpoint files; a directory brings its own configuration and tokenizer",
            );
        }
        let (spec, options) = (flags.input.as_path().into(), flags.model_flags.options());
        let model = loxia::model::inspect(&spec, &options)?;
        let towers = [Some(&model.encoder), model.item_encoder.as_ref()];
        let quantised = towers.into_iter().flatten().any(EncoderSummary::is_quantised);
        if quantised && flags.weights != StoredWeights::Int8 {
            context.say(format_args!(
                "{} keeps its layers in 8 bits: what is written is restored from them, not the original weights",
                flags.input.display()
            ));
        }
        if model.variant == Variant::Dual {
            loxia::model::save_text_encoder(&spec, &options, &flags.output.output, &save)?;
        } else {
            loxia::model::save_cross_encoder(&spec, &options, &flags.output.output, &save)?;
        }
        summary.fact("source", "model directory").fact("variant", model.variant.name());
    } else {
        let towers = matches!(flags.input.to_string_lossy().parse(), Ok(ModelSpec::Towers(..)));
        if towers && !flags.input.exists() {
            return usage("two towers are two models: convert each by itself");
        }
        if let Some(name) = flags.model_flags.given().into_iter().find(|name| flags.typed.has(name)) {
            return usage(format!(
                "--{name} cannot change what a checkpoint was trained with; convert it first, then convert the result"
            ));
        }
        let options = ConvertOptions { base: flags.base.clone(), save };
        let done = loxia::model::convert(&flags.input, &flags.output.output, &options)?;
        summary.fact("source", done.source).fact("tensors", done.tensors);
        if let Some(variant) = done.variant {
            summary.fact("variant", variant.name());
        }
        summary.fact_as("unread tensors", done.unread.join(", "), done.unread.clone());
        summary.fact_as("unresolved classes", done.opaque.join(", "), done.opaque.clone());
    }
    summary.fact("output", flags.output.output.display().to_string()).print(context, false)?;
    Ok(Outcome::Done)
}

/// Whether a directory, or the transformer inside a sentence-transformers one, has safetensors already.
fn has_safetensors(directory: &Path) -> bool {
    let holds = |directory: &Path| {
        ["model.safetensors", "model.safetensors.index.json", "loxia.json"]
            .iter()
            .any(|name| directory.join(name).exists())
    };
    holds(directory) || holds(&directory.join("0_Transformer"))
}

fn check(flags: CheckFlags, context: &Context) -> Result<Outcome> {
    let spec = flags.model_flags.spec(&flags.model, context)?;
    let options = flags.model_flags.options();
    let lines = loxia::model::check(&spec, &options)?;
    let texts = flags.texts.as_deref();
    let loss = texts.map(|file| precision_loss::measure(&spec, &options, file, context)).transpose()?;
    if context.json {
        match &loss {
            None => print_line(serde_json::to_string(&lines)?)?,
            Some(loss) => print_line(serde_json::json!({ "checks": lines, "loss": loss }))?,
        }
    } else {
        let width = lines.iter().map(|line| line.what.len()).max().unwrap_or(0);
        for line in &lines {
            let verdict = if line.ok { "ok   " } else { "WRONG" };
            print_line(format_args!("{verdict}  {:<width$}  {}", line.what, line.found))?;
        }
        for line in loss.iter().flat_map(PrecisionLoss::lines) {
            print_line(line)?;
        }
    }
    let wrong = lines.iter().filter(|line| !line.ok).count();
    if wrong > 0 {
        bail!("{wrong} of {} checks failed", lines.len());
    }
    Ok(Outcome::Done)
}
