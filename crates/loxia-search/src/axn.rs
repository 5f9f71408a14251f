//! AXN: regression of the scores on item vectors, round by round.
//!
//! Item vectors come from a dual encoder, or from the anchor rows by a truncated SVD. The fit may be
//! mixed with the first stage's score, both standardised over the items.

use std::sync::Arc;

use crate::anchors::{centred, column_means, mean_square};
use crate::linalg::{Dense, gram_rows_in_f64, product_tn, symmetric_eigen, times_column};
use crate::method::{Goal, Method, Outcome, Policy, QueryView, best_positions, run_rounds};
use crate::{AnchorSet, Error, FirstStage, Ledger, Result, Schedule, Solver};

/// Settings of AXN.
#[derive(Clone)]
pub struct AxnSettings {
    /// The first round, and the score that the fit is mixed with.
    pub first_stage: Arc<dyn FirstStage>,
    /// Batches.
    pub schedule: Schedule,
    /// How weights are fitted.
    pub solver: Solver,
    /// Weight of the first stage's score in the mix, from 0 to 1.
    pub mix: f64,
    /// Only as many of the first stage's best are ever scored; `None`: all items may be.
    pub shortlist: Option<usize>,
}

/// The method.
pub struct Axn {
    settings: AxnSettings,
    item_vectors: Arc<Dense>,
    means: Option<Arc<Vec<f32>>>,
    scale: f64,
}

impl Axn {
    /// Over item vectors, one row an item.
    pub fn new(item_vectors: Arc<Dense>, settings: AxnSettings) -> Result<Self> {
        if !(0.0..=1.0).contains(&settings.mix) {
            return Err(Error::Setting {
                name: "mix",
                value: settings.mix.to_string(),
                allowed: "from 0 to 1",
            });
        }
        if settings.first_stage.items() != item_vectors.rows() {
            return Err(Error::Shape {
                what: "first stage",
                found_rows: settings.first_stage.items(),
                found_cols: 1,
                expected: format!("{} items, one for each vector", item_vectors.rows()),
            });
        }
        let scale = mean_square(&item_vectors) * item_vectors.cols() as f64;
        Ok(Axn { settings, item_vectors, means: None, scale })
    }

    /// Takes these column means off the scores first (`axn+`).
    pub fn centred(mut self, means: Arc<Vec<f32>>) -> Result<Self> {
        if means.len() != self.item_vectors.rows() {
            return Err(Error::Shape {
                what: "list of column means",
                found_rows: means.len(),
                found_cols: 1,
                expected: format!("{} x 1", self.item_vectors.rows()),
            });
        }
        self.means = Some(means);
        Ok(self)
    }
}

/// Item vectors from anchor rows: the top right singular vectors of the centred rows, scaled by their
/// singular values and by the square root of the number of anchors; with the column mean as one more
/// coordinate where `with_mean`.
pub fn factorised_item_vectors(anchors: &AnchorSet, rank: usize, with_mean: bool) -> Result<Dense> {
    let scores = &anchors.rows().scores;
    let means = column_means(scores);
    let factors = right_factors(&centred(scores, &means), rank)?;
    if !with_mean {
        return Ok(factors);
    }
    let grand = means.iter().map(|&mean| f64::from(mean)).sum::<f64>() / means.len() as f64;
    Ok(Dense::from_fn(factors.rows(), factors.cols() + 1, |item, col| {
        if col < factors.cols() { factors[(item, col)] } else { (f64::from(means[item]) - grand) as f32 }
    }))
}

/// `V_r S_r / sqrt(rows)` of a matrix with few rows, one row a column of it, through the small Gram
/// matrix: `V S = A^T U`, so no small singular value is ever divided by.
pub(crate) fn right_factors(rows: &Dense, rank: usize) -> Result<Dense> {
    let anchors = rows.rows();
    let eigen = symmetric_eigen(&gram_rows_in_f64(rows))?;
    let rank = rank.min(anchors);
    let scale = 1.0 / (anchors as f64).sqrt();
    let left =
        Dense::from_fn(anchors, rank, |row, col| (eigen.vectors[(row, anchors - 1 - col)] * scale) as f32);
    Ok(product_tn(rows, &left))
}

impl Method for Axn {
    fn name(&self) -> &str {
        if self.means.is_some() { "axn+" } else { "axn" }
    }

    fn items(&self) -> usize {
        self.item_vectors.rows()
    }

    fn run(&self, query: &QueryView<'_>, goal: &Goal, ledger: &mut Ledger<'_>) -> Result<Outcome> {
        let prior = if self.settings.mix > 0.0 {
            let scores = self.settings.first_stage.scores(query)?.ok_or(Error::Missing {
                method: "axn with a mix",
                what: "a first stage that scores every item",
                advice: "set the mix to 0, or use a dual-encoder scan",
            })?;
            Some(standardised(scores))
        } else {
            None
        };
        let listed = match self.settings.shortlist {
            None => None,
            Some(count) => {
                let mut listed = vec![false; self.items()];
                let best = self.settings.first_stage.best(query, count)?;
                best.into_iter().for_each(|item| listed[item as usize] = true);
                Some(listed)
            }
        };
        run_rounds(&mut Rounds { method: self, query, prior, listed }, &self.settings.schedule, goal, ledger)
    }
}

struct Rounds<'a> {
    method: &'a Axn,
    query: &'a QueryView<'a>,
    prior: Option<Vec<f32>>,
    /// Which items are on the shortlist, where there is one.
    listed: Option<Vec<bool>>,
}

impl Policy for Rounds<'_> {
    fn choose(&mut self, count: usize, ledger: &Ledger<'_>) -> Result<Vec<u32>> {
        let Axn { settings, item_vectors, means, scale } = self.method;
        let evidence = ledger.evidence();
        if evidence.is_empty() {
            let most = settings.shortlist.unwrap_or(usize::MAX);
            return settings.first_stage.best(self.query, count.min(most));
        }
        let items: Vec<usize> = evidence.iter().map(|scored| scored.item as usize).collect();
        let mean_of = |item: usize| means.as_ref().map_or(0.0, |means| f64::from(means[item]));
        let mut targets: Vec<f64> =
            evidence.iter().map(|s| f64::from(s.score) - mean_of(s.item as usize)).collect();
        if means.is_none() {
            let middle = targets.iter().sum::<f64>() / targets.len() as f64;
            targets.iter_mut().for_each(|target| *target -= middle);
        }
        let weights = settings.solver.fit(&item_vectors.select_rows(&items).cast(), &targets, *scale)?;
        let mut row = times_column(item_vectors, &weights);
        if let Some(means) = means {
            row.iter_mut().zip(means.iter()).for_each(|(value, mean)| *value += mean);
        }
        if let Some(prior) = &self.prior {
            let mix = settings.mix as f32;
            row = standardised(row);
            row.iter_mut().zip(prior).for_each(|(value, prior)| *value = (1.0 - mix) * *value + mix * prior);
        }
        let left_out = |item: u32| self.listed.as_ref().is_some_and(|listed| !listed[item as usize]);
        Ok(best_positions(&row, count, |item| ledger.is_paid(item) || left_out(item)))
    }
}

/// Mean 0 and deviation 1; a constant becomes zeros.
pub(crate) fn standardised(mut values: Vec<f32>) -> Vec<f32> {
    let count = values.len().max(1) as f64;
    let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / count;
    let square = values.iter().map(|&value| (f64::from(value) - mean).powi(2)).sum::<f64>() / count;
    let scale = if square > 0.0 { 1.0 / square.sqrt() } else { 0.0 };
    values.iter_mut().for_each(|value| *value = ((f64::from(*value) - mean) * scale) as f32);
    values
}
