//! ANNCUR: score fixed anchor items, guess the row, score the best of the guess.
//!
//! A share of the budget buys the anchor items; for each number of them an index `U R` is made once
//! (`U` the pseudo-inverse of the anchor rows at the anchor items) and kept. Unlike the published
//! accounting, an anchor item is paid for once and may be in the answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use loxia_core::Seed;

use crate::kmeans::nearest_to_centres;
use crate::linalg::{Dense, row_times};
use crate::method::{Goal, Method, Outcome, QueryView, best_positions};
use crate::row_model::RowModel;
use crate::{AnchorSet, Error, FirstStage, Ledger, Result, Solver};

/// Which items are scored for every query.
#[derive(Clone)]
pub enum AnchorItems {
    /// Drawn at random.
    Random(Seed),
    /// The items nearest to the centres of a k-means over these vectors (one row an item).
    KMeans(Arc<Dense>, Seed),
    /// The first of these; a budget whose share is larger uses them all.
    Given(Arc<[u32]>),
    /// The best of a first stage, other ones for each query; nothing is computed ahead.
    FirstStage(Arc<dyn FirstStage>),
}

/// Settings of ANNCUR.
#[derive(Clone)]
pub struct AnncurSettings {
    /// Share of the budget for anchor items, above 0 and below 1.
    pub share: f64,
    /// How anchor items are found.
    pub anchor_items: AnchorItems,
    /// How rows are fitted.
    pub solver: Solver,
    /// Whether column means are taken off first.
    pub centre: bool,
}

/// The method.
pub struct Anncur {
    settings: AnncurSettings,
    model: RowModel,
    indexes: Mutex<BTreeMap<usize, Arc<AnncurIndex>>>,
}

struct AnncurIndex {
    items: Vec<usize>,
    embeddings: Dense,
}

// Fewer anchor items than this say nothing about a row.
const LEAST_ANCHOR_ITEMS: usize = 5;

impl Anncur {
    /// Over anchor rows.
    pub fn new(anchors: &AnchorSet, settings: AnncurSettings) -> Result<Self> {
        let model = RowModel::new(anchors, settings.solver, settings.centre);
        Anncur::with_model(model, settings)
    }

    pub(crate) fn with_model(model: RowModel, settings: AnncurSettings) -> Result<Self> {
        if !(settings.share > 0.0 && settings.share < 1.0) {
            return Err(Error::Setting {
                name: "share of the budget for anchor items",
                value: settings.share.to_string(),
                allowed: "above 0 and below 1",
            });
        }
        if let AnchorItems::Given(items) = &settings.anchor_items {
            let distinct: std::collections::BTreeSet<u32> = items.iter().copied().collect();
            if items.is_empty() || distinct.len() < items.len() {
                return Err(Error::Setting {
                    name: "list of anchor items",
                    value: format!("{} items, {} of them distinct", items.len(), distinct.len()),
                    allowed: "distinct items, at least one",
                });
            }
            if let Some(item) = items.iter().find(|&&item| item as usize >= model.items()) {
                return Err(Error::Setting {
                    name: "anchor item",
                    value: item.to_string(),
                    allowed: "below the number of items",
                });
            }
        }
        Ok(Anncur { settings, model, indexes: Mutex::default() })
    }

    fn anchor_count(&self, budget: usize) -> usize {
        ((budget as f64 * self.settings.share) as usize)
            .max(LEAST_ANCHOR_ITEMS)
            .min(budget)
            .min(self.model.items())
    }

    /// The index for a number of anchor items, made on first use.
    fn index(&self, count: usize) -> Result<Arc<AnncurIndex>> {
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = indexes.get(&count) {
            return Ok(index.clone());
        }
        let items: Vec<usize> = match &self.settings.anchor_items {
            AnchorItems::Random(seed) => {
                let mut stream = seed.stream(&format!("anncur/{count}"));
                let drawn = stream.sample(self.model.items() as u64, count);
                drawn.into_iter().map(|item| item as usize).collect()
            }
            AnchorItems::Given(items) => items.iter().take(count).map(|&item| item as usize).collect(),
            AnchorItems::KMeans(vectors, seed) => nearest_to_centres(vectors, count, *seed)?,
            AnchorItems::FirstStage(_) => Vec::new(),
        };
        let embeddings = self.model.item_embeddings(&items)?;
        let index = Arc::new(AnncurIndex { items, embeddings });
        indexes.insert(count, index.clone());
        Ok(index)
    }
}

impl Method for Anncur {
    fn name(&self) -> &str {
        if self.settings.centre { "anncur+" } else { "anncur" }
    }

    fn items(&self) -> usize {
        self.model.items()
    }

    fn run(&self, query: &QueryView<'_>, _goal: &Goal, ledger: &mut Ledger<'_>) -> Result<Outcome> {
        if !ledger.is_open() {
            return Ok(Outcome::default());
        }
        let count = self.anchor_count(ledger.remaining());
        let per_query = match &self.settings.anchor_items {
            AnchorItems::FirstStage(first) => Some(first.best(query, count)?),
            _ => None,
        };
        let index = if per_query.is_none() { Some(self.index(count)?) } else { None };
        let wanted: Vec<u32> = match (&per_query, &index) {
            (Some(items), _) => items.clone(),
            (None, Some(index)) => index.items.iter().map(|&item| item as u32).collect(),
            (None, None) => Vec::new(),
        };
        let paid = ledger.pay(&wanted)?;
        let items: Vec<usize> = paid.iter().map(|scored| scored.item as usize).collect();
        let scores: Vec<f32> = paid.iter().map(|scored| scored.score).collect();
        if !ledger.is_open() || items.is_empty() {
            return Ok(Outcome::default());
        }
        let row = match &index {
            Some(index) => {
                let targets = self.model.targets(&items, &scores);
                let targets: Vec<f32> = targets.into_iter().map(|target| target as f32).collect();
                self.model.add_means(row_times(&targets, &index.embeddings))
            }
            None => self.model.predict(&items, &scores)?,
        };
        while ledger.is_open() {
            let best = best_positions(&row, ledger.remaining(), |item| ledger.is_paid(item));
            ledger.pay(&best)?;
        }
        Ok(Outcome::default())
    }
}
