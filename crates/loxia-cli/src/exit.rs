//! Exit codes, and errors as people see them.

use std::process::ExitCode;

use anyhow::Error;

/// How a command that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything was done.
    Done,
    /// Done, but some inputs were skipped.
    Skipped,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(match outcome {
            Outcome::Done => 0,
            Outcome::Skipped => 3,
        })
    }
}

/// Flags that are each fine but do not fit together, or one that is missing.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// A usage error as the result of a function.
pub(crate) fn usage<T>(message: impl Into<String>) -> anyhow::Result<T> {
    Err(Usage(message.into()).into())
}

/// Prints an error, once, and gives its exit code.
pub(crate) fn of_error(error: &Error) -> ExitCode {
    if let Some(clap) = error.downcast_ref::<clap::Error>() {
        // Help and version are "errors" of clap that go to stdout and succeed.
        let _ = clap.print();
        return ExitCode::from(clap.exit_code() as u8);
    }
    let code = code_of(error);
    if code != 0 {
        crate::output::tell(format_args!("error: {}", chain(error)));
    }
    ExitCode::from(code)
}

fn code_of(error: &Error) -> u8 {
    use loxia::core::Error as Core;
    if crate::output::reader_is_gone() {
        // The reader of our results has seen enough.
        return 0;
    }
    for cause in error.chain() {
        // A kernel that is not to be had is asked for in the environment.
        let kernel = |error: &loxia::nn::Error| matches!(error, loxia::nn::Error::Kernel { .. });
        let by_engine = match cause.downcast_ref::<loxia::model::Error>() {
            Some(loxia::model::Error::Engine(error)) => Some(error),
            _ => cause.downcast_ref::<loxia::nn::Error>(),
        };
        if cause.is::<Usage>() || by_engine.is_some_and(kernel) {
            return 2;
        }
        // The search crate's errors speak for those of the core within them, also in a chain.
        let core = match cause.downcast_ref::<loxia::search::Error>() {
            Some(loxia::search::Error::Core(core)) => Some(core),
            _ => cause.downcast_ref::<Core>(),
        };
        match core {
            Some(Core::Cancelled) => return 130,
            Some(Core::Corrupt { .. } | Core::Mismatch { .. }) => return 4,
            _ => {}
        }
    }
    1
}

/// The whole chain on one line, without repeating a cause that its parent already quotes.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
