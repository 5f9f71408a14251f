//! What search costs beside the scorer, on made-up scores; `bench/search.sh` runs it.
//!
//! ```text
//! search_bench build  --items 100000 --anchors 500 --dims 384 --output INDEX [--cross-validate yes]
//! search_bench search --index INDEX --budget 200 --rounds 10 --queries 20
//! ```
//! Each prints one flat JSON object. Everything runs on one thread (`--threads N` for more). Times are what all
//! threads of the process spent on processors; those that end in `wall_s` are of the clock on the wall. `search`
//! measures between its queries what one core reads from memory: machines are shared.

mod rows;

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use loxia_core::artefact::Existing;
use loxia_core::{Cancel, Cost, IdTable, NoProgress, Seed, Stop, Stream};
use loxia_search::linalg::{Dense, product_nt};
use loxia_search::{AnchorSet, Index, IndexOptions, Method, Provenance, QueryView, Schedule, search_with};
use rows::{Fallible, Flags, read_matrix};

/// Rank of the made-up scores, and queries that are kept for searching.
const RANK: usize = 64;
const TESTS: usize = 8;

fn main() -> Fallible<()> {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().ok_or("build or search")?;
    let flags = Flags::parse(arguments)?;
    let threads = flags.get("threads").unwrap_or("1").parse()?;
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let report = match command.as_str() {
        "build" => build(&flags)?,
        "search" => search(&flags)?,
        other => return Err(format!("no command {other}; there are build and search").into()),
    };
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// Scores that a dual encoder half knows: its dot products, a low-rank part, and noise.
struct World {
    scores: Dense,
    queries: Dense,
    items: Dense,
}

fn world(queries: usize, items: usize, dims: usize) -> World {
    let mut stream = Seed(1).stream("bench");
    let (query_vectors, item_vectors) =
        (uniform(&mut stream, queries, dims), uniform(&mut stream, items, dims));
    // The low-rank part sees other sides of query and item than their dot product does.
    let mix = uniform(&mut stream, RANK, dims);
    let (left, right) = (product_nt(&query_vectors, &mix), product_nt(&item_vectors, &mix));
    let mut scores = product_nt(&left, &right);
    drop((left, right));
    for query in 0..queries {
        let one = query_vectors.select_rows(&[query]);
        let dual = product_nt(&one, &item_vectors);
        for (score, dual) in scores.row_mut(query).iter_mut().zip(dual.values()) {
            *score += 3.0 * dual + 0.3 * (stream.unit() - 0.5) as f32;
        }
    }
    World { scores, queries: query_vectors, items: item_vectors }
}

/// Numbers of mean 0; rows have length 1 on average.
fn uniform(stream: &mut Stream, rows: usize, cols: usize) -> Dense {
    let scale = (12.0 / cols as f64).sqrt();
    Dense::from_fn(rows, cols, |_, _| ((stream.unit() - 0.5) * scale) as f32)
}

fn build(flags: &Flags) -> Fallible<serde_json::Value> {
    let number = |name, default: &str| -> Fallible<usize> { Ok(flags.get(name).unwrap_or(default).parse()?) };
    let (items, anchors, dims) =
        (number("items", "100000")?, number("anchors", "500")?, number("dims", "384")?);
    let output = Path::new(flags.needed("output")?);
    let World { scores, queries, items: item_vectors } = world(anchors + TESTS, items, dims);
    let tests: Vec<usize> = (anchors..anchors + TESTS).collect();
    std::fs::create_dir_all(output)?;
    write_matrix(&output.join("rows.npy"), &scores.select_rows(&tests))?;
    write_matrix(&output.join("queries.npy"), &queries.select_rows(&tests))?;
    let first: Vec<usize> = (0..anchors).collect();
    let anchor_queries = Arc::new(queries.select_rows(&first));
    let mut values = scores.into_values();
    values.truncate(anchors * items);
    values.shrink_to_fit();
    let scores = Arc::new(Dense::new(anchors, items, values)?);
    let anchors = AnchorSet::new(scores, Some((anchor_queries, Arc::new(item_vectors))))?;
    let ids: Vec<String> = (0..items).map(|item| format!("d{item}")).collect();
    let ids = IdTable::try_from(ids.as_slice())?;

    let before = processor_seconds();
    let options = IndexOptions { choose: false, calibrate: false, ..IndexOptions::default() };
    let (mut index, times) = Index::build(&anchors, ids.clone(), &options, &NoProgress, &Cancel::new())?;
    let fit = processor_seconds() - before;
    let peak = status_megabytes("VmHWM:");
    let mut report = serde_json::json!({
        "items": items, "anchors": anchors.len(), "dims": dims, "threads": rayon::current_num_threads(),
        "fit_s": fit, "fit_wall_s": times.fit.as_secs_f64(), "fit_peak_mb": peak,
    });
    if flags.get("cross-validate").is_some() {
        let before = processor_seconds();
        let (whole, times) =
            Index::build(&anchors, ids, &IndexOptions::default(), &NoProgress, &Cancel::new())?;
        report["cross_validation_s"] = (processor_seconds() - before - fit).into();
        report["cross_validation_wall_s"] = (times.choose + times.calibrate).as_secs_f64().into();
        report["choose_wall_s"] = times.choose.as_secs_f64().into();
        report["calibrate_wall_s"] = times.calibrate.as_secs_f64().into();
        index = whole;
    }
    index.write(&output.join("index"), Existing::Overwrite, &Provenance::new("search_bench build"))?;
    report["index_mb"] = (index.stored_bytes() as f64 / 1e6).into();
    Ok(report)
}

fn search(flags: &Flags) -> Fallible<serde_json::Value> {
    let directory = Path::new(flags.needed("index")?);
    let count: usize = flags.get("queries").unwrap_or("20").parse()?;
    let budget: u64 = flags.get("budget").unwrap_or("200").parse()?;
    let rounds: usize = flags.get("rounds").unwrap_or("10").parse()?;
    let index = Index::open(&directory.join("index"), &[])?.with_schedule(Schedule::Even { rounds });
    let (rows, queries) =
        (read_matrix(directory.join("rows.npy"))?, read_matrix(directory.join("queries.npy"))?);
    // Large enough to come from memory, small enough for the limit on it.
    let probe = vec![1.0f32; 32 << 20];
    let (mut whole, mut first, mut read) = (Vec::new(), Vec::new(), Vec::new());
    let (mut anonymous, mut estimated) = (0.0f64, 0);
    let mut found = 0.0;
    // The first round brings the mapped pages in and is not counted.
    for turn in 0..=count {
        let query = turn % rows.rows();
        let view = QueryView { id: "q", vector: Some(queries.row(query)), text: None };
        let row = rows.row(query);
        let before = processor_seconds();
        let answer =
            search_with(&index, &view, 10, &Stop::at_budget(budget), &Cancel::new(), |items, out, _| {
                items.iter().zip(out).for_each(|(&item, score)| *score = row[item as usize]);
                Ok(Cost { pairs: items.len() as u64, ..Cost::default() })
            })?;
        let search_s = processor_seconds() - before;
        anonymous = anonymous.max(status_megabytes("RssAnon:"));
        let before = processor_seconds();
        black_box(index.posterior().dual_scores(&view)?);
        let first_s = processor_seconds() - before;
        let before = processor_seconds();
        black_box(sum(black_box(&probe)));
        let read_s = processor_seconds() - before;
        if turn > 0 {
            whole.push(search_s * 1e3);
            first.push(first_s * 1e3);
            read.push(probe.len() as f64 * 4.0 / read_s / 1e9);
            estimated += usize::from(answer.recall_estimate.is_some());
            found += recall(row, &answer) / count as f64;
        }
    }
    let (whole, first, read) = (median(whole), median(first), median(read));
    let probe_mb = probe.len() as f64 * 4.0 / 1e6;
    let dims = index.posterior().vector_dimensions().unwrap_or(0);
    let scanned = index.items() as f64 * dims as f64 * 2.0 / (first * 1e-3) / 1e9;
    // 25 ms where a core reads 10 GB/s.
    let limit = 25.0 * 10.0 / read;
    Ok(serde_json::json!({
        "items": index.items(), "budget": budget, "rounds": rounds,
        "query_ms": whole - first, "query_with_first_stage_ms": whole, "first_stage_ms": first,
        "limit_ms": limit, "limit_over_query": limit / (whole - first),
        "read_gb_s": read, "scan_gb_s": scanned, "scan_over_read": scanned / read,
        "anonymous_mb": anonymous - probe_mb, "with_estimate": estimated == count, "recall_at_10": found,
    }))
}

/// One pass over memory with eight running sums.
fn sum(values: &[f32]) -> f32 {
    let mut sums = [0.0f32; 32];
    for chunk in values.as_chunks::<32>().0 {
        sums.iter_mut().zip(chunk).for_each(|(sum, value)| *sum += value);
    }
    sums.iter().sum()
}

fn recall(row: &[f32], answer: &loxia_core::Answer) -> f64 {
    let exact = loxia_core::Ranking::from_scores(row);
    let found: std::collections::HashSet<u32> = answer.ranking.items().collect();
    exact.top(10).iter().filter(|scored| found.contains(&scored.item)).count() as f64 / 10.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Time of all threads of the process on processors; where the system does not tell, time on the wall.
#[cfg(unix)]
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[cfg(not(unix))]
fn processor_seconds() -> f64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_secs_f64()
}

fn status_megabytes(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0) / 1e3
}

fn write_matrix(path: &Path, matrix: &Dense) -> Fallible<()> {
    let shape = [matrix.rows() as u64, matrix.cols() as u64];
    let file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut writer = loxia_core::npy::NpyWriter::<f32, _>::new(file, &shape)?;
    (0..matrix.rows()).try_for_each(|row| writer.write_row(matrix.row(row)))?;
    writer.finish()?;
    Ok(())
}
