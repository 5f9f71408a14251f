//! TF-IDF retrieval: cosine of the weights of words, exactly, over an inverted index.
//!
//! The weights are those of scikit-learn's `TfidfVectorizer()` without arguments: lower-cased words of two
//! characters or more, smooth idf, length 1. Building takes about `16` bytes a (word, item) pair, of which
//! half stay; a query costs one addition for each pair of its words.

use loxia_core::{Cancel, QueryText, Ranking, TopK};

use super::Analyser;
use super::texts::{ItemTexts, query_terms};
use super::vocabulary::{TermRules, Vocabulary};
use crate::first_stage::query_text;
use crate::{FirstStage, QueryView, Result};

/// Items by the cosine of their TF-IDF weights with the query's.
///
/// Only items that share a word with the query are found.
///
/// ```
/// use loxia_core::{Cancel, Item, QueryText};
/// use loxia_search::TfidfScan;
/// let items = vec![Item::plain("a", "a stove heats the room"), Item::plain("b", "crossbills eat seeds")];
/// let scan = TfidfScan::new(&items, &Cancel::new()).unwrap();
/// let found = scan.search(&QueryText::Plain("who eats seeds".into()), 10);
/// assert_eq!((found.len(), found.as_slice()[0].item), (1, 1));
/// ```
#[derive(Debug, Clone)]
pub struct TfidfScan {
    words: Vocabulary,
    /// Where the postings of each word end.
    ends: Vec<usize>,
    /// Items and weights, word after word.
    postings: Vec<(u32, f32)>,
}

impl TfidfScan {
    /// Indexes the texts of items.
    pub fn new(texts: &dyn ItemTexts, cancel: &Cancel) -> Result<Self> {
        let rules =
            TermRules { analyser: Analyser::Words, least_items: 1, most_terms: usize::MAX, sublinear: false };
        let words = Vocabulary::fit(texts, &rules, cancel)?;
        // The frequencies say how many postings each word will have: every weight goes to its place at once.
        let mut next = Vec::with_capacity(words.len());
        let mut total = 0;
        for &count in words.frequencies() {
            next.push(total);
            total += count as usize;
        }
        let mut postings = vec![(0, 0.0); total];
        let (mut item, mut row) = (0u32, Vec::new());
        texts.for_each(&mut |text| {
            cancel.check()?;
            row.clear();
            words.append_row(text, 0, &mut row);
            for &(word, weight) in &row {
                let place = &mut next[word as usize];
                postings[*place] = (item, weight);
                *place += 1;
            }
            item += 1;
            Ok(())
        })?;
        // Each has moved to the end of its word.
        Ok(TfidfScan { words, ends: next, postings })
    }

    /// The best `count` items with their cosines; items that share no word with the query are not among
    /// them. A mention counts three times beside its context.
    pub fn search(&self, query: &QueryText, count: usize) -> Ranking {
        let mut sums = vec![0.0f32; self.items()];
        let mut row = Vec::new();
        self.words.append_row(&query_terms(query), 0, &mut row);
        for (word, weight) in row {
            let word = word as usize;
            let start = if word == 0 { 0 } else { self.ends[word - 1] };
            for &(item, value) in &self.postings[start..self.ends[word]] {
                sums[item as usize] += weight * value;
            }
        }
        let mut best = TopK::new(count);
        (0..).zip(&sums).filter(|(_, sum)| **sum > 0.0).for_each(|(item, &sum)| best.push(item, sum));
        best.into_ranking()
    }
}

impl FirstStage for TfidfScan {
    fn items(&self) -> usize {
        self.words.items() as usize
    }

    fn best(&self, query: &QueryView<'_>, count: usize) -> Result<Vec<u32>> {
        Ok(self.search(query_text(query, "TF-IDF retrieval")?, count).items().collect())
    }
}
