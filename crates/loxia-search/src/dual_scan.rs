//! Exact scans over the vectors of a dual encoder: one query over all items, or many over blocks of them.

use std::sync::Arc;

use loxia_core::{Ranking, TopK};
use rayon::prelude::*;

use crate::first_stage::query_vector;
use crate::linalg::Dense;
use crate::method::best_positions;
use crate::{Error, FirstStage, QueryView, Result};

/// Dot products with all item vectors: a dual encoder without an approximate index.
///
/// ```
/// use loxia_search::{DualScan, FirstStage, QueryView, linalg::Dense};
/// let items = Dense::new(3, 2, vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0]).unwrap();
/// let query = QueryView { id: "q", vector: Some(&[0.2, 1.0]), text: None };
/// assert_eq!(DualScan::new(items.into()).best(&query, 2).unwrap(), [2, 1]);
/// ```
#[derive(Debug, Clone)]
pub struct DualScan {
    item_vectors: Arc<Dense>,
}

impl DualScan {
    /// One vector an item.
    pub fn new(item_vectors: Arc<Dense>) -> Self {
        DualScan { item_vectors }
    }

    fn scan(&self, query: &QueryView<'_>) -> Result<Vec<f32>> {
        let vector = query_vector(query, "a dual-encoder scan", self.item_vectors.cols())?;
        Ok((0..self.item_vectors.rows()).map(|item| dot(vector, self.item_vectors.row(item))).collect())
    }
}

impl FirstStage for DualScan {
    fn items(&self) -> usize {
        self.item_vectors.rows()
    }

    fn best(&self, query: &QueryView<'_>, count: usize) -> Result<Vec<u32>> {
        Ok(best_positions(&self.scan(query)?, count, |_| false))
    }

    fn scores(&self, query: &QueryView<'_>) -> Result<Option<Vec<f32>>> {
        self.scan(query).map(Some)
    }
}

/// The best items for many queries, over item vectors that come block by block: those of a collection need
/// not be in memory at once.
///
/// ```
/// use loxia_search::{BlockScan, linalg::Dense};
/// let queries = Dense::new(1, 2, vec![0.2, 1.0]).unwrap();
/// let mut scan = BlockScan::new(queries, 2);
/// scan.add(&Dense::new(2, 2, vec![1.0, 0.0, 0.0, 1.0]).unwrap()).unwrap();
/// scan.add(&Dense::new(1, 2, vec![1.0, 1.0]).unwrap()).unwrap();
/// assert_eq!(scan.finish()[0].items().collect::<Vec<_>>(), [2, 1]);
/// ```
#[derive(Debug)]
pub struct BlockScan {
    queries: Dense,
    best: Vec<TopK>,
    items: u32,
}

impl BlockScan {
    /// For queries with these vectors, one a row: the best `k` items of each.
    pub fn new(queries: Dense, k: usize) -> Self {
        let best = (0..queries.rows()).map(|_| TopK::new(k)).collect();
        BlockScan { queries, best, items: 0 }
    }

    /// Looks at the next items. Threads share the queries; the scores do not depend on them.
    pub fn add(&mut self, items: &Dense) -> Result<()> {
        let after = u32::try_from(items.rows()).ok().and_then(|rows| self.items.checked_add(rows));
        let (Some(after), true) = (after, items.cols() == self.queries.cols()) else {
            return Err(Error::Shape {
                what: "block of item vectors",
                found_rows: items.rows(),
                found_cols: items.cols(),
                expected: format!("{} columns, and less than 2^32 items in all", self.queries.cols()),
            });
        };
        let (queries, first) = (&self.queries, self.items);
        self.best.par_iter_mut().enumerate().for_each(|(query, best)| {
            let query = queries.row(query);
            (0..items.rows()).for_each(|item| best.push(first + item as u32, dot(query, items.row(item))));
        });
        self.items = after;
        Ok(())
    }

    /// The best items of each query.
    pub fn finish(self) -> Vec<Ranking> {
        self.best.into_iter().map(TopK::into_ranking).collect()
    }
}

/// Gives each row length 1, for cosines; a row of zeros stays.
pub fn normalise_rows(matrix: &mut Dense) {
    for row in 0..matrix.rows() {
        let row = matrix.row_mut(row);
        let length = dot(row, row).sqrt().max(1e-12);
        row.iter_mut().for_each(|value| *value /= length);
    }
}

/// Eight sums side by side, one order whatever the machine: the same bits everywhere.
fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0.0f32; 8];
    let (left_blocks, left_rest) = left.as_chunks::<8>();
    let (right_blocks, right_rest) = right.as_chunks::<8>();
    for (a, b) in left_blocks.iter().zip(right_blocks) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use loxia_core::Seed;

    #[test]
    fn blocks_and_the_whole_give_the_same_items() {
        let mut stream = Seed(3).stream("vectors");
        let mut matrix = |rows| Dense::from_fn(rows, 19, |_, _| stream.normal() as f32);
        let (queries, items) = (matrix(5), matrix(100));
        let mut scan = BlockScan::new(queries.clone(), 7);
        for block in [0..0, 0..1, 1..60, 60..100] {
            scan.add(&items.select_rows(&block.collect::<Vec<_>>())).unwrap();
        }
        let whole = DualScan::new(items.into());
        for (query, ranking) in scan.finish().into_iter().enumerate() {
            let view = QueryView { id: "q", vector: Some(queries.row(query)), text: None };
            assert_eq!(ranking.items().collect::<Vec<_>>(), whole.best(&view, 7).unwrap());
            let scores = whole.scores(&view).unwrap().unwrap();
            assert!(ranking.as_slice().iter().all(|scored| scored.score == scores[scored.item as usize]));
        }
        assert!(BlockScan::new(queries, 7).add(&Dense::zeros(1, 18)).is_err());
    }

    #[test]
    fn rows_get_length_one() {
        let mut matrix = Dense::new(2, 2, vec![3.0, 4.0, 0.0, 0.0]).unwrap();
        normalise_rows(&mut matrix);
        assert_eq!(matrix.values(), [0.6, 0.8, 0.0, 0.0]);
    }
}
