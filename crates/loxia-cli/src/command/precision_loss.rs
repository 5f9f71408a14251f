//! What a precision costs: the same texts through a model in `f32` and in another precision.

use std::path::Path;

use anyhow::{Result, bail};
use loxia::core::{Item, PairScorer, Query};
use loxia::data::{Limits, LineReader};
use loxia::eval::spearman;
use loxia::model::{CrossEncoder, ModelOptions, ModelSpec, Precision, TextEncoder, Variant};
use serde::Serialize;

use crate::context::Context;

/// Texts taken as queries, spread over the file.
const QUERIES: usize = 50;
/// Texts that a cross-encoder scores for each query; dual encoders compare all.
const PAIRED: usize = 100;
/// Depth of the overlap.
const TOP: usize = 10;
/// Worst texts that are named.
const WORST: usize = 5;

/// The loss, over all texts and queries.
#[derive(Debug, Serialize)]
pub(crate) struct PrecisionLoss {
    /// The precision compared with f32.
    precision: Precision,
    texts: usize,
    queries: usize,
    /// Mean and smallest cosine between the two vectors of a text, for dual encoders.
    #[serde(skip_serializing_if = "Option::is_none")]
    cosine: Option<Spread>,
    /// Mean and largest difference of a pair's two scores, for cross-encoders.
    #[serde(skip_serializing_if = "Option::is_none")]
    score_difference: Option<Spread>,
    /// Rank correlation of a query's scores.
    spearman: Spread,
    /// Share of a query's top 10 that is in the other top 10.
    top_overlap: Spread,
    worst: Vec<WorstText>,
}

/// A mean and the worst of the values behind it.
#[derive(Debug, Serialize)]
struct Spread {
    mean: f64,
    worst: f64,
}

impl Spread {
    /// Of values that are better the larger they are.
    fn of(values: &[f64]) -> Self {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        Spread { mean, worst: values.iter().copied().fold(f64::INFINITY, f64::min) }
    }
}

/// A text that lost most.
#[derive(Debug, Serialize)]
struct WorstText {
    /// Its line in the file, from 1.
    line: usize,
    /// Its cosine, or its rank correlation as a query of a cross-encoder.
    value: f64,
    /// How it begins.
    text: String,
}

/// Measures the loss of `options.precision` on the lines of a file.
pub(crate) fn measure(
    spec: &ModelSpec,
    options: &ModelOptions,
    file: &Path,
    context: &Context,
) -> Result<PrecisionLoss> {
    let precision = match options.precision {
        Some(precision) if precision != Precision::F32 => precision,
        _ => return crate::exit::usage("--texts measures a precision other than f32: add --precision int8"),
    };
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut reader = LineReader::open(file, &Limits::default())?;
    while let Some(line) = reader.next_filled()? {
        lines.push((line.number() as usize, line.text().to_owned()));
    }
    if lines.len() < TOP + 1 {
        bail!("{}: {} texts; at least {} are needed, one a line", file.display(), lines.len(), TOP + 1);
    }
    let step = lines.len().div_ceil(QUERIES);
    let queries: Vec<usize> = (0..lines.len()).step_by(step).collect();
    let exact = ModelOptions { precision: Some(Precision::F32), ..options.clone() };
    let dual = loxia::model::inspect(spec, options)?.variant == Variant::Dual;
    let work = Work { spec, lines: &lines, queries: &queries, context };
    let (mut loss, values) = if dual { work.dual(&exact, options)? } else { work.cross(&exact, options)? };
    loss.precision = precision;
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].1.total_cmp(&values[b].1));
    loss.worst = order
        .into_iter()
        .take(WORST)
        .map(|at| {
            let (place, value) = values[at];
            let (line, text) = &lines[place];
            WorstText { line: *line, value, text: text.chars().take(60).collect() }
        })
        .collect();
    Ok(loss)
}

struct Work<'a> {
    spec: &'a ModelSpec,
    lines: &'a [(usize, String)],
    queries: &'a [usize],
    context: &'a Context,
}

/// A loss, and for each text or query its place among the lines and its value.
type Measured = (PrecisionLoss, Vec<(usize, f64)>);

impl Work<'_> {
    fn dual(&self, exact: &ModelOptions, other: &ModelOptions) -> Result<Measured> {
        let items: Vec<Item> =
            self.lines.iter().map(|(line, text)| Item::plain(line.to_string(), text.as_str())).collect();
        let bar = self.context.bar(2 * items.len() as u64, "texts");
        let encode = |options: &ModelOptions| -> Result<(usize, Vec<f32>)> {
            let model = TextEncoder::open(self.spec, options)?;
            let vectors = model.encode_items(&items, &bar, &self.context.cancel)?.vectors;
            Ok((model.dim(), vectors))
        };
        let (dim, exact) = encode(exact)?;
        let (_, other) = encode(other)?;
        bar.finish();
        let pairs = exact.chunks_exact(dim).zip(other.chunks_exact(dim));
        let cosines: Vec<f64> = pairs.map(|(a, b)| cosine(a, b)).collect();
        let scores = |vectors: &[f32], query: usize| -> Vec<f64> {
            let of_query = &vectors[query * dim..][..dim];
            let others = vectors.chunks_exact(dim).enumerate().filter(|(place, _)| *place != query);
            others.map(|(_, item)| dot(of_query, item)).collect()
        };
        let compared =
            self.queries.iter().map(|&query| compare(&scores(&exact, query), &scores(&other, query)));
        let mut loss = self.loss(compared.collect());
        loss.cosine = Some(Spread::of(&cosines));
        Ok((loss, cosines.into_iter().enumerate().collect()))
    }

    fn cross(&self, exact: &ModelOptions, other: &ModelOptions) -> Result<Measured> {
        let texts = || self.lines.iter().map(|(line, text)| (line.to_string(), text.as_str()));
        let items: Vec<Item> = texts().map(|(id, text)| Item::plain(id, text)).collect();
        let queries: Vec<Query> = texts().map(|(id, text)| Query::plain(id, text)).collect();
        // Each query meets texts spread over the file, beginning behind itself.
        let partners = PAIRED.min(items.len() - 1);
        let stride = (items.len() - 1) / partners;
        let partner = |query: usize, index: usize| (query + 1 + index * stride) % items.len();
        let pairs: Vec<(u32, u32)> = self
            .queries
            .iter()
            .flat_map(|&query| (0..partners).map(move |index| (query as u32, partner(query, index) as u32)))
            .collect();
        let bar = self.context.bar(2 * pairs.len() as u64, "pairs");
        let score = |options: &ModelOptions| -> Result<Vec<f64>> {
            let model = CrossEncoder::open(self.spec, options)?;
            let mut scores = vec![0.0; pairs.len()];
            model.score(&queries, &items, &pairs, &mut scores, &bar, &self.context.cancel)?;
            Ok(scores.into_iter().map(f64::from).collect())
        };
        let (exact, other) = (score(exact)?, score(other)?);
        bar.finish();
        let compared: Vec<Compared> = exact
            .chunks_exact(partners)
            .zip(other.chunks_exact(partners))
            .map(|(a, b)| compare(a, b))
            .collect();
        let values = self.queries.iter().zip(&compared).map(|(&query, compared)| (query, compared.spearman));
        let values = values.collect();
        let mut loss = self.loss(compared);
        let differences: Vec<f64> = exact.iter().zip(&other).map(|(a, b)| (a - b).abs()).collect();
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        let worst = differences.iter().copied().fold(0.0, f64::max);
        loss.score_difference = Some(Spread { mean, worst });
        Ok((loss, values))
    }

    fn loss(&self, compared: Vec<Compared>) -> PrecisionLoss {
        let of = |value: fn(&Compared) -> f64| Spread::of(&compared.iter().map(value).collect::<Vec<f64>>());
        PrecisionLoss {
            precision: Precision::F32,
            texts: self.lines.len(),
            queries: compared.len(),
            cosine: None,
            score_difference: None,
            spearman: of(|compared| compared.spearman),
            top_overlap: of(|compared| compared.overlap),
            worst: Vec::new(),
        }
    }
}

/// One query's scores in two precisions.
struct Compared {
    spearman: f64,
    overlap: f64,
}

fn compare(exact: &[f64], other: &[f64]) -> Compared {
    let top = |scores: &[f64]| -> Vec<usize> {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        order.truncate(TOP);
        order
    };
    let (of_exact, of_other) = (top(exact), top(other));
    let shared = of_exact.iter().filter(|place| of_other.contains(place)).count();
    // Scores that are all the same have the same order, however they are ranked.
    let spearman = spearman(exact, other).unwrap_or(if exact == other { 1.0 } else { 0.0 });
    Compared { spearman, overlap: shared as f64 / of_exact.len().max(1) as f64 }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let scale = (dot(a, a) * dot(b, b)).sqrt();
    if scale > 0.0 { dot(a, b) / scale } else { 0.0 }
}

impl PrecisionLoss {
    /// Lines for people.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} against f32, {} texts, {} of them as queries",
            self.precision, self.texts, self.queries
        )];
        let mut line = |what: &str, spread: &Spread| {
            lines.push(format!("  {what:<24} {:>9.5}   worst {:>9.5}", spread.mean, spread.worst));
        };
        if let Some(cosine) = &self.cosine {
            line("cosine", cosine);
        }
        if let Some(difference) = &self.score_difference {
            line("score difference", difference);
        }
        line("Spearman in a query", &self.spearman);
        line("overlap of top 10", &self.top_overlap);
        let measure = if self.cosine.is_some() { "cosine" } else { "Spearman" };
        lines.push(format!("  worst texts ({measure})"));
        for worst in &self.worst {
            lines.push(format!("    line {:<6} {:>9.5}  {}", worst.line, worst.value, worst.text));
        }
        lines
    }
}
