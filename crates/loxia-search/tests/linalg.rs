//! Linear algebra against numpy and scipy (`tools/golden/search_linalg.py`).

use loxia_search::linalg::*;
use proptest::prelude::*;
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn matrix(value: &Value) -> Dense<f64> {
    let size = |key: &str| value[key].as_u64().unwrap() as usize;
    Dense::new(size("rows"), size("cols"), numbers(&value["values"])).unwrap()
}

fn assert_close(name: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (i, (x, y)) in found.iter().zip(expected).enumerate() {
        assert!((x - y).abs() <= tolerance, "{name}[{i}]: {x} against {y}");
    }
}

#[test]
fn goldens_of_numpy_and_scipy() {
    let cases: Value = serde_json::from_str(include_str!("fixtures/linalg.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let (a, b) = (matrix(&case["a"]), numbers(&case["b"]));
        let (rcond, lambda) = (case["rcond"].as_f64().unwrap(), case["lambda"].as_f64().unwrap());

        let svd = thin_svd(&a).unwrap();
        assert_close(name, &svd.values, &numbers(&case["singular_values"]), 1e-12);
        let mut scaled = svd.u.clone();
        for row in 0..scaled.rows() {
            scaled.row_mut(row).iter_mut().zip(&svd.values).for_each(|(x, s)| *x *= s);
        }
        assert_close(name, product(&scaled, &svd.vt).values(), a.values(), 1e-12);

        // The kept singular values go down to 1e-6: an inverse of size 1e6, of which rounding may move
        // eps times the condition number.
        let scale = matrix(&case["pinv"]).values().iter().fold(1.0f64, |m, x| m.max(x.abs()));
        let pinv = pseudo_inverse(&a, rcond).unwrap();
        assert_close(name, pinv.values(), matrix(&case["pinv"]).values(), 1e-8 * scale);
        let solved = min_norm_solve(&a, &b, rcond).unwrap();
        assert_close(name, &solved, &numbers(&case["min_norm"]), 1e-8 * scale);

        assert_close(name, &ridge_solve(&a, &b, lambda).unwrap(), &numbers(&case["ridge"]), 1e-11);
        let mut gram = gram_rows(&a);
        assert_close(name, &symmetric_eigen(&gram).unwrap().values, &numbers(&case["eigenvalues"]), 1e-11);
        let right = matrix(&case["kernel_right"]);
        let ridge = kernel_ridge(&gram, &right, lambda).unwrap();
        assert_close(name, ridge.values(), matrix(&case["kernel_ridge"]).values(), 1e-11);
        gram.add_diagonal(lambda);
        let cholesky = Cholesky::new(&gram).unwrap();
        assert_close(name, cholesky.factor().values(), matrix(&case["cholesky"]).values(), 1e-11);

        let qr = thin_qr(&a).unwrap();
        let diagonal: Vec<f64> = (0..qr.r.rows()).map(|i| qr.r[(i, i)].abs()).collect();
        // Without full rank the last pivots are rounding noise in both libraries.
        if !name.starts_with("rank_deficient") {
            assert_close(name, &diagonal, &numbers(&case["r_diagonal"]), 1e-12);
        }
        assert_close(name, product(&qr.q, &qr.r).values(), a.values(), 1e-12);
    }
}

#[test]
fn refuses_what_is_not_a_number_and_what_is_not_definite() {
    let nan = Dense::new(2, 2, vec![1.0f32, 0.0, f32::NAN, 1.0]).unwrap();
    let message = thin_svd(&nan).unwrap_err().to_string();
    assert!(message.contains("row 1, column 0"), "{message}");
    assert!(symmetric_eigen(&nan).is_err() && Cholesky::new(&nan).is_err() && thin_qr(&nan).is_err());
    let indefinite = Dense::new(2, 2, vec![1.0f64, 2.0, 2.0, 1.0]).unwrap();
    let message = Cholesky::new(&indefinite).unwrap_err().to_string();
    assert!(message.contains("pivot 1"), "{message}");
}

#[test]
fn empty_matrices_have_empty_factors() {
    let empty = Dense::<f64>::zeros(0, 3);
    assert!(thin_svd(&empty).unwrap().values.is_empty());
    assert_eq!(pseudo_inverse(&empty, 1e-10).unwrap().rows(), 3);
    assert!(symmetric_eigen(&Dense::<f64>::zeros(0, 0)).unwrap().values.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn an_appended_factor_equals_the_whole_one(
        size in 2usize..12,
        split in 1usize..11,
        seed in prop::collection::vec(-1.0f64..1.0, 12 * 15),
    ) {
        let split = split.min(size - 1);
        let basis = Dense::new(size, 15, seed[..size * 15].to_vec()).unwrap();
        let mut whole = gram_rows(&basis);
        whole.add_diagonal(0.5);
        let part = |rows: std::ops::Range<usize>, cols: std::ops::Range<usize>| {
            Dense::from_fn(rows.len(), cols.len(), |i, j| whole[(rows.start + i, cols.start + j)])
        };
        let mut grown = Cholesky::new(&part(0..split, 0..split)).unwrap();
        grown.append(&part(0..split, split..size), &part(split..size, split..size)).unwrap();
        assert_close("append", grown.factor().values(), Cholesky::new(&whole).unwrap().factor().values(), 1e-12);
        assert_close("rebuilt", grown.reconstruct().values(), whole.values(), 1e-12);
    }

    #[test]
    fn products_agree_with_the_definition(
        (m, n, k) in (0usize..9, 0usize..9, 1usize..9),
        values in prop::collection::vec(-1.0f64..1.0, 2 * 81),
    ) {
        let a = Dense::new(m, k, values[..m * k].to_vec()).unwrap();
        let b = Dense::new(k, n, values[81..81 + k * n].to_vec()).unwrap();
        let plain = Dense::from_fn(m, n, |i, j| (0..k).map(|t| a[(i, t)] * b[(t, j)]).sum::<f64>());
        assert_close("nn", product(&a, &b).values(), plain.values(), 1e-14);
        assert_close("nt", product_nt(&a, &b.transposed()).values(), plain.values(), 1e-14);
        assert_close("tn", product_tn(&a.transposed(), &b).values(), plain.values(), 1e-14);
        for row in 0..m {
            assert_close("row", &row_times(a.row(row), &b), plain.row(row), 1e-14);
        }
    }
}
