//! How long scoring will take here, measured on a few pairs.

use std::time::{Duration, Instant};

use anyhow::Result;
use loxia::core::{NoProgress, PairScorer, Query};

use super::items::OrderedItems;
use crate::context::Context;
use crate::report::{duration, grouped, three_digits};

/// Pairs of the first measurement; the next take twice as many until one is long enough to be told.
const FIRST: usize = 8;
const MOST: usize = 1024;
const LONG_ENOUGH: Duration = Duration::from_millis(500);

/// What is to be scored, and how fast that goes.
pub(super) struct Forecast {
    pub(super) anchors: usize,
    pub(super) items: usize,
    pub(super) pairs: u64,
    per_second: f64,
}

impl Forecast {
    /// Scores some pairs of anchors and items from all over the collection.
    pub(super) fn measure(
        scorer: &dyn PairScorer,
        anchors: &[Query],
        items: &OrderedItems<'_>,
        context: &Context,
    ) -> Result<Self> {
        let wanted = items.len().min(64);
        let sample: Vec<_> =
            (0..wanted).map(|n| items.get((n * items.len() / wanted) as u32)).collect::<Result<_, _>>()?;
        let queries = &anchors[..anchors.len().min(MOST / FIRST)];
        let everything: Vec<(u32, u32)> = (0..queries.len() as u32)
            .flat_map(|query| (0..sample.len() as u32).map(move |item| (query, item)))
            .collect();
        let mut count = FIRST;
        // The last measurement counts: the first ones warm caches and threads up.
        let per_second = loop {
            let pairs = &everything[..count.min(everything.len())];
            let mut scores = vec![0.0; pairs.len()];
            let started = Instant::now();
            scorer.score(queries, &sample, pairs, &mut scores, &NoProgress, &context.cancel)?;
            let took = started.elapsed();
            if took >= LONG_ENOUGH || count >= everything.len().min(MOST) {
                break pairs.len() as f64 / took.as_secs_f64().max(1e-9);
            }
            count *= 2;
        };
        let pairs = anchors.len() as u64 * items.len() as u64;
        Ok(Forecast { anchors: anchors.len(), items: items.len(), pairs, per_second })
    }

    /// How long some pairs take.
    pub(super) fn time(&self, pairs: u64) -> Duration {
        Duration::try_from_secs_f64(pairs as f64 / self.per_second).unwrap_or(Duration::MAX)
    }

    /// One sentence; `missing` are the pairs that no earlier run has scored.
    pub(super) fn sentence(&self, missing: u64) -> String {
        let earlier = match self.pairs - missing {
            0 => String::new(),
            done => format!(", {} of them scored before", grouped(done)),
        };
        format!(
            "{} pairs ({} anchors x {} items){earlier}: about {} here ({} pairs/s)",
            grouped(self.pairs),
            grouped(self.anchors as u64),
            grouped(self.items as u64),
            duration(self.time(missing)),
            three_digits(self.per_second)
        )
    }
}
