//! `loxia doctor`: what this machine offers and whether Loxia computes correctly on it.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use loxia::core::{NoProgress, PairScorer};
use loxia::data::{DataOptions, DataSet};
use loxia::model::{CrossEncoder, ModelOptions, Precision};
use loxia::nn::Kernel;

use crate::context::Context;
use crate::embedded::Embedded;
use crate::exit::Outcome;
use crate::report::{Summary, three_digits};

/// Show CPU features, kernels, threads and caches, and run a two-second self-test.
///
/// The self-test scores three pairs with every kernel that runs here, in f32 and in int8, and compares them with
/// PyTorch's scores. It fails if one is off.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia doctor
  LOXIA_KERNEL=avx2 loxia doctor --json

LOXIA_KERNEL chooses the kernel of every command: portable, avx2, avx512, avx512vnni, avx512bf16 or amx. The kernel is
part of a model's digest, as scores differ in their last bits.")]
pub(crate) struct DoctorFlags {}

/// Scores by PyTorch of the first embedded mention against items 0, 140 and 280.
const EXPECTED: [(u32, f32); 3] = [(0, 97.3959), (140, 97.9138), (280, 97.7229)];
/// How far scores may be off: in f32 by its rounding, in int8 by a fiftieth of what they differ by among themselves.
fn tolerance(precision: Precision) -> f32 {
    if precision == Precision::Int8 { 2.0 } else { 1e-3 }
}

/// Runs the command.
pub(crate) fn run(_flags: DoctorFlags, context: &Context) -> Result<Outcome> {
    let mut summary = Summary::default();
    let kernels: Vec<&str> = Kernel::available().iter().map(|kernel| kernel.name()).collect();
    summary
        .fact("version", env!("CARGO_PKG_VERSION"))
        .fact("machine", format!("{} {}", std::env::consts::ARCH, std::env::consts::OS))
        .fact("CPU features", Kernel::features().join(" "))
        .fact("kernels", kernels.join(" "))
        .fact("kernel in use", Kernel::detect()?.name())
        .fact("cores", std::thread::available_parallelism().map_or(1, usize::from))
        .fact("threads", rayon::current_num_threads())
        .fact(
            "hub cache",
            loxia::model::hub_cache().map_or_else(|e| e.to_string(), |path| path.display().to_string()),
        )
        .fact(
            "hub downloads",
            if cfg!(feature = "hub") { "with --download" } else { "not built in (feature hub)" },
        );
    let (mut texts, mut values, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    let both = |kernel| [Precision::F32, Precision::Int8].map(|precision| (kernel, precision));
    for (kernel, precision) in Kernel::available().into_iter().flat_map(both) {
        let (error, rate) = self_test(kernel, precision, context)?;
        let right = error <= tolerance(precision);
        let (verdict, rate_text) = (if right { "ok" } else { "WRONG" }, three_digits(rate));
        texts.push(format!("{kernel} {precision}: {verdict}, {rate_text} pairs/s, off by {error:.0e}"));
        values.push(serde_json::json!({
            "kernel": kernel.name(), "precision": precision, "difference": error, "pairs_per_second": rate,
        }));
        if !right {
            failed.push(format!("{kernel} in {precision}"));
        }
    }
    summary.fact_as("self-test", texts.join("; "), values);
    summary.print_to_stdout(context)?;
    if !failed.is_empty() {
        bail!("wrong scores with {}; please report this with the output above", failed.join(", "));
    }
    Ok(Outcome::Done)
}

/// Scores with one kernel: the largest difference from PyTorch, and pairs a second.
fn self_test(kernel: Kernel, precision: Precision, context: &Context) -> Result<(f32, f64)> {
    let embedded = Embedded::unpack()?;
    let options =
        ModelOptions { kernel: Some(kernel), precision: Some(precision), ..ModelOptions::default() };
    let model = CrossEncoder::open(&embedded.cross_encoder().parse()?, &options)?;
    let data = DataOptions {
        world: Some(Embedded::WORLD.into()),
        split: Some("test".into()),
        ..DataOptions::default()
    };
    let data = DataSet::open(embedded.world(), &data)?;
    let query = [data.queries()?.get(0)?];
    let items = data.items()?.read(0..data.items()?.len())?;
    let pairs: Vec<(u32, u32)> = (0..items.len() as u32).map(|item| (0, item)).collect();
    let mut scores = vec![0.0; pairs.len()];
    let started = Instant::now();
    let share = Duration::from_secs(1) / Kernel::available().len() as u32;
    let mut done = 0;
    while done == 0 || started.elapsed() < share {
        model.score(&query, &items, &pairs, &mut scores, &NoProgress, &context.cancel)?;
        done += pairs.len();
    }
    let rate = done as f64 / started.elapsed().as_secs_f64();
    let error =
        EXPECTED.iter().map(|&(item, expected)| (scores[item as usize] - expected).abs()).fold(0.0, f32::max);
    Ok((error, rate))
}
