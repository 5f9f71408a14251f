//! First stages and vectors that need no neural encoder: they are made from the texts alone.
//!
//! - [`TfidfVectors`]: words and character runs weighted by TF-IDF and reduced to a few hundred dimensions.
//!   Wherever a method takes the vectors of a dual encoder it takes these.
//! - [`TfidfScan`]: exact cosine of TF-IDF weights of words, with scikit-learn's defaults.
//! - `Bm25` (feature `bm25`): tantivy's.

mod analyse;
#[cfg(feature = "bm25")]
mod bm25;
mod panels;
mod sparse;
mod stored;
#[cfg(test)]
mod tests;
mod texts;
mod tfidf_scan;
mod tfidf_vectors;
mod truncated_svd;
mod vocabulary;

pub use analyse::Analyser;
#[cfg(feature = "bm25")]
pub use bm25::{Bm25, Stemming};
pub use texts::ItemTexts;
pub use tfidf_scan::TfidfScan;
pub use tfidf_vectors::{TfidfSettings, TfidfVectors};
