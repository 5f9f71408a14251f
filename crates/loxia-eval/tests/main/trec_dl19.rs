//! TREC DL 2019, where the shared data is present.

use loxia_eval::{EvalOptions, Measure, evaluate};

use crate::fixture::{read_qrels, read_run, shared};

#[test]
fn trec_deep_learning_2019() {
    let Some(data) = shared("trec-dl19") else { return };
    let (run, qrels) = (read_run(&data.join("bm25.run.gz")), read_qrels(&data.join("qrels.txt")));
    let measures = ["nDCG@10", "RR(rel=2)@10", "R(rel=2)@100"].map(|name| name.parse::<Measure>().unwrap());
    let evaluation = evaluate(&run, &qrels, &measures, EvalOptions::default()).unwrap();
    let four = |value: f64| format!("{value:.4}");
    let means: Vec<String> = evaluation.means().iter().copied().map(four).collect();
    assert_eq!(means, ["0.5121", "0.7138", "0.4988"]);
    for (query, value) in [("19335", "0.6106"), ("47923", "0.5498"), ("87181", "0.6553")] {
        assert_eq!(four(evaluation.value(query, measures[0]).unwrap()), value, "{query}");
    }
    assert!(evaluation.differences.is_empty());
}
