//! Tests that any scorer or retriever can be put through (feature `conformance`).
//!
//! Call them from a test. They panic with a sentence on what was promised and what was seen; what they
//! test is in the documentation of [`PairScorer`](crate::PairScorer) and [`Retriever`](crate::Retriever).
//!
//! ```
//! use loxia_core::conformance::{check_pair_scorer, check_retriever};
//! use loxia_core::*;
//!
//! let overlap = FnScorer::new("overlap", |query: &Query, item: &Item| {
//!     query.text.joined().split(' ').filter(|word| item.text.contains(word)).count() as f32
//! });
//! let queries = [Query::plain("q", "red bird")];
//! let items = ["a red bird", "a blue bird", "red"].map(|text| Item::plain(text, text));
//! check_pair_scorer(&overlap, &queries, &items);
//!
//! let search = ExactSearch { scorer: &overlap, items: &items };
//! check_retriever(&search, &queries, &|_| vec![2.0, 1.0, 1.0]);
//! ```

mod pair_scorer;
mod retriever;

pub use pair_scorer::check_pair_scorer;
pub use retriever::check_retriever;
