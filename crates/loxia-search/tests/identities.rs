//! What must hold of the methods whatever the data.

use std::sync::Arc;

use loxia_core::conformance::check_retriever;
use loxia_core::{Budget, Query, RecallTarget, Seed, Stop, StoppedBy};
use loxia_search::linalg::Dense;
use loxia_search::*;

use crate::synthetic::{World, world};

struct Boxed(Box<dyn Method>);

impl Method for Boxed {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn items(&self) -> usize {
        self.0.items()
    }

    fn run(&self, query: &QueryView<'_>, goal: &Goal, ledger: &mut Ledger<'_>) -> Result<Outcome> {
        self.0.run(query, goal, ledger)
    }
}

#[test]
fn every_method_keeps_the_contract_of_a_retriever() {
    let world = world(25, 2, 60, 0.3);
    let anchors = world.anchors.clone().with_item_scores(world.item_scores(20)).unwrap();
    let anchors = anchors.with_every_row(world.test.scores.clone()).unwrap();
    for name in MethodName::all() {
        let built = build(name, &anchors, &BuildOptions::default()).unwrap();
        let searcher = Searcher::new(Boxed(built.method), world.collection()).unwrap();
        check_retriever(&searcher, &world.queries(), &|query| {
            let row: usize = query.id.as_str()[1..].parse().unwrap();
            world.test.scores.row(row).to_vec()
        });
    }
}

#[test]
fn names_are_read_as_they_are_written() {
    for name in MethodName::all() {
        assert_eq!(name.to_string().parse::<MethodName>().unwrap(), name);
    }
    assert!("anncurr".parse::<MethodName>().unwrap_err().to_string().contains("posterior"));
}

fn adacur_settings(world: &World, first_stage: Arc<dyn FirstStage>) -> AdacurSettings {
    assert_eq!(first_stage.items(), world.anchors.items());
    AdacurSettings {
        first_stage,
        strategy: Strategy::Top,
        schedule: Schedule::RemainderLast { rounds: 1 },
        split: None,
        solver: Solver::published(),
        centre: false,
        seed: Seed(0),
    }
}

#[test]
fn one_round_from_a_first_stage_equals_reranking_it() {
    let world = world(20, 3, 80, 0.3);
    let dual = Arc::new(DualScan::new(world.anchors.item_vectors().unwrap().clone()));
    let rerank = Rerank::new(dual.clone());
    let adacur = Adacur::new(&world.anchors, adacur_settings(&world, dual.clone())).unwrap();
    let axn = Axn::new(
        world.anchors.item_vectors().unwrap().clone(),
        AxnSettings {
            first_stage: dual,
            schedule: Schedule::Even { rounds: 1 },
            solver: Solver::published(),
            mix: 0.2,
            shortlist: None,
        },
    )
    .unwrap();
    for query in 0..3 {
        for budget in [1, 7, 40] {
            let stop = Stop::at_budget(budget);
            let expected = world.search(&rerank, query, 5, &stop);
            assert_eq!(world.search(&adacur, query, 5, &stop), expected);
            assert_eq!(world.search(&axn, query, 5, &stop), expected);
        }
    }
}

#[test]
fn adacur_with_one_round_equals_anncur_on_those_items() {
    let world = world(30, 3, 90, 0.3);
    let anchor_items: Vec<u32> = vec![3, 14, 15, 26, 35, 53, 58, 79, 80, 89];
    for (solver, centre) in [(Solver::published(), false), (Solver::Ridge { relative: 0.05 }, true)] {
        let settings = AnncurSettings {
            share: 0.5,
            anchor_items: AnchorItems::Given(anchor_items.clone().into()),
            solver,
            centre,
            preference: Preference::Rows,
        };
        let anncur = Anncur::new(&world.anchors, settings).unwrap();
        let run = (0..3).map(|query| (format!("q{query}"), anchor_items.clone()));
        let first = Arc::new(GivenRun::new(90, run).unwrap());
        let settings = AdacurSettings { split: Some(0.5), solver, centre, ..adacur_settings(&world, first) };
        let adacur = Adacur::new(&world.anchors, settings).unwrap();
        for query in 0..3 {
            let stop = Stop::at_budget(20);
            let (left, right) =
                (world.search(&anncur, query, 5, &stop), world.search(&adacur, query, 5, &stop));
            assert_eq!(left.evidence, right.evidence);
            assert_eq!((left.rounds, right.rounds), (2, 2));
        }
    }
}

#[test]
fn adacur_with_one_random_round_equals_anncur_with_random_items() {
    let world = world(30, 3, 90, 0.3);
    let (solver, centre) = (Solver::published(), false);
    let random: Arc<dyn FirstStage> = Arc::new(RandomStart::new(90, Seed(9)));
    let settings = AdacurSettings { split: Some(0.5), ..adacur_settings(&world, random.clone()) };
    let adacur = Adacur::new(&world.anchors, settings).unwrap();
    for query in 0..3 {
        // What that start draws for the query, as the fixed items of an index.
        let id = format!("q{query}");
        let drawn = random.best(&QueryView { id: &id, vector: None, text: None }, 10).unwrap();
        let settings = AnncurSettings {
            share: 0.5,
            anchor_items: AnchorItems::Given(drawn.into()),
            solver,
            centre,
            preference: Preference::Rows,
        };
        let anncur = Anncur::new(&world.anchors, settings).unwrap();
        let stop = Stop::at_budget(20);
        let (left, right) = (world.search(&anncur, query, 5, &stop), world.search(&adacur, query, 5, &stop));
        assert_eq!((&left.evidence, left.rounds), (&right.evidence, right.rounds));
    }
}

#[test]
fn a_matrix_of_low_rank_is_recovered() {
    // Without noise the scores have rank 7: ten anchor items are enough to know the whole row.
    let world = world(30, 5, 200, 0.0);
    let settings = AnncurSettings {
        share: 0.5,
        anchor_items: AnchorItems::KMeans(world.anchors.item_vectors().unwrap().clone(), Seed(1)),
        solver: Solver::MinNorm { rcond: 1e-6 },
        centre: false,
        preference: Preference::Rows,
    };
    let anncur = Anncur::new(&world.anchors, settings).unwrap();
    let posterior = Posterior::fit(&world.anchors, PosteriorSettings::default()).unwrap();
    for query in 0..5 {
        let exact = world.search(&Exact::new(200), query, 8, &Stop::default());
        for (method, cost) in [(&anncur as &dyn Method, 20), (&posterior, 40)] {
            let answer = world.search(method, query, 8, &Stop::at_budget(cost));
            assert_eq!(answer.ranking, exact.ranking, "{} on query {query}", method.name());
        }
    }
}

#[test]
fn a_larger_budget_only_adds_items() {
    let world = world(30, 3, 150, 0.5);
    let sizes = Schedule::Fixed(vec![8, 5]);
    let posterior = Posterior::fit(&world.anchors, PosteriorSettings::default()).unwrap();
    let posterior = posterior.with_schedule(sizes.clone());
    let first = Arc::new(DualScan::new(world.anchors.item_vectors().unwrap().clone()));
    let axn = Axn::new(
        world.anchors.item_vectors().unwrap().clone(),
        AxnSettings {
            first_stage: first.clone(),
            schedule: sizes.clone(),
            solver: Solver::Ridge { relative: 0.05 },
            mix: 0.2,
            shortlist: None,
        },
    )
    .unwrap();
    let settings = AdacurSettings { schedule: sizes, ..adacur_settings(&world, first) };
    for strategy in
        [Strategy::Top, Strategy::SoftMax { temperature: 1.0 }, Strategy::Variance, Strategy::Random]
    {
        let settings = AdacurSettings { strategy, ..settings.clone() };
        let adacur = Adacur::new(&world.anchors, settings).unwrap();
        for query in 0..3 {
            for method in [&posterior as &dyn Method, &adacur, &axn] {
                let paid = |budget| {
                    let answer = world.search(method, query, 10, &Stop::at_budget(budget));
                    answer.evidence.items().collect::<std::collections::BTreeSet<u32>>()
                };
                for budget in [8, 13, 20, 33, 60] {
                    assert!(paid(budget).is_subset(&paid(budget + 9)), "{} {strategy:?}", method.name());
                }
            }
        }
    }
}

#[test]
fn answers_do_not_depend_on_threads() {
    let world = world(30, 4, 120, 0.5);
    let built = build(MethodName::Posterior, &world.anchors, &BuildOptions::default()).unwrap();
    let stop = Stop::at_budget(40);
    let alone: Vec<_> = (0..4).map(|query| world.search(&*built.method, query, 10, &stop)).collect();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for (query, expected) in alone.iter().enumerate().rev() {
                    assert_eq!(&world.search(&*built.method, query, 10, &stop), expected);
                }
            });
        }
    });
}

#[test]
fn adaptive_methods_beat_reranking_and_the_estimate_knows_it() {
    let world = world(60, 20, 400, 0.5);
    let grid = |name| {
        let built = build(name, &world.anchors, &BuildOptions::default()).unwrap();
        recall_grid(&*built.method, &world.test, &[10], &[40]).unwrap()[(0, 0)]
    };
    let (rerank, posterior) = (grid(MethodName::Rerank), grid(MethodName::Posterior));
    assert!(posterior > rerank + 0.05, "{posterior} against {rerank}");

    let options = BuildOptions { calibrate: true, ..BuildOptions::default() };
    let calibrated = build(MethodName::Posterior, &world.anchors, &options).unwrap();
    let (mut truth, mut estimate) = (0.0, 0.0);
    for query in 0..20 {
        let answer = world.search(&*calibrated.method, query, 10, &Stop::at_budget(40));
        let recall = answer.recall_estimate.unwrap();
        assert!(recall.low <= recall.mean && recall.mean <= recall.high && recall.high <= 1.0);
        let exact = world.search(&Exact::new(400), query, 10, &Stop::default());
        let found = exact.ranking.items().filter(|item| answer.ranking.items().any(|other| other == *item));
        truth += found.count() as f64 / 200.0;
        estimate += recall.mean / 20.0;
    }
    assert!((truth - estimate).abs() < 0.1, "{truth} against {estimate}");

    let stop =
        Stop { recall: Some(RecallTarget::new(0.8).unwrap()), budget: Some(Budget(390)), ..Stop::default() };
    let answer = world.search(&*calibrated.method, 0, 10, &stop);
    assert_eq!(answer.stopped_by, StoppedBy::Recall);
    assert!(answer.cost.pairs < 200, "{:?}", answer.cost);
}

#[test]
fn factors_rebuild_the_covariance_of_anchor_rows() {
    let world = world(12, 1, 30, 0.5);
    let factors = factorised_item_vectors(&world.anchors, 12, false).unwrap();
    let scores = &world.anchors.rows().scores;
    let mean = |item: usize| (0..12).map(|row| f64::from(scores[(row, item)])).sum::<f64>() / 12.0;
    for (a, b) in [(0, 0), (3, 7), (29, 11)] {
        let covariance = |row: usize| {
            (f64::from(scores[(row, a)]) - mean(a)) * (f64::from(scores[(row, b)]) - mean(b)) / 12.0
        };
        let expected: f64 = (0..12).map(covariance).sum();
        let found: f32 = factors.row(a).iter().zip(factors.row(b)).map(|(x, y)| x * y).sum();
        assert!((expected - f64::from(found)).abs() < 1e-4, "{expected} against {found}");
    }
    let _: Dense = factors;
}

#[test]
fn both_preferences_of_anncur_give_one_answer() {
    let world = world(30, 4, 90, 0.3);
    let settings = |preference| AnncurSettings {
        share: 0.4,
        anchor_items: AnchorItems::Random(Seed(3)),
        solver: Solver::published(),
        centre: false,
        preference,
    };
    let rows = Anncur::new(&world.anchors, settings(Preference::Rows)).unwrap();
    let columns = Anncur::new(&world.anchors, settings(Preference::Columns)).unwrap();
    for query in 0..4 {
        let stop = Stop::at_budget(30);
        assert_eq!(
            world.search(&rows, query, 5, &stop).ranking,
            world.search(&columns, query, 5, &stop).ranking
        );
    }
}

#[test]
fn the_oracle_is_above_anncur() {
    let world = world(30, 30, 200, 0.5);
    let mut whole = (*world.anchors.rows().scores).clone();
    whole.append_rows(&world.test.scores);
    let anchors = world.anchors.clone().with_every_row(Arc::new(whole)).unwrap();
    let recall = |name| {
        let built = build(name, &anchors, &BuildOptions::default()).unwrap();
        recall_grid(&*built.method, &world.test, &[10], &[40]).unwrap()[(0, 0)]
    };
    let (oracle, anncur) = (recall(MethodName::AnncurOracle), recall(MethodName::Anncur));
    assert!(oracle > anncur, "{oracle} against {anncur}");
    let missing = build(MethodName::AnncurOracle, &world.anchors, &BuildOptions::default());
    assert!(missing.err().unwrap().to_string().contains("whole score matrix"));
}

#[test]
fn items_in_the_query_slot_stand_in_for_anchor_queries() {
    let world = world(30, 20, 200, 0.2);
    let item_scores = world.item_scores(40);
    let anchors = world.anchors.clone().with_item_scores(item_scores.clone()).unwrap();
    let recall = |method: &dyn Method| recall_grid(method, &world.test, &[10], &[60]).unwrap()[(0, 0)];
    let random = Rerank::new(RandomStart::new(200, Seed(1)));
    for name in [MethodName::ItemCur, MethodName::FixedItem] {
        let built = build(name, &anchors, &BuildOptions::default()).unwrap();
        assert!(recall(&*built.method) > recall(&random) + 0.2, "{name}: {}", recall(&*built.method));
        let missing = build(name, &world.anchors, &BuildOptions::default());
        assert!(missing.err().unwrap().to_string().contains("items in the query slot"));
    }
    // Both layouts hold the same scores.
    let transposed = item_scores.rows().transposed();
    let again = ItemScores::items_against_anchors(&transposed, item_scores.anchors().clone()).unwrap();
    assert_eq!(again.rows().values(), item_scores.rows().values());
    assert!(ItemScores::items_against_anchors(&transposed, vec![0, 0].into()).is_err());
    assert!(ItemScores::anchors_against_items(item_scores.rows().clone(), vec![0; 40].into()).is_err());
    assert!(ItemScores::items_against_anchors(&transposed, (170..210).collect()).is_err());
}

#[test]
fn the_published_accounting_has_its_own_recalls() {
    let world = world(30, 10, 200, 0.3);
    let anchors = world.anchors.clone().with_item_scores(world.item_scores(40)).unwrap();
    let published = build_for_paper(MethodName::Anncur, &anchors, Seed(0)).unwrap().unwrap();
    assert!(published.charges_anchors());
    let recalls = paper_recalls(&*published, &world.test, &[1, 10], &[40, 80]).unwrap();
    assert_eq!((recalls.rows(), recalls.cols()), (10, 4));
    assert!(recalls.values().iter().all(|recall| (0.0..=1.0).contains(recall)));
    // Anchor items are not added to the retrieved ones: five are five.
    let view = QueryView { id: "0", vector: None, text: None };
    assert_eq!(published.retrieved(&view, world.test.scores.row(0), 12, 5).unwrap().len(), 5);
    let free = build_for_paper(MethodName::FixedItem, &anchors, Seed(0)).unwrap().unwrap();
    assert!(!free.charges_anchors());
    assert!(build_for_paper(MethodName::Rerank, &anchors, Seed(0)).unwrap().is_none());
}

#[test]
fn a_first_stage_of_its_own_is_where_methods_begin() {
    let world = world(20, 3, 80, 0.3);
    // Two candidates, the same for every query: too few for a first round of four.
    let run = |rows: usize| {
        let ids = (0..rows).map(|row| (format!("q{row}"), vec![7, 3]));
        Arc::new(GivenRun::new(80, ids).unwrap())
    };
    let queries: Vec<Query> = (0..20).map(|row| Query::plain(format!("q{row}"), "text")).collect();
    let anchors = world.anchors.clone().with_first_stage(run(20), queries.into()).unwrap();
    let rerank = build(MethodName::Rerank, &anchors, &BuildOptions::default()).unwrap().method;
    let found = world.search(&*rerank, 1, 5, &Stop::at_budget(40));
    assert_eq!((found.cost.pairs, found.stopped_by), (2, StoppedBy::Candidates));
    for name in [MethodName::Adacur, MethodName::Axn, MethodName::AdacurPlus, MethodName::AdacurUniform] {
        let method = build(name, &anchors, &BuildOptions::default()).unwrap().method;
        let found = world.search(&*method, 1, 5, &Stop::at_budget(40));
        assert_eq!(found.cost.pairs, 40, "{name}");
        assert!(found.evidence.items().any(|item| item == 7), "{name}");
    }
    let wrong = world.anchors.clone().with_first_stage(run(20), Vec::new().into());
    assert!(wrong.unwrap_err().to_string().contains("20 anchor queries and 80 items"));
}

#[test]
fn axn_stays_within_its_shortlist() {
    let world = world(20, 3, 80, 0.3);
    let dual = DualScan::new(world.anchors.item_vectors().unwrap().clone());
    let options = BuildOptions { axn_shortlist: Some(12), ..BuildOptions::default() };
    let axn = build(MethodName::Axn, &world.anchors, &options).unwrap().method;
    for query in 0..3 {
        let vector = world.test.vectors.as_ref().map(|vectors| vectors.row(query));
        let listed = dual.best(&QueryView { id: "q", vector, text: None }, 12).unwrap();
        let found = world.search(&*axn, query, 5, &Stop::at_budget(40));
        let mut scored: Vec<u32> = found.evidence.items().collect();
        assert_eq!((scored.len(), found.stopped_by), (12, StoppedBy::Candidates));
        scored.retain(|item| !listed.contains(item));
        assert!(scored.is_empty(), "{scored:?}");
    }
}

#[test]
fn a_batch_beyond_what_is_modelled_is_still_paid_and_estimated() {
    let world = world(30, 1, 5000, 0.3);
    let method = build_calibrated(&world.anchors, 1);
    let found = world.search(&*method, 0, 10, &Stop::at_budget(4000));
    assert_eq!((found.cost.pairs, found.rounds), (4000, 1));
    assert!(found.recall_estimate.unwrap().mean > 0.9);
    // Larger batches than are listed: the rest comes by prior mean.
    let method = build_calibrated(&world.anchors, 2);
    assert_eq!(world.search(&*method, 0, 10, &Stop::at_budget(4900)).cost.pairs, 4900);
}

#[test]
fn wanting_more_than_there_is_means_wanting_everything() {
    let world = world(60, 2, 60, 0.3);
    let method = build_calibrated(&world.anchors, 10);
    let stop = Stop::at_budget(40);
    let all = world.search(&*method, 0, 60, &stop).recall_estimate.unwrap();
    assert_eq!(world.search(&*method, 0, 100, &stop).recall_estimate.unwrap(), all);
    assert!(all.mean > 0.4 && all.mean <= 40.0 / 60.0, "{all:?}");
}

#[test]
fn a_target_beyond_the_estimate_is_told_and_scores_everything() {
    let world = world(60, 1, 400, 0.5);
    let method = build_calibrated(&world.anchors, 10);
    let reach = method.estimate_reach(10).unwrap();
    assert!(reach.largest_target > 0.5 && reach.largest_target < 1.0 && reach.calibrated, "{reach:?}");
    let search = |target: f64, budget: Option<Budget>| {
        let recall = Some(RecallTarget::new(target).unwrap());
        world.search(&*method, 0, 10, &Stop { recall, budget, ..Stop::default() })
    };
    assert!(!reach.certifies(RecallTarget::new(1.0).unwrap()));
    let everything = search(1.0, None);
    // All at once: rounds could not end it.
    assert_eq!(
        (everything.stopped_by, everything.cost.pairs, everything.rounds),
        (StoppedBy::Exhausted, 400, 1)
    );
    let cut = search(1.0, Some(Budget(120)));
    assert_eq!((cut.stopped_by, cut.cost.pairs), (StoppedBy::Budget, 120));
    let reached = search(0.8, None);
    assert_eq!(reached.stopped_by, StoppedBy::Recall);
    assert!(reached.recall_estimate.unwrap().mean >= 0.78);
}

#[test]
fn tops_above_the_calibrated_ones_are_marked() {
    let world = world(40, 1, 400, 0.3);
    let method = build_calibrated(&world.anchors, 10);
    let reach = |k| method.estimate_reach(k).unwrap();
    assert!(reach(100).calibrated && reach(1).calibrated);
    assert_eq!((reach(101).calibrated, reach(101).nearest), (false, 100));
    assert!(world.search(&*method, 0, 200, &Stop::at_budget(300)).recall_estimate.is_some());
    let silent = build(MethodName::Posterior, &world.anchors, &BuildOptions::default()).unwrap();
    assert!(silent.method.estimate_reach(10).is_none());
}

#[test]
fn a_query_unlike_the_anchors_is_not_said_to_be_found() {
    let mut world = world(100, 20, 600, 0.3);
    let method = build_calibrated(&world.anchors, 10);
    let estimate = |world: &World| {
        let mean =
            |query| world.search(&*method, query, 20, &Stop::at_budget(100)).recall_estimate.unwrap().mean;
        (0..20).map(mean).sum::<f64>() / 20.0
    };
    let usual = estimate(&world);
    let order: Vec<usize> = (0..600).map(|item| (item * 77 + 5) % 600).collect();
    world.test.scores = Arc::new(world.test.scores.select_cols(&order));
    let shuffled = estimate(&world);
    assert!(usual > 0.9 && shuffled < usual - 0.5, "{shuffled} against {usual}");
}

fn build_calibrated(anchors: &AnchorSet, rounds: usize) -> Box<dyn Method> {
    let options = BuildOptions { rounds, calibrate: true, ..BuildOptions::default() };
    build(MethodName::Posterior, anchors, &options).unwrap().method
}
