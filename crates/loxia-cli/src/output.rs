//! stdout and stderr as a program in a pipeline treats them.
//!
//! A reader of stdout that has seen enough (`| head`) ends the program with success; one of stderr changes
//! nothing. Neither is ever a panic.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

static READER_GONE: AtomicBool = AtomicBool::new(false);

/// Whether the reader of stdout went away.
pub(crate) fn reader_is_gone() -> bool {
    READER_GONE.load(Ordering::Relaxed)
}

/// stdout, remembering that its reader went away.
pub(crate) struct Stdout(io::StdoutLock<'static>);

impl Stdout {
    /// Locks stdout.
    pub(crate) fn lock() -> Self {
        Stdout(io::stdout().lock())
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).inspect_err(note)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().inspect_err(note)
    }
}

fn note(error: &io::Error) {
    if error.kind() == io::ErrorKind::BrokenPipe {
        READER_GONE.store(true, Ordering::Relaxed);
    }
}

/// A line of results on stdout.
pub(crate) fn print_line(line: impl std::fmt::Display) -> Result<()> {
    let mut stdout = Stdout::lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}

/// A line for people on stderr; nobody may be listening.
pub(crate) fn tell(line: impl std::fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
