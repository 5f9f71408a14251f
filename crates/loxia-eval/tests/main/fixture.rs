//! Runs, judgements and goldens for the tests.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use loxia_core::{Qrels, Run, RunEntry};
use serde_json::Value;

/// Where a fixture of this crate is.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub(crate) fn json(name: &str) -> Value {
    serde_json::from_slice(&bytes(&fixture(name))).unwrap()
}

/// The content of a file, unpacked if its name ends in `.gz`.
pub(crate) fn bytes(path: &Path) -> Vec<u8> {
    let raw = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_none_or(|extension| extension != "gz") {
        return raw;
    }
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&raw[..]).read_to_end(&mut unpacked).unwrap();
    unpacked
}

/// A folder of the shared data, or `None` with a note if it is not there.
pub(crate) fn shared(folder: &str) -> Option<PathBuf> {
    let root = std::env::var_os("LOXIA_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let path = root.join(folder);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no {} (set LOXIA_TEST_DATA)", path.display());
    None
}

/// Object of objects of numbers: query, item, number.
fn nested(value: &Value) -> impl Iterator<Item = (&str, &str, f64)> {
    value.as_object().unwrap().iter().flat_map(|(query, items)| {
        let items = items.as_object().unwrap().iter();
        items.map(move |(item, number)| (query.as_str(), item.as_str(), number.as_f64().unwrap()))
    })
}

pub(crate) fn run_of(value: &Value) -> Run {
    let mut run = Run::new("golden");
    for (query, item, score) in nested(value) {
        run.push(query.into(), RunEntry { item: item.into(), score });
    }
    run
}

pub(crate) fn qrels_of(value: &Value) -> Qrels {
    let mut qrels = Qrels::new();
    for (query, item, level) in nested(value) {
        qrels.insert(query.into(), item.into(), level as i32);
    }
    qrels
}

/// A TREC run; the readers of loxia-data are not used, so that this crate is tested alone.
pub(crate) fn read_run(path: &Path) -> Run {
    let text = String::from_utf8(bytes(path)).unwrap();
    let mut run = Run::default();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        run.tag = fields[5].to_owned();
        let entry = RunEntry { item: fields[2].into(), score: fields[4].parse().unwrap() };
        run.push(fields[0].into(), entry);
    }
    run
}

pub(crate) fn read_qrels(path: &Path) -> Qrels {
    let text = String::from_utf8(bytes(path)).unwrap();
    let mut qrels = Qrels::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        qrels.insert(fields[0].into(), fields[2].into(), fields[3].parse().unwrap());
    }
    qrels
}

/// trec_eval's output: query, then measure, then the value as printed.
pub(crate) fn parse_output(text: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut output: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        output.entry(fields[1].to_owned()).or_default().insert(fields[0].to_owned(), fields[2].to_owned());
    }
    output
}
