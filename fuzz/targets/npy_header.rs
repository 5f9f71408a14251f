//! The header of npy files; what is read is written and read again.

#![no_main]

use loxia_core::npy::NpyHeader;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok((header, data)) = NpyHeader::parse(bytes) {
        assert!(data <= bytes.len());
        let _ = header.data_length();
        let again = header.to_bytes();
        assert_eq!(NpyHeader::parse(&again), Ok((header, again.len())));
    }
});
