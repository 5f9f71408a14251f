//! Random rankings with many ties against pytrec_eval (`tools/golden/eval_ties.py`).

use loxia_eval::{EvalOptions, Measure, evaluate};

use crate::fixture::{json, qrels_of, run_of};

#[test]
fn a_thousand_random_cases_with_ties() {
    let cases = json("ties.json.gz");
    let cases = cases.as_array().unwrap();
    assert_eq!(cases.len(), 1000);
    let mut compared = 0;
    for (number, case) in cases.iter().enumerate() {
        let (run, qrels) = (run_of(&case["run"]), qrels_of(&case["qrels"]));
        let level = case["level"].as_u64().unwrap() as u32;
        for (query, values) in case["values"].as_object().unwrap() {
            let names: Vec<&String> = values.as_object().unwrap().keys().collect();
            let measures: Vec<Measure> =
                names.iter().map(|name| name.parse::<Measure>().unwrap().with_level(level)).collect();
            let evaluation = evaluate(&run, &qrels, &measures, EvalOptions::default()).unwrap();
            for (name, measure) in names.into_iter().zip(measures) {
                let expected = values[name].as_f64().unwrap();
                let found = evaluation.value(query, measure).unwrap();
                assert!(
                    (found - expected).abs() < 1e-9,
                    "case {number}, {query}, {name} (level {level}): {found}, expected {expected}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 50_000, "{compared}");
}
