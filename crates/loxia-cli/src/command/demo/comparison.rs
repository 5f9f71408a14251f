//! The methods at equal cost: which share of the cross-encoder's own top k each of them pays for.

use std::fmt::Write as _;

use anyhow::Result;
use loxia::core::{Cancel, Progress, Seed, Stop};
use loxia::eval::{Interval, LEAST_RESAMPLES, bootstrap_mean};
use loxia::search::{
    AnchorSet, BuildOptions, Index, Method, MethodName, QueryRows, build_for_seeds, search_row,
};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::ROUNDS;
use super::material::Material;
use crate::context::Context;
use crate::report::{duration, grouped};

const OTHERS: [MethodName; 4] = [MethodName::Rerank, MethodName::Anncur, MethodName::Adacur, MethodName::Axn];
const KS: [usize; 3] = [10, 50, 100];
const COSTS: [u64; 3] = [50, 100, 200];
/// Draws that methods with a random part are averaged over.
const DRAWS: u64 = 5;
const CONFIDENCE: f64 = 0.95;
/// Seed of the intervals' resamples.
const RESAMPLING: Seed = Seed(42);

/// Every method's recall in every cell.
pub(super) struct Comparison {
    pub(super) ks: Vec<usize>,
    pub(super) costs: Vec<u64>,
    /// `posterior` comes last.
    pub(super) methods: Vec<MethodRecalls>,
}

/// One line of the table.
pub(super) struct MethodRecalls {
    pub(super) name: MethodName,
    /// One for each cost, in each of them one for each k.
    pub(super) cells: Vec<Vec<Cell>>,
    pub(super) mean: f64,
}

/// Mean recall over the searched queries.
pub(super) struct Cell {
    pub(super) recall: f64,
    /// 95 % bootstrap interval over the queries.
    pub(super) interval: Interval,
}

impl Comparison {
    /// Makes the other methods from the same anchors, and searches with all of them.
    pub(super) fn run(
        material: &Material,
        anchors: &AnchorSet,
        index: &Index,
        context: &Context,
    ) -> Result<Self> {
        let items = material.items.len();
        let mut comparison = Comparison {
            ks: KS.into_iter().filter(|&k| k < items).collect(),
            costs: COSTS.into_iter().filter(|&cost| cost < items as u64).collect(),
            methods: Vec::new(),
        };
        let rows = material.searched_rows();
        let bar = context.bar(((OTHERS.len() + 1) * rows.scores.rows()) as u64, "queries");
        let searched = comparison.search_all(anchors, index, &rows, &bar, &context.cancel);
        let (_, took) = bar.finish();
        searched?;
        context.say(format_args!("methods compared in {}", duration(took)));
        Ok(comparison)
    }

    fn search_all(
        &mut self,
        anchors: &AnchorSet,
        index: &Index,
        rows: &QueryRows,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<()> {
        let options = BuildOptions { rounds: ROUNDS, ..BuildOptions::default() };
        for name in OTHERS {
            let draws = if name.draws(anchors) { DRAWS } else { 1 };
            let seeds: Vec<Seed> = (0..draws).map(Seed).collect();
            let built = build_for_seeds(name, anchors, &options, &seeds)?;
            let methods: Vec<&dyn Method> = built.iter().map(|built| &*built.method).collect();
            let recalls = self.search(name, &methods, rows, progress, cancel)?;
            self.methods.push(recalls);
        }
        let posterior = self.search(MethodName::Posterior, &[index], rows, progress, cancel)?;
        self.methods.push(posterior);
        Ok(())
    }

    /// Recalls of one method, averaged over its draws.
    fn search(
        &self,
        name: MethodName,
        draws: &[&dyn Method],
        rows: &QueryRows,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<MethodRecalls> {
        let of_query = |query: usize| -> Result<Vec<Vec<f64>>> {
            let mut cells = vec![vec![0.0; self.ks.len()]; self.costs.len()];
            for method in draws {
                for (cells, &cost) in cells.iter_mut().zip(&self.costs) {
                    let found = search_row(*method, rows, query, &self.ks, &Stop::at_budget(cost), cancel)?;
                    let share = 1.0 / draws.len() as f64;
                    cells.iter_mut().zip(found.recalls).for_each(|(cell, recall)| *cell += share * recall);
                }
            }
            progress.advance(1);
            Ok(cells)
        };
        let queries: Vec<Vec<Vec<f64>>> =
            (0..rows.scores.rows()).into_par_iter().map(of_query).collect::<Result<_>>()?;
        let cell = |cost: usize, k: usize| -> Result<Cell> {
            let values: Vec<f64> = queries.iter().map(|cells| cells[cost][k]).collect();
            let recall = values.iter().sum::<f64>() / values.len().max(1) as f64;
            Ok(Cell { recall, interval: bootstrap_mean(&values, CONFIDENCE, LEAST_RESAMPLES, RESAMPLING)? })
        };
        let cells: Vec<Vec<Cell>> = (0..self.costs.len())
            .map(|cost| (0..self.ks.len()).map(|k| cell(cost, k)).collect())
            .collect::<Result<_>>()?;
        let all = || cells.iter().flatten();
        let mean = all().map(|cell| cell.recall).sum::<f64>() / all().count().max(1) as f64;
        Ok(MethodRecalls { name, cells, mean })
    }

    /// The best of the other methods by mean, how far `posterior` is ahead of it, and its smallest lead over any
    /// other method in any cell.
    fn lead(&self) -> Option<(MethodName, f64, f64)> {
        let (posterior, others) = self.methods.split_last()?;
        let best = others.iter().max_by(|a, b| a.mean.total_cmp(&b.mean))?;
        let cells = |method: &MethodRecalls| -> Vec<f64> {
            method.cells.iter().flatten().map(|cell| cell.recall).collect()
        };
        let own = cells(posterior);
        let leads = others.iter().flat_map(|other| {
            own.iter().zip(cells(other)).map(|(own, other)| own - other).collect::<Vec<_>>()
        });
        Some((best.name, posterior.mean - best.mean, leads.fold(f64::INFINITY, f64::min)))
    }

    /// The table for people.
    pub(super) fn text(&self, material: &Material) -> String {
        let mut text = format!(
            "\nShare of the top k that each method finds when all pay for the same number of pairs \
             ({} queries,\n{ROUNDS} rounds; scoring everything would take {} pairs a query):\n\n{:<10}",
            material.searched().len(),
            grouped(material.items.len() as u64),
            ""
        );
        let width = 7 * self.ks.len();
        for cost in &self.costs {
            let _ = write!(text, "  {:<width$}", format!("  {cost} pairs"));
        }
        let _ = write!(text, "\n{:<10}", "method");
        for _ in &self.costs {
            text += "  ";
            text.extend(self.ks.iter().map(|k| format!("{:>7}", format!("k={k}"))));
        }
        let _ = writeln!(text, "{:>9}", "mean");
        for method in &self.methods {
            let _ = write!(text, "{:<10}", method.name);
            for cells in &method.cells {
                text += "  ";
                text.extend(cells.iter().map(|cell| format!("{:>7.3}", cell.recall)));
            }
            let _ = writeln!(text, "{:>9.3}", method.mean);
        }
        if let Some((best, ahead, smallest)) = self.lead() {
            let _ = write!(
                text,
                "\nposterior is {ahead:+.3} to the best of the others ({best}) on average; smallest lead in a column \
                 {smallest:+.3}"
            );
        }
        text
    }

    pub(super) fn json(&self) -> Vec<Value> {
        let mut rows = Vec::new();
        for method in &self.methods {
            for (&cost, cells) in self.costs.iter().zip(&method.cells) {
                for (&k, cell) in self.ks.iter().zip(cells) {
                    rows.push(json!({
                        "method": method.name.to_string(), "cost": cost, "k": k, "recall": cell.recall,
                    }));
                }
            }
        }
        rows
    }
}
