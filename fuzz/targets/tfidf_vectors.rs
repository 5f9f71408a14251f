//! Stored TF-IDF vectors; what is read is written and read again, and makes vectors of its width. The
//! checksum is made to fit, so that the fuzzer gets behind it.

#![no_main]

use std::path::Path;

use loxia_search::TfidfVectors;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("tfidf.bin");
    let _ = TfidfVectors::parse(path, bytes);
    let mut bytes = bytes.to_vec();
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    if let Ok(vectors) = TfidfVectors::parse(path, &bytes) {
        assert_eq!(vectors.encode_text("red birds of the wood").len(), vectors.dims());
        let mut again = Vec::new();
        vectors.write_to(&mut again).expect("memory takes everything");
        assert!(TfidfVectors::parse(path, &again).is_ok());
    }
});
