//! A run against judgements: values per query, and their means.

use loxia_core::{Qrels, QueryId, Run, RunEntry};
use rayon::prelude::*;
use serde::Serialize;

use crate::judged::JudgedRanking;
use crate::measure::{HIGHEST_EXPONENTIAL_LEVEL, Kind};
use crate::{Aggregation, Error, Measure, Result};

/// The least value that enters a geometric mean; without it one query of 0 would make it 0.
const LEAST_IN_GEOMETRIC_MEAN: f64 = 0.00001;

/// How to evaluate.
///
/// ```
/// use loxia_eval::EvalOptions;
/// assert!(!EvalOptions::default().complete);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EvalOptions {
    /// Take the means over all judged queries; one that the run lacks counts as an empty ranking
    /// (trec_eval's `-c`). Otherwise over the judged queries of the run.
    pub complete: bool,
}

/// Queries that only one side has, in byte order of their ids.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct QueryDifferences {
    /// Judged, but not in the run.
    #[serde(serialize_with = "serialize_ids")]
    pub missing: Vec<QueryId>,
    /// In the run, but not judged; ignored.
    #[serde(serialize_with = "serialize_ids")]
    pub unjudged: Vec<QueryId>,
}

fn serialize_ids<S: serde::Serializer>(ids: &[QueryId], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ids.iter().map(QueryId::as_str))
}

impl QueryDifferences {
    /// Whether run and judgements are about the same queries.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.unjudged.is_empty()
    }
}

/// What a run is worth: a value for each query and measure, and one for each measure.
///
/// ```
/// # use loxia_core::{Qrels, Run, RunEntry};
/// # use loxia_eval::{EvalOptions, Measure, evaluate};
/// let mut qrels = Qrels::new();
/// let mut run = Run::new("bm25");
/// for query in ["q1", "q2"] {
///     qrels.insert(query.into(), "d1".into(), 1);
/// }
/// run.push("q1".into(), RunEntry { item: "d1".into(), score: 1.0 });
/// let measures = ["AP".parse::<Measure>()?];
/// let evaluation = evaluate(&run, &qrels, &measures, EvalOptions::default())?;
/// assert_eq!(evaluation.mean(measures[0]), Some(1.0));
/// assert_eq!(evaluation.differences.missing, ["q2".into()]);
///
/// let complete = evaluate(&run, &qrels, &measures, EvalOptions { complete: true })?;
/// assert_eq!(complete.mean(measures[0]), Some(0.5));
/// assert_eq!(complete.value("q2", measures[0]), Some(0.0));
/// # Ok::<(), loxia_eval::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Tag of the run.
    pub run: String,
    /// Queries that only the run or only the judgements have.
    pub differences: QueryDifferences,
    measures: Vec<Measure>,
    queries: Vec<QueryId>,
    /// Row for row by query, a column for each measure.
    values: Vec<f64>,
    means: Vec<f64>,
}

/// Measures a run.
///
/// A query of the run with a duplicate item is an error, and so is a run that shares no query with the
/// judgements (unless `complete` asks for the zeros).
pub fn evaluate(run: &Run, qrels: &Qrels, measures: &[Measure], options: EvalOptions) -> Result<Evaluation> {
    let mut judged: Vec<&QueryId> = qrels.iter().map(|(query, _)| query).collect();
    judged.sort_unstable();
    let mut missing = Vec::new();
    let mut queries = Vec::with_capacity(judged.len());
    for &query in &judged {
        let absent = run.get(query.as_str()).is_none();
        if absent {
            missing.push(query.clone());
        }
        if !absent || options.complete {
            queries.push(query.clone());
        }
    }
    let mut unjudged: Vec<QueryId> = run
        .iter()
        .map(|(query, _)| query)
        .filter(|query| qrels.get(query.as_str()).is_none())
        .cloned()
        .collect();
    unjudged.sort_unstable();
    let first_judged = judged.first().ok_or(Error::NothingJudged)?;
    if queries.is_empty() {
        return Err(Error::NoCommonQuery {
            run: run.tag.clone(),
            in_run: run.len(),
            run_example: unjudged.first().map(ToString::to_string).unwrap_or_default(),
            judged: judged.len(),
            judged_example: first_judged.to_string(),
        });
    }

    // Collected before the first error is looked at, so that it is the same with any number of threads.
    let rows: Vec<Result<Vec<f64>>> =
        queries.par_iter().map(|query| evaluate_query(run, qrels, query, measures)).collect();
    let mut values = Vec::with_capacity(queries.len() * measures.len());
    for row in rows {
        values.extend(row?);
    }
    let mut evaluation = Evaluation {
        run: run.tag.clone(),
        differences: QueryDifferences { missing, unjudged },
        measures: measures.to_vec(),
        queries,
        values,
        means: Vec::new(),
    };
    evaluation.means =
        measures.iter().enumerate().map(|(i, measure)| aggregate(*measure, &evaluation.column(i))).collect();
    Ok(evaluation)
}

fn evaluate_query(run: &Run, qrels: &Qrels, query: &QueryId, measures: &[Measure]) -> Result<Vec<f64>> {
    const NOTHING_RETRIEVED: &[RunEntry] = &[];
    let entries = run.get(query.as_str()).unwrap_or(NOTHING_RETRIEVED);
    let judgements = qrels.get(query.as_str()).ok_or(Error::NothingJudged)?;
    let ranking = JudgedRanking::new(&run.tag, query, entries, judgements)?;
    let exponential = |measure: &Measure| measure.kind == Kind::Ndcg { exponential: true };
    if let Some(&level) = ranking.levels().first()
        && level > HIGHEST_EXPONENTIAL_LEVEL
        && measures.iter().any(exponential)
    {
        return Err(Error::LevelTooHigh { query: query.clone(), level, highest: HIGHEST_EXPONENTIAL_LEVEL });
    }
    let judged_only = measures.iter().any(|measure| measure.judged_only).then(|| ranking.judged_only());
    let values = measures.iter().map(|measure| match &judged_only {
        Some(judged_only) if measure.judged_only => measure.value(judged_only),
        _ => measure.value(&ranking),
    });
    Ok(values.collect())
}

fn aggregate(measure: Measure, values: &[f64]) -> f64 {
    let count = values.len() as f64;
    match measure.aggregation() {
        Aggregation::Sum => values.iter().sum(),
        Aggregation::Mean => values.iter().sum::<f64>() / count,
        Aggregation::GeometricMean => {
            let logs = values.iter().map(|value| value.max(LEAST_IN_GEOMETRIC_MEAN).ln());
            (logs.sum::<f64>() / count).exp()
        }
    }
}

impl Evaluation {
    /// The measures, in the order they were asked for.
    pub fn measures(&self) -> &[Measure] {
        &self.measures
    }

    /// The evaluated queries, in byte order of their ids.
    pub fn queries(&self) -> &[QueryId] {
        &self.queries
    }

    /// Mean (or sum, or geometric mean: see [`Aggregation`]) of each measure.
    pub fn means(&self) -> &[f64] {
        &self.means
    }

    /// Mean of one measure, if it was evaluated.
    pub fn mean(&self, measure: Measure) -> Option<f64> {
        self.position(measure).map(|column| self.means[column])
    }

    /// Queries with their values, one for each measure.
    pub fn per_query(&self) -> impl ExactSizeIterator<Item = (&QueryId, &[f64])> {
        let width = self.measures.len();
        let row = move |i: usize| &self.values[i * width..(i + 1) * width];
        self.queries.iter().enumerate().map(move |(i, query)| (query, row(i)))
    }

    /// Value of one query and measure, if both were evaluated.
    pub fn value(&self, query: &str, measure: Measure) -> Option<f64> {
        let row = self.queries.binary_search_by(|own| own.as_str().cmp(query)).ok()?;
        self.position(measure).map(|column| self.values[row * self.measures.len() + column])
    }

    /// The values of a measure for the queries that both evaluations have, for paired tests.
    ///
    /// ```
    /// # use loxia_core::{Qrels, Run, RunEntry};
    /// # use loxia_eval::{EvalOptions, Measure, evaluate};
    /// # let mut qrels = Qrels::new();
    /// # let (mut a, mut b) = (Run::new("a"), Run::new("b"));
    /// # for query in ["q1", "q2"] {
    /// #     qrels.insert(query.into(), "d1".into(), 1);
    /// #     a.push(query.into(), RunEntry { item: "d1".into(), score: 1.0 });
    /// # }
    /// # b.push("q2".into(), RunEntry { item: "d2".into(), score: 1.0 });
    /// let recall: Measure = "R@10".parse()?;
    /// let a = evaluate(&a, &qrels, &[recall], EvalOptions::default())?;
    /// let b = evaluate(&b, &qrels, &[recall], EvalOptions::default())?;
    /// assert_eq!(a.paired_with(&b, recall)?, (vec![1.0], vec![0.0]));
    /// # Ok::<(), loxia_eval::Error>(())
    /// ```
    pub fn paired_with(&self, other: &Evaluation, measure: Measure) -> Result<(Vec<f64>, Vec<f64>)> {
        let position = |evaluation: &Evaluation| {
            evaluation.position(measure).ok_or_else(|| Error::NotEvaluated {
                run: evaluation.run.clone(),
                measure: measure.to_string(),
            })
        };
        let (own_column, other_column) = (position(self)?, position(other)?);
        let mut others = other.per_query().peekable();
        let mut pairs = (Vec::new(), Vec::new());
        for (query, values) in self.per_query() {
            while others.next_if(|(theirs, _)| *theirs < query).is_some() {}
            if let Some((_, theirs)) = others.next_if(|(theirs, _)| *theirs == query) {
                pairs.0.push(values[own_column]);
                pairs.1.push(theirs[other_column]);
            }
        }
        Ok(pairs)
    }

    /// All values of a measure, one for each query, if it was evaluated.
    pub fn values(&self, measure: Measure) -> Option<Vec<f64>> {
        self.position(measure).map(|column| self.column(column))
    }

    fn column(&self, column: usize) -> Vec<f64> {
        self.values.iter().skip(column).step_by(self.measures.len()).copied().collect()
    }

    fn position(&self, measure: Measure) -> Option<usize> {
        self.measures.iter().position(|own| *own == measure)
    }
}
