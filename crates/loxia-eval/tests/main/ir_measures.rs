//! What pytrec_eval lacks, and names, against ir_measures (`tools/golden/eval_ir_measures.py`).

use loxia_eval::{EvalOptions, Measure, evaluate};

use crate::fixture::{json, qrels_of, run_of};

#[test]
fn values() {
    let golden = json("ir_measures.json.gz");
    let (run, qrels) = (run_of(&golden["run"]), qrels_of(&golden["qrels"]));
    for (name, values) in golden["values"].as_object().unwrap() {
        let measure: Measure = name.parse().unwrap();
        let evaluation = evaluate(&run, &qrels, &[measure], EvalOptions::default()).unwrap();
        // Exponential gains come from a program that prints five decimals.
        let tolerance = if name.contains("exp-log2") { 0.6e-5 } else { 1e-9 };
        assert_eq!(values.as_object().unwrap().len(), 60, "{name}");
        for (query, expected) in values.as_object().unwrap() {
            let (found, expected) = (evaluation.value(query, measure).unwrap(), expected.as_f64().unwrap());
            assert!((found - expected).abs() < tolerance, "{name}, {query}: {found}, expected {expected}");
        }
    }
}

#[test]
fn names() {
    for (name, printed) in json("ir_measures.json.gz")["names"].as_object().unwrap() {
        assert_eq!(name.parse::<Measure>().unwrap().to_string(), printed.as_str().unwrap(), "{name}");
        let again: Measure = printed.as_str().unwrap().parse().unwrap();
        assert_eq!(again.to_string(), printed.as_str().unwrap());
    }
}
