//! Whole npy files: read at once, and row by row.

#![no_main]

use loxia_core::npy::{NpyReader, read_npy_matrix};
use loxia_fuzz::with_file;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    with_file(bytes, |path| {
        let Ok(matrix) = read_npy_matrix(path) else { return };
        assert_eq!(matrix.values.len(), matrix.rows * matrix.cols);
        let mut reader = NpyReader::open(path).expect("it was just read");
        let mut row = vec![0.0; reader.cols()];
        let mut values = matrix.values.iter();
        while reader.read_row(&mut row).expect("it was just read") {
            for number in &row {
                assert_eq!(values.next().map(|value| value.to_bits()), Some(number.to_bits()));
            }
        }
    });
});
