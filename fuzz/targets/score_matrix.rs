//! A directory with a score matrix, dense or sparse: opened, verified, every row read.
//!
//! The first byte says whether digests and checksums are made right first; otherwise nothing behind them
//! would ever be reached.

#![no_main]

use loxia_core::artefact::Digester;
use loxia_core::matrix::ScoreMatrix;
use loxia_fuzz::{files_of, with_directory, write_files};
use serde_json::Value;

const FILES: [&str; 6] = ["manifest.json", "rows.ids", "cols.ids", "tiles.log", "scores.f32", "rows.csr"];
const RECORD: usize = 32;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((repair, input)) = input.split_first() else { return };
    let mut files: Vec<(&str, Vec<u8>)> =
        files_of(input, &FILES).into_iter().map(|(name, content)| (name, content.to_vec())).collect();
    if repair & 1 == 1 {
        repair_digests(&mut files);
        repair_log(&mut files);
    }
    with_directory(|directory| {
        write_files(directory, &files);
        let Ok(matrix) = ScoreMatrix::open(directory) else { return };
        let sound = matrix.verify().is_ok();
        for row in 0..matrix.rows() {
            match matrix.row(row) {
                Ok(view) => {
                    assert!(
                        view.iter().all(|(col, score)| (col as usize) < matrix.cols() && score.is_finite())
                    );
                    view.top(3);
                }
                Err(_) => assert!(!sound, "verified, but row {row} cannot be read"),
            }
        }
    });
});

/// The content of a file as it will lie in the directory: the last of that name.
fn content<'a>(files: &'a [(&str, Vec<u8>)], name: &str) -> &'a [u8] {
    files.iter().rev().find(|file| file.0 == name).map_or(&[], |file| &file.1)
}

/// Writes the digests of the id lists into the manifest, if that is one.
fn repair_digests(files: &mut [(&str, Vec<u8>)]) {
    let digest = |name| {
        let mut digester = Digester::new();
        digester.update(content(files, name));
        Value::String(digester.finish())
    };
    let digests = [("rows", digest("rows.ids")), ("cols", digest("cols.ids"))];
    for (_, manifest) in files.iter_mut().filter(|file| file.0 == "manifest.json") {
        let Ok(mut json) = serde_json::from_slice::<Value>(manifest) else { continue };
        let Some(kept) = json.get_mut("digests").and_then(Value::as_object_mut) else { continue };
        kept.extend(digests.iter().map(|(name, digest)| (String::from(*name), digest.clone())));
        *manifest = json.to_string().into_bytes();
    }
}

/// Makes each record's checksum that of its bytes, where they lie together, and its own right.
fn repair_log(files: &mut [(&str, Vec<u8>)]) {
    let sparse = content(files, "manifest.json").windows(8).any(|word| word == b"\"sparse\"");
    let data = content(files, if sparse { "rows.csr" } else { "scores.f32" }).to_vec();
    for (_, log) in files.iter_mut().filter(|file| file.0 == "tiles.log") {
        for record in log.chunks_exact_mut(RECORD) {
            let number = |at: usize| {
                u64::from_le_bytes(*record[at..].first_chunk().expect("within the record")) as usize
            };
            let (start, length) = (number(8), number(16));
            if let Some(bytes) = start.checked_add(length).and_then(|end| data.get(start..end)) {
                record[24..28].copy_from_slice(&crc32fast::hash(bytes).to_le_bytes());
            }
            let own = crc32fast::hash(&record[..28]);
            record[28..].copy_from_slice(&own.to_le_bytes());
        }
    }
}
