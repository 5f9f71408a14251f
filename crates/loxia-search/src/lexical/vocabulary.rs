//! Terms of a collection, and TF-IDF weights with them as scikit-learn's `TfidfVectorizer` computes them.
//!
//! A term of document frequency d in n items has `idf = ln((1 + n) / (1 + d)) + 1`; a text's weight for it
//! is `tf * idf` (or `(1 + ln tf) * idf`), and the weights of a text have length 1.

use loxia_core::{Cancel, IdTable};

use super::{Analyser, ItemTexts};
use crate::Result;

/// Which terms are kept, and how they count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TermRules {
    pub(crate) analyser: Analyser,
    /// Fewest items that a term must occur in.
    pub(crate) least_items: u32,
    /// Most terms; those in the fewest items are left out first.
    pub(crate) most_terms: usize,
    /// Whether repetitions count by their logarithm.
    pub(crate) sublinear: bool,
}

/// Terms in their order, with the number of items that hold them.
#[derive(Debug, Clone)]
pub(crate) struct Vocabulary {
    analyser: Analyser,
    sublinear: bool,
    items: u64,
    terms: IdTable,
    frequencies: Vec<u32>,
    idf: Vec<f64>,
}

impl Vocabulary {
    /// Counts the terms of all items. While it counts, every distinct term takes its length and about 32
    /// bytes.
    pub(crate) fn fit(texts: &dyn ItemTexts, rules: &TermRules, cancel: &Cancel) -> Result<Self> {
        struct Count {
            items: u32,
            last: u32,
        }
        let (mut seen, mut counts, mut item) = (IdTable::new(), Vec::<Count>::new(), 0u32);
        texts.for_each(&mut |text| {
            cancel.check()?;
            let mut failed = None;
            rules.analyser.for_each_term(text, |term| match seen.position(term) {
                Some(position) => {
                    let count = &mut counts[position as usize];
                    count.items += u32::from(count.last != item);
                    count.last = item;
                }
                None => match seen.push(term) {
                    Ok(_) => counts.push(Count { items: 1, last: item }),
                    Err(error) => failed = Some(error),
                },
            });
            item += 1;
            failed.map_or(Ok(()), |error| Err(error.into()))
        })?;
        let mut kept: Vec<u32> =
            (0..seen.len() as u32).filter(|&term| counts[term as usize].items >= rules.least_items).collect();
        kept.sort_unstable_by(|&a, &b| {
            let items = |term: u32| counts[term as usize].items;
            items(b).cmp(&items(a)).then_with(|| seen.get(a).cmp(seen.get(b)))
        });
        kept.truncate(rules.most_terms);
        kept.sort_unstable_by(|&a, &b| seen.get(a).cmp(seen.get(b)));
        let mut terms = IdTable::new();
        for &term in &kept {
            terms.push(seen.get(term))?;
        }
        terms.shrink_to_fit();
        let frequencies = kept.iter().map(|&term| counts[term as usize].items).collect();
        Ok(Vocabulary::new(rules.analyser, rules.sublinear, u64::from(item), terms, frequencies))
    }

    /// From what was stored: `frequencies` belongs to `terms`, and none is above `items`.
    pub(crate) fn new(
        analyser: Analyser,
        sublinear: bool,
        items: u64,
        terms: IdTable,
        frequencies: Vec<u32>,
    ) -> Self {
        let idf = |&count: &u32| ((1.0 + items as f64) / (1.0 + f64::from(count))).ln() + 1.0;
        let idf = frequencies.iter().map(idf).collect();
        Vocabulary { analyser, sublinear, items, terms, frequencies, idf }
    }

    pub(crate) fn analyser(&self) -> Analyser {
        self.analyser
    }

    pub(crate) fn is_sublinear(&self) -> bool {
        self.sublinear
    }

    /// Number of items that were counted.
    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    pub(crate) fn len(&self) -> usize {
        self.terms.len()
    }

    pub(crate) fn terms(&self) -> &IdTable {
        &self.terms
    }

    /// For each term the number of items that hold it.
    pub(crate) fn frequencies(&self) -> &[u32] {
        &self.frequencies
    }

    #[cfg(test)]
    pub(crate) fn idf(&self) -> &[f64] {
        &self.idf
    }

    /// Appends a text's weights, of length 1, by ascending term; `offset` is added to the terms' numbers.
    /// A text without known terms has none.
    pub(crate) fn append_row(&self, text: &str, offset: u32, row: &mut Vec<(u32, f32)>) {
        let mut found = Vec::new();
        self.analyser.for_each_term(text, |term| found.extend(self.terms.position(term)));
        found.sort_unstable();
        let weights: Vec<(u32, f64)> = found
            .chunk_by(|a, b| a == b)
            .map(|same| {
                let count = same.len() as f64;
                let count = if self.sublinear { 1.0 + count.ln() } else { count };
                (same[0], count * self.idf[same[0] as usize])
            })
            .collect();
        let length = weights.iter().map(|(_, weight)| weight * weight).sum::<f64>().sqrt();
        row.extend(weights.iter().map(|&(term, weight)| (offset + term, (weight / length) as f32)));
    }
}
