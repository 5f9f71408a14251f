//! `loxia bench`: how fast this machine computes with a model.
//!
//! `encoder.rs` is the command for people, `worker.rs` the process that `bench/peers.py` drives. Both run a
//! `Workload` (`workload.rs`) through a `Subject` (`subject.rs`: an opened model) and time it (`process.rs`).
//! `peak.rs` measures what the machine could have computed.

mod encoder;
mod lengths;
mod peak;
mod process;
mod subject;
mod worker;
mod workload;

use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use loxia::model::Precision;
use loxia::nn::{Kernel, operations_done};

use crate::context::Context;
use crate::exit::Outcome;
use crate::report::{Summary, grouped, three_digits};

/// Measure how fast this machine computes.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Encoder(encoder::EncoderFlags),
}

/// Runs a parsed `bench` command.
pub(crate) fn run(command: BenchCommand, context: &Context) -> Result<Outcome> {
    match command {
        BenchCommand::Encoder(flags) => encoder::run(flags, context),
    }
}

/// Work this short says nothing about a machine, and measuring the peak would take as long.
const TOO_SHORT: Duration = Duration::from_secs(1);

/// Adds to a summary in which precision and by which kernel a model computed, and the memory that it took for intermediate
/// results; and, where the count of tokens is told, tokens a second, the machine's peak, and how much of it the useful
/// operations of this process since there had been `operations_before` were.
pub(crate) fn tell_speed(
    summary: &mut Summary,
    precision: Option<Precision>,
    scratch_bytes: usize,
    took: Duration,
    operations_before: u64,
) {
    let (kernel, precision) = (Kernel::detect().ok(), precision.unwrap_or(Precision::F32));
    if let Some(kernel) = kernel {
        summary
            .line("computed in", format!("{precision}, {kernel} kernel"))
            .fact_as("precision", "", precision.name())
            .fact_as("kernel", "", kernel.name());
    }
    tell_scratch(summary, scratch_bytes);
    let seconds = took.as_secs_f64();
    let tokens = summary.number("tokens").unwrap_or(0.0);
    let rate = if seconds > 0.0 { tokens / seconds } else { 0.0 };
    let text = if tokens > 0.0 { three_digits(rate) } else { String::new() };
    summary.fact_as("tokens a second", text, rate);
    let peak = kernel
        .filter(|_| took >= TOO_SHORT && tokens > 0.0)
        .map(|kernel| peak::measure(kernel, precision))
        .filter(|peak| peak.rate > 0.0);
    let share = peak
        .as_ref()
        .map(|peak| operations_done().saturating_sub(operations_before) as f64 / seconds / peak.rate);
    let text = peak.as_ref().zip(share).map(|(peak, share)| {
        format!(
            "{} % of {} GFLOP/s ({})",
            three_digits(100.0 * share),
            three_digits(peak.rate / 1e9),
            peak.instructions
        )
    });
    summary.fact_as("share of peak", text.unwrap_or_default(), share).fact_as(
        "peak GFLOP a second",
        "",
        peak.map(|peak| peak.rate / 1e9),
    );
}

/// Adds the most memory for intermediate results that an encoder had at once.
fn tell_scratch(summary: &mut Summary, bytes: usize) {
    summary.fact_as("scratch memory", mebibytes(bytes as u64), bytes);
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", grouped(bytes.div_ceil(1 << 20)))
}
