//! What must hold for any run and any judgements.

use loxia_core::{Qrels, QueryId, Run, RunEntry, Seed};
use loxia_eval::{EvalOptions, Fusion, Measure, Normalisation, evaluate, fuse};
use proptest::prelude::*;

const MEASURES: [&str; 22] = [
    "nDCG",
    "nDCG@3",
    "nDCG(dcg='exp-log2')@3",
    "RR",
    "AP",
    "AP@3",
    "P@3",
    "R@3",
    "Success@3",
    "Rprec",
    "Judged@3",
    "Bpref",
    "infAP",
    "IPrec@0.5",
    "SetP",
    "SetRelP",
    "SetR",
    "SetF",
    "SetAP",
    "gm_map",
    "R(rel=2)@3",
    "AP(judged_only=True)",
];

fn measures(names: &[&str]) -> Vec<Measure> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// For each query: item number to (score, retrieved?) and (level, judged?).
type Lists = Vec<Vec<(i8, bool, i32, bool)>>;

fn lists() -> impl Strategy<Value = Lists> {
    let item = (-2i8..3, any::<bool>(), -1i32..4, any::<bool>());
    prop::collection::vec(prop::collection::vec(item, 1..12), 1..4)
}

/// The lines of a run and of its judgements.
#[derive(Debug, Clone, Default)]
struct Lines {
    run: Vec<(String, String, f64)>,
    qrels: Vec<(String, String, i32)>,
}

impl Lines {
    fn new(lists: &Lists) -> Self {
        let mut lines = Lines::default();
        for (query, items) in lists.iter().enumerate() {
            for (item, &(score, retrieved, level, judged)) in items.iter().enumerate() {
                let (query, item) = (format!("q{query}"), format!("d{item}"));
                // The first item is always both, so that every query is evaluated.
                if retrieved || item == "d0" {
                    lines.run.push((query.clone(), item.clone(), f64::from(score)));
                }
                if judged || item == "d0" {
                    lines.qrels.push((query, item, level));
                }
            }
        }
        lines
    }

    fn run(&self) -> Run {
        let mut run = Run::new("run");
        for (query, item, score) in &self.run {
            run.push(query.as_str().into(), RunEntry { item: item.as_str().into(), score: *score });
        }
        run
    }

    fn qrels(&self) -> Qrels {
        let mut qrels = Qrels::new();
        for (query, item, level) in &self.qrels {
            qrels.insert(query.as_str().into(), item.as_str().into(), *level);
        }
        qrels
    }
}

fn means(lines: &Lines, names: &[&str]) -> Vec<f64> {
    let options = EvalOptions::default();
    evaluate(&lines.run(), &lines.qrels(), &measures(names), options).unwrap().means().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_order_of_lines_changes_nothing(lists in lists(), seed: u64) {
        let lines = Lines::new(&lists);
        let mut shuffled = lines.clone();
        let mut stream = Seed(seed).stream("shuffle");
        stream.shuffle(&mut shuffled.run);
        stream.shuffle(&mut shuffled.qrels);
        prop_assert_eq!(means(&lines, &MEASURES), means(&shuffled, &MEASURES));
    }

    #[test]
    fn no_name_breaks_the_parser(garbage in ".{0,24}", near in "(nDCG|P|set_F|AP|iprec_at_recall|é)[(@_.=,)rel0-9é' ]{0,12}") {
        for text in [&garbage, &near] {
            for measure in Measure::parse_all(text).into_iter().flatten() {
                let printed = measure.to_string();
                prop_assert_eq!(&printed.parse::<Measure>().unwrap().to_string(), &printed);
            }
        }
    }

    #[test]
    fn values_lie_between_0_and_1(lists in lists()) {
        for (name, value) in MEASURES.iter().zip(means(&Lines::new(&lists), &MEASURES)) {
            prop_assert!((0.0..=1.0 + 1e-12).contains(&value), "{}: {}", name, value);
        }
    }

    #[test]
    fn recall_and_success_grow_with_depth(lists in lists()) {
        let lines = Lines::new(&lists);
        for name in ["R", "Success", "RR", "AP"] {
            let names: Vec<String> = (1..15).map(|k| format!("{name}@{k}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let values = means(&lines, &names);
            prop_assert!(values.windows(2).all(|pair| pair[0] <= pair[1]), "{}: {:?}", name, values);
        }
    }

    #[test]
    fn deep_cutoffs_equal_none(lists in lists()) {
        let lines = Lines::new(&lists);
        let cut = means(&lines, &["nDCG@1000", "RR@1000", "AP@1000", "R@1000", "Judged@1000"]);
        prop_assert_eq!(cut, means(&lines, &["nDCG", "RR", "AP", "SetR", "Judged"]));
    }

    #[test]
    fn any_increasing_map_of_scores_keeps_the_values(lists in lists()) {
        let lines = Lines::new(&lists);
        let mut mapped = lines.clone();
        mapped.run.iter_mut().for_each(|(_, _, score)| *score = score.powi(3) * 7.0 + 100.0);
        prop_assert_eq!(means(&lines, &MEASURES), means(&mapped, &MEASURES));
    }

    #[test]
    fn fusing_a_run_with_itself_keeps_its_order(lists in lists()) {
        let run = Lines::new(&lists).run();
        let order = |run: &Run| -> Vec<(QueryId, Vec<String>)> {
            run.iter().map(|(q, list)| (q.clone(), list.iter().map(|e| e.item.to_string()).collect())).collect()
        };
        for fusion in [
            Fusion::default(),
            Fusion::CombSum(Normalisation::MinMax),
            Fusion::CombMnz(Normalisation::None),
        ] {
            let once = fuse(std::slice::from_ref(&run), fusion, None).unwrap();
            let twice = fuse(&[run.clone(), run.clone()], fusion, None).unwrap();
            prop_assert_eq!(order(&once), order(&twice));
        }
    }
}

#[test]
fn query_sets_that_differ() {
    let mut lines = Lines::default();
    for (query, item) in [("q1", "d1"), ("q3", "d1")] {
        lines.run.push((query.into(), item.into(), 1.0));
    }
    for query in ["q2", "q1"] {
        lines.qrels.push((query.into(), "d1".into(), 1));
    }
    let measures = measures(&["AP", "NumQ", "NumRel", "gm_map"]);
    let (run, qrels) = (lines.run(), lines.qrels());
    let evaluation = evaluate(&run, &qrels, &measures, EvalOptions::default()).unwrap();
    assert_eq!(evaluation.means(), [1.0, 1.0, 1.0, 1.0]);
    assert_eq!(evaluation.differences.missing, ["q2".into()]);
    assert_eq!(evaluation.differences.unjudged, ["q3".into()]);
    let complete = evaluate(&run, &qrels, &measures, EvalOptions { complete: true }).unwrap();
    assert_eq!(complete.means()[..3], [0.5, 2.0, 2.0]);
    assert!((complete.means()[3] - 0.00001f64.sqrt()).abs() < 1e-12);
    assert_eq!(complete.differences, evaluation.differences);

    lines.run.retain(|(query, ..)| query == "q3");
    let error = evaluate(&lines.run(), &qrels, &measures, EvalOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "run \"run\" and the judgements have no query in common (1 queries in the run, first \"q3\"; 2 judged, \
         first \"q1\"); check that both are of one collection"
    );
    let error = evaluate(&lines.run(), &Qrels::new(), &measures, EvalOptions { complete: true }).unwrap_err();
    assert_eq!(error.to_string(), "there are no judgements; the qrels are empty");
}

#[test]
fn levels_beyond_exponential_gains_are_refused() {
    let mut qrels = Qrels::new();
    qrels.insert("q".into(), "d".into(), i32::MAX);
    let mut run = Run::new("run");
    run.push("q".into(), RunEntry { item: "d".into(), score: 1.0 });
    let linear = evaluate(&run, &qrels, &measures(&["nDCG"]), EvalOptions::default()).unwrap();
    assert_eq!(linear.means(), [1.0]);
    let error =
        evaluate(&run, &qrels, &measures(&["nDCG(dcg='exp-log2')"]), EvalOptions::default()).unwrap_err();
    assert!(error.to_string().contains("level 2147483647 is too high"), "{error}");
}
