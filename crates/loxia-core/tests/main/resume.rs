//! Matrices interrupted at every kind of moment end with the same bits.

use std::fs::{self, OpenOptions};
use std::path::Path;

use loxia_core::artefact::Existing;
use loxia_core::matrix::{MatrixSpec, MatrixWriter, ScoreMatrix, TileShape};
use loxia_core::{Error, Seed};

use crate::sample::*;

const RECORD: u64 = 32;
const ALL: usize = usize::MAX;

fn cut(path: &Path, length: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

/// The finished directory of uninterrupted work.
fn unbroken(sample: &Sample, parent: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let path = parent.join("unbroken");
    sample.fill(&path, ALL).finish().unwrap();
    ScoreMatrix::open(&path).unwrap().verify().unwrap();
    files(&path)
}

#[test]
fn a_log_cut_at_any_byte_resumes_to_the_same_bits() {
    let parent = scratch();
    let sample = Sample::small();
    let expected = unbroken(&sample, parent.path());
    let filled = parent.path().join("filled");
    drop(sample.fill(&filled, ALL));
    let records = sample.fill(&filled, 0).grid().tiles() as u64;
    // Every byte of the last two records, and of the first.
    let cuts = (0..=RECORD).chain((records - 2) * RECORD..=records * RECORD);
    for length in cuts {
        let path = parent.path().join(format!("cut{length}"));
        copy(&partial(&filled), &partial(&path));
        cut(&partial(&path).join("tiles.log"), length);
        let writer = sample.fill(&path, 0);
        assert_eq!(writer.missing_tiles().count() as u64, records - length / RECORD);
        assert_eq!(writer.dropped(), 0);
        drop(writer);
        sample.fill(&path, ALL).finish().unwrap();
        assert_eq!(files(&path), expected, "log cut at {length}");
    }
}

#[test]
fn data_cut_or_changed_anywhere_is_recomputed_and_counted() {
    let parent = scratch();
    let sample = Sample::small();
    let expected = unbroken(&sample, parent.path());
    let filled = parent.path().join("filled");
    drop(sample.fill(&filled, 4));
    let length = fs::metadata(partial(&filled).join("scores.f32")).unwrap().len();
    let mut stream = Seed(7).stream("cuts");
    for round in 0..12 {
        let path = parent.path().join(format!("round{round}"));
        copy(&partial(&filled), &partial(&path));
        let data = partial(&path).join("scores.f32");
        if round % 2 == 0 {
            cut(&data, stream.below(length));
        } else {
            let mut bytes = fs::read(&data).unwrap();
            bytes[stream.below(4 * 2 * 7 * 2) as usize] ^= 1 << stream.below(8);
            fs::write(&data, bytes).unwrap();
        }
        let writer = sample.fill(&path, 0);
        let missing = writer.missing_tiles().count() as u64;
        assert_eq!(missing, 2 + writer.dropped());
        assert!(round % 2 == 0 || writer.dropped() == 1, "one flipped bit costs one tile");
        drop(writer);
        sample.fill(&path, ALL).finish().unwrap();
        assert_eq!(files(&path), expected, "round {round}");
    }
}

#[test]
fn damaged_and_foreign_records_are_dropped_and_their_tiles_recomputed() {
    let parent = scratch();
    let sample = Sample::small();
    let expected = unbroken(&sample, parent.path());
    let filled = parent.path().join("filled");
    drop(sample.fill(&filled, 4));
    let log = fs::read(partial(&filled).join("tiles.log")).unwrap();
    let record = RECORD as usize;
    let mut flipped = log.clone();
    flipped[record + 3] ^= 16;
    let zeros = [&log[..], &[0; 32]].concat();
    let twice = [&log[..record], &log[..record], &log[record..]].concat();
    for (name, log, missing, dropped) in [
        ("flipped", flipped, 3, 1),
        ("zeros", zeros, 2, 1),
        ("twice", twice, 2, 1),
        ("none", Vec::new(), 6, 0),
    ] {
        let path = parent.path().join(name);
        copy(&partial(&filled), &partial(&path));
        fs::write(partial(&path).join("tiles.log"), log).unwrap();
        let writer = sample.fill(&path, 0);
        assert_eq!((writer.missing_tiles().count(), writer.dropped()), (missing, dropped), "{name}");
        drop(writer);
        sample.fill(&path, ALL).finish().unwrap();
        assert_eq!(files(&path), expected, "{name}");
    }
}

#[test]
fn data_without_a_record_is_written_again() {
    // A crash between the sync of the data and the append to the log.
    let parent = scratch();
    let sample = Sample::small();
    let expected = unbroken(&sample, parent.path());
    let path = parent.path().join("crashed");
    drop(sample.fill(&path, 3));
    cut(&partial(&path).join("tiles.log"), 2 * RECORD);
    // And one within the replacement of the log.
    fs::write(partial(&path).join("tiles.log.new"), b"half").unwrap();
    assert_eq!(sample.fill(&path, 0).missing_tiles().next(), Some(2));
    sample.fill(&path, ALL).finish().unwrap();
    assert_eq!(files(&path), expected);
}

#[test]
fn tiles_written_out_of_order_end_with_the_same_bits() {
    let parent = scratch();
    let sample = Sample::small();
    let expected = unbroken(&sample, parent.path());
    let path = parent.path().join("shuffled");
    let mut writer = MatrixWriter::create(&path, &sample.dense(), Existing::Refuse).unwrap();
    for tile in [3, 0, 5, 1, 4, 2] {
        let scores = tile_scores(writer.grid(), tile);
        writer.write_tile(tile, &scores).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(files(&path), expected);
}

#[test]
fn a_finished_matrix_needs_nothing_more() {
    let parent = scratch();
    let sample = Sample::small();
    let path = parent.path().join("done");
    sample.fill(&path, ALL).finish().unwrap();
    assert!(MatrixWriter::resume(&path, &sample.dense(), Existing::Refuse).unwrap().is_none());
    let other = sample.dense().digest("model", "other");
    assert!(MatrixWriter::resume(&path, &other, Existing::Refuse).is_err());
    assert!(MatrixWriter::resume(&path, &other, Existing::Overwrite).unwrap().is_some());
}

#[test]
fn another_spec_is_refused_with_both_values() {
    let parent = scratch();
    let sample = Sample::small();
    let path = parent.path().join("matrix");
    drop(sample.fill(&path, 2));
    let (six, other_items) = (ids("q", 6), ids("x", 7));
    let tile = sample.tile;
    let message = |spec: MatrixSpec<'_>| {
        let error = MatrixWriter::resume(&path, &spec, Existing::Refuse).unwrap_err();
        assert!(matches!(error, Error::Mismatch { .. }), "{error}");
        error.to_string()
    };
    let shape = message(MatrixSpec::dense(&six, &sample.cols).tile(tile).digest("model", "12ab"));
    assert!(shape.contains("shape is [5, 7], expected [6, 7]"), "{shape}");
    let tiles = message(sample.dense().tile(TileShape { rows: 2, cols: 7 }));
    assert!(tiles.contains("tile_cols is 4, expected 7"), "{tiles}");
    let model = message(sample.dense().digest("model", "34cd"));
    assert!(model.contains("digest of model is 12ab, expected 34cd"), "{model}");
    let data = message(sample.dense().digest("data", "56ef"));
    assert!(data.contains("digest of data is missing, expected 56ef"), "{data}");
    let items = message(MatrixSpec::dense(&sample.rows, &other_items).tile(tile).digest("model", "12ab"));
    assert!(items.contains("digest of cols is"), "{items}");
    // The command may differ: people resume with other flags.
    assert!(
        MatrixWriter::resume(&path, &sample.dense().command("other"), Existing::Refuse).unwrap().is_some()
    );
}

#[test]
fn existing_work_is_refused_or_discarded() {
    let parent = scratch();
    let sample = Sample::small();
    let path = parent.path().join("matrix");
    drop(sample.fill(&path, 2));
    let error = MatrixWriter::create(&path, &sample.dense(), Existing::Refuse).unwrap_err().to_string();
    assert!(error.contains("--resume"), "{error}");
    let writer = MatrixWriter::create(&path, &sample.dense(), Existing::Overwrite).unwrap();
    assert_eq!(writer.missing_tiles().count(), 6);
    let error = MatrixWriter::resume(&path, &sample.dense(), Existing::Refuse).unwrap_err().to_string();
    assert!(error.contains("another process"), "{error}");
    drop(writer);
    sample.fill(&path, ALL).finish().unwrap();

    // The old one stays until the new one is complete.
    let changed = sample.dense().digest("model", "new");
    let mut writer = MatrixWriter::create(&path, &changed, Existing::Overwrite).unwrap();
    for tile in 0..6 {
        assert_eq!(ScoreMatrix::open(&path).unwrap().manifest().unwrap().digests["model"], "12ab");
        let scores = tile_scores(writer.grid(), tile);
        writer.write_tile(tile, &scores).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(ScoreMatrix::open(&path).unwrap().manifest().unwrap().digests["model"], "new");
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
}

#[test]
fn a_lock_that_is_given_up_in_a_moment_is_waited_for() {
    let parent = scratch();
    let sample = Sample::small();
    let path = parent.path().join("matrix");
    drop(sample.fill(&path, 2));
    let manifest = OpenOptions::new().write(true).open(partial(&path).join("manifest.json")).unwrap();
    while manifest.try_lock().is_err() {}
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            drop(manifest);
        });
        assert_eq!(sample.fill(&path, 0).missing_tiles().count(), 4);
    });
}

#[test]
fn writers_refuse_nan_repeated_tiles_and_early_ends() {
    let parent = scratch();
    let sample = Sample::small();
    let path = parent.path().join("matrix");
    let mut writer = sample.fill(&path, 1);
    let mut scores = tile_scores(writer.grid(), 3);
    scores[4] = f32::NAN;
    let error = writer.write_tile(3, &scores).unwrap_err();
    assert!(matches!(error, Error::NotFinite { row: 3, col: 5, .. }), "{error}");
    let scores = tile_scores(writer.grid(), 0);
    assert!(writer.write_tile(0, &scores).unwrap_err().to_string().contains("already"));
    let error = writer.finish().unwrap_err().to_string();
    assert!(error.contains("5 tiles are not written") && error.contains("tile 1 of 6"), "{error}");
    assert!(partial(&path).exists() && !path.exists());
}

#[test]
fn sparse_rows_resume_to_the_same_bits_from_any_cut() {
    let parent = scratch();
    let sample = Sample { rows: ids("q", 9), ..Sample::small() };
    let unbroken = parent.path().join("unbroken");
    sample.fill_sparse(&unbroken, ALL).finish().unwrap();
    let matrix = ScoreMatrix::open(&unbroken).unwrap();
    matrix.verify().unwrap();
    for row in 0..9 {
        let (columns, scores) = sparse_row(row, 7);
        assert!(matrix.row(row).unwrap().iter().eq(columns.into_iter().zip(scores)));
    }
    let expected = files(&unbroken);
    let filled = parent.path().join("filled");
    drop(sample.fill_sparse(&filled, 4));
    for file in ["tiles.log", "rows.csr"] {
        let length = fs::metadata(partial(&filled).join(file)).unwrap().len();
        for cut_at in (0..length).step_by(5) {
            let path = parent.path().join(format!("{file}{cut_at}"));
            copy(&partial(&filled), &partial(&path));
            cut(&partial(&path).join(file), cut_at);
            drop(sample.fill_sparse(&path, 1));
            sample.fill_sparse(&path, ALL).finish().unwrap();
            assert_eq!(files(&path), expected, "{file} cut at {cut_at}");
        }
    }
}

#[test]
fn matrices_without_rows_or_columns_are_fine() {
    let parent = scratch();
    for (rows, cols) in [(0, 0), (0, 3), (3, 0)] {
        let (rows, cols) = (ids("q", rows), ids("d", cols));
        let sample = Sample { rows, cols, tile: TileShape { rows: 1, cols: 1 } };
        let path = parent.path().join(format!("{}x{}", sample.rows.len(), sample.cols.len()));
        sample.fill(&path, ALL).finish().unwrap();
        let sparse = parent.path().join(format!("sparse{}x{}", sample.rows.len(), sample.cols.len()));
        sample.fill_sparse(&sparse, ALL).finish().unwrap();
        for path in [path, sparse] {
            let matrix = ScoreMatrix::open(&path).unwrap();
            matrix.verify().unwrap();
            assert!((0..matrix.rows()).all(|row| matrix.row(row).unwrap().is_empty()));
        }
    }
}
