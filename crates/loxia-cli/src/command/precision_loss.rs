//! What a precision costs: the same texts through a model in `f32` and in another precision.
//!
//! Some texts are queries, all are items. A dual encoder's towers each encode their side, and vectors are compared as
//! `loxia retrieve` compares them; a cross-encoder scores pairs.

use std::path::Path;

use anyhow::{Result, bail};
use loxia::core::{Item, PairScorer, Query};
use loxia::data::{Limits, LineReader};
use loxia::eval::spearman;
use loxia::model::{
    CrossEncoder, EncoderSummary, ModelOptions, ModelSpec, Precision, Similarity, TextEncoder, Variant,
};
use loxia::nn::Kernel;
use loxia::search::linalg::Dense;
use loxia::search::normalise_rows;
use serde::Serialize;

use crate::context::Context;
use crate::report::grouped;

/// Texts taken as queries, spread over the file.
const QUERIES: usize = 50;
/// Texts that a cross-encoder scores for each query; dual encoders compare all.
const PAIRED: usize = 100;
/// Deepest top of the overlap. With few texts it is half of them: a top of all could not lose one.
const TOP: usize = 10;
/// Fewest texts that say anything; the help of `--texts` says so too.
const FEWEST: usize = 11;
/// Worst texts that are named.
const WORST: usize = 5;

/// The loss, over all texts and queries.
#[derive(Debug, Serialize)]
pub(crate) struct PrecisionLoss {
    /// The precision compared with f32.
    precision: Precision,
    /// What computed, which the loss depends on.
    kernel: &'static str,
    /// The f32 weights were restored from 8 bits: what quantising lost is lost to both.
    restored: bool,
    texts: usize,
    queries: usize,
    /// Lines without a text, which were left out.
    blank_lines: usize,
    /// Texts that were cut to fit, by the side that a tower encodes, for dual encoders.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated_texts: Option<Counts>,
    /// Pairs that were, for cross-encoders.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated_pairs: Option<u64>,
    /// Mean and smallest cosine between the two vectors of a text, for dual encoders.
    #[serde(skip_serializing_if = "Option::is_none")]
    cosine: Option<Cosines>,
    /// Mean and largest difference of a pair's two scores, for cross-encoders.
    #[serde(skip_serializing_if = "Option::is_none")]
    score_difference: Option<Spread>,
    /// Standard deviation of the f32 scores, to compare the difference with.
    #[serde(skip_serializing_if = "Option::is_none")]
    score_deviation: Option<f64>,
    /// Rank correlation of a query's scores.
    spearman: Spread,
    /// How many make a query's top.
    top: usize,
    /// Share of a query's top that is in the other top.
    top_overlap: Spread,
    worst: Vec<WorstText>,
}

/// Cosines by the side that a tower encodes.
#[derive(Debug, Serialize)]
struct Cosines {
    queries: Spread,
    items: Spread,
}

/// Counts by the side that a tower encodes.
#[derive(Debug, Serialize)]
struct Counts {
    queries: u64,
    items: u64,
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
    /// As what it lost most.
    side: Side,
    /// Its cosine, or its rank correlation as a query of a cross-encoder.
    value: f64,
    /// How it begins.
    text: String,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    Query,
    Item,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Side::Query => "query",
            Side::Item => "item",
        }
    }
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
    let mut blank_lines = 0;
    let mut reader = LineReader::open(file, &Limits::default())?;
    while let Some(line) = reader.next_line()? {
        if line.is_blank() {
            blank_lines += 1;
        } else {
            lines.push((line.number() as usize, line.text().to_owned()));
        }
    }
    if lines.len() < FEWEST {
        bail!("{}: {} texts; at least {FEWEST} are needed, one a line", file.display(), lines.len());
    }
    let step = lines.len().div_ceil(QUERIES);
    let queries: Vec<usize> = (0..lines.len()).step_by(step).collect();
    let exact = ModelOptions { precision: Some(Precision::F32), ..options.clone() };
    let model = loxia::model::inspect(spec, options)?;
    let dual = model.variant == Variant::Dual;
    let work = Work { spec, lines: &lines, queries: &queries, context };
    let (mut loss, values) = if dual { work.dual(&exact, options)? } else { work.cross(&exact, options)? };
    loss.precision = precision;
    loss.blank_lines = blank_lines;
    let towers = [Some(&model.encoder), model.item_encoder.as_ref()];
    loss.restored = towers.into_iter().flatten().any(EncoderSummary::is_quantised);
    loss.worst = worst(&lines, values);
    Ok(loss)
}

/// The texts that lost most, each once.
fn worst(lines: &[(usize, String)], mut values: Vec<Value>) -> Vec<WorstText> {
    values.sort_by(|a, b| a.value.total_cmp(&b.value));
    let mut worst: Vec<WorstText> = Vec::new();
    for Value { place, side, value } in values {
        let (line, text) = &lines[place];
        if worst.len() < WORST && worst.iter().all(|named| named.line != *line) {
            worst.push(WorstText { line: *line, side, value, text: text.chars().take(60).collect() });
        }
    }
    worst
}

struct Work<'a> {
    spec: &'a ModelSpec,
    lines: &'a [(usize, String)],
    queries: &'a [usize],
    context: &'a Context,
}

/// What a text kept as a query or as an item.
struct Value {
    place: usize,
    side: Side,
    value: f64,
}

/// A loss, and the values that the worst texts are chosen by.
type Measured = (PrecisionLoss, Vec<Value>);

impl Work<'_> {
    fn dual(&self, exact: &ModelOptions, other: &ModelOptions) -> Result<Measured> {
        let text = |place: usize| (self.lines[place].0.to_string(), self.lines[place].1.as_str());
        let items: Vec<Item> =
            (0..self.lines.len()).map(text).map(|(id, text)| Item::plain(id, text)).collect();
        let queries: Vec<Query> =
            self.queries.iter().map(|&place| text(place)).map(|(id, text)| Query::plain(id, text)).collect();
        let bar = self.context.bar(2 * (items.len() + queries.len()) as u64, "texts");
        let encode = |options: &ModelOptions| -> Result<([Dense; 2], Counts)> {
            let model = TextEncoder::open(self.spec, options)?;
            let of_queries = model.encode_queries(&queries, &bar, &self.context.cancel)?;
            let of_items = model.encode_items(&items, &bar, &self.context.cancel)?;
            let comparable = |vectors: Vec<f32>| -> Result<Dense> {
                let mut vectors = Dense::new(vectors.len() / model.dim(), model.dim(), vectors)?;
                if model.similarity() == Similarity::Cosine {
                    normalise_rows(&mut vectors);
                }
                Ok(vectors)
            };
            let truncated = Counts { queries: of_queries.truncated, items: of_items.truncated };
            Ok(([comparable(of_queries.vectors)?, comparable(of_items.vectors)?], truncated))
        };
        // Both precisions cut the same texts.
        let ([exact_queries, exact_items], truncated) = encode(exact)?;
        let ([other_queries, other_items], _) = encode(other)?;
        bar.finish();
        let scores = |queries: &Dense, items: &Dense, query: usize| -> Vec<f64> {
            let others = (0..items.rows()).filter(|&place| place != self.queries[query]);
            others.map(|place| dot(queries.row(query), items.row(place))).collect()
        };
        let compared = (0..self.queries.len()).map(|query| {
            compare(
                &scores(&exact_queries, &exact_items, query),
                &scores(&other_queries, &other_items, query),
            )
        });
        let mut loss = self.loss(compared.collect(), self.lines.len() - 1)?;
        loss.truncated_texts = Some(truncated);
        let cosines = |exact: &Dense, other: &Dense| -> Vec<f64> {
            (0..exact.rows()).map(|row| cosine(exact.row(row), other.row(row))).collect()
        };
        let of_queries = cosines(&exact_queries, &other_queries);
        let of_items = cosines(&exact_items, &other_items);
        loss.cosine = Some(Cosines { queries: Spread::of(&of_queries), items: Spread::of(&of_items) });
        let of_items = of_items.into_iter().enumerate();
        let mut values: Vec<Value> =
            of_items.map(|(place, value)| Value { place, side: Side::Item, value }).collect();
        values.extend(self.as_queries(&of_queries));
        Ok((loss, values))
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
        let score = |options: &ModelOptions| -> Result<(Vec<f64>, u64)> {
            let model = CrossEncoder::open(self.spec, options)?;
            let mut scores = vec![0.0; pairs.len()];
            let cost = model.score(&queries, &items, &pairs, &mut scores, &bar, &self.context.cancel)?;
            Ok((scores.into_iter().map(f64::from).collect(), cost.truncated))
        };
        let ((exact, truncated), (other, _)) = (score(exact)?, score(other)?);
        bar.finish();
        let compared: Vec<Compared> = exact
            .chunks_exact(partners)
            .zip(other.chunks_exact(partners))
            .map(|(a, b)| compare(a, b))
            .collect();
        let correlations: Vec<f64> = compared.iter().map(|compared| compared.spearman).collect();
        let mut loss = self.loss(compared, partners)?;
        loss.truncated_pairs = Some(truncated);
        let differences: Vec<f64> = exact.iter().zip(&other).map(|(a, b)| (a - b).abs()).collect();
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        let worst = differences.iter().copied().fold(0.0, f64::max);
        loss.score_difference = Some(Spread { mean, worst });
        loss.score_deviation = Some(deviation(&exact));
        Ok((loss, self.as_queries(&correlations).collect()))
    }

    /// A value for each query.
    fn as_queries(&self, values: &[f64]) -> impl Iterator<Item = Value> {
        let of_query = |(&place, &value): (&usize, &f64)| Value { place, side: Side::Query, value };
        self.queries.iter().zip(values).map(of_query)
    }

    fn loss(&self, compared: Vec<Compared>, partners: usize) -> Result<PrecisionLoss> {
        let of = |value: fn(&Compared) -> f64| Spread::of(&compared.iter().map(value).collect::<Vec<f64>>());
        Ok(PrecisionLoss {
            precision: Precision::F32,
            kernel: Kernel::detect()?.name(),
            restored: false,
            texts: self.lines.len(),
            queries: compared.len(),
            blank_lines: 0,
            truncated_texts: None,
            truncated_pairs: None,
            cosine: None,
            score_difference: None,
            score_deviation: None,
            spearman: of(|compared| compared.spearman),
            top: depth(partners),
            top_overlap: of(|compared| compared.overlap),
            worst: Vec::new(),
        })
    }
}

/// One query's scores in two precisions.
struct Compared {
    spearman: f64,
    overlap: f64,
}

/// How many of a query's partners make its top.
fn depth(partners: usize) -> usize {
    TOP.min(partners / 2)
}

fn compare(exact: &[f64], other: &[f64]) -> Compared {
    let top = |scores: &[f64]| -> Vec<usize> {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        order.truncate(depth(scores.len()));
        order
    };
    let (of_exact, of_other) = (top(exact), top(other));
    let shared = of_exact.iter().filter(|place| of_other.contains(place)).count();
    // Scores that are all the same have no order that could be lost.
    let constant = exact.windows(2).all(|pair| pair[0] == pair[1]);
    let spearman = spearman(exact, other).unwrap_or(if constant { 1.0 } else { 0.0 });
    Compared { spearman, overlap: shared as f64 / of_exact.len().max(1) as f64 }
}

/// Standard deviation.
fn deviation(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
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
            "{} against {}, {} texts, {} of them as queries",
            self.precision,
            if self.restored { "f32 restored from 8 bits, so without their loss" } else { "f32" },
            self.texts,
            self.queries
        )];
        let truncated = self.truncated_texts.as_ref();
        for (what, count) in [
            ("blank lines left out", self.blank_lines as u64),
            ("truncated as queries", truncated.map_or(0, |truncated| truncated.queries)),
            ("truncated as items", truncated.map_or(0, |truncated| truncated.items)),
            ("truncated pairs", self.truncated_pairs.unwrap_or(0)),
        ] {
            if count > 0 {
                lines.push(format!("  {what:<24} {:>9}", grouped(count)));
            }
        }
        let line = |what: &str, spread: &Spread| {
            format!("  {what:<24} {:>9.5}   worst {:>9.5}", spread.mean, spread.worst)
        };
        if let Some(cosine) = &self.cosine {
            lines.push(line("cosine of queries", &cosine.queries));
            lines.push(line("cosine of items", &cosine.items));
        }
        if let Some(difference) = &self.score_difference {
            lines.push(line("score difference", difference));
        }
        if let Some(deviation) = self.score_deviation {
            lines.push(format!("  {:<24} {deviation:>9.5}   standard deviation", "f32 scores"));
        }
        lines.push(line("Spearman in a query", &self.spearman));
        lines.push(line(&format!("overlap of top {}", self.top), &self.top_overlap));
        let measure = if self.cosine.is_some() { "cosine" } else { "Spearman" };
        lines.push(format!("  worst texts ({measure})"));
        for worst in &self.worst {
            let WorstText { line, side, value, text } = worst;
            lines.push(format!("    line {line:<6} as {:<5} {value:>9.5}  {text}", side.name()));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlap_can_fail_however_few_texts_there_are() {
        for partners in [10, 15, 20, 100] {
            let exact: Vec<f64> = (0..partners).map(f64::from).collect();
            let reversed: Vec<f64> = exact.iter().map(|score| -score).collect();
            let compared = compare(&exact, &reversed);
            assert_eq!((compared.overlap, compared.spearman), (0.0, -1.0));
            assert_eq!(compare(&exact, &exact).overlap, 1.0);
            assert_eq!(compare(&vec![1.0; exact.len()], &vec![1.5; exact.len()]).spearman, 1.0);
        }
        assert_eq!((depth(10), depth(15), depth(100)), (5, 7, 10));
    }

    #[test]
    fn a_text_is_named_once_as_what_it_lost_most() {
        let lines: Vec<(usize, String)> = (1..9).map(|line| (line, format!("text {line}"))).collect();
        let value = |place: usize, side, value| Value { place, side, value };
        let mut values: Vec<Value> =
            (0..8).map(|place| value(place, Side::Item, 1.0 - place as f64 / 100.0)).collect();
        values.push(value(7, Side::Query, 0.5));
        values.push(value(6, Side::Query, 0.99));
        let worst = worst(&lines, values);
        let named: Vec<(usize, &str)> = worst.iter().map(|text| (text.line, text.side.name())).collect();
        assert_eq!(named, [(8, "query"), (7, "item"), (6, "item"), (5, "item"), (4, "item")]);
    }
}
