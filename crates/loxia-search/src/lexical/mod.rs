//! First stages and vectors that need no neural encoder: they are made from the texts alone.
//!
//! - [`TfidfVectors`]: words and character runs weighted by TF-IDF and reduced to a few hundred dimensions.
//!   Wherever a method takes the vectors of a dual encoder it takes these.

mod analyse;
mod panels;
mod sparse;
mod texts;
mod tfidf_vectors;
mod truncated_svd;
mod vocabulary;

pub use analyse::Analyser;
pub use texts::ItemTexts;
pub use tfidf_vectors::{TfidfSettings, TfidfVectors};
