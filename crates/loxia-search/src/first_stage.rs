//! Cheap orders of the items: where reranking ends and where adaptive methods begin.

use std::sync::Arc;

use loxia_core::{QueryText, Seed, TopK};

use crate::{Error, QueryView, Result};

/// Orders items for a query without the cross-encoder.
pub trait FirstStage: Send + Sync {
    /// Number of items.
    fn items(&self) -> usize;

    /// The best `count` items, best first; fewer where the source has fewer.
    fn best(&self, query: &QueryView<'_>, count: usize) -> Result<Vec<u32>>;

    /// Scores of all items, where the source has them.
    fn scores(&self, _query: &QueryView<'_>) -> Result<Option<Vec<f32>>> {
        Ok(None)
    }
}

impl<F: FirstStage + ?Sized> FirstStage for Arc<F> {
    fn items(&self) -> usize {
        (**self).items()
    }

    fn best(&self, query: &QueryView<'_>, count: usize) -> Result<Vec<u32>> {
        (**self).best(query, count)
    }

    fn scores(&self, query: &QueryView<'_>) -> Result<Option<Vec<f32>>> {
        (**self).scores(query)
    }
}

/// The query's vector, checked for its width and for NaN.
pub(crate) fn query_vector<'a>(
    query: &QueryView<'a>,
    method: &'static str,
    width: usize,
) -> Result<&'a [f32]> {
    let vector = query.vector.ok_or(Error::Missing {
        method,
        what: "a query vector",
        advice: "give a query encoder, or choose a method that works without vectors",
    })?;
    if vector.len() != width {
        return Err(Error::Shape {
            what: "query vector",
            found_rows: 1,
            found_cols: vector.len(),
            expected: format!("1 x {width}, as wide as the item vectors"),
        });
    }
    match vector.iter().position(|value| !value.is_finite()) {
        None => Ok(vector),
        Some(col) => {
            Err(Error::NotFinite { what: "query vector", row: 0, col, value: f64::from(vector[col]) })
        }
    }
}

/// The query's text.
pub(crate) fn query_text<'a>(query: &QueryView<'a>, method: &'static str) -> Result<&'a QueryText> {
    query.text.ok_or(Error::Missing {
        method,
        what: "the query's text",
        advice: "search with queries, or give their candidates as a run",
    })
}

/// Candidates of a given run, by query id; a query that the run does not hold has none.
#[derive(Debug, Clone)]
pub struct GivenRun {
    items: usize,
    candidates: std::collections::HashMap<String, Vec<u32>>,
}

impl GivenRun {
    /// Item positions, best first, for each query id; positions beyond the collection are refused.
    pub fn new(items: usize, run: impl IntoIterator<Item = (String, Vec<u32>)>) -> Result<Self> {
        let candidates: std::collections::HashMap<_, _> = run.into_iter().collect();
        for (query, list) in &candidates {
            if let Some(item) = list.iter().find(|&&item| item as usize >= items) {
                return Err(loxia_core::Error::Invalid(format!(
                    "the run names item {item} for query {query}, but the collection has {items} items"
                ))
                .into());
            }
        }
        Ok(GivenRun { items, candidates })
    }
}

impl FirstStage for GivenRun {
    fn items(&self) -> usize {
        self.items
    }

    fn best(&self, query: &QueryView<'_>, count: usize) -> Result<Vec<u32>> {
        let list = self.candidates.get(query.id).map_or(&[][..], Vec::as_slice);
        Ok(list[..count.min(list.len())].to_vec())
    }
}

/// Items drawn at random, by seed and query id.
#[derive(Debug, Clone, Copy)]
pub struct RandomStart {
    items: usize,
    seed: Seed,
}

impl RandomStart {
    /// Draws among `items`.
    pub fn new(items: usize, seed: Seed) -> Self {
        RandomStart { items, seed }
    }
}

impl FirstStage for RandomStart {
    fn items(&self) -> usize {
        self.items
    }

    fn best(&self, query: &QueryView<'_>, count: usize) -> Result<Vec<u32>> {
        // The keys of all items are drawn, so that a larger count only adds items.
        let mut stream = self.seed.stream(&format!("first-stage/{}", query.id));
        let mut top = TopK::new(count.min(self.items));
        (0..self.items as u32).for_each(|item| top.push(item, stream.unit() as f32));
        Ok(top.into_ranking().items().collect())
    }
}

/// A first stage that may find too few, with others added after what it found.
pub(crate) struct Filled<F> {
    stage: F,
    others: RandomStart,
}

impl<F: FirstStage> Filled<F> {
    pub(crate) fn new(stage: F, others: RandomStart) -> Self {
        Filled { stage, others }
    }
}

impl<F: FirstStage> FirstStage for Filled<F> {
    fn items(&self) -> usize {
        self.others.items()
    }

    fn best(&self, query: &QueryView<'_>, count: usize) -> Result<Vec<u32>> {
        let mut found = self.stage.best(query, count)?;
        if found.len() < count.min(self.items()) {
            let known: std::collections::HashSet<u32> = found.iter().copied().collect();
            let others = self.others.best(query, count)?;
            found.extend(others.into_iter().filter(|item| !known.contains(item)).take(count - known.len()));
        }
        Ok(found)
    }

    fn scores(&self, query: &QueryView<'_>) -> Result<Option<Vec<f32>>> {
        self.stage.scores(query)
    }
}
