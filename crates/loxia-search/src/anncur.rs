//! ANNCUR: score fixed anchor items, guess the row, score the best of the guess.
//!
//! A share of the budget buys the anchor items; for each number of them an index `U R` is made once
//! (`U` the pseudo-inverse of the anchor rows at the anchor items) and kept. Unlike the published
//! accounting, an anchor item is paid for once and may be in the answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use loxia_core::Seed;

use crate::kmeans::nearest_to_centres;
use crate::linalg::{Dense, product, pseudo_inverse, row_times};
use crate::method::{Goal, Method, Outcome, QueryView, best_positions};
use crate::paper::PaperAccounting;
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

/// Which product of `C U R` is made ahead; guesses are the same up to rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preference {
    /// `U R`: an embedding of each item as long as there are anchor items.
    #[default]
    Rows,
    /// `U` alone: items are described by their anchor scores, a query by `C U`. Less to keep when there
    /// are more anchor items than anchor queries.
    Columns,
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
    /// Which product is made ahead.
    pub preference: Preference,
}

/// The method.
pub struct Anncur {
    settings: AnncurSettings,
    model: RowModel,
    /// The whole matrix, and its rows projected on the anchor rows: with the oracle only.
    oracle: Option<(Arc<Dense>, Arc<Dense>)>,
    indexes: Mutex<BTreeMap<usize, Arc<AnncurIndex>>>,
}

struct AnncurIndex {
    items: Vec<usize>,
    factor: Factor,
}

/// What scores at the anchor items are multiplied by.
enum Factor {
    /// Item embeddings: the product is the guessed row.
    Items(Dense),
    /// The link: the product is the weights of the anchor rows.
    Link(Dense),
}

const ORACLE_RCOND: f64 = 1e-10;
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
        Ok(Anncur { settings, model, oracle: None, indexes: Mutex::default() })
    }

    /// With the best link there is, `C^+ M R^+`, made from the whole matrix M: a bound, no method.
    pub fn oracle(anchors: &AnchorSet, every_row: Arc<Dense>, settings: AnncurSettings) -> Result<Self> {
        let projected = Arc::new(projected_rows(anchors, &every_row)?);
        Anncur::with_projected(anchors, every_row, projected, settings)
    }

    /// The same, with the projection already at hand.
    pub(crate) fn with_projected(
        anchors: &AnchorSet,
        every_row: Arc<Dense>,
        projected: Arc<Dense>,
        settings: AnncurSettings,
    ) -> Result<Self> {
        let mut method = Anncur::new(anchors, AnncurSettings { centre: false, ..settings })?;
        method.oracle = Some((every_row, projected));
        Ok(method)
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
        let factor = match (&self.oracle, self.settings.preference) {
            (Some((every_row, projected)), _) => {
                let columns: Dense<f64> = every_row.select_cols(&items).cast();
                Factor::Items(product(&pseudo_inverse(&columns, ORACLE_RCOND)?.cast(), projected))
            }
            (None, Preference::Rows) => Factor::Items(self.model.item_embeddings(&items)?),
            (None, Preference::Columns) => Factor::Link(self.model.link(&items)?),
        };
        let index = Arc::new(AnncurIndex { items, factor });
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
        let chosen = self.choose(query, self.anchor_count(ledger.remaining()))?;
        let paid = ledger.pay(&chosen.items)?;
        let items: Vec<usize> = paid.iter().map(|scored| scored.item as usize).collect();
        let scores: Vec<f32> = paid.iter().map(|scored| scored.score).collect();
        if !ledger.is_open() || items.is_empty() {
            return Ok(Outcome::default());
        }
        let row = self.guess(&chosen, &items, &scores)?;
        while ledger.is_open() {
            let best = best_positions(&row, ledger.remaining(), |item| ledger.is_paid(item));
            ledger.pay(&best)?;
        }
        Ok(Outcome::default())
    }
}

/// `M R^+ R`: every row projected on the anchor rows.
pub(crate) fn projected_rows(anchors: &AnchorSet, every_row: &Dense) -> Result<Dense> {
    let anchor_rows: Dense<f64> = anchors.rows().scores.cast();
    let weights = product(&every_row.cast::<f64>(), &pseudo_inverse(&anchor_rows, ORACLE_RCOND)?);
    Ok(product(&weights, &anchor_rows).cast())
}

/// Anchor items of a query, with the index for them where they are the same for all queries.
struct Chosen {
    items: Vec<u32>,
    index: Option<Arc<AnncurIndex>>,
}

impl Anncur {
    fn choose(&self, query: &QueryView<'_>, count: usize) -> Result<Chosen> {
        if let AnchorItems::FirstStage(first) = &self.settings.anchor_items {
            return Ok(Chosen { items: first.best(query, count)?, index: None });
        }
        let index = self.index(count)?;
        Ok(Chosen { items: index.items.iter().map(|&item| item as u32).collect(), index: Some(index) })
    }

    /// The guessed row, from scores at anchor items.
    fn guess(&self, chosen: &Chosen, items: &[usize], scores: &[f32]) -> Result<Vec<f32>> {
        let Some(index) = &chosen.index else { return self.model.predict(items, scores) };
        let targets = self.model.targets(items, scores);
        let targets: Vec<f32> = targets.into_iter().map(|target| target as f32).collect();
        Ok(self.model.add_means(match &index.factor {
            Factor::Items(embeddings) => row_times(&targets, embeddings),
            Factor::Link(link) => self.model.combine(&row_times(&targets, link)),
        }))
    }
}

impl PaperAccounting for Anncur {
    fn retrieved(
        &self,
        query: &QueryView<'_>,
        row: &[f32],
        anchors: usize,
        count: usize,
    ) -> Result<Vec<u32>> {
        let chosen = self.choose(query, anchors.clamp(1, self.model.items()))?;
        let items: Vec<usize> = chosen.items.iter().map(|&item| item as usize).collect();
        let scores: Vec<f32> = items.iter().map(|&item| row[item]).collect();
        Ok(best_positions(&self.guess(&chosen, &items, &scores)?, count, |_| false))
    }
}
