//! Dense vectors from TF-IDF weights: what stands in for a dual encoder when none was trained.
//!
//! 1. **Terms**: words as they are, and runs of 3 to 5 characters within words that occur in at least two
//!    items, the latter with logarithmic counts. Each of the two parts has length 1.
//! 2. **Basis**: the leading right singular vectors of the items' weights ([`TfidfSettings::dims`] of them).
//! 3. **Vector** of a text: its weights times the basis. Items and queries share the space; dot products of
//!    the vectors approximate those of the weights.
//!
//! Everything is decided by texts, settings and seed; threads only share the work.

use loxia_core::{Cancel, Query, Seed};
use rayon::prelude::*;

use super::sparse::SparseRows;
use super::texts::query_terms;
use super::truncated_svd::truncated_svd;
use super::vocabulary::{TermRules, Vocabulary};
use super::{Analyser, ItemTexts};
use crate::linalg::Dense;
use crate::{Error, QueryEncoder, Result};

/// How vectors are made from texts.
///
/// With n items, f terms (at most twice `max_terms`), l = dims + 24 (at least 128), making them takes about
/// `8 max_entries + 4 l (2 f + 3 n)` bytes at most (2 GB for 100,000 items with the defaults), and on top of
/// it, while terms are counted, about 40 bytes for each distinct one. The vectors keep `4 dims (f + n)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TfidfSettings {
    /// Dimensions of the vectors; fewer come out where the texts have no more.
    pub dims: usize,
    /// Most words, and most character runs, that are told apart; those in the fewest items go first.
    pub max_terms: usize,
    /// Most weights held in memory. Beyond it the basis comes from a random part of the items.
    pub max_entries: usize,
    /// Seed of the start of the decomposition and of that part.
    pub seed: Seed,
}

impl Default for TfidfSettings {
    fn default() -> Self {
        TfidfSettings { dims: 300, max_terms: 1 << 17, max_entries: 1 << 26, seed: Seed(0) }
    }
}

/// Texts handled between two looks at `cancel`, and at once by the threads.
const TEXTS_AT_ONCE: usize = 512;

/// Turns queries and items into vectors of one space.
///
/// ```
/// use loxia_core::{Cancel, Item, Query};
/// use loxia_search::{DualScan, FirstStage, QueryEncoder, QueryView, TfidfSettings, TfidfVectors};
/// let items = vec![
///     Item::plain("a", "crossbills eat conifer seeds"),
///     Item::plain("b", "a stove heats the room"),
///     Item::plain("c", "conifers heat well as firewood"),
/// ];
/// let (tfidf, vectors) = TfidfVectors::fit(&items, &TfidfSettings::default(), &Cancel::new()).unwrap();
/// let query = tfidf.encode(&Query::plain("q", "which seeds do crossbills eat")).unwrap();
/// let view = QueryView { id: "q", vector: Some(&query), text: None };
/// assert_eq!(DualScan::new(vectors.into()).best(&view, 1).unwrap(), [0]);
/// ```
#[derive(Debug, Clone)]
pub struct TfidfVectors {
    /// Words, then character runs.
    pub(super) parts: Vec<Vocabulary>,
    /// One row a term, of all parts one after the other.
    pub(super) basis: Dense,
    pub(super) singular_values: Vec<f32>,
}

impl TfidfVectors {
    /// Makes the space from the texts of items; gives it and the items' vectors, one a row.
    pub fn fit(texts: &dyn ItemTexts, settings: &TfidfSettings, cancel: &Cancel) -> Result<(Self, Dense)> {
        if settings.dims == 0 {
            return Err(Error::Setting {
                name: "dims",
                value: settings.dims.to_string(),
                allowed: "at least 1",
            });
        }
        let words = TermRules {
            analyser: Analyser::Words,
            least_items: 1,
            most_terms: settings.max_terms,
            sublinear: false,
        };
        let characters = TermRules {
            analyser: Analyser::Characters { shortest: 3, longest: 5 },
            least_items: 2,
            sublinear: true,
            ..words
        };
        let parts =
            vec![Vocabulary::fit(texts, &words, cancel)?, Vocabulary::fit(texts, &characters, cancel)?];
        let mut vectors = TfidfVectors { parts, basis: Dense::zeros(0, 0), singular_values: Vec::new() };
        let sample = vectors.weights(texts, settings, cancel)?;
        let mut stream = settings.seed.stream("tfidf/svd");
        let svd = truncated_svd(&sample, settings.dims, &mut stream, cancel)?;
        if svd.values.is_empty() {
            return Err(loxia_core::Error::Invalid(
                "no item has a word of two letters; TF-IDF has nothing to make vectors from".into(),
            )
            .into());
        }
        (vectors.basis, vectors.singular_values) = (svd.basis, svd.values);
        let items = if sample.rows() as u64 == vectors.items() {
            let mut out = Dense::zeros(sample.rows(), vectors.dims());
            let rows = out.values_mut().par_chunks_mut(vectors.basis.cols()).enumerate();
            rows.for_each(|(row, vector)| vectors.project(sample.row(row), vector));
            out
        } else {
            vectors.encode_items(texts, cancel)?
        };
        Ok((vectors, items))
    }

    /// The weights of all items, or of a random part of them that has at most about `max_entries`.
    fn weights(
        &self,
        texts: &dyn ItemTexts,
        settings: &TfidfSettings,
        cancel: &Cancel,
    ) -> Result<SparseRows> {
        let entries: u64 = self.parts.iter().flat_map(|part| part.frequencies()).map(|&n| u64::from(n)).sum();
        let share = settings.max_entries as f64 / entries.max(1) as f64;
        let mut stream = settings.seed.stream("tfidf/sample");
        // A sample comes out a little larger or smaller than its share; doubling the room would break the bound.
        let room = (entries as f64 * share.min(1.0) * 1.02) as usize;
        let mut rows = SparseRows::new(self.terms(), room);
        self.for_each_row(texts, cancel, |row| {
            if share >= 1.0 || stream.unit() < share {
                rows.push(row);
            }
        })?;
        Ok(rows)
    }

    /// Calls `see` with the weights of each text; threads share the work on a few hundred at a time.
    fn for_each_row(
        &self,
        texts: &dyn ItemTexts,
        cancel: &Cancel,
        mut see: impl FnMut(&[(u32, f32)]),
    ) -> Result<()> {
        let mut waiting: Vec<String> = Vec::with_capacity(TEXTS_AT_ONCE);
        let mut flush = |waiting: &mut Vec<String>| {
            let rows: Vec<_> = waiting.par_iter().map(|text| self.row(text)).collect();
            rows.iter().for_each(|row| see(row));
            waiting.clear();
        };
        texts.for_each(&mut |text| {
            waiting.push(text.to_owned());
            if waiting.len() == TEXTS_AT_ONCE {
                cancel.check()?;
                flush(&mut waiting);
            }
            Ok(())
        })?;
        flush(&mut waiting);
        Ok(())
    }

    /// Vectors of more items, one a row: the same as if they had been there when the space was made, except
    /// that it does not know their new words.
    pub fn encode_items(&self, texts: &dyn ItemTexts, cancel: &Cancel) -> Result<Dense> {
        let (mut values, mut items) = (Vec::new(), 0);
        self.for_each_row(texts, cancel, |row| {
            let start = values.len();
            values.resize(start + self.dims(), 0.0);
            self.project(row, &mut values[start..]);
            items += 1;
        })?;
        Dense::new(items, self.dims(), values)
    }

    /// The vector of a plain text.
    pub fn encode_text(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; self.dims()];
        self.project(&self.row(text), &mut vector);
        vector
    }

    pub(super) fn row(&self, text: &str) -> Vec<(u32, f32)> {
        let (mut row, mut offset) = (Vec::new(), 0);
        for part in &self.parts {
            part.append_row(text, offset, &mut row);
            offset += part.len() as u32;
        }
        row
    }

    fn project(&self, row: &[(u32, f32)], vector: &mut [f32]) {
        for &(term, weight) in row {
            let direction = self.basis.row(term as usize);
            vector.iter_mut().zip(direction).for_each(|(sum, value)| *sum += weight * value);
        }
    }

    /// Dimensions of the vectors.
    pub fn dims(&self) -> usize {
        self.basis.cols()
    }

    /// Number of terms that are told apart.
    pub fn terms(&self) -> usize {
        self.parts.iter().map(Vocabulary::len).sum()
    }

    /// Number of items that the space was made from.
    pub fn items(&self) -> u64 {
        self.parts.first().map_or(0, Vocabulary::items)
    }

    /// Singular values of the items' weights, descending, one a dimension.
    pub fn singular_values(&self) -> &[f32] {
        &self.singular_values
    }
}

impl QueryEncoder for TfidfVectors {
    /// A mention counts three times beside its context.
    fn encode(&self, query: &Query) -> Result<Vec<f32>> {
        Ok(self.encode_text(&query_terms(&query.text)))
    }
}
