//! Distribution and tests against scipy (`tools/golden/eval_significance.py`).

use loxia_eval::{equivalence_test, paired_t_test, student_t_cdf};
use serde_json::Value;

use crate::fixture::json;

#[track_caller]
fn close(found: f64, expected: &Value, tolerance: f64, what: &str) {
    let expected = expected.as_f64().unwrap();
    let error = (found - expected).abs() / expected.abs().max(1e-300);
    assert!(error < tolerance, "{what}: {found}, expected {expected}, relative error {error:e}");
}

#[test]
fn student_t_far_into_the_tails() {
    for case in json("significance.json")["cdf"].as_array().unwrap() {
        let (t, degrees) = (case[0].as_f64().unwrap(), case[1].as_f64().unwrap());
        if case[2].as_f64() == Some(0.0) {
            assert!(student_t_cdf(t, degrees) < 1e-300);
            continue;
        }
        close(student_t_cdf(t, degrees), &case[2], 1e-10, &format!("t {t}, {degrees} degrees"));
    }
}

#[test]
fn paired_tests() {
    let numbers = |value: &Value| -> Vec<f64> {
        value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    };
    for case in json("significance.json")["paired"].as_array().unwrap() {
        let (baseline, system) = (numbers(&case["baseline"]), numbers(&case["system"]));
        let test = paired_t_test(&baseline, &system).unwrap();
        let what = format!("{} queries", baseline.len());
        close(test.statistic, &case["statistic"], 1e-9, &what);
        close(test.p, &case["p"], 1e-8, &what);
        for tost in case["tost"].as_array().unwrap() {
            let test = equivalence_test(&baseline, &system, tost[0].as_f64().unwrap()).unwrap();
            close(test.p, &tost[1], 1e-8, &format!("{what}, delta {}", tost[0]));
        }
    }
}
