//! What `loxia eval matrix` finds out.

use anyhow::Result;
use loxia::core::{Cancel, Progress, Seed};
use loxia::search::linalg::Dense;
use loxia::search::{CurLink, CurQuality, cur_quality, numerical_rank, singular_values};
use rayon::prelude::*;

/// What is looked at unless flags say otherwise.
pub(super) const ANCHOR_QUERIES: [usize; 4] = [50, 100, 200, 500];
pub(super) const ANCHOR_ITEMS: [usize; 5] = [50, 100, 200, 500, 1000];
pub(super) const RIDGE: f64 = 0.03;
pub(super) const K: usize = 10;
pub(super) const RETRIEVED: usize = 500;
pub(super) const SEEDS: [u64; 3] = [0, 1, 2];
pub(super) const BINS: usize = 200;

/// What is to be found out.
#[derive(Debug)]
pub(in crate::command::eval) struct Plan {
    pub(super) anchor_queries: Vec<usize>,
    pub(super) anchor_items: Vec<usize>,
    pub(super) links: Vec<(&'static str, CurLink)>,
    pub(super) k: usize,
    pub(super) retrieve: usize,
    pub(super) seeds: Vec<u64>,
    pub(super) bins: usize,
    pub(super) histogram_width: Option<f64>,
}

/// What was found out.
#[derive(Debug)]
pub(in crate::command::eval) struct Study {
    pub(super) rows: usize,
    pub(super) items: usize,
    pub(super) rank: usize,
    /// Descending.
    pub(super) singular_values: Vec<f64>,
    /// The same with the column means taken off.
    pub(super) centred_values: Vec<f64>,
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) lowest: f32,
    pub(super) highest: f32,
    pub(super) histogram: Counts,
    /// For each link the cells, one row of them for each number of anchor queries.
    pub(super) cells: Vec<Vec<Cell>>,
}

/// A histogram of scores less their mean.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) width: f64,
    pub(super) counts: Vec<u64>,
    /// Scores beyond the width.
    pub(super) outside: u64,
}

/// Means over the seeds for one number of anchor queries and items.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) anchor_queries: usize,
    pub(super) anchor_items: usize,
    pub(super) quality: CurQuality,
    /// Standard deviation of the recall over the seeds.
    pub(super) recall_deviation: f64,
}

impl Plan {
    /// What is looked at unless flags say otherwise, as far as the matrix is large enough.
    pub(in crate::command::eval) fn usual(rows: usize, items: usize) -> Self {
        let fitting = |counts: &[usize], most: usize| counts.iter().copied().filter(|&n| n <= most).collect();
        Plan {
            anchor_queries: fitting(&ANCHOR_QUERIES, rows),
            anchor_items: fitting(&ANCHOR_ITEMS, items),
            links: vec![("published", CurLink::Published), ("ridge", CurLink::Ridge(RIDGE))],
            k: K,
            retrieve: RETRIEVED,
            seeds: SEEDS.to_vec(),
            bins: BINS,
            histogram_width: None,
        }
    }

    /// Number of approximations.
    pub(in crate::command::eval) fn work(&self) -> u64 {
        (self.links.len() * self.anchor_queries.len() * self.anchor_items.len() * self.seeds.len()) as u64
    }

    /// Looks at the scores and makes every approximation.
    pub(in crate::command::eval) fn run(
        &self,
        scores: &Dense,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Study> {
        let (rows, items) = (scores.rows(), scores.cols());
        let centred_values = singular_values(&centred(scores))?;
        let singular_values = singular_values(scores)?;
        let count = scores.values().len() as f64;
        let mean = scores.values().iter().map(|&score| f64::from(score)).sum::<f64>() / count;
        let squares: f64 = scores.values().iter().map(|&score| (f64::from(score) - mean).powi(2)).sum();
        let lowest = scores.values().iter().copied().fold(f32::INFINITY, f32::min);
        let highest = scores.values().iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let reach = (f64::from(highest) - mean).max(mean - f64::from(lowest));
        let width = self.histogram_width.unwrap_or(if reach > 0.0 { reach } else { 1.0 });
        let mut cells = Vec::new();
        for &(_, link) in &self.links {
            let grid: Vec<(usize, usize)> = self
                .anchor_queries
                .iter()
                .flat_map(|&queries| self.anchor_items.iter().map(move |&items| (queries, items)))
                .collect();
            let cell = |&(queries, items): &(usize, usize)| {
                self.cell(scores, queries, items, link, progress, cancel)
            };
            cells.push(grid.par_iter().map(cell).collect::<Result<Vec<Cell>>>()?);
        }
        Ok(Study {
            rows,
            items,
            rank: numerical_rank(&singular_values, rows, items),
            singular_values,
            centred_values,
            mean,
            deviation: (squares / count).sqrt(),
            lowest,
            highest,
            histogram: Counts::of(scores.values(), mean, width, self.bins),
            cells,
        })
    }

    fn cell(
        &self,
        scores: &Dense,
        anchor_queries: usize,
        anchor_items: usize,
        link: CurLink,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Cell> {
        let mut found = Vec::new();
        for &seed in &self.seeds {
            cancel.check()?;
            let draw = |what: &str, bound: usize, count: usize| -> Vec<usize> {
                let mut stream = Seed(seed).stream(&format!("eval-matrix/{what}/{count}"));
                stream.sample(bound as u64, count).into_iter().map(|position| position as usize).collect()
            };
            let queries = draw("queries", scores.rows(), anchor_queries);
            let items = draw("items", scores.cols(), anchor_items);
            found.push(cur_quality(scores, &queries, &items, link, self.k, self.retrieve)?);
            progress.advance(1);
        }
        let mean = |of: fn(&CurQuality) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
        let recall = mean(|quality| quality.recall);
        let squares: f64 = found.iter().map(|quality| (quality.recall - recall).powi(2)).sum();
        Ok(Cell {
            anchor_queries,
            anchor_items,
            quality: CurQuality {
                relative_error: mean(|quality| quality.relative_error),
                relative_error_elsewhere: mean(|quality| quality.relative_error_elsewhere),
                error_of_spread: mean(|quality| quality.error_of_spread),
                recall_of_anchors: mean(|quality| quality.recall_of_anchors),
                recall,
            },
            recall_deviation: (squares / (found.len().max(2) - 1) as f64).sqrt(),
        })
    }
}

impl Study {
    /// How many singular values of the centred matrix hold this share of its squared norm.
    pub(super) fn values_holding(&self, share: f64) -> usize {
        let total: f64 = self.centred_values.iter().map(|value| value * value).sum();
        let mut sum = 0.0;
        let enough = |value: &f64| {
            sum += value * value;
            sum >= share * total
        };
        self.centred_values.iter().position(enough).map_or(self.centred_values.len(), |at| at + 1)
    }
}

/// The matrix less its column means.
fn centred(scores: &Dense) -> Dense {
    let mut means = vec![0.0f64; scores.cols()];
    for row in 0..scores.rows() {
        means.iter_mut().zip(scores.row(row)).for_each(|(sum, &score)| *sum += f64::from(score));
    }
    means.iter_mut().for_each(|sum| *sum /= scores.rows().max(1) as f64);
    let mut out = scores.clone();
    for row in 0..out.rows() {
        let row = out.row_mut(row).iter_mut();
        row.zip(&means).for_each(|(score, mean)| *score = (f64::from(*score) - mean) as f32);
    }
    out
}

impl Counts {
    fn of(scores: &[f32], mean: f64, width: f64, bins: usize) -> Self {
        let mut counts = vec![0u64; bins];
        let mut outside = 0;
        for &score in scores {
            let place = (f64::from(score) - mean + width) / (2.0 * width) * bins as f64;
            // The upper end belongs to the last bin, as in NumPy.
            match place {
                place if (0.0..bins as f64).contains(&place) => counts[place as usize] += 1,
                place if place == bins as f64 => counts[bins - 1] += 1,
                _ => outside += 1,
            }
        }
        Counts { width, counts, outside }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_count_like_numpy() {
        let counts = Counts::of(&[0.0, 0.5, 1.0, 2.0, -1.0, 1.4], 0.0, 1.0, 4);
        assert_eq!((counts.counts, counts.outside), (vec![1, 0, 1, 2], 2));
    }
}
