//! A small world whose scores have the shape of a cross-encoder's: low rank, related to the vectors of a
//! weak dual encoder, with noise.

use std::sync::Arc;

use loxia_core::{Answer, Cancel, Cost, IdTable, Query, Seed, Stop};
use loxia_search::linalg::Dense;
use loxia_search::{AnchorSet, ItemScores, MatrixCollection, Method, QueryRows, QueryView, search_with};

pub(crate) struct World {
    pub(crate) anchors: AnchorSet,
    pub(crate) without_vectors: AnchorSet,
    pub(crate) test: QueryRows,
}

pub(crate) fn world(anchors: usize, test: usize, items: usize, noise: f64) -> World {
    const WIDTH: usize = 6;
    let mut stream = Seed(11).stream("synthetic");
    let mut normals = |rows: usize| Dense::from_fn(rows, WIDTH, |_, _| stream.normal() as f32);
    let (queries, item_vectors) = (normals(anchors + test), normals(items));
    let mut bend = Seed(12).stream("noise");
    let scores = Dense::from_fn(anchors + test, items, |query, item| {
        let dot: f32 = queries.row(query).iter().zip(item_vectors.row(item)).map(|(q, e)| q * e).sum();
        // The score leans on two coordinates more than the dual encoder does.
        let lean = 2.0 * queries[(query, 0)] * item_vectors[(item, 1)];
        dot + lean + (noise * bend.normal()) as f32
    });
    let rows = |matrix: &Dense, range: std::ops::Range<usize>| {
        Arc::new(matrix.select_rows(&range.collect::<Vec<_>>()))
    };
    let anchor_scores = rows(&scores, 0..anchors);
    let item_vectors = Arc::new(item_vectors);
    World {
        anchors: AnchorSet::new(
            anchor_scores.clone(),
            Some((rows(&queries, 0..anchors), item_vectors.clone())),
        )
        .unwrap(),
        without_vectors: AnchorSet::new(anchor_scores, None).unwrap(),
        test: QueryRows {
            scores: rows(&scores, anchors..anchors + test),
            vectors: Some(rows(&queries, anchors..anchors + test)),
            queries: None,
        },
    }
}

impl World {
    /// The first items in the query slot, described by their vectors, against all items.
    pub(crate) fn item_scores(&self, count: usize) -> Arc<ItemScores> {
        let vectors = self.anchors.item_vectors().unwrap();
        let scores = Dense::from_fn(count, vectors.rows(), |anchor, item| {
            vectors.row(anchor).iter().zip(vectors.row(item)).map(|(a, b)| a * b).sum()
        });
        let anchors = (0..count as u32).collect();
        Arc::new(ItemScores::anchors_against_items(Arc::new(scores), anchors).unwrap())
    }

    pub(crate) fn collection(&self) -> MatrixCollection {
        let ids: Vec<String> = (0..self.test.scores.rows()).map(|row| format!("q{row}")).collect();
        let ids = IdTable::try_from(ids.as_slice()).unwrap();
        MatrixCollection::new(ids, self.test.scores.clone(), self.test.vectors.clone()).unwrap()
    }

    pub(crate) fn queries(&self) -> Vec<Query> {
        (0..self.test.scores.rows()).map(|row| Query::plain(format!("q{row}"), "")).collect()
    }

    pub(crate) fn view<'a>(&'a self, query: usize, id: &'a str) -> QueryView<'a> {
        let vector = self.test.vectors.as_ref().map(|vectors| vectors.row(query));
        QueryView { id, vector, text: None }
    }

    pub(crate) fn search(&self, method: &dyn Method, query: usize, k: usize, stop: &Stop) -> Answer {
        let row = self.test.scores.row(query);
        search_with(
            method,
            &self.view(query, &format!("q{query}")),
            k,
            stop,
            &Cancel::new(),
            |items, scores, _| {
                items.iter().zip(scores).for_each(|(&item, score)| *score = row[item as usize]);
                Ok(Cost { pairs: items.len() as u64, ..Cost::default() })
            },
        )
        .unwrap()
    }
}
