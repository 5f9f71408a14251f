//! Whether a model can be trusted: every part opened, every weight looked at, one pair scored, and what computed it.

use std::path::Path;

use loxia_core::{Cancel, Item, NoProgress, PairScorer, Query, QueryText};
use serde::Serialize;

use crate::cross_encoder::{CrossEncoder, CrossEncoderParts};
use crate::dual_plan::DualPlan;
use crate::engine::Machine;
use crate::error::{Error, Result};
use crate::families::ModelConfig;
use crate::inspect::{holds_codes, single_directory};
use crate::network::{Network, NotFinite, Top, read_dense};
use crate::options::{ModelOptions, Variant};
use crate::spec::ModelSpec;
use crate::text_encoder::TextEncoder;

/// One thing that was checked.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CheckLine {
    /// What was looked at.
    pub what: String,
    /// What was found; begins with the problem where there is one.
    pub found: String,
    /// Whether it is as it should be.
    pub ok: bool,
}

/// Checks a model: names, shapes and values of all weights, tokenizer against vocabulary, and a self-score
/// that must be finite and the same alone and in company.
///
/// A model whose files cannot be read is an error; one that computes nonsense has lines that are not ok. With weights that
/// are not finite it is not asked for a score: opening it is refused.
pub fn check(spec: &ModelSpec, options: &ModelOptions) -> Result<Vec<CheckLine>> {
    if let Some(directory) = single_directory(spec)? {
        let config = directory.config()?;
        if directory.decide(Some(&config), options)?.variant != Variant::Dual {
            let parts = CrossEncoderParts::resolve(&directory, options)?;
            let weights = check_weights("weights", directory.transformer(), &parts.config, parts.top)?;
            if !weights.ok {
                return Ok(vec![weights]);
            }
            let model = CrossEncoder::open(spec, options)?;
            return Ok(vec![weights, computed_in(model.machine()), check_pair(&model)]);
        }
    }
    let plan = DualPlan::resolve(spec, options)?;
    let mut lines = Vec::new();
    for (name, tower) in [("query tower", &plan.query), ("item tower", &plan.item)] {
        lines.push(check_weights(name, &tower.files.transformer, &tower.config, tower.top())?);
        for step in &tower.files.steps {
            if let Err(error) = read_dense(step) {
                lines.push(failed(&format!("{name}, Dense module"), &error));
            }
        }
        if plan.shared() {
            break;
        }
    }
    if lines.iter().all(|line| line.ok) {
        let model = TextEncoder::open(spec, options)?;
        lines.extend([computed_in(model.machine()), check_vectors(&model)]);
    }
    Ok(lines)
}

fn check_weights(what: &str, directory: &Path, config: &ModelConfig, top: Top) -> Result<CheckLine> {
    let mut network = Network::read_any(directory, config, top)?;
    let mut bad = NotFinite::default();
    let mut count = 0;
    network.walk("", &mut |name, _, values| {
        count += values.len();
        bad.look_at(name, values);
    });
    let NotFinite(bad) = bad;
    let found = if bad.is_empty() {
        let kept = holds_codes(&network.dtypes);
        let kept =
            if kept { "; kept in 8 bits: f32 here is what these restore to, not the original" } else { "" };
        format!("{count} numbers, all finite{kept}")
    } else {
        format!("not finite: {}", bad.join(", "))
    };
    Ok(CheckLine { what: what.into(), ok: bad.is_empty(), found })
}

/// What the numbers after it, and what int8 loses, depend on.
fn computed_in(machine: &Machine) -> CheckLine {
    let found = format!("{}, {} kernel", machine.precision, machine.kernel);
    CheckLine { what: "computed in".into(), found, ok: true }
}

fn texts() -> (Query, Item) {
    let text =
        QueryText::Mention { left: "a wood".into(), mention: "stove".into(), right: "burns logs".into() };
    let item =
        Item { id: "item".into(), title: Some("stove".into()), text: "a device that heats a room".into() };
    (Query { id: "query".into(), text }, item)
}

fn check_pair(model: &CrossEncoder) -> CheckLine {
    let (query, item) = texts();
    let items =
        [item, Item::plain("other", "a bird with a crossed bill, far longer than the text beside it")];
    let score = |pairs: &[(u32, u32)]| {
        let mut scores = vec![0.0; pairs.len()];
        let queries = std::slice::from_ref(&query);
        model.score(queries, &items, pairs, &mut scores, &NoProgress, &Cancel::new()).map(|_| scores)
    };
    match (score(&[(0, 0)]), score(&[(0, 1), (0, 0)])) {
        (Ok(alone), Ok(together)) => same("score of a pair", alone[0], together[1]),
        (Err(error), _) | (_, Err(error)) => failed("score of a pair", &Error::Core(error)),
    }
}

fn check_vectors(model: &TextEncoder) -> CheckLine {
    let (query, item) = texts();
    let queries = model.encode_queries(&[query], &NoProgress, &Cancel::new());
    let alone = model.encode_items(std::slice::from_ref(&item), &NoProgress, &Cancel::new());
    let company = [Item::plain("other", "a bird with a crossed bill"), item];
    let together = model.encode_items(&company, &NoProgress, &Cancel::new());
    match (queries, alone, together) {
        (Ok(queries), Ok(alone), Ok(together)) => {
            let dot = |item: &[f32]| queries.vectors.iter().zip(item).map(|(a, b)| a * b).sum::<f32>();
            same("similarity of a pair", dot(&alone.vectors), dot(&together.vectors[model.dim()..]))
        }
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => failed("similarity of a pair", &error),
    }
}

fn same(what: &str, alone: f32, together: f32) -> CheckLine {
    let ok = alone.to_bits() == together.to_bits();
    let found = if ok {
        format!("{alone}")
    } else {
        format!("differs: {alone} alone, {together} beside another text")
    };
    CheckLine { what: what.into(), found, ok }
}

fn failed(what: &str, error: &Error) -> CheckLine {
    CheckLine { what: what.into(), found: error.to_string(), ok: false }
}
