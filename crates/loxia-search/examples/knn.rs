//! Recall of search methods against exact search, on stored scores.
//!
//! ```text
//! cargo run --release -p loxia-search --example knn -- --scores S.npy --query-vectors Q.npy \
//!     --item-vectors E.npy --anchors 0..500 --test 500..700 \
//!     --methods rerank,adacur,posterior --k 1,10,50,100 --cost 50,100,200,500 --rounds 10 [--json]
//! ```
//! Prints a table, or with `--json` an array of objects with `method, cost, k, recall`.

use std::collections::HashMap;
use std::error::Error;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use loxia_core::npy::read_npy_matrix;
use loxia_search::linalg::Dense;
use loxia_search::{AnchorSet, BuildOptions, MethodName, QueryRows, build, recall_grid};

type Fallible<T> = Result<T, Box<dyn Error>>;

fn main() -> Fallible<()> {
    let flags = parse_flags(std::env::args().skip(1))?;
    let flag = |name: &str| flags.get(name).map(String::as_str);
    let needed = |name: &str| flag(name).ok_or(format!("--{name} is missing"));

    let scores = read_matrix(needed("scores")?)?;
    let (anchor_range, test_range) = (parse_range(needed("anchors")?)?, parse_range(needed("test")?)?);
    let vectors = match (flag("query-vectors"), flag("item-vectors")) {
        (Some(queries), Some(items)) => Some((read_matrix(queries)?, Arc::new(read_matrix(items)?))),
        _ => None,
    };
    let part = |matrix: &Dense, range: &Range<usize>| -> Fallible<Arc<Dense>> {
        if range.end > matrix.rows() {
            return Err(format!("rows {range:?} asked for, but there are {}", matrix.rows()).into());
        }
        Ok(Arc::new(matrix.select_rows(&range.clone().collect::<Vec<_>>())))
    };
    let anchor_vectors = match &vectors {
        Some((queries, items)) => Some((part(queries, &anchor_range)?, items.clone())),
        None => None,
    };
    let anchors = AnchorSet::new(part(&scores, &anchor_range)?, anchor_vectors)?;
    let test_vectors = match &vectors {
        Some((queries, _)) => Some(part(queries, &test_range)?),
        None => None,
    };
    let test = QueryRows { scores: part(&scores, &test_range)?, vectors: test_vectors };

    let ks: Vec<usize> = parse_list(flag("k").unwrap_or("1,10,50,100"))?;
    let costs: Vec<u64> = parse_list(flag("cost").unwrap_or("50,100,200,500"))?;
    let options = BuildOptions { rounds: flag("rounds").unwrap_or("10").parse()?, ..BuildOptions::default() };
    let json = flags.contains_key("json");
    let mut records = Vec::new();
    for name in needed("methods")?.split(',') {
        let started = Instant::now();
        let built = build(name.parse::<MethodName>()?, &anchors, &options)?;
        let built_s = started.elapsed().as_secs_f64();
        let started = Instant::now();
        let grid = recall_grid(&*built.method, &test, &ks, &costs)?;
        let searches = (test.scores.rows() * costs.len()).max(1) as f64;
        let millis = started.elapsed().as_secs_f64() * 1e3 / searches;
        if !json {
            let mut line = format!("{name:14}");
            for row in 0..costs.len() {
                let cells: Vec<String> = grid.row(row).iter().map(|recall| format!("{recall:.3}")).collect();
                line += &format!(" {} |", cells.join(" "));
            }
            let counted: Vec<f64> = (0..costs.len())
                .flat_map(|row| ks.iter().zip(grid.row(row)).filter(|&(&k, _)| k >= 10).map(|(_, r)| *r))
                .collect();
            let mean = counted.iter().sum::<f64>() / counted.len().max(1) as f64;
            println!(
                "{line} mean {mean:.4}  [{}; built in {built_s:.1} s, {millis:.1} ms a search]",
                built.chosen
            );
        }
        for (row, cost) in costs.iter().enumerate() {
            for (k, recall) in ks.iter().zip(grid.row(row)) {
                records.push(serde_json::json!({ "method": name, "cost": cost, "k": k, "recall": recall }));
            }
        }
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&records)?);
    }
    Ok(())
}

fn parse_flags(mut arguments: impl Iterator<Item = String>) -> Fallible<HashMap<String, String>> {
    let mut flags = HashMap::new();
    while let Some(argument) = arguments.next() {
        let name = argument.strip_prefix("--").ok_or(format!("unexpected argument {argument}"))?;
        let value = if name == "json" {
            String::new()
        } else {
            arguments.next().ok_or(format!("{argument} needs a value"))?
        };
        flags.insert(name.to_owned(), value);
    }
    Ok(flags)
}

fn parse_range(text: &str) -> Fallible<Range<usize>> {
    let (start, end) = text.split_once("..").ok_or(format!("{text} is no range like 0..500"))?;
    Ok(start.parse()?..end.parse()?)
}

fn parse_list<T: std::str::FromStr<Err = std::num::ParseIntError>>(text: &str) -> Fallible<Vec<T>> {
    Ok(text.split(',').map(str::parse).collect::<Result<_, _>>()?)
}

fn read_matrix(path: &str) -> Fallible<Dense> {
    let matrix = read_npy_matrix(Path::new(path))?;
    Ok(Dense::new(matrix.rows, matrix.cols, matrix.values)?)
}
