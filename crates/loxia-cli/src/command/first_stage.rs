//! `--first-stage`: what reranking reranks, and where adaptive methods begin.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use loxia::data::write::best_first;
use loxia::data::{ReadOptions, read_run};
use loxia::search::{FirstStage, GivenRun, TfidfScan};

use super::index::items::{OrderedItems, ToldTexts};
use crate::context::Context;
use crate::report::Summary;

/// The flags of methods that have a first stage.
#[derive(Debug, Clone, Args)]
pub(crate) struct FirstStageFlags {
    /// What rerank reranks and adacur and axn begin with: vectors, bm25, tfidf, or a run (TREC or JSON) [default:
    /// vectors, where there are some]
    #[arg(long, value_name = "NAME|RUN")]
    pub(crate) first_stage: Option<FirstStageChoice>,
    /// axn looks only at the first stage's best N [default: at all items]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    axn_shortlist: Option<u32>,
}

impl FirstStageFlags {
    /// How many of the first stage's best AXN looks at.
    pub(crate) fn axn_shortlist(&self) -> Option<usize> {
        self.axn_shortlist.map(|count| count as usize)
    }
}

/// A first stage as named by the flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FirstStageChoice {
    /// A scan of the item vectors.
    Vectors,
    /// BM25 over the texts.
    Bm25,
    /// Cosine of TF-IDF weights of words, as scikit-learn makes them.
    Tfidf,
    /// Candidates that a file names for each query.
    Run(PathBuf),
}

impl FromStr for FirstStageChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "vectors" => Ok(FirstStageChoice::Vectors),
            "bm25" => Ok(FirstStageChoice::Bm25),
            "tfidf" => Ok(FirstStageChoice::Tfidf),
            path if std::path::Path::new(path).is_file() => Ok(FirstStageChoice::Run(path.into())),
            _ => Err("neither vectors, bm25 or tfidf nor the file of a run".to_owned()),
        }
    }
}

impl FirstStageChoice {
    /// Makes it over the items; `None`: the item vectors are scanned.
    pub(crate) fn over(
        &self,
        items: &OrderedItems<'_>,
        context: &Context,
        summary: &mut Summary,
    ) -> Result<Option<Arc<dyn FirstStage>>> {
        match self {
            FirstStageChoice::Vectors => Ok(None),
            FirstStageChoice::Bm25 => bm25(items, context).map(Some),
            FirstStageChoice::Tfidf => {
                // Words are counted in a first pass and weighted in a second.
                let bar = context.bar(2 * items.len() as u64, "texts for TF-IDF");
                let made = TfidfScan::new(&ToldTexts { items, progress: &bar }, &context.cancel);
                bar.finish();
                Ok(Some(Arc::new(made?)))
            }
            FirstStageChoice::Run(path) => {
                let file = read_run(path, &ReadOptions::default())?;
                let ids = items.ids()?;
                let mut unknown = 0u64;
                let lists: Vec<(String, Vec<u32>)> = file
                    .run
                    .iter()
                    .map(|(query, entries)| {
                        let found = best_first(entries).into_iter().filter_map(|entry| {
                            let position = ids.position(entry.item.as_str());
                            unknown += u64::from(position.is_none());
                            position
                        });
                        (query.as_str().to_owned(), found.collect())
                    })
                    .collect();
                summary.count("candidates that are no items", unknown);
                Ok(Some(Arc::new(GivenRun::new(items.len(), lists)?)))
            }
        }
    }
}

#[cfg(feature = "bm25")]
fn bm25(items: &OrderedItems<'_>, context: &Context) -> Result<Arc<dyn FirstStage>> {
    use loxia::search::{Bm25, Stemming};
    let bar = context.bar(items.len() as u64, "texts for BM25");
    let made = Bm25::new(&ToldTexts { items, progress: &bar }, Stemming::English, &context.cancel);
    bar.finish();
    Ok(Arc::new(made?))
}

#[cfg(not(feature = "bm25"))]
fn bm25(_items: &OrderedItems<'_>, _context: &Context) -> Result<Arc<dyn FirstStage>> {
    crate::exit::usage("this build has no BM25 (feature bm25); choose tfidf, vectors or a run")
}
