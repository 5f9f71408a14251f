//! Runs: TREC's columns, JSON lines, JSON arrays.

#![no_main]

use loxia_data::parse_run;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = parse_run(bytes, "input", &Default::default()) else { return };
    if let Some(items) = &file.texts.items {
        items.iter().for_each(|item| drop(item.expect("it was just spooled")));
    }
    loxia_data::inspect::inspect_run(&file);
});
