//! What can go wrong when runs are measured, compared or fused.

use loxia_core::{ItemId, QueryId};

/// Result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of evaluation: it names the run, the query and the item, and says what to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A measure nobody knows.
    #[error("unknown measure {name:?}; did you mean {}? known: {known}", nearest.join(" or "))]
    UnknownMeasure {
        /// What was asked for.
        name: String,
        /// The known names closest to it.
        nearest: Vec<String>,
        /// All known names.
        known: String,
    },
    /// A known measure with a parameter or cutoff that does not fit it.
    #[error("measure {measure:?}: {problem}")]
    MeasureSyntax {
        /// The measure as written.
        measure: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// One item twice in a query's list.
    #[error(
        "run {run:?}, query {query}: item {item} occurs more than once; a ranking holds an item once, \
         remove one of the lines"
    )]
    DuplicateItem {
        /// Tag of the run.
        run: String,
        /// The query.
        query: QueryId,
        /// The item.
        item: ItemId,
    },
    /// A score that cannot be ordered or added.
    #[error("run {run:?}, query {query}: the score of item {item} is {score}; {expected}")]
    BadScore {
        /// Tag of the run.
        run: String,
        /// The query.
        query: QueryId,
        /// The item.
        item: ItemId,
        /// The score.
        score: f64,
        /// What scores must be here.
        expected: &'static str,
    },
    /// A relevance level whose exponential gain does not fit a float.
    #[error(
        "query {query}: relevance level {level} is too high for gains of 2^level - 1 (at most {highest}); \
         use nDCG with its linear gains"
    )]
    LevelTooHigh {
        /// The query.
        query: QueryId,
        /// Its highest level.
        level: u32,
        /// The highest level allowed.
        highest: u32,
    },
    /// Judgements without a query.
    #[error("there are no judgements; the qrels are empty")]
    NothingJudged,
    /// A run and judgements about different queries.
    #[error(
        "run {run:?} and the judgements have no query in common ({in_run} queries in the run, first \
         {run_example:?}; {judged} judged, first {judged_example:?}); check that both are of one collection"
    )]
    NoCommonQuery {
        /// Tag of the run.
        run: String,
        /// Number of queries in the run.
        in_run: usize,
        /// Its first query.
        run_example: String,
        /// Number of judged queries.
        judged: usize,
        /// The first judged query.
        judged_example: String,
    },
    /// A measure that was not evaluated.
    #[error("measure {measure} was not evaluated for run {run:?}")]
    NotEvaluated {
        /// Tag of the run.
        run: String,
        /// The measure.
        measure: String,
    },
    /// Paired samples of different lengths.
    #[error("paired values must be of the same queries: {left} and {right} values given")]
    UnequalSamples {
        /// Number of values of one system.
        left: usize,
        /// Number of values of the other.
        right: usize,
    },
    /// Not enough queries for a statistic.
    #[error("{statistic} needs at least {needed} queries with values, found {found}")]
    TooFewQueries {
        /// What was to be computed.
        statistic: &'static str,
        /// Queries needed.
        needed: usize,
        /// Queries found.
        found: usize,
    },
    /// A setting out of its range.
    #[error("{name} is {found}; it must be {expected}")]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// Its value.
        found: String,
        /// The allowed values.
        expected: &'static str,
    },
}
