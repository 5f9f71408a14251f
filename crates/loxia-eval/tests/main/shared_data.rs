//! trec_eval's own tests and TREC DL 2019, where the shared data is present.

use std::path::Path;

use loxia_core::{Qrels, Run};
use loxia_eval::{EvalOptions, Evaluation, Measure, evaluate, write_trec_eval};

use crate::fixture::{read_output, read_qrels, read_run, shared};

fn printed(evaluation: &Evaluation, per_query: bool, run_id: bool) -> String {
    let mut text = Vec::new();
    write_trec_eval(evaluation, per_query, run_id, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Compares every measure of ours in an output of trec_eval, per query and over all, as printed.
fn compare_with(
    expected: &Path,
    run: &Run,
    qrels: &Qrels,
    options: EvalOptions,
    level: u32,
    queries: &[&str],
) {
    let expected = read_output(expected);
    // Names such as Rprec_mult_0.20 and relative_P_5 are trec_eval's alone.
    let measures: Vec<Measure> = expected["all"]
        .keys()
        .filter_map(|name| name.parse::<Measure>().ok())
        .map(|measure| measure.with_level(level))
        .collect();
    assert_eq!(measures.len(), 66);
    let evaluation = evaluate(run, qrels, &measures, options).unwrap();
    let text = printed(&evaluation, true, false);
    let mut compared = 0;
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if queries.contains(&fields[1]) {
            assert_eq!(expected[fields[1]][fields[0]], fields[2], "{line}");
            compared += 1;
        }
    }
    assert!(compared >= 64 * queries.len(), "{compared}");
}

#[test]
fn the_official_output_byte_for_byte() {
    let Some(data) = shared("trec_eval") else { return };
    let (run, qrels) = (read_run(&data.join("results.test")), read_qrels(&data.join("qrels.test")));
    let evaluation = evaluate(&run, &qrels, &Measure::official(), EvalOptions::default()).unwrap();
    let expected = std::fs::read_to_string(data.join("out.test")).unwrap();
    assert_eq!(printed(&evaluation, false, true), expected);
}

#[test]
fn measures_stand_in_trec_evals_order() {
    let Some(data) = shared("trec_eval") else { return };
    let (run, qrels) = (read_run(&data.join("results.test")), read_qrels(&data.join("qrels.test")));
    let expected = std::fs::read_to_string(data.join("out.test.aq")).unwrap();
    let ours = |line: &&str| {
        let name = line.split_whitespace().next().unwrap();
        name == "runid" || name.parse::<Measure>().is_ok()
    };
    let expected: Vec<&str> = expected.lines().filter(ours).collect();
    let mut measures: Vec<Measure> = expected
        .iter()
        .filter(|line| line.contains("\tall\t"))
        .filter_map(|line| line.split_whitespace().next().unwrap().parse().ok())
        .collect();
    measures.reverse();
    let evaluation = evaluate(&run, &qrels, &measures, EvalOptions::default()).unwrap();
    assert_eq!(printed(&evaluation, true, true).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn all_measures_per_query() {
    let Some(data) = shared("trec_eval") else { return };
    let (run, qrels) = (read_run(&data.join("results.test")), read_qrels(&data.join("qrels.test")));
    let all = ["301", "302", "303", "all"];
    compare_with(&data.join("out.test.aq"), &run, &qrels, EvalOptions::default(), 1, &all);
    compare_with(&data.join("out.test.a"), &run, &qrels, EvalOptions::default(), 1, &["all"]);
}

/// trec_eval made this output from a run that is cut short: no query 302, and of 303 the first 84 lines.
#[test]
fn complete_means_count_missing_queries() {
    let Some(data) = shared("trec_eval") else { return };
    let (whole, qrels) = (read_run(&data.join("results.test")), read_qrels(&data.join("qrels.test")));
    let mut run = Run::new(whole.tag.clone());
    run.insert("301".into(), whole.get("301").unwrap().to_vec());
    run.insert("303".into(), whole.get("303").unwrap()[..84].to_vec());
    let all = ["301", "302", "303", "all"];
    compare_with(&data.join("out.test.aqc"), &run, &qrels, EvalOptions { complete: true }, 1, &all);
}

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
