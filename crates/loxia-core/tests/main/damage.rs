//! Finished matrices that were damaged, or lie.

use std::fs;
use std::path::Path;

use loxia_core::Error;
use loxia_core::artefact::Existing;
use loxia_core::matrix::ScoreMatrix;

use crate::sample::*;

const ALL: usize = usize::MAX;

fn corrupt_message(result: Result<impl Sized, Error>) -> String {
    match result {
        Err(error @ Error::Corrupt { .. }) => error.to_string(),
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("damage was not found"),
    }
}

fn change(path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    edit(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn dense(parent: &Path) -> std::path::PathBuf {
    Sample::small().fill(&parent.join("dense"), ALL).finish().unwrap()
}

#[test]
fn every_flipped_bit_of_the_data_is_found_and_its_tile_named() {
    let parent = scratch();
    let path = dense(parent.path());
    let data = path.join("scores.f32");
    for byte in 0..5 * 7 * 4 {
        change(&data, |bytes| bytes[byte] ^= 1 << (byte % 8));
        let message = corrupt_message(ScoreMatrix::open(&path).and_then(|matrix| matrix.verify()));
        let (row, col) = (byte / 28, byte % 28 / 4);
        let tile = row / 2 * 2 + col / 4;
        assert!(message.contains(&format!("tile {tile} of 6")), "{message}");
        change(&data, |bytes| bytes[byte] ^= 1 << (byte % 8));
    }
    ScoreMatrix::open(&path).unwrap().verify().unwrap();
}

#[test]
fn every_flipped_bit_of_a_sparse_file_is_found() {
    let parent = scratch();
    let path = Sample::small().fill_sparse(&parent.path().join("sparse"), ALL).finish().unwrap();
    let data = path.join("rows.csr");
    for byte in 0..fs::metadata(&data).unwrap().len() as usize {
        change(&data, |bytes| bytes[byte] ^= 1 << (byte % 8));
        corrupt_message(ScoreMatrix::open(&path).and_then(|matrix| matrix.verify()));
        change(&data, |bytes| bytes[byte] ^= 1 << (byte % 8));
    }
}

#[test]
fn every_flipped_bit_of_log_and_ids_is_found_on_opening() {
    let parent = scratch();
    let path = dense(parent.path());
    for name in ["tiles.log", "rows.ids", "cols.ids"] {
        for byte in 0..fs::metadata(path.join(name)).unwrap().len() as usize {
            change(&path.join(name), |bytes| bytes[byte] ^= 1 << (byte % 8));
            corrupt_message(ScoreMatrix::open(&path));
            change(&path.join(name), |bytes| bytes[byte] ^= 1 << (byte % 8));
        }
    }
}

#[test]
fn no_flipped_bit_of_the_manifest_panics() {
    let parent = scratch();
    let sparse = Sample::small().fill_sparse(&parent.path().join("sparse"), ALL).finish().unwrap();
    for path in [dense(parent.path()), sparse] {
        let manifest = path.join("manifest.json");
        for bit in 0..fs::metadata(&manifest).unwrap().len() as usize * 8 {
            change(&manifest, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
            if let Ok(matrix) = ScoreMatrix::open(&path) {
                let _ = matrix.verify();
            }
            change(&manifest, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        }
        ScoreMatrix::open(&path).unwrap().verify().unwrap();
    }
}

#[test]
fn unfinished_work_is_not_opened() {
    let parent = scratch();
    let path = parent.path().join("matrix");
    drop(Sample::small().fill(&path, 3));
    let message = corrupt_message(ScoreMatrix::open(&partial(&path)));
    assert!(message.contains("6 tiles need 192; resume it"), "{message}");
}

#[test]
fn a_nan_never_reaches_a_ranking() {
    let parent = scratch();
    let path = dense(parent.path());
    change(&path.join("scores.f32"), |bytes| {
        bytes[(2 * 7 + 3) * 4..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
    });
    let matrix = ScoreMatrix::open(&path).unwrap();
    assert_eq!(matrix.get(1, 3).unwrap(), Some(score(1, 3)));
    // Asked for twice: the row does not count as looked through because it failed once.
    for _ in 0..2 {
        let message = corrupt_message(matrix.row(2));
        assert!(message.contains("row 2, column 3 is NaN"), "{message}");
        assert!(matrix.get(2, 0).is_err());
    }
    assert!(matrix.export_npy(&parent.path().join("a.npy"), Existing::Refuse).is_err());

    let infinite = vec![0.0, f32::INFINITY];
    let error = ScoreMatrix::dense(ids("q", 1), ids("d", 2), infinite).unwrap_err();
    assert!(matches!(error, Error::NotFinite { row: 0, col: 1, .. }));
    let error = ScoreMatrix::sparse(ids("q", 1), ids("d", 2), [vec![(1, f32::NAN)]]).unwrap_err();
    assert!(matches!(error, Error::NotFinite { row: 0, col: 1, .. }));
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let parent = scratch();
    let path = dense(parent.path());
    let sound = files(&path);
    for (name, expected) in [("scores.f32", "139 bytes, expected 140"), ("tiles.log", "191 bytes")] {
        change(&path.join(name), |bytes| bytes.truncate(bytes.len() - 1));
        let message = corrupt_message(ScoreMatrix::open(&path));
        assert!(message.contains(expected), "{message}");
        fs::write(path.join(name), &sound[name]).unwrap();
    }
    change(&path.join("rows.ids"), |bytes| bytes.extend(b"q99\n"));
    let message = corrupt_message(ScoreMatrix::open(&path));
    assert!(message.contains("more ids than the 5 of the manifest's shape"), "{message}");
    fs::write(path.join("rows.ids"), "q0\nq1\n").unwrap();
    let message = corrupt_message(ScoreMatrix::open(&path));
    assert!(message.contains("2 ids, but the manifest's shape says 5"), "{message}");
}

#[test]
fn id_lists_of_terabytes_are_not_read_to_their_end() {
    // On a disk: a file system in memory may not hold lengths like this one.
    let parent = tempfile::tempdir().unwrap();
    let path = dense(parent.path());
    for (start, expected) in [("", "line 1: more than 65536 bytes"), ("q0\nq1\nq2\nq3\nq4\n", "more ids")] {
        let list = fs::File::create(path.join("rows.ids")).unwrap();
        fs::write(path.join("rows.ids"), start).unwrap();
        if list.set_len(1 << 42).is_err() {
            println!("skipped: no files of 4 TiB here");
            return;
        }
        let message = corrupt_message(ScoreMatrix::open(&path));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn lying_manifests_allocate_nothing() {
    let parent = scratch();
    for path in
        [dense(parent.path()), Sample::small().fill_sparse(&parent.path().join("s"), ALL).finish().unwrap()]
    {
        let manifest = fs::read_to_string(path.join("manifest.json")).unwrap();
        let refuse = |from: &str, to: &str| {
            assert!(manifest.contains(from), "{manifest}");
            fs::write(path.join("manifest.json"), manifest.replace(from, to)).unwrap();
            corrupt_message(ScoreMatrix::open(&path));
        };
        refuse("    5,\n    7\n", "1152921504606846976, 1152921504606846976");
        refuse("    5,\n    7\n", "1152921504606846976, 7");
        refuse("    5,\n    7\n", "1152921504606846976, 0");
        refuse("    5,\n    7\n", "4294967295, 67108864");
        refuse("    5,\n    7\n", "5");
        refuse("\"tile_rows\": 2", "\"tile_rows\": 0");
        refuse("\"tile_rows\": 2", "\"tile_rows\": 18446744073709551615");
        refuse("\"tile_rows\": 2", "\"tile_rows\": -1");
        refuse("\"f32\"", "\"f64\"");
        refuse("\"storage\": \"", "\"storage\": \"x");
    }
}

#[test]
fn bad_arguments_of_matrices_in_memory_are_refused() {
    let two = || (ids("q", 2), ids("d", 2));
    let dense = |scores: Vec<f32>| ScoreMatrix::dense(two().0, two().1, scores);
    assert!(dense(vec![0.0; 3]).unwrap_err().to_string().contains("2 x 2 cells, but 3 scores"));
    let sparse =
        |rows: Vec<Vec<(u32, f32)>>| ScoreMatrix::sparse(two().0, two().1, rows).unwrap_err().to_string();
    assert!(sparse(vec![vec![]]).contains("2 row ids, but 1 rows"));
    assert!(sparse(vec![vec![(2, 0.0)], vec![]]).contains("column 2 of 2"));
    assert!(sparse(vec![vec![(1, 0.0), (1, 0.0)], vec![]]).contains("column 1 twice"));
}

#[test]
fn saved_matrices_come_back() {
    let parent = scratch();
    let digests = [("model".to_owned(), "12ab".to_owned())].into();
    let rows = (0..20).map(|row| {
        let (columns, scores) = sparse_row(row, 9);
        columns.into_iter().zip(scores).collect()
    });
    let sparse = ScoreMatrix::sparse(ids("q", 20), ids("d", 9), rows).unwrap();
    let scores = (0..180).map(|cell| score(cell / 9, cell % 9)).collect();
    let dense = ScoreMatrix::dense(ids("q", 20), ids("d", 9), scores).unwrap();
    for (name, matrix) in [("sparse", sparse), ("dense", dense)] {
        let path = matrix.save(&parent.path().join(name), Existing::Refuse, &digests, "test").unwrap();
        let again = ScoreMatrix::open(&path).unwrap();
        again.verify().unwrap();
        assert_eq!(again.storage(), matrix.storage());
        assert!(again.row_ids().iter().eq(matrix.row_ids().iter()));
        assert_eq!(again.manifest().unwrap().digests["model"], "12ab");
        for row in 0..20 {
            assert_eq!(again.row(row).unwrap(), matrix.row(row).unwrap());
            assert_eq!(again.row(row).unwrap().top(3), matrix.row(row).unwrap().top(3));
        }
    }
}
