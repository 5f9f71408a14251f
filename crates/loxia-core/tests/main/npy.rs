//! Npy files against NumPy's own (`tools/golden/npy.py`).

use std::fs;
use std::path::{Path, PathBuf};

use half::f16;
use loxia_core::artefact::Existing;
use loxia_core::matrix::ScoreMatrix;
use loxia_core::npy::{NpyDtype, NpyElement, NpyHeader, NpyReader, NpyWriter, read_npy_matrix};
use proptest::prelude::*;

use crate::sample::ids;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/npy").join(name)
}

fn ramp(count: usize) -> Vec<f32> {
    (0..count).map(|number| number as f32 / 8.0 - 1.0).collect()
}

fn written<T: NpyElement>(shape: &[u64], values: &[T]) -> Vec<u8> {
    let mut writer = NpyWriter::new(Vec::new(), shape).unwrap();
    writer.write_row(values).unwrap();
    writer.finish().unwrap()
}

#[test]
fn every_readable_type_and_version_gives_the_values() {
    for name in ["f4.npy", "f2.npy", "f8.npy", "version2.npy", "version3.npy"] {
        let matrix = read_npy_matrix(&fixture(name)).unwrap();
        assert_eq!((matrix.rows, matrix.cols, matrix.rounded), (3, 5, 0), "{name}");
        assert_eq!(matrix.values, ramp(15), "{name}");
    }
    let numbers = read_npy_matrix(&fixture("u2.npy")).unwrap();
    assert_eq!(numbers.dtype, NpyDtype::U16);
    assert_eq!(numbers.values[14], 56_000.0);
    let vector = read_npy_matrix(&fixture("vector.npy")).unwrap();
    assert_eq!((vector.rows, vector.cols, vector.values), (1, 7, ramp(7)));
    let empty = read_npy_matrix(&fixture("no_rows.npy")).unwrap();
    assert_eq!((empty.rows, empty.cols), (0, 4));
    assert_eq!(read_npy_matrix(&fixture("thirds_f8.npy")).unwrap().rounded, 1);
}

#[test]
fn written_files_are_numpys_to_the_byte() {
    let bytes = |name: &str| fs::read(fixture(name)).unwrap();
    let halves: Vec<f16> = ramp(15).into_iter().map(f16::from_f32).collect();
    assert_eq!(written(&[3, 5], &ramp(15)), bytes("f4.npy"));
    assert_eq!(written(&[3, 5], &halves), bytes("f2.npy"));
    assert_eq!(written(&[7], &ramp(7)), bytes("vector.npy"));
    assert_eq!(written(&[7], &halves[..7]), bytes("vector_f2.npy"));
    assert_eq!(written::<f32>(&[0, 4], &[]), bytes("no_rows.npy"));
    assert_eq!(written(&[1, 1200], &ramp(1200)), bytes("wide.npy"));
}

#[test]
fn what_is_not_read_is_refused_with_advice() {
    for (name, expected) in [
        ("big_endian.npy", "big-endian"),
        ("fortran.npy", "ascontiguousarray"),
        ("three.npy", "a matrix has two"),
        ("structured.npy", "structured"),
    ] {
        let error = read_npy_matrix(&fixture(name)).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains(name), "{error}");
    }
}

#[test]
fn lengths_that_lie_are_refused_before_anything_is_allocated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lie.npy");
    let refused = |bytes: &[u8], expected: &str| {
        fs::write(&path, bytes).unwrap();
        let error = read_npy_matrix(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let sound = fs::read(fixture("f4.npy")).unwrap();
    refused(&sound[..sound.len() - 1], "59 bytes of numbers, but shape [3, 5] needs 60");
    refused(&[&sound[..], b"x"].concat(), "61 bytes");
    refused(&sound[..100], "within its header");
    for shape in [vec![1 << 60, 1 << 60], vec![1 << 60, 1], vec![0, 1 << 60], vec![u64::MAX]] {
        let header = NpyHeader { dtype: NpyDtype::F32, fortran_order: false, shape };
        refused(&header.to_bytes(), "shape");
    }
}

#[test]
fn matrices_without_numbers_are_of_sensible_shapes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("empty.npy");
    let open = |dtype: NpyDtype, shape: [u64; 2]| {
        let header = NpyHeader { dtype, fortran_order: false, shape: shape.to_vec() };
        fs::write(&path, header.to_bytes()).unwrap();
        NpyReader::open(&path)
    };
    for shape in [[0, 1 << 32], [0, (1 << 24) + 1], [(1 << 24) + 1, 0], [1 << 60, 0]] {
        let error = open(NpyDtype::F64, shape).unwrap_err().to_string();
        assert!(error.contains("has no numbers"), "{error}");
    }
    // Refused already because its bytes overflow before they are multiplied by none.
    assert!(open(NpyDtype::U16, [1 << 63, 0]).is_err());
    assert_eq!(open(NpyDtype::F32, [0, 1 << 24]).unwrap().cols(), 1 << 24);
    let mut reader = open(NpyDtype::F32, [1 << 10, 0]).unwrap();
    assert_eq!(std::iter::from_fn(|| reader.read_row(&mut []).unwrap().then_some(())).count(), 1 << 10);
}

#[test]
fn writers_hold_to_their_shape() {
    let mut writer = NpyWriter::<f32, _>::new(Vec::new(), &[2, 2]).unwrap();
    writer.write_row(&[1.0, 2.0]).unwrap();
    assert!(writer.write_row(&[1.0, 2.0, 3.0]).unwrap_err().to_string().contains("1 numbers more"));
    let writer = NpyWriter::<f32, _>::new(Vec::new(), &[2, 2]).unwrap();
    assert!(writer.finish().unwrap_err().to_string().contains("4 numbers fewer"));
}

#[test]
fn import_refuses_what_is_not_finite_and_other_shapes() {
    let import = |name: &str, rows: usize, cols: usize| {
        ScoreMatrix::from_npy(&fixture(name), ids("q", rows), ids("d", cols))
            .map_err(|error| error.to_string())
    };
    let error = import("nan.npy", 3, 5).unwrap_err();
    assert!(error.contains("row 1, column 2 is NaN"), "{error}");
    let error = import("huge_f8.npy", 2, 2).unwrap_err();
    assert!(error.contains("row 1, column 0 is inf"), "{error}");
    let error = import("f4.npy", 3, 4).unwrap_err();
    assert!(error.contains("shape is 3 x 5, expected 3 x 4"), "{error}");
    let (matrix, rounded) = import("thirds_f8.npy", 2, 2).unwrap();
    assert_eq!((matrix.get(0, 1).unwrap(), rounded), (Some(1.0 / 3.0), 1));
}

#[test]
fn export_is_numpys_file_and_refuses_sparse_rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("scores.npy");
    let matrix = ScoreMatrix::dense(ids("q", 3), ids("d", 5), ramp(15)).unwrap();
    matrix.export_npy(&path, Existing::Refuse).unwrap();
    assert_eq!(fs::read(&path).unwrap(), fs::read(fixture("f4.npy")).unwrap());
    assert!(matrix.export_npy(&path, Existing::Refuse).is_err());
    let sparse = ScoreMatrix::sparse(ids("q", 1), ids("d", 5), [vec![(1, 0.5)]]).unwrap();
    assert!(sparse.export_npy(&path, Existing::Overwrite).unwrap_err().to_string().contains("sparse"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn matrices_come_back(rows in 0usize..6, cols in 0usize..6, seed: u32) {
        let values: Vec<f32> = (0..rows * cols)
            .map(|place| f32::from_bits(seed.wrapping_mul(2_654_435_761).wrapping_add(place as u32 * 977)))
            .collect();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        fs::write(&path, written(&[rows as u64, cols as u64], &values)).unwrap();
        let matrix = read_npy_matrix(&path).unwrap();
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!((matrix.rows, matrix.cols), (rows, cols));
        prop_assert_eq!(bits(&matrix.values), bits(&values));
    }
}
