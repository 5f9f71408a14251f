//! The searches of `loxia eval knn`, and what is made of them.

use anyhow::Result;
use loxia::core::{Cancel, Progress, Seed, Stop};
use loxia::eval::{Interval, LEAST_RESAMPLES, bootstrap_mean};
use loxia::search::{
    AnchorSet, BuildOptions, MethodName, QueryRows, RowOutcome, build_for_paper, build_for_seeds,
    paper_recalls, search_row,
};
use rayon::prelude::*;

use super::estimates::EstimateCell;
use super::input::Rows;
use super::targets::TargetCell;

/// The cells of the mean that methods are compared by.
const MEAN_KS: [usize; 3] = [10, 50, 100];
const MEAN_COSTS: [u64; 4] = [50, 100, 200, 500];
const CONFIDENCE: f64 = 0.95;
/// Seed of the intervals' resamples: the same queries are drawn for every method.
const RESAMPLING: Seed = Seed(42);

/// What is to be searched.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) methods: Vec<MethodName>,
    pub(super) ks: Vec<usize>,
    pub(super) costs: Vec<u64>,
    pub(super) rounds: usize,
    pub(super) seeds: Vec<u64>,
    pub(super) anchor_counts: Vec<usize>,
    pub(super) estimate: bool,
    /// Recall targets to stop at.
    pub(super) targets: Vec<f64>,
    /// AXN looks only at as many of the first stage's best.
    pub(super) axn_shortlist: Option<usize>,
    /// Whether methods that a publication counted otherwise are counted so.
    pub(super) as_in_paper: bool,
}

/// One method with one number of anchor rows.
#[derive(Debug)]
pub(super) struct MethodResult {
    pub(super) method: MethodName,
    pub(super) anchors: usize,
    /// Seeds it was averaged over.
    pub(super) seeds: usize,
    /// Its chosen settings, for each seed that differs.
    pub(super) chosen: Vec<String>,
    /// One for each cost, in each of them one for each k.
    pub(super) cells: Vec<Vec<Cell>>,
    /// Mean over the twelve cells, where they are all there.
    pub(super) mean12: Option<Cell>,
    pub(super) estimates: Vec<EstimateCell>,
    pub(super) targets: Vec<TargetCell>,
}

/// Mean recall over queries at one cost and one k.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) cost: u64,
    pub(super) k: usize,
    pub(super) recall: f64,
    /// Standard deviation over queries.
    pub(super) deviation: f64,
    /// Standard deviation of the means of the seeds.
    pub(super) seed_deviation: f64,
    pub(super) interval: Interval,
    /// Mean pairs paid and batches.
    pub(super) pairs: f64,
    pub(super) rounds: f64,
}

impl Plan {
    /// How many searches the plan is, estimates apart.
    pub(super) fn searches(&self, queries: usize) -> u64 {
        let per_method = |&method: &MethodName| match method {
            MethodName::Exact => 1,
            _ => self.costs.len(),
        };
        let methods: usize = self.methods.iter().map(per_method).sum();
        (methods * self.anchor_counts.len() * queries) as u64
    }

    /// Makes every method and searches every test row with it.
    pub(super) fn run(
        &self,
        rows: &Rows,
        progress: &dyn Progress,
        cancel: &Cancel,
        say: &dyn Fn(&str),
    ) -> Result<Vec<MethodResult>> {
        let test = rows.test_rows();
        let mut results = Vec::new();
        for &count in &self.anchor_counts {
            let anchors = rows.anchor_set(count)?;
            for &method in &self.methods {
                cancel.check()?;
                let oracle = match method {
                    MethodName::AnncurOracle => Some(rows.anchor_set_of_oracle(count)?),
                    _ => None,
                };
                let anchors = oracle.as_ref().unwrap_or(&anchors);
                let published =
                    if self.as_in_paper { self.run_as_in_paper(method, anchors, &test)? } else { None };
                results.push(match published {
                    Some(result) => {
                        progress.advance((test.scores.rows() * self.costs.len()) as u64);
                        result
                    }
                    None => self.run_method(method, anchors, &test, progress, cancel, say)?,
                });
            }
        }
        Ok(results)
    }

    fn run_method(
        &self,
        method: MethodName,
        anchors: &AnchorSet,
        test: &QueryRows,
        progress: &dyn Progress,
        cancel: &Cancel,
        say: &dyn Fn(&str),
    ) -> Result<MethodResult> {
        let seeds = if method.draws(anchors) { &self.seeds[..] } else { &self.seeds[..1] };
        let budgets: Vec<(u64, Stop)> = match method {
            MethodName::Exact => vec![(anchors.items() as u64, Stop::default())],
            _ => self.costs.iter().map(|&cost| (cost, Stop::at_budget(cost))).collect(),
        };
        let queries = test.scores.rows();
        let (mut chosen, mut estimates, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        // By seed, query and cost.
        let mut outcomes: Vec<Vec<Vec<RowOutcome>>> = Vec::new();
        let options = BuildOptions {
            rounds: self.rounds,
            calibrate: self.estimate || !self.targets.is_empty(),
            axn_shortlist: self.axn_shortlist,
            ..BuildOptions::default()
        };
        let named: Vec<Seed> = seeds.iter().map(|&seed| Seed(seed)).collect();
        for (at, built) in build_for_seeds(method, anchors, &options, &named)?.into_iter().enumerate() {
            if !built.chosen.is_empty() && !chosen.contains(&built.chosen) {
                chosen.push(built.chosen);
            }
            let search = |query: usize| -> Result<Vec<RowOutcome>> {
                let mut found = Vec::with_capacity(budgets.len());
                for (_, stop) in &budgets {
                    found.push(search_row(&*built.method, test, query, &self.ks, stop, cancel)?);
                }
                if at == 0 {
                    progress.advance(budgets.len() as u64);
                }
                Ok(found)
            };
            outcomes.push((0..queries).into_par_iter().map(search).collect::<Result<_>>()?);
            if at == 0 && self.estimate && method != MethodName::Exact {
                estimates = self.estimates(&*built.method, &budgets, test, &outcomes[0], cancel)?;
            }
            let estimating = outcomes[0].first().and_then(|costs| costs.first());
            if at == 0 && estimating.is_some_and(|outcome| outcome.estimate.is_some()) {
                targets = self.stop_at_targets(&*built.method, test, cancel, say)?;
            }
        }
        let cells = self.cells(&budgets, &outcomes)?;
        Ok(MethodResult {
            method,
            anchors: anchors.len(),
            seeds: seeds.len(),
            chosen,
            mean12: self.mean12(&budgets, &outcomes)?,
            cells,
            estimates,
            targets,
        })
    }

    /// Under the published accounting, where the method has one of its own.
    fn run_as_in_paper(
        &self,
        method: MethodName,
        anchors: &AnchorSet,
        test: &QueryRows,
    ) -> Result<Option<MethodResult>> {
        let seeds = if method.draws(anchors) { &self.seeds[..] } else { &self.seeds[..1] };
        let mut outcomes: Vec<Vec<Vec<RowOutcome>>> = Vec::new();
        for &seed in seeds {
            let Some(published) = build_for_paper(method, anchors, Seed(seed))? else { return Ok(None) };
            let recalls = paper_recalls(&*published, test, &self.ks, &self.costs)?;
            let of_query = |query: usize| {
                let parts = recalls.row(query).chunks(self.ks.len()).zip(&self.costs);
                parts.map(|(recalls, &cost)| RowOutcome::of_recalls(recalls.to_vec(), cost)).collect()
            };
            outcomes.push((0..test.scores.rows()).map(of_query).collect());
        }
        let budgets: Vec<(u64, Stop)> =
            self.costs.iter().map(|&cost| (cost, Stop::at_budget(cost))).collect();
        Ok(Some(MethodResult {
            method,
            anchors: anchors.len(),
            seeds: seeds.len(),
            chosen: vec!["counted as published, split chosen on the test rows".to_owned()],
            mean12: self.mean12(&budgets, &outcomes)?,
            cells: self.cells(&budgets, &outcomes)?,
            estimates: Vec::new(),
            targets: Vec::new(),
        }))
    }

    fn cells(&self, budgets: &[(u64, Stop)], outcomes: &[Vec<Vec<RowOutcome>>]) -> Result<Vec<Vec<Cell>>> {
        let cell = |(at, &(cost, _)): (usize, &(u64, Stop)), (column, &k): (usize, &usize)| {
            let recall = |outcome: &Vec<RowOutcome>| outcome[at].recalls[column];
            let (count, sum) = (
                outcomes.iter().map(Vec::len).sum::<usize>().max(1) as f64,
                |value: fn(&RowOutcome) -> f64| {
                    outcomes.iter().flatten().map(|outcome| value(&outcome[at])).sum::<f64>()
                },
            );
            let pairs = sum(|outcome| outcome.cost.pairs as f64) / count;
            let rounds = sum(|outcome| f64::from(outcome.rounds)) / count;
            summarised(outcomes, recall).map(|cell| Cell { cost, k, pairs, rounds, ..cell })
        };
        let row =
            |budget: (usize, &(u64, Stop))| self.ks.iter().enumerate().map(|k| cell(budget, k)).collect();
        budgets.iter().enumerate().map(row).collect()
    }

    fn mean12(&self, budgets: &[(u64, Stop)], outcomes: &[Vec<Vec<RowOutcome>>]) -> Result<Option<Cell>> {
        let columns: Option<Vec<usize>> =
            MEAN_KS.iter().map(|k| self.ks.iter().position(|other| other == k)).collect();
        let places: Option<Vec<usize>> =
            MEAN_COSTS.iter().map(|cost| budgets.iter().position(|(other, _)| other == cost)).collect();
        let (Some(columns), Some(places)) = (columns, places) else { return Ok(None) };
        let cells = (columns.len() * places.len()) as f64;
        let mean = |outcome: &Vec<RowOutcome>| {
            let of_cost =
                |&at: &usize| columns.iter().map(|&column| outcome[at].recalls[column]).sum::<f64>();
            places.iter().map(of_cost).sum::<f64>() / cells
        };
        summarised(outcomes, mean).map(Some)
    }
}

/// Mean over seeds and queries of a number of a query, with deviations and interval.
fn summarised(outcomes: &[Vec<Vec<RowOutcome>>], value: impl Fn(&Vec<RowOutcome>) -> f64) -> Result<Cell> {
    let queries = outcomes.first().map_or(0, Vec::len);
    let of_query = |query: usize| outcomes.iter().map(|seed| value(&seed[query])).sum::<f64>();
    let values: Vec<f64> = (0..queries).map(|query| of_query(query) / outcomes.len() as f64).collect();
    let seeds: Vec<f64> =
        outcomes.iter().map(|seed| mean(&seed.iter().map(&value).collect::<Vec<_>>())).collect();
    Ok(Cell {
        cost: 0,
        k: 0,
        recall: mean(&values),
        deviation: deviation(&values),
        seed_deviation: deviation(&seeds),
        interval: bootstrap_mean(&values, CONFIDENCE, LEAST_RESAMPLES, RESAMPLING)?,
        pairs: 0.0,
        rounds: 0.0,
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Standard deviation of a sample; 0 of a single value.
fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}
