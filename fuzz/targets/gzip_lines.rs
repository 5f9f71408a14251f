//! Lines of plain and gzip input, under the usual bounds and under narrow ones.

#![no_main]

use loxia_data::{Limits, LineReader};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    read(bytes, &Limits::default());
    read(bytes, &Limits { line_bytes: 100, inflated_bytes: 1000, inflate_ratio: 10 });
});

fn read(bytes: &[u8], limits: &Limits) {
    let Ok(mut lines) = LineReader::new(bytes, "input", limits) else { return };
    while let Ok(Some(line)) = lines.next_line() {
        assert!(line.text().len() <= limits.line_bytes);
    }
}
