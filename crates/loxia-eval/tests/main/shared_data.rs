//! trec_eval's own tests and TREC DL 2019, where the shared data is present.

use std::path::Path;

use loxia_core::{Qrels, Run};
use loxia_eval::{EvalOptions, Evaluation, Measure, evaluate, write_trec_eval};

use crate::fixture::{parse_output, read_qrels, read_run, shared};

fn printed(evaluation: &Evaluation, per_query: bool, run_id: bool) -> String {
    let mut text = Vec::new();
    write_trec_eval(evaluation, per_query, run_id, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Compares every measure of ours in an output of trec_eval, per query and over all, as printed; `unknown`
/// names the exceptions. Returns the number of values compared.
fn compare_with(output: &Path, evaluation: &Evaluation, unknown: &[(&str, &str)]) -> usize {
    let found = parse_output(&printed(evaluation, true, false));
    let mut compared = 0;
    for (query, values) in parse_output(&std::fs::read_to_string(output).unwrap()) {
        for (name, expected) in values {
            // Names such as Rprec_mult_0.20 and relative_P_5 are trec_eval's alone.
            if name.parse::<Measure>().is_ok() && !unknown.contains(&(query.as_str(), name.as_str())) {
                assert_eq!(found[&query][&name], expected, "{name}, {query}");
                compared += 1;
            }
        }
    }
    compared
}

/// Every measure that trec_eval and we have.
fn all_measures(level: u32) -> Vec<Measure> {
    let names =
        ["official", "recall", "infAP", "nDCG", "ndcg_cut", "map_cut", "success", "set_P", "set_relative_P"];
    let sets = ["set_recall", "set_map", "set_F"];
    let measures = names.iter().chain(&sets).flat_map(|name| Measure::parse_all(name).unwrap());
    measures.map(|measure| measure.with_level(level)).collect()
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
    let evaluation = evaluate(&run, &qrels, &all_measures(1), EvalOptions::default()).unwrap();
    assert_eq!(compare_with(&data.join("out.test.aq"), &evaluation, &[]), 3 * 64 + 66);
    assert_eq!(compare_with(&data.join("out.test.a"), &evaluation, &[]), 66);
}

/// trec_eval made this output from a run that is cut short: no query 302, and of 303 the first 84 lines.
#[test]
fn complete_means_count_missing_queries() {
    let Some(data) = shared("trec_eval") else { return };
    let (whole, qrels) = (read_run(&data.join("results.test")), read_qrels(&data.join("qrels.test")));
    let mut run = Run::new(whole.tag.clone());
    run.insert("301".into(), whole.get("301").unwrap().to_vec());
    run.insert("303".into(), whole.get("303").unwrap()[..84].to_vec());
    let evaluation = evaluate(&run, &qrels, &all_measures(1), EvalOptions { complete: true }).unwrap();
    assert_eq!(compare_with(&data.join("out.test.aqc"), &evaluation, &[]), 3 * 64 + 66);
}

/// trec_eval made this output from graded judgements that the data does not hold. They follow from the
/// output's own relevance strings, counts and nDCGs, but for the unjudged items of 303 that infAP sees:
/// 301 has six items of level 4, one of them at rank 307, and six of level 2 that were not retrieved; all of
/// 302 are of level 3; of 303 the items at ranks 89 and 99 are not relevant and the others of level 2.
#[test]
fn a_higher_relevance_level() {
    let Some(data) = shared("trec_eval") else { return };
    let (run, binary) = (read_run(&data.join("results.test")), read_qrels(&data.join("qrels.test")));
    let ranked = |query: &str| -> Vec<String> {
        let mut list = run.get(query).unwrap().to_vec();
        list.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| b.item.cmp(&a.item)));
        list.iter().map(|entry| entry.item.to_string()).collect()
    };
    let (of_301, of_303) = (ranked("301"), ranked("303"));
    let mut not_retrieved = 0;
    let mut qrels = Qrels::new();
    for (query, judgements) in binary.iter() {
        for (item, &relevant) in judgements {
            let name = item.as_str();
            let level = match query.as_str() {
                "301" if name == of_301[306] => 4,
                "301" if relevant == 1 && !of_301.iter().any(|own| own == name) => {
                    not_retrieved += 1;
                    [4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2].get(not_retrieved - 1).copied().unwrap_or(1)
                }
                "302" => 3 * relevant,
                "303" if name == of_303[88] || name == of_303[98] => 0,
                "303" => 2 * relevant,
                _ => relevant,
            };
            qrels.insert(query.clone(), item.clone(), level);
        }
    }
    let evaluation = evaluate(&run, &qrels, &all_measures(2), EvalOptions::default()).unwrap();
    let unknown = [("303", "infAP"), ("all", "infAP")];
    assert_eq!(compare_with(&data.join("out.test.aql"), &evaluation, &unknown), 3 * 64 + 66 - 2);
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
