//! ADACUR: ANNCUR whose anchor items are chosen for the query, round by round.
//!
//! The first round comes from a first stage (or at random); each later one fits the row to everything
//! scored so far and takes more items by a [`Strategy`].

use std::sync::Arc;

use loxia_core::{Seed, Stream};

use crate::method::{Goal, Method, Outcome, Policy, QueryView, best_positions, run_rounds};
use crate::row_model::RowModel;
use crate::{AnchorSet, Error, FirstStage, Ledger, Result, Schedule, Solver};

/// How later rounds take items.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Strategy {
    /// The highest guesses.
    Top,
    /// At random, in proportion to the exponential of the guess over a temperature.
    SoftMax {
        /// Temperature, above 0; published: 1.
        temperature: f64,
    },
    /// Where guesses from random halves of the evidence differ most.
    Variance,
    /// Uniformly at random.
    Random,
}

/// Settings of ADACUR.
#[derive(Clone)]
pub struct AdacurSettings {
    /// The first round.
    pub first_stage: Arc<dyn FirstStage>,
    /// How later rounds take items.
    pub strategy: Strategy,
    /// Batches.
    pub schedule: Schedule,
    /// Share of the budget spent in rounds, the rest on the highest guesses at the end; `None` spends
    /// all in rounds.
    pub split: Option<f64>,
    /// How rows are fitted.
    pub solver: Solver,
    /// Whether column means are taken off first.
    pub centre: bool,
    /// Seed of the random strategies.
    pub seed: Seed,
}

/// The method.
pub struct Adacur {
    settings: AdacurSettings,
    model: RowModel,
}

// As published: the deviation over ten halves of the evidence.
const VARIANCE_DRAWS: usize = 10;

impl Adacur {
    /// Over anchor rows.
    pub fn new(anchors: &AnchorSet, settings: AdacurSettings) -> Result<Self> {
        Adacur::with_model(RowModel::new(anchors, settings.solver, settings.centre), settings)
    }

    pub(crate) fn with_model(model: RowModel, settings: AdacurSettings) -> Result<Self> {
        if settings.split.is_some_and(|split| !(split > 0.0 && split < 1.0)) {
            return Err(Error::Setting {
                name: "split",
                value: format!("{:?}", settings.split),
                allowed: "above 0 and below 1",
            });
        }
        if let Strategy::SoftMax { temperature } = settings.strategy
            && !(temperature > 0.0 && temperature.is_finite())
        {
            return Err(Error::Setting {
                name: "temperature",
                value: temperature.to_string(),
                allowed: "finite and above 0",
            });
        }
        if settings.first_stage.items() != model.items() {
            return Err(Error::Shape {
                what: "first stage",
                found_rows: settings.first_stage.items(),
                found_cols: 1,
                expected: format!("{} items, as the anchor rows have", model.items()),
            });
        }
        Ok(Adacur { settings, model })
    }

    fn schedule(&self, budget: usize) -> Schedule {
        match self.settings.split {
            // Of no budget there is nothing to split.
            Some(split) if budget > 0 => {
                let explored = ((budget as f64 * split) as usize).clamp(1, budget);
                let mut sizes = self.settings.schedule.sizes(explored);
                sizes.push(budget - explored);
                Schedule::Fixed(sizes)
            }
            _ => self.settings.schedule.clone(),
        }
    }
}

impl Method for Adacur {
    fn name(&self) -> &str {
        if self.settings.centre { "adacur+" } else { "adacur" }
    }

    fn items(&self) -> usize {
        self.model.items()
    }

    fn run(&self, query: &QueryView<'_>, goal: &Goal, ledger: &mut Ledger<'_>) -> Result<Outcome> {
        let schedule = self.schedule(ledger.remaining());
        let random = self.settings.seed.stream(&format!("adacur/{}", query.id));
        run_rounds(&mut Rounds { method: self, query, random }, &schedule, goal, ledger)
    }
}

struct Rounds<'a> {
    method: &'a Adacur,
    query: &'a QueryView<'a>,
    random: Stream,
}

impl Rounds<'_> {
    /// Deviation of the guesses over halves of the evidence.
    fn deviations(&mut self, items: &[usize], scores: &[f32]) -> Result<Vec<f32>> {
        let (mut sum, mut squares) = (vec![0.0f64; self.method.items()], vec![0.0f64; self.method.items()]);
        let half = items.len().div_ceil(2);
        for _ in 0..VARIANCE_DRAWS {
            let drawn = self.random.sample(items.len() as u64, half);
            let part_items: Vec<usize> = drawn.iter().map(|&i| items[i as usize]).collect();
            let part_scores: Vec<f32> = drawn.iter().map(|&i| scores[i as usize]).collect();
            let row = self.method.model.predict(&part_items, &part_scores)?;
            for (item, &value) in row.iter().enumerate() {
                sum[item] += f64::from(value);
                squares[item] += f64::from(value).powi(2);
            }
        }
        let draws = VARIANCE_DRAWS as f64;
        let variance = |(sum, squares): (&f64, &f64)| (squares / draws - (sum / draws).powi(2)) as f32;
        Ok(sum.iter().zip(&squares).map(variance).collect())
    }
}

impl Policy for Rounds<'_> {
    fn choose(&mut self, count: usize, ledger: &Ledger<'_>) -> Result<Vec<u32>> {
        let evidence = ledger.evidence();
        if evidence.is_empty() {
            return self.method.settings.first_stage.best(self.query, count);
        }
        let items: Vec<usize> = evidence.iter().map(|scored| scored.item as usize).collect();
        let scores: Vec<f32> = evidence.iter().map(|scored| scored.score).collect();
        // What a split leaves for the end goes to the highest guesses, whatever the strategy.
        let last = self.method.settings.split.is_some() && count >= ledger.remaining();
        let strategy = if last { Strategy::Top } else { self.method.settings.strategy };
        let desire = match strategy {
            Strategy::Top => self.method.model.predict(&items, &scores)?,
            Strategy::SoftMax { temperature } => {
                // Adding Gumbel noise and taking the top draws without replacement.
                let mut row = self.method.model.predict(&items, &scores)?;
                for value in &mut row {
                    let gumbel = -(-(1.0 - self.random.unit()).ln()).max(f64::MIN_POSITIVE).ln();
                    *value = (f64::from(*value) / temperature + gumbel) as f32;
                }
                row
            }
            Strategy::Variance => self.deviations(&items, &scores)?,
            Strategy::Random => (0..ledger.items()).map(|_| self.random.unit() as f32).collect(),
        };
        Ok(best_positions(&desire, count, |item| ledger.is_paid(item)))
    }
}
