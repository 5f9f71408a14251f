//! `--keep-scores`, for every command that scores pairs.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use loxia::core::PairScorer;
use loxia::search::CachedScorer;

use crate::report::Summary;

/// Where scores are kept.
#[derive(Debug, Clone, Args)]
pub(crate) struct KeptScoresFlags {
    /// Keep every score in DIR, and take from it those of earlier runs with the same model and texts
    #[arg(long, value_name = "DIR")]
    keep_scores: Option<PathBuf>,
}

impl KeptScoresFlags {
    /// The scorer, remembering if that was asked for. Damage in the directory is told in the summary.
    pub(crate) fn around(
        &self,
        scorer: impl PairScorer + 'static,
        summary: &mut Summary,
    ) -> Result<Box<dyn PairScorer>> {
        let Some(directory) = &self.keep_scores else { return Ok(Box::new(scorer)) };
        let scorer = CachedScorer::open(scorer, directory)?;
        let found = scorer.found();
        summary
            .fact("kept before", found.scores)
            .count("kept scores damaged", found.damaged)
            .count("bytes of torn scores", found.torn_bytes)
            .count("damaged files of scores", found.refused_files);
        Ok(Box::new(scorer))
    }
}
