//! Opens a collection and tells how fast that was and what it keeps in memory:
//! `cargo run --release -p loxia-data --example open_collection -- corpus.jsonl`

use std::time::Instant;

use loxia_data::{DataOptions, DataSet, Result};

fn main() -> Result<()> {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: open_collection PATH");
        std::process::exit(2);
    };
    let before = anonymous_kib();
    let started = Instant::now();
    let data = DataSet::open(&path, &DataOptions::default())?;
    let items = data.items()?;
    let seconds = started.elapsed().as_secs_f64();
    println!("{} items, digest {}", items.len(), items.digest());
    if let Ok(file) = std::fs::metadata(&path).map(|file| file.len() as f64 / 1e6) {
        println!("{file:.0} MB in {seconds:.2} s, {:.0} MB/s", file / seconds);
    }
    if let (Some(before), Some(after)) = (before, anonymous_kib()) {
        let ids: usize = items.ids().iter().map(str::len).sum();
        let kept = after.saturating_sub(before) as f64 * 1024.0;
        let count = items.len().max(1) as f64;
        println!("{:.1} bytes an item, of which {:.1} are the id", kept / count, ids as f64 / count);
    }
    Ok(())
}

/// Anonymous memory of this process, where the system tells.
fn anonymous_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.split_whitespace().next()?.parse().ok()
}
