//! Recall of search methods against exact search, on stored scores.
//!
//! ```text
//! cargo run --release -p loxia-search --example knn -- --scores S.npy --query-vectors Q.npy \
//!     --item-vectors E.npy --anchors 0..500 --test 500..700 \
//!     --methods rerank,adacur,posterior --k 1,10,50,100 --cost 50,100,200,500 --rounds 10 [--json]
//! ```
//! Prints a table, or with `--json` an array of objects with `method, cost, k, recall`. Without vectors
//! the methods that can do without them still run.

mod rows;

use std::time::Instant;

use loxia_search::{BuildOptions, MethodName, build, recall_grid};
use rows::{Fallible, Flags};

fn main() -> Fallible<()> {
    let flags = Flags::parse(std::env::args().skip(1))?;
    let (anchors, test) = flags.read_rows()?;
    let ks: Vec<usize> = flags.list("k", "1,10,50,100")?;
    let costs: Vec<u64> = flags.list("cost", "50,100,200,500")?;
    let options =
        BuildOptions { rounds: flags.get("rounds").unwrap_or("10").parse()?, ..BuildOptions::default() };
    let json = flags.get("json").is_some();
    let mut records = Vec::new();
    for name in flags.needed("methods")?.split(',') {
        let started = Instant::now();
        let built = build(name.parse::<MethodName>()?, &anchors, &options)?;
        let built_s = started.elapsed().as_secs_f64();
        let started = Instant::now();
        let grid = recall_grid(&*built.method, &test, &ks, &costs)?;
        let searches = (test.scores.rows() * costs.len()).max(1) as f64;
        let millis = started.elapsed().as_secs_f64() * 1e3 / searches;
        for (row, cost) in costs.iter().enumerate() {
            for (k, recall) in ks.iter().zip(grid.row(row)) {
                records.push(serde_json::json!({ "method": name, "cost": cost, "k": k, "recall": recall }));
            }
        }
        if json {
            continue;
        }
        let mut line = format!("{name:14}");
        let (mut sum, mut count) = (0.0, 0.0f64);
        for row in 0..costs.len() {
            for (&k, recall) in ks.iter().zip(grid.row(row)) {
                line += &format!(" {recall:.3}");
                if k >= 10 {
                    (sum, count) = (sum + recall, count + 1.0);
                }
            }
            line += " |";
        }
        let mean = sum / count.max(1.0);
        println!(
            "{line} mean {mean:.4}  [{}; built in {built_s:.1} s, {millis:.1} ms a search]",
            built.chosen
        );
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&records)?);
    }
    Ok(())
}
