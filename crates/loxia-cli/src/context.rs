//! What every command shares: cancelling, threads, progress, and how to speak.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use loxia::core::{Cancel, Progress};

use crate::report::{duration, three_digits};

/// More threads than any machine has cores only wait for one another.
const MOST_THREADS: usize = 1024;

/// Flags that every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct GlobalFlags {
    /// Print results and the summary as JSON on stdout
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// No progress bar and no summary; errors only
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
    /// Threads to compute with [default: all cores]
    #[arg(long, global = true, value_name = "N", help_heading = "Global options")]
    pub(crate) threads: Option<usize>,
    /// Defaults for flags, as TOML: `max-query = 64`, or under [COMMAND]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<std::path::PathBuf>,
}

/// The surroundings of a running command.
pub(crate) struct Context {
    /// Machine-readable output was asked for.
    pub(crate) json: bool,
    /// Only errors are to be said.
    pub(crate) quiet: bool,
    /// Raised by Ctrl-C.
    pub(crate) cancel: Cancel,
    /// Since when the command runs.
    pub(crate) started: Instant,
    /// Whether the work at hand looks at `cancel`.
    listening: Arc<AtomicBool>,
}

impl Context {
    /// Sets up the thread pool and Ctrl-C.
    pub(crate) fn new(flags: &GlobalFlags) -> Result<Self> {
        if let Some(threads) = flags.threads {
            if !(1..=MOST_THREADS).contains(&threads) {
                return crate::exit::usage(format!("--threads must lie between 1 and {MOST_THREADS}"));
            }
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build_global()
                .context("cannot start the threads")?;
        }
        let cancel = Cancel::new();
        let listening = Arc::new(AtomicBool::new(false));
        let (flag, heard) = (cancel.clone(), listening.clone());
        ctrlc::set_handler(move || {
            // Only work with a progress bar looks at the flag. What it has written so far can be resumed or
            // is swept away by the next writer, so ending at once harms nothing.
            if flag.is_cancelled() || !heard.load(Ordering::Relaxed) {
                std::process::exit(130);
            }
            flag.cancel();
        })
        .context("cannot listen for Ctrl-C")?;
        Ok(Context { json: flags.json, quiet: flags.quiet, cancel, started: Instant::now(), listening })
    }

    /// A progress bar on a terminal, nothing elsewhere.
    ///
    /// From here to [`Bar::finish`] Ctrl-C raises [`Context::cancel`]; before and after it ends the program.
    pub(crate) fn bar(&self, total: u64, unit: &'static str) -> Bar {
        self.listening.store(true, Ordering::Relaxed);
        let visible = !self.quiet && std::io::stderr().is_terminal();
        Bar::new(total, unit, visible, self.listening.clone())
    }

    /// Progress that is not shown: results appear on the terminal as they come.
    pub(crate) fn hidden_bar(&self) -> Bar {
        self.listening.store(true, Ordering::Relaxed);
        Bar::new(0, "", false, self.listening.clone())
    }

    /// A remark for people: on stderr, unless `--quiet`.
    pub(crate) fn say(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            crate::output::tell(text);
        }
    }
}

/// A progress bar with rate and time left.
pub(crate) struct Bar {
    bar: ProgressBar,
    done: AtomicU64,
    started: Instant,
    listening: Arc<AtomicBool>,
}

impl Bar {
    fn new(total: u64, unit: &'static str, visible: bool, listening: Arc<AtomicBool>) -> Self {
        let target = if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let style = format!("{{wide_bar}} {{human_pos}}/{{human_len}} {unit}  {{rate}}");
        let style = ProgressStyle::with_template(&style).expect("the template is well formed");
        bar.set_style(style.with_key("rate", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let rate = state.per_sec();
            let _ = if rate > 0.0 {
                write!(out, "{}/s  {} left", three_digits(rate), duration(state.eta()))
            } else {
                write!(out, "starting")
            };
        }));
        bar.enable_steady_tick(Duration::from_millis(250));
        Bar { bar, done: AtomicU64::new(0), started: Instant::now(), listening }
    }

    /// Moves the start: work that an earlier run did counts for the bar, not for the rate.
    pub(crate) fn resume_at(&self, done: u64) {
        self.bar.set_position(done);
        self.bar.reset_eta();
    }

    /// Removes the bar; gives what was done here and how long it took.
    pub(crate) fn finish(&self) -> (u64, Duration) {
        self.listening.store(false, Ordering::Relaxed);
        self.bar.finish_and_clear();
        (self.done.load(Ordering::Relaxed), self.started.elapsed())
    }
}

impl Progress for Bar {
    fn advance(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
        self.bar.inc(done);
    }
}
