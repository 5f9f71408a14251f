//! Inputs that are wrong, empty or degenerate.

use std::sync::Arc;
use std::time::Duration;

use loxia_core::{Cancel, Ranking, Stop, StoppedBy};
use loxia_search::linalg::Dense;
use loxia_search::*;

use crate::synthetic::{World, world};

const LEARNING: [MethodName; 5] = [
    MethodName::Anncur,
    MethodName::AdacurPlus,
    MethodName::AdacurRandom,
    MethodName::AxnPlus,
    MethodName::Posterior,
];

fn message<T>(result: Result<T>) -> String {
    result.err().expect("an error").to_string()
}

/// A world with these anchor scores; its test rows are the anchors.
fn of_scores(scores: Dense) -> World {
    let anchors = AnchorSet::new(Arc::new(scores), None).unwrap();
    let test = anchors.rows().clone();
    World { without_vectors: anchors.clone(), anchors, test }
}

fn runs_everywhere(world: &World) {
    for name in LEARNING {
        let built = build(name, &world.anchors, &BuildOptions::default()).unwrap();
        for budget in [1, 3, 7] {
            let answer = world.search(&*built.method, 0, 5, &Stop::at_budget(budget));
            assert_eq!(answer.cost.pairs, budget.min(world.anchors.items() as u64), "{name}");
        }
    }
}

#[test]
fn sets_without_anchors_or_with_wrong_shapes_are_refused() {
    let none = AnchorSet::new(Arc::new(Dense::zeros(0, 5)), None);
    assert!(message(none).contains("at least one anchor"));
    let scores = Arc::new(Dense::zeros(2, 3));
    let wrong = AnchorSet::new(scores.clone(), Some((Dense::zeros(2, 4).into(), Dense::zeros(3, 5).into())));
    assert!(message(wrong).contains("2 x 4, expected 2 x 5"));
    let wrong = AnchorSet::new(scores, Some((Dense::zeros(2, 4).into(), Dense::zeros(2, 4).into())));
    assert!(message(wrong).contains("2 x 4, expected 3 x 4"));
}

#[test]
fn values_that_are_no_numbers_are_refused_by_place() {
    let mut scores = Dense::zeros(2, 3);
    scores[(1, 2)] = f32::NAN;
    assert!(message(AnchorSet::new(scores.into(), None)).contains("anchor scores: row 1, column 2"));
    let mut scores = Dense::zeros(2, 3);
    scores[(0, 1)] = 1e30;
    assert!(message(AnchorSet::new(scores.into(), None)).contains("at most 1e15"));
    let world = world(10, 1, 20, 0.1);
    let built = build(MethodName::Posterior, &world.anchors, &BuildOptions::default()).unwrap();
    let run = |vector: Option<&[f32]>| {
        let view = QueryView { id: "q", vector, text: None };
        search_with(&*built.method, &view, 1, &Stop::at_budget(5), &Cancel::new(), |_, _, _| unreachable!())
    };
    assert!(message(run(None)).contains("needs a query vector"));
    assert!(message(run(Some(&[0.0; 3]))).contains("1 x 3, expected 1 x 6"));
    assert!(message(run(Some(&[0.0, 0.0, f32::INFINITY, 0.0, 0.0, 0.0]))).contains("column 2"));
}

#[test]
fn methods_that_need_vectors_say_so() {
    let world = world(10, 1, 20, 0.1);
    for name in [MethodName::Rerank, MethodName::AxnDual] {
        let result = build(name, &world.without_vectors, &BuildOptions::default());
        assert!(message(result).contains("vectors"), "{name}");
    }
    for name in LEARNING {
        assert!(build(name, &world.without_vectors, &BuildOptions::default()).is_ok(), "{name}");
    }
}

#[test]
fn more_wanted_than_there_is() {
    let world = world(10, 1, 20, 0.1);
    for name in LEARNING {
        let built = build(name, &world.anchors, &BuildOptions::default()).unwrap();
        let answer = world.search(&*built.method, 0, 50, &Stop::default());
        assert_eq!((answer.ranking.len(), answer.stopped_by), (20, StoppedBy::Exhausted));
        assert_eq!(answer.recall_estimate.unwrap().low, 1.0);
        let answer = world.search(&*built.method, 0, 10, &Stop::at_budget(4));
        assert_eq!((answer.ranking.len(), answer.stopped_by), (4, StoppedBy::Budget));
        let answer = world.search(&*built.method, 0, 10, &Stop::at_budget(0));
        assert!(answer.ranking.is_empty() && answer.cost.pairs == 0);
    }
}

#[test]
fn constant_duplicate_and_rank_deficient_rows_have_answers() {
    runs_everywhere(&of_scores(Dense::from_fn(12, 9, |_, _| 2.5)));
    runs_everywhere(&of_scores(Dense::zeros(12, 9)));
    runs_everywhere(&of_scores(Dense::from_fn(12, 9, |row, _| row as f32)));
    runs_everywhere(&of_scores(Dense::from_fn(12, 9, |_, col| col as f32)));
    runs_everywhere(&of_scores(Dense::from_fn(12, 9, |row, col| (row * (col / 3)) as f32)));
    runs_everywhere(&of_scores(Dense::from_fn(1, 9, |_, col| (col % 4) as f32)));
    runs_everywhere(&of_scores(Dense::from_fn(5, 1, |row, _| row as f32)));
    runs_everywhere(&of_scores(Dense::from_fn(
        6,
        9,
        |row, col| if (row, col) == (0, 0) { 1e15 } else { 0.0 },
    )));
}

#[test]
fn one_anchor_or_many_alike_do_not_hide_the_vectors() {
    let world = world(1, 30, 400, 0.1);
    let alone = &world.anchors;
    let (vectors, items) = (alone.rows().vectors.clone().unwrap(), alone.item_vectors().unwrap().clone());
    let again = [0; 20];
    let alike = AnchorSet::new(
        alone.rows().scores.select_rows(&again).into(),
        Some((vectors.select_rows(&again).into(), items)),
    );
    for anchors in [alone, &alike.unwrap()] {
        let found = |name| {
            let built = build(name, anchors, &BuildOptions::default()).unwrap();
            let recall = |query| {
                let answer = world.search(&*built.method, query, 10, &Stop::at_budget(40));
                let best = Ranking::from_scores(world.test.scores.row(query));
                let best: Vec<u32> = best.items().take(10).collect();
                answer.ranking.items().filter(|item| best.contains(item)).count() as f64 / 10.0
            };
            (0..30).map(recall).sum::<f64>() / 30.0
        };
        let (ours, rerank) = (found(MethodName::Posterior), found(MethodName::Rerank));
        assert!(ours > rerank - 0.05, "{ours} with {} anchors, reranking finds {rerank}", anchors.len());

        // Nor those of items that come later: the same item twice is expected to score the same.
        let again: Vec<usize> = (0..20).collect();
        let vectors = anchors.item_vectors().unwrap().select_rows(&again);
        let posterior = Posterior::fit(anchors, PosteriorSettings::default()).unwrap();
        let grown = posterior.with_items(&anchors.rows().scores.select_cols(&again), Some(&vectors)).unwrap();
        let means = grown.prior(&world.view(3, "q3")).unwrap().0;
        for (old, new) in again.iter().map(|&item| (means[item], means[400 + item])) {
            assert!((old - new).abs() < 1e-3 * old.abs().max(1.0), "{old} and {new}");
        }
    }
}

#[test]
fn degenerate_rows_can_be_calibrated_on() {
    const ANCHORS: usize = 40;
    let rows: [fn(usize, usize) -> f32; 5] = [
        |_, _| 2.5,
        |row, _| row as f32,
        |_, col| col as f32,
        |row, col| (row * (col / 3)) as f32,
        |row, col| ((row % 3) * (col % 7)) as f32,
    ];
    for (case, value) in rows.into_iter().enumerate() {
        for items in [30, 150] {
            let world = of_scores(Dense::from_fn(ANCHORS, items, value));
            let options = BuildOptions { calibrate: true, ..BuildOptions::default() };
            let method = build(MethodName::Posterior, &world.anchors, &options).unwrap().method;
            for k in [1, 10, 25] {
                let found = world.search(&*method, 0, k, &Stop::at_budget(20)).recall_estimate.unwrap();
                let ordered = found.low <= found.mean && found.mean <= found.high;
                assert!(ordered && (0.0..=1.0).contains(&found.mean), "case {case}, k {k}: {found:?}");
                let reach = method.estimate_reach(k).unwrap();
                assert!((0.0..1.0).contains(&reach.largest_target), "case {case}, k {k}: {reach:?}");
            }
        }
    }
    let mut scores = Dense::zeros(ANCHORS, 30);
    scores[(ANCHORS - 1, 29)] = f32::NAN;
    assert!(message(AnchorSet::new(scores.into(), None)).contains("row 39, column 29"));
}

#[test]
fn equal_vectors_have_answers() {
    let mut degenerate = world(12, 1, 30, 0.1);
    let same = |rows: usize| Arc::new(Dense::from_fn(rows, 6, |_, col| col as f32));
    let scores = degenerate.anchors.rows().scores.clone();
    degenerate.anchors = AnchorSet::new(scores, Some((same(12), same(30)))).unwrap();
    for name in LEARNING {
        let built = build(name, &degenerate.anchors, &BuildOptions::default()).unwrap();
        let answer = degenerate.search(&*built.method, 0, 5, &Stop::at_budget(12));
        assert_eq!(answer.cost.pairs, 12, "{name}");
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let world = world(6, 1, 12, 0.1);
    let fit = |settings| message(Posterior::fit(&world.anchors, settings));
    let base = PosteriorSettings::default;
    assert!(fit(PosteriorSettings { noise: 0.0, ..base() }).contains("noise is 0"));
    assert!(fit(PosteriorSettings { transform: Some(f64::NAN), ..base() }).contains("transform"));
    assert!(fit(PosteriorSettings { rank: 0, ..base() }).contains("rank is 0"));
    let anchor_items = AnchorItems::Given(vec![1, 1].into());
    let settings = AnncurSettings {
        share: 0.5,
        anchor_items,
        solver: Solver::published(),
        centre: false,
        preference: Preference::Rows,
    };
    assert!(message(Anncur::new(&world.anchors, settings)).contains("distinct"));
    assert!(message(GivenRun::new(3, [("q".to_owned(), vec![3])])).contains("item 3"));
}

#[test]
fn a_run_that_ends_and_a_deadline_are_told_apart() {
    let world = world(6, 1, 12, 0.1);
    let rerank = Rerank::new(GivenRun::new(12, [("q0".to_owned(), vec![4, 2])]).unwrap());
    let answer = world.search(&rerank, 0, 3, &Stop::at_budget(5));
    assert_eq!((answer.cost.pairs, answer.stopped_by), (2, StoppedBy::Candidates));
    let stop = Stop { deadline: Some(Duration::ZERO), ..Stop::default() };
    for name in LEARNING {
        let built = build(name, &world.anchors, &BuildOptions::default()).unwrap();
        let answer = world.search(&*built.method, 0, 3, &stop);
        assert_eq!((answer.cost.pairs, answer.stopped_by), (0, StoppedBy::Deadline), "{name}");
    }
}
