//! Cross-encoders: both texts in one sequence, one score for the pair.
//!
//! | variant | score |
//! |---|---|
//! | `cls`, `hard-nce` | the head's logit on the first token; with two labels logit 1 minus logit 0 |
//! | `emb` | half the sum of the states at the mention's marks, dot the state at the tag |
//!
//! Scores are raw unless an activation is asked for.

use loxia_core::{Cancel, Cost, Item, PairScorer, Progress, Query, ScorerInfo};
use loxia_nn::{Activation, Dense};

use crate::digest::{ModelDigest, encoder_files};
use crate::directory::{ModelDirectory, omits_types};
use crate::engine::{Engine, Machine, SEQUENCES_AT_ONCE, of_each};
use crate::error::{Error, Result};
use crate::families::{Family, HeadLayer};
use crate::layout::{BoundLayout, Layout, Prepared, TokenSequence};
use crate::network::Top;
use crate::options::{ModelOptions, ScoreActivation, Variant};
use crate::sentence::torch_activation;
use crate::spec::ModelSpec;
use crate::tokenizer::Tokenizer;

/// A cross-encoder, opened from a directory.
///
/// ```no_run
/// use loxia_core::{Cancel, Item, NoProgress, PairScorer, Query};
/// use loxia_model::{CrossEncoder, ModelOptions};
///
/// let model = CrossEncoder::open(&"models/reranker".parse()?, &ModelOptions::default())?;
/// let queries = [Query::plain("q", "what do crossbills eat")];
/// let items = [Item::plain("a", "Crossbills eat conifer seeds."), Item::plain("b", "A stove burns wood.")];
/// let mut scores = [0.0; 2];
/// model.score(&queries, &items, &[(0, 0), (0, 1)], &mut scores, &NoProgress, &Cancel::new())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CrossEncoder {
    name: String,
    digest: ModelDigest,
    machine: Machine,
    engine: Engine,
    layout: BoundLayout,
    scoring: Scoring,
    facts: CrossEncoderFacts,
}

/// What was decided when a cross-encoder was opened; commands report it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CrossEncoderFacts {
    /// The encoder's family.
    pub family: Family,
    /// What was built on it.
    pub variant: Variant,
    /// Why that and nothing else.
    pub because: String,
    /// The layout with every limit written out.
    pub layout: Layout,
    /// What is applied to scores.
    pub activation: Activation,
    /// What sentence-transformers would apply; `None` for a variant it does not know or a class unknown here.
    pub default_activation: Option<Activation>,
    /// Number of labels of the head; 0 without one.
    pub labels: usize,
    /// Tensors in the files that nothing reads.
    pub unread: Vec<String>,
    /// Kernel and sizes, for people.
    pub engine: String,
}

/// How states become a score.
enum Scoring {
    /// Dense layers on the first token; the last one's outputs are logits.
    Head { layers: Vec<Dense>, readout: Readout, activation: Activation },
    /// States at marks.
    Marks,
}

/// How logits become one number.
#[derive(Debug, Clone, Copy)]
enum Readout {
    Single,
    Difference,
    Label(usize),
}

impl CrossEncoder {
    /// Opens a model; what `options` leave out is taken from its directory.
    pub fn open(spec: &ModelSpec, options: &ModelOptions) -> Result<Self> {
        let directory = ModelDirectory::read(&spec.directory()?)?;
        let parts = CrossEncoderParts::resolve(&directory, options)?;
        let machine = Machine::new(options)?;
        let (engine, mut network) =
            Engine::open(directory.transformer(), &parts.config, parts.top, &machine)?;
        let tokenizer = Tokenizer::open(directory.transformer())?;
        tokenizer.check_vocabulary(parts.config.architecture.shape.vocab)?;
        let mut layout = parts.layout.bind(&tokenizer, parts.config.usable_positions())?;
        if parts.variant == Variant::Emb {
            layout = layout.keeping_marks();
        }
        let engine = engine.omitting_types(omits_types(directory.transformer(), &parts.layout)?);
        let labels = network.top.last().map_or(0, |layer| layer.linear.outputs);
        let default_activation = parts.default_activation(labels);
        let activation = match options.activation {
            None | Some(ScoreActivation::Identity) => Activation::Identity,
            Some(_) if parts.variant == Variant::Emb => {
                return Err(Error::Options("--activation: variant emb scores by dot products, not logits".into()));
            }
            Some(ScoreActivation::Sigmoid) => Activation::Sigmoid,
            Some(ScoreActivation::Default) => default_activation.ok_or_else(|| {
                Error::Options(format!(
                    "the model's default activation {:?} is not known here; give --activation sigmoid or identity",
                    parts.stored_activation.as_deref().unwrap_or_default()
                ))
            })?,
        };
        let scoring = if parts.variant == Variant::Emb {
            Scoring::Marks
        } else {
            let readout = Readout::choose(labels, options.label.or(parts.label), &directory.root)?;
            Scoring::Head { layers: pack(&network.top, &machine)?, readout, activation }
        };
        let facts = CrossEncoderFacts {
            family: network.architecture.family,
            variant: parts.variant,
            because: parts.because,
            layout: layout.resolved(),
            activation,
            default_activation,
            labels,
            unread: std::mem::take(&mut network.unread),
            engine: engine.describe(),
        };
        let settings = serde_json::json!({
            "variant": facts.variant, "layout": facts.layout, "activation": activation.name(), "labels": labels,
            "label": match &scoring { Scoring::Head { readout: Readout::Label(label), .. } => Some(*label), _ => None },
            "kernel": machine.kernel.same_bits(machine.precision.into()).name(), "precision": machine.precision.in_digests(),
        });
        let digest = ModelDigest::new(encoder_files(directory.transformer())?, settings.to_string());
        let name = match spec {
            ModelSpec::Hub(model) => model.to_string(),
            _ => directory.name(),
        };
        Ok(CrossEncoder { name, digest, machine, engine, layout, scoring, facts })
    }

    /// What was decided at opening.
    pub fn facts(&self) -> &CrossEncoderFacts {
        &self.facts
    }

    /// Most bytes of memory for intermediate results that the encoder had at once so far, freed since or not. Exact with
    /// one thread; with several an estimate, which takes what they borrow at the same time to be equally large.
    pub fn most_scratch_bytes(&self) -> usize {
        self.engine.most_scratch_bytes()
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The layout, bound to the model's tokenizer.
    pub fn layout(&self) -> &BoundLayout {
        &self.layout
    }

    /// SHA-256 over weights, configuration, tokenizer and every setting that changes a score.
    pub fn digest(&self) -> Result<&str> {
        self.digest.hex()
    }

    /// Scores pairs that [`BoundLayout::pair`] laid out before, for callers that keep them as tokens.
    pub fn score_tokens(
        &self,
        sequences: &[TokenSequence],
        scores: &mut [f32],
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Cost> {
        assert_eq!(sequences.len(), scores.len(), "one score for each sequence");
        if let Some(bad) = self.without_rows(sequences) {
            return Err(Error::Options(format!("sequence {bad} has no token that its score is read from")));
        }
        self.machine
            .install(sequences.len(), || self.score_sequences(sequences, scores, progress, cancel))?;
        match scores.iter().position(|score| !score.is_finite()) {
            None => Ok(cost_of(sequences)),
            Some(bad) => {
                Err(Error::NotFinite { what: format!("score of sequence {bad}"), value: scores[bad] })
            }
        }
    }

    fn score_all(
        &self,
        work: &Work<'_>,
        scores: &mut [f32],
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Cost> {
        let queries = prepare(work.queries.len(), work.pairs.iter().map(|pair| pair.0), |index| {
            cancel.check()?;
            Ok(self.layout.query(&work.queries[index].text)?)
        })?;
        let items = prepare(work.items.len(), work.pairs.iter().map(|pair| pair.1), |index| {
            cancel.check()?;
            Ok(self.layout.item(&work.items[index])?)
        })?;
        let mut cost = Cost::default();
        for (pairs, scores) in work.pairs.chunks(SEQUENCES_AT_ONCE).zip(scores.chunks_mut(SEQUENCES_AT_ONCE))
        {
            let sequences = of_each(pairs, |&(query, item)| {
                let query = queries[query as usize].as_ref().expect("prepared above");
                let item = items[item as usize].as_ref().expect("prepared above");
                Ok(self.layout.pair(query, item))
            })?;
            self.check_rows(work, pairs, &sequences)?;
            self.score_sequences(&sequences, scores, progress, cancel)?;
            if let Some(bad) = scores.iter().position(|score| !score.is_finite()) {
                let (query, item) =
                    (&work.queries[pairs[bad].0 as usize].id, &work.items[pairs[bad].1 as usize].id);
                let what = format!("score of query {query} and item {item}");
                return Err(Error::NotFinite { what, value: scores[bad] });
            }
            cost += cost_of(&sequences);
        }
        Ok(cost)
    }

    /// The first sequence that lacks a row its score is read from.
    fn without_rows(&self, sequences: &[TokenSequence]) -> Option<usize> {
        let by_marks = matches!(self.scoring, Scoring::Marks);
        sequences.iter().position(|sequence| {
            let marks = &sequence.marks;
            let marked = marks.start.is_some() && marks.end.is_some() && marks.tag.is_some();
            sequence.is_empty() || (by_marks && !marked)
        })
    }

    /// Every sequence must have the rows its score is read from.
    fn check_rows(&self, work: &Work<'_>, pairs: &[(u32, u32)], sequences: &[TokenSequence]) -> Result<()> {
        let Some(bad) = self.without_rows(sequences) else { return Ok(()) };
        let (query, item) = (&work.queries[pairs[bad].0 as usize].id, &work.items[pairs[bad].1 as usize].id);
        Err(Error::Options(if sequences[bad].is_empty() {
            format!(
                "query {query} and item {item} have no tokens: both are empty and the tokenizer adds none"
            )
        } else {
            format!(
                "variant emb scores with the states at marks, and layout {} gives query {query} and item {item} \
                 none; use --layout anncur",
                self.facts.layout.kind
            )
        }))
    }

    fn score_sequences(
        &self,
        sequences: &[TokenSequence],
        scores: &mut [f32],
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<()> {
        let hidden = self.engine.hidden();
        let store = |sequence: usize, score: &[f32]| {
            scores[sequence] = score[0];
            progress.advance(1);
        };
        match &self.scoring {
            Scoring::Marks => self.engine.run(
                sequences,
                |sequence, rows| {
                    let marks = &sequence.marks;
                    rows.extend([marks.start, marks.end, marks.tag].into_iter().flatten());
                },
                |parts| Ok(parts.iter().map(|states| mark_score(states, hidden)).collect()),
                store,
                cancel,
            ),
            Scoring::Head { layers, readout, activation } => self.engine.run(
                sequences,
                |_, rows| rows.push(0),
                |parts| {
                    let mut current = parts.concat();
                    for layer in layers {
                        let mut next = vec![0.0; parts.len() * layer.outputs()];
                        layer.apply(&current, &mut next)?;
                        current = next;
                    }
                    let labels = current.len() / parts.len();
                    let logits = current.chunks_exact(labels);
                    Ok(logits.map(|logits| activation.apply(readout.read(logits))).collect())
                },
                store,
                cancel,
            ),
        }
    }
}

fn cost_of(sequences: &[TokenSequence]) -> Cost {
    Cost {
        pairs: sequences.len() as u64,
        cached: 0,
        tokens: sequences.iter().map(|sequence| sequence.len() as u64).sum(),
        truncated: sequences.iter().filter(|sequence| sequence.truncated).count() as u64,
    }
}

struct Work<'a> {
    queries: &'a [Query],
    items: &'a [Item],
    pairs: &'a [(u32, u32)],
}

impl PairScorer for CrossEncoder {
    fn score(
        &self,
        queries: &[Query],
        items: &[Item],
        pairs: &[(u32, u32)],
        scores: &mut [f32],
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> loxia_core::Result<Cost> {
        assert_eq!(pairs.len(), scores.len(), "one score for each pair");
        let work = Work { queries, items, pairs };
        let texts = pairs.len().max(queries.len()).max(items.len());
        Ok(self.machine.install(texts, || self.score_all(&work, scores, progress, cancel))?)
    }

    fn info(&self) -> ScorerInfo {
        // A file that vanished after opening leaves no digest; an artefact then matches nothing, as it should.
        let digest = self.digest().map_or_else(|error| format!("unknown: {error}"), str::to_owned);
        ScorerInfo { name: self.name.clone(), digest }
    }
}

/// ½(h[start] + h[end]) · h[tag], summed in the order of coordinates.
fn mark_score(states: &[f32], hidden: usize) -> f32 {
    let (start, rest) = states.split_at(hidden);
    let (end, tag) = rest.split_at(hidden);
    let mention = start.iter().zip(end).map(|(s, e)| 0.5 * (s + e));
    mention.zip(tag).map(|(mention, tag)| f64::from(mention) * f64::from(*tag)).sum::<f64>() as f32
}

/// Prepares each text that is used once, in parallel.
fn prepare(
    count: usize,
    used: impl Iterator<Item = u32>,
    make: impl Fn(usize) -> Result<Prepared> + Sync,
) -> Result<Vec<Option<Prepared>>> {
    let mut wanted: Vec<(usize, bool)> = (0..count).map(|index| (index, false)).collect();
    for index in used {
        wanted[index as usize].1 = true;
    }
    of_each(&wanted, |&(index, wanted)| if wanted { make(index).map(Some) } else { Ok(None) })
}

pub(crate) fn pack(layers: &[HeadLayer], machine: &Machine) -> Result<Vec<Dense>> {
    layers.iter().map(|layer| Ok(Dense::new(&layer.linear, layer.activation, machine.kernel)?)).collect()
}

impl Readout {
    fn choose(labels: usize, label: Option<usize>, path: &std::path::Path) -> Result<Self> {
        match (labels, label) {
            (0, _) => Err(Error::NotAModel {
                path: path.to_owned(),
                what: "the classification head has no label: there is nothing to score with".into(),
            }),
            (_, Some(label)) if label >= labels => {
                Err(Error::Options(format!("--label {label}: the head has the labels 0 to {}", labels - 1)))
            }
            (_, Some(label)) => Ok(Readout::Label(label)),
            (1, None) => Ok(Readout::Single),
            (2, None) => Ok(Readout::Difference),
            (labels, None) => Err(Error::Undecided {
                path: path.to_owned(),
                why: format!("the head has {labels} labels and one of them must be the score"),
                flags: format!("--label 0 to --label {}", labels - 1),
            }),
        }
    }

    fn read(self, logits: &[f32]) -> f32 {
        match self {
            Readout::Single => logits[0],
            Readout::Difference => logits[1] - logits[0],
            Readout::Label(label) => logits[label],
        }
    }
}

/// A cross-encoder before its weights are read.
pub(crate) struct CrossEncoderParts {
    pub(crate) config: crate::families::ModelConfig,
    pub(crate) variant: Variant,
    pub(crate) because: String,
    pub(crate) layout: Layout,
    pub(crate) top: Top,
    pub(crate) label: Option<usize>,
    pub(crate) stored_activation: Option<String>,
}

impl CrossEncoderParts {
    pub(crate) fn resolve(directory: &ModelDirectory, options: &ModelOptions) -> Result<Self> {
        if directory.towers().is_some() {
            return Err(not_a_cross_encoder(directory));
        }
        let config = directory.config()?;
        let decision = directory.decide(Some(&config), options)?;
        let top = match decision.variant {
            Variant::Cls | Variant::HardNce => Top::Classifier(config.facts.labels()),
            Variant::Emb => Top::Bare,
            Variant::Dual => return Err(not_a_cross_encoder(directory)),
        };
        let sentence = directory.sentence.as_ref();
        let mut layout = directory.layout(decision.variant, options);
        if layout.max_length.is_none() {
            layout.max_length = sentence
                .and_then(|sentence| sentence.query.max_length)
                .map(|length| length.min(config.usable_positions()));
        }
        // Classes that are not PyTorch's own are not trusted: sentence-transformers goes on to the next place.
        let trusted = |class: &&str| class.starts_with("torch.");
        let stored = sentence.and_then(|sentence| sentence.activation.as_deref()).filter(trusted);
        let stored = stored.or_else(|| config.facts.stored_activation().filter(trusted)).map(str::to_owned);
        Ok(CrossEncoderParts {
            variant: decision.variant,
            because: decision.because,
            layout,
            top,
            label: directory.loxia.as_ref().and_then(|loxia| loxia.label),
            stored_activation: stored,
            config,
        })
    }

    /// What sentence-transformers would apply: the stored activation, else a sigmoid for one label.
    pub(crate) fn default_activation(&self, labels: usize) -> Option<Activation> {
        match (&self.stored_activation, self.variant) {
            (_, Variant::Emb) => None,
            (Some(class), _) => torch_activation(class),
            (None, _) if labels == 1 => Some(Activation::Sigmoid),
            (None, _) => Some(Activation::Identity),
        }
    }
}

fn not_a_cross_encoder(directory: &ModelDirectory) -> Error {
    Error::Options(format!(
        "{}: this is a dual encoder; use it with `loxia embed` or --dual, or say --variant cls, emb or hard-nce \
         if it is not",
        directory.root.display()
    ))
}
