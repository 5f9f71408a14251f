//! Where scores and query vectors come from: a model and texts, or a matrix of stored scores.

use std::sync::Arc;

use loxia_core::{Answer, Cancel, Cost, IdTable, Item, NoProgress, PairScorer, Query, Retriever, Stop};

use crate::linalg::Dense;
use crate::{Error, Method, QueryView, Result, search_with};

/// Items that can be scored for any query.
pub trait Collection: Send + Sync {
    /// Number of items.
    fn items(&self) -> usize;

    /// The query's vector in the space of the item vectors, where there is an encoder.
    fn vector(&self, query: &Query) -> Result<Option<Vec<f32>>>;

    /// Scores items, by position, for a query.
    fn score(&self, query: &Query, items: &[u32], scores: &mut [f32], cancel: &Cancel) -> Result<Cost>;
}

/// Turns a query into a vector: a dual encoder's query side, TF-IDF.
pub trait QueryEncoder: Send + Sync {
    /// The vector of a query.
    fn encode(&self, query: &Query) -> Result<Vec<f32>>;
}

/// Texts and a cross-encoder.
pub struct TextCollection<S> {
    scorer: S,
    items: Arc<[Item]>,
    encoder: Option<Box<dyn QueryEncoder>>,
}

impl<S: PairScorer> TextCollection<S> {
    /// Items and who scores them.
    pub fn new(scorer: S, items: impl Into<Arc<[Item]>>) -> Self {
        TextCollection { scorer, items: items.into(), encoder: None }
    }

    /// With vectors for queries.
    pub fn with_encoder(mut self, encoder: impl QueryEncoder + 'static) -> Self {
        self.encoder = Some(Box::new(encoder));
        self
    }
}

impl<S: PairScorer> Collection for TextCollection<S> {
    fn items(&self) -> usize {
        self.items.len()
    }

    fn vector(&self, query: &Query) -> Result<Option<Vec<f32>>> {
        self.encoder.as_ref().map(|encoder| encoder.encode(query)).transpose()
    }

    fn score(&self, query: &Query, items: &[u32], scores: &mut [f32], cancel: &Cancel) -> Result<Cost> {
        let pairs: Vec<(u32, u32)> = items.iter().map(|&item| (0, item)).collect();
        let queries = std::slice::from_ref(query);
        Ok(self.scorer.score(queries, &self.items, &pairs, scores, &NoProgress, cancel)?)
    }
}

/// Stored scores: row `i` belongs to the query whose id is `ids[i]`.
pub struct MatrixCollection {
    ids: IdTable,
    scores: Arc<Dense>,
    vectors: Option<Arc<Dense>>,
}

impl MatrixCollection {
    /// Ids of the rows, their scores, and the queries' vectors where there are some.
    pub fn new(ids: IdTable, scores: Arc<Dense>, vectors: Option<Arc<Dense>>) -> Result<Self> {
        let rows = scores.rows();
        let wrong = |what, found_rows, found_cols| Error::Shape {
            what,
            found_rows,
            found_cols,
            expected: format!("{rows} rows, one for each row of scores"),
        };
        if ids.len() != rows {
            return Err(wrong("list of query ids", ids.len(), 1));
        }
        if let Some(vectors) = vectors.as_deref().filter(|vectors| vectors.rows() != rows) {
            return Err(wrong("matrix of query vectors", vectors.rows(), vectors.cols()));
        }
        Ok(MatrixCollection { ids, scores, vectors })
    }

    fn row(&self, query: &Query) -> Result<usize> {
        let row = self.ids.position(query.id.as_str()).ok_or_else(|| {
            loxia_core::Error::Invalid(format!("no row of the score matrix belongs to query {}", query.id))
        })?;
        Ok(row as usize)
    }
}

impl Collection for MatrixCollection {
    fn items(&self) -> usize {
        self.scores.cols()
    }

    fn vector(&self, query: &Query) -> Result<Option<Vec<f32>>> {
        let row = self.row(query)?;
        Ok(self.vectors.as_ref().map(|vectors| vectors.row(row).to_vec()))
    }

    fn score(&self, query: &Query, items: &[u32], scores: &mut [f32], cancel: &Cancel) -> Result<Cost> {
        cancel.check()?;
        let row = self.scores.row(self.row(query)?);
        items.iter().zip(scores).for_each(|(&item, score)| *score = row[item as usize]);
        Ok(Cost { pairs: items.len() as u64, ..Cost::default() })
    }
}

/// A method over a collection: what a program holds to search.
///
/// ```
/// use loxia_core::*;
/// use loxia_search::{Exact, Searcher, TextCollection};
/// let length = FnScorer::new("length", |_: &Query, item: &Item| item.text.len() as f32);
/// let items = vec![Item::plain("a", "pine"), Item::plain("b", "crossbill")];
/// let searcher = Searcher::new(Exact::new(2), TextCollection::new(length, items)).unwrap();
/// let answer =
///     searcher.search(&Query::plain("q", "bird"), 1, &Stop::default(), &Cancel::new()).unwrap();
/// assert_eq!(answer.ranking.items().collect::<Vec<_>>(), [1]);
/// ```
pub struct Searcher<M, C> {
    method: M,
    collection: C,
}

impl<M: Method, C: Collection> Searcher<M, C> {
    /// The method must have been made for as many items.
    pub fn new(method: M, collection: C) -> Result<Self> {
        if method.items() != collection.items() {
            return Err(Error::Shape {
                what: "collection",
                found_rows: collection.items(),
                found_cols: 1,
                expected: format!("the {} items that the method was made for", method.items()),
            });
        }
        Ok(Searcher { method, collection })
    }
}

impl<M: Method, C: Collection> Retriever for Searcher<M, C> {
    fn search(&self, query: &Query, k: usize, stop: &Stop, cancel: &Cancel) -> loxia_core::Result<Answer> {
        let vector = self.collection.vector(query)?;
        let view = QueryView { id: query.id.as_str(), vector: vector.as_deref(), text: Some(&query.text) };
        let answer = search_with(&self.method, &view, k, stop, cancel, |items, scores, cancel| {
            self.collection.score(query, items, scores, cancel)
        })?;
        Ok(answer)
    }

    fn items(&self) -> usize {
        self.collection.items()
    }
}
