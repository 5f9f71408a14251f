//! What this process has used: time on the clock, time on the cores, memory.

use std::time::Instant;

/// Time that some work took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Took {
    /// On the clock, in seconds.
    pub(super) wall: f64,
    /// On all cores together, user and system, in seconds; `None` where the system does not say.
    pub(super) cpu: Option<f64>,
}

/// Runs and times some work.
pub(super) fn timed<T>(work: impl FnOnce() -> T) -> (T, Took) {
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    let result = work();
    let wall = wall.elapsed().as_secs_f64();
    let cpu = cpu.zip(cpu_seconds()).map(|(before, after)| after - before);
    (result, Took { wall, cpu })
}

#[cfg(unix)]
fn cpu_seconds() -> Option<f64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

#[cfg(not(unix))]
fn cpu_seconds() -> Option<f64> {
    None
}

/// Most memory this process has held so far, in bytes, where the system says so.
pub(super) fn peak_memory() -> Option<u64> {
    status_bytes("VmHWM:")
}

/// Memory this process holds, in bytes, where the system says so.
pub(super) fn memory() -> Option<u64> {
    status_bytes("VmRSS:")
}

/// A line of Linux's `/proc/self/status`, which counts in units of 1024 bytes.
fn status_bytes(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
