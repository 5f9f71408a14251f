//! trec_eval's own tests.

use loxia_core::{Qrels, Run};
use loxia_eval::{EvalOptions, Evaluation, Measure, evaluate, write_trec_eval};

use crate::fixture::{bytes, fixture, parse_output, read_qrels, read_run};

/// trec_eval's run and judgements.
fn run_and_qrels() -> (Run, Qrels) {
    (read_run(&fixture("trec_eval/results.test.gz")), read_qrels(&fixture("trec_eval/qrels.test.gz")))
}

/// An output of trec_eval.
fn output(name: &str) -> String {
    String::from_utf8(bytes(&fixture(&format!("trec_eval/{name}.gz")))).unwrap()
}

fn printed(evaluation: &Evaluation, per_query: bool, run_id: bool) -> String {
    let mut text = Vec::new();
    write_trec_eval(evaluation, per_query, run_id, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Compares every measure of ours in an output of trec_eval, per query and over all, as printed; `unknown`
/// names the exceptions. Returns the number of values compared.
fn compare_with(name: &str, evaluation: &Evaluation, unknown: &[(&str, &str)]) -> usize {
    let found = parse_output(&printed(evaluation, true, false));
    let mut compared = 0;
    for (query, values) in parse_output(&output(name)) {
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
    let (run, qrels) = run_and_qrels();
    let evaluation = evaluate(&run, &qrels, &Measure::official(), EvalOptions::default()).unwrap();
    let expected = output("out.test");
    assert_eq!(printed(&evaluation, false, true), expected);
}

#[test]
fn measures_stand_in_trec_evals_order() {
    let (run, qrels) = run_and_qrels();
    let expected = output("out.test.aq");
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
    let (run, qrels) = run_and_qrels();
    let evaluation = evaluate(&run, &qrels, &all_measures(1), EvalOptions::default()).unwrap();
    assert_eq!(compare_with("out.test.aq", &evaluation, &[]), 3 * 64 + 66);
    assert_eq!(compare_with("out.test.a", &evaluation, &[]), 66);
}

/// trec_eval made this output from a run that is cut short: no query 302, and of 303 the first 84 lines.
#[test]
fn complete_means_count_missing_queries() {
    let (whole, qrels) = run_and_qrels();
    let mut run = Run::new(whole.tag.clone());
    run.insert("301".into(), whole.get("301").unwrap().to_vec());
    run.insert("303".into(), whole.get("303").unwrap()[..84].to_vec());
    let evaluation = evaluate(&run, &qrels, &all_measures(1), EvalOptions { complete: true }).unwrap();
    assert_eq!(compare_with("out.test.aqc", &evaluation, &[]), 3 * 64 + 66);
}

/// trec_eval made this output from graded judgements that the data does not hold. They follow from the
/// output's own relevance strings, counts and nDCGs, but for the unjudged items of 303 that infAP sees:
/// 301 has six items of level 4, one of them at rank 307, and six of level 2 that were not retrieved; all of
/// 302 are of level 3; of 303 the items at ranks 89 and 99 are not relevant and the others of level 2.
#[test]
fn a_higher_relevance_level() {
    let (run, binary) = run_and_qrels();
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
    assert_eq!(compare_with("out.test.aql", &evaluation, &unknown), 3 * 64 + 66 - 2);
}
