//! Items and queries, one a line: JSON, TSV or text, as streams and as stores with random access.
//!
//! The first byte chooses the format.

#![no_main]

use loxia_data::{ItemStore, LineFormat, LineReader, QueryStore, ReadOptions};
use loxia_fuzz::with_file;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((format, bytes)) = input.split_first() else { return };
    let format = [LineFormat::Json, LineFormat::Tsv, LineFormat::Text][usize::from(format % 3)];
    let options = ReadOptions::default();
    let lines = || LineReader::new(bytes, "input", &options.limits);
    if let Ok(lines) = lines() {
        format.items(lines).for_each(drop);
    }
    if let Ok(lines) = lines() {
        format.queries(lines).for_each(drop);
    }
    with_file(bytes, |path| {
        let _ = ItemStore::open(path, None, &options);
        if let Ok(items) = ItemStore::open(path, Some(format), &options) {
            items.iter().for_each(|item| drop(item.expect("opening has read it")));
        }
        if let Ok(queries) = QueryStore::open(path, Some(format), &options) {
            queries.iter().for_each(|query| drop(query.expect("opening has read it")));
        }
    });
});
