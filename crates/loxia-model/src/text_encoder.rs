//! Dual encoders: each text becomes a vector, queries and items by one tower or by one each.

use std::borrow::Cow;
use std::sync::Arc;

use loxia_core::{Cancel, Item, Progress, Query, QueryText, ScorerInfo};
use loxia_nn::Dense;

use crate::cross_encoder::pack;
use crate::digest::ModelDigest;
use crate::directory::omits_types;
use crate::dual_plan::{DualPlan, TowerPlan};
use crate::engine::{Engine, Machine, SEQUENCES_AT_ONCE, of_each};
use crate::error::{Error, Result};
use crate::families::Family;
use crate::layout::{BoundLayout, Layout, TokenSequence};
use crate::network::read_dense;
use crate::options::{ModelOptions, Pooling, Similarity};
use crate::pooling::{Side, normalize, pool, push_rows};
use crate::spec::ModelSpec;
use crate::tokenizer::Tokenizer;

/// Vectors of texts, row after row.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// `rows x dim` numbers.
    pub vectors: Vec<f32>,
    /// Width of a row.
    pub dim: usize,
    /// Tokens that went through the encoder.
    pub tokens: u64,
    /// Texts that were cut to fit.
    pub truncated: u64,
}

/// A dual encoder, opened from one directory or two.
///
/// ```no_run
/// use loxia_core::{Cancel, NoProgress, Query};
/// use loxia_model::{ModelOptions, TextEncoder};
///
/// let model = TextEncoder::open(&"models/all-MiniLM-L6-v2".parse()?, &ModelOptions::default())?;
/// let queries = [Query::plain("q", "what do crossbills eat")];
/// let embeddings = model.encode_queries(&queries, &NoProgress, &Cancel::new())?;
/// assert_eq!(embeddings.vectors.len(), model.dim());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TextEncoder {
    name: String,
    machine: Machine,
    query: Arc<Tower>,
    item: Arc<Tower>,
    similarity: Similarity,
    digest: ModelDigest,
    facts: TextEncoderFacts,
}

/// What was decided when a dual encoder was opened; commands report it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TextEncoderFacts {
    /// Why it is a dual encoder.
    pub because: String,
    /// The tower of queries.
    pub query: TowerFacts,
    /// The tower of items.
    pub item: TowerFacts,
    /// Whether both are the same encoder.
    pub shared: bool,
    /// How vectors are compared.
    pub similarity: Similarity,
}

/// One tower of a dual encoder.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TowerFacts {
    /// The encoder's family.
    pub family: Family,
    /// The layout with every limit written out.
    pub layout: Layout,
    /// How states become a vector.
    pub pooling: Pooling,
    /// Names of the steps after pooling.
    pub steps: Vec<String>,
    /// Text put before every input; empty for none.
    pub prompt: String,
    /// Tensors in the files that nothing reads.
    pub unread: Vec<String>,
    /// Kernel and sizes, for people.
    pub engine: String,
}

impl TextEncoder {
    /// Opens a model; what `options` leave out is taken from its directories.
    pub fn open(spec: &ModelSpec, options: &ModelOptions) -> Result<Self> {
        let plan = DualPlan::resolve(spec, options)?;
        let machine = Machine::new(options)?;
        let query = Arc::new(Tower::open(&plan.query, &machine)?);
        let item = if plan.shared() { query.clone() } else { Arc::new(Tower::open(&plan.item, &machine)?) };
        if query.dim != item.dim {
            return Err(Error::Options(format!(
                "the query tower makes vectors of {} numbers, the item tower of {}; they do not belong together",
                query.dim, item.dim
            )));
        }
        let facts = TextEncoderFacts {
            because: plan.because.clone(),
            query: query.facts(&plan.query),
            item: item.facts(&plan.item),
            shared: plan.shared(),
            similarity: plan.similarity,
        };
        let name = match spec {
            ModelSpec::Hub(model) => model.to_string(),
            _ => plan.name.clone(),
        };
        let digest = plan.digest(&facts, &machine)?;
        Ok(TextEncoder { name, machine, query, item, similarity: plan.similarity, digest, facts })
    }

    /// Width of the vectors.
    pub fn dim(&self) -> usize {
        self.query.dim
    }

    /// How the vectors are to be compared.
    pub fn similarity(&self) -> Similarity {
        self.similarity
    }

    /// What was decided at opening.
    pub fn facts(&self) -> &TextEncoderFacts {
        &self.facts
    }

    /// Most bytes of memory for intermediate results that each tower had at once so far, added up (see
    /// [`crate::CrossEncoder::most_scratch_bytes`]).
    pub fn most_scratch_bytes(&self) -> usize {
        let of_items = if self.facts.shared { 0 } else { self.item.engine.most_scratch_bytes() };
        self.query.engine.most_scratch_bytes() + of_items
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Name and digest, as recorded in artefacts.
    pub fn info(&self) -> Result<ScorerInfo> {
        Ok(ScorerInfo { name: self.name.clone(), digest: self.digest.hex()?.to_owned() })
    }

    /// One vector for each query, in order.
    pub fn encode_queries(
        &self,
        queries: &[Query],
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Embeddings> {
        let prompt = &self.facts.query.prompt;
        self.encode(&self.query, Side::Query, queries, progress, cancel, |tower, query| {
            let text = tower.query_text(prompt, &query.text);
            let sequence = tower.layout.single_query(&text)?;
            Ok((sequence, format!("query {}", query.id)))
        })
    }

    /// One vector for each item, in order.
    pub fn encode_items(
        &self,
        items: &[Item],
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Embeddings> {
        let prompt = &self.facts.item.prompt;
        self.encode(&self.item, Side::Item, items, progress, cancel, |tower, item| {
            let text = tower.item_text(prompt, item);
            let sequence = tower.layout.single_item(&text)?;
            Ok((sequence, format!("item {}", item.id)))
        })
    }

    /// One vector for each item that was laid out before, for callers that keep them as tokens.
    pub fn encode_item_tokens(
        &self,
        sequences: &[TokenSequence],
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Embeddings> {
        let numbered: Vec<(usize, &TokenSequence)> = sequences.iter().enumerate().collect();
        self.encode(&self.item, Side::Item, &numbered, progress, cancel, |_, (number, sequence)| {
            Ok(((*sequence).clone(), format!("sequence {number}")))
        })
    }

    fn encode<T: Sync>(
        &self,
        tower: &Tower,
        side: Side,
        texts: &[T],
        progress: &dyn Progress,
        cancel: &Cancel,
        lay_out: impl Fn(&Tower, &T) -> Result<(TokenSequence, String)> + Sync,
    ) -> Result<Embeddings> {
        let prompt = if side == Side::Query { &self.facts.query.prompt } else { &self.facts.item.prompt };
        self.machine.install(texts.len(), || {
            let skip = tower.tokens_to_skip(prompt)?;
            let mut out = Embeddings {
                vectors: vec![0.0; texts.len() * tower.dim],
                dim: tower.dim,
                tokens: 0,
                truncated: 0,
            };
            let chunks =
                texts.chunks(SEQUENCES_AT_ONCE).zip(out.vectors.chunks_mut(SEQUENCES_AT_ONCE * tower.dim));
            for (texts, vectors) in chunks {
                let laid_out = of_each(texts, |text| {
                    cancel.check()?;
                    lay_out(tower, text)
                })?;
                let (sequences, names): (Vec<_>, Vec<_>) = laid_out.into_iter().unzip();
                tower.check_rows(side, &sequences, &names, skip)?;
                tower.encode(side, &sequences, skip, vectors, progress, cancel)?;
                if let Some(bad) = vectors.iter().position(|value| !value.is_finite()) {
                    let what = format!("vector of {}", names[bad / tower.dim]);
                    return Err(Error::NotFinite { what, value: vectors[bad] });
                }
                out.tokens += sequences.iter().map(|sequence| sequence.len() as u64).sum::<u64>();
                out.truncated += sequences.iter().filter(|sequence| sequence.truncated).count() as u64;
            }
            Ok(out)
        })
    }
}

/// What happens to a vector after pooling.
enum PostStep {
    Dense(Box<Dense>),
    Normalize,
}

struct Tower {
    engine: Engine,
    layout: BoundLayout,
    pooling: Pooling,
    include_prompt: bool,
    lower_case: bool,
    steps: Vec<PostStep>,
    dim: usize,
    family: Family,
    unread: Vec<String>,
}

impl Tower {
    fn open(plan: &TowerPlan, machine: &Machine) -> Result<Self> {
        let transformer = &plan.files.transformer;
        let (engine, network) = Engine::open(transformer, &plan.config, plan.top(), machine)?;
        let tokenizer = Tokenizer::open(transformer)?;
        tokenizer.check_vocabulary(plan.config.architecture.shape.vocab)?;
        let mut layout = plan.layout.bind(&tokenizer, plan.config.usable_positions())?;
        if plan.pooling == Pooling::Marker {
            layout = layout.keeping_marks();
        }
        let engine = engine.omitting_types(omits_types(transformer, &plan.layout)?);
        let mut dim = engine.hidden();
        let mut steps: Vec<PostStep> =
            pack(&network.top, machine)?.into_iter().map(|dense| PostStep::Dense(Box::new(dense))).collect();
        for step in &plan.files.steps {
            match read_dense(step)? {
                None => steps.push(PostStep::Normalize),
                Some(layer) if layer.linear.inputs != dim => {
                    return Err(Error::Options(format!(
                        "{}: a Dense module takes {} numbers, but the vector before it has {dim}",
                        transformer.display(),
                        layer.linear.inputs
                    )));
                }
                Some(layer) => {
                    dim = layer.linear.outputs;
                    let dense = Dense::new(&layer.linear, layer.activation, machine.kernel)?;
                    steps.push(PostStep::Dense(Box::new(dense)));
                }
            }
        }
        Ok(Tower {
            engine,
            layout,
            pooling: plan.pooling,
            include_prompt: plan.files.include_prompt,
            lower_case: plan.files.lower_case,
            steps,
            dim: plan.truncate.map_or(dim, |truncate| truncate.min(dim)),
            family: network.architecture.family,
            unread: network.unread,
        })
    }

    fn facts(&self, plan: &TowerPlan) -> TowerFacts {
        TowerFacts {
            family: self.family,
            layout: self.layout.resolved(),
            pooling: self.pooling,
            steps: plan.step_names(),
            prompt: plan.prompt.clone(),
            unread: self.unread.clone(),
            engine: self.engine.describe(),
        }
    }

    /// The text in the case the model wants; letter by letter, as the tokenizers' own rule does it.
    fn cased(&self, text: String) -> String {
        if self.lower_case { text.chars().flat_map(char::to_lowercase).collect() } else { text }
    }

    /// A prompt is text: it is put before the query's own and tokenised with it.
    fn query_text<'q>(&self, prompt: &str, query: &'q QueryText) -> Cow<'q, QueryText> {
        if prompt.is_empty() && !self.lower_case {
            return Cow::Borrowed(query);
        }
        let change = |text: String| self.cased(text);
        Cow::Owned(match query {
            QueryText::Plain(text) => QueryText::Plain(change(format!("{prompt}{text}"))),
            QueryText::Mention { left, mention, right } => QueryText::Mention {
                left: change(format!("{prompt}{left}")),
                mention: change(mention.clone()),
                right: change(right.clone()),
            },
        })
    }

    fn item_text<'i>(&self, prompt: &str, item: &'i Item) -> Cow<'i, Item> {
        if prompt.is_empty() && !self.lower_case {
            return Cow::Borrowed(item);
        }
        let change = |text: String| self.cased(text);
        let (title, text) = match &item.title {
            Some(title) => (Some(change(format!("{prompt}{title}"))), change(item.text.clone())),
            None => (None, change(format!("{prompt}{}", item.text))),
        };
        Cow::Owned(Item { id: item.id.clone(), title, text })
    }

    /// Leading tokens that pooling leaves out: template and prompt, where the model says so.
    fn tokens_to_skip(&self, prompt: &str) -> Result<usize> {
        if self.include_prompt || prompt.is_empty() {
            return Ok(0);
        }
        let tokenizer = self.layout.tokenizer();
        let template = tokenizer.single_template();
        let tokens = tokenizer.encode(&self.cased(prompt.to_owned()))?.len();
        // The prompt is measured as a text of its own: cut like one, with what the template puts after it.
        Ok((template.prefix.len() + tokens)
            .min(self.layout.max_length().saturating_sub(template.suffix.len())))
    }

    fn check_rows(
        &self,
        side: Side,
        sequences: &[TokenSequence],
        names: &[String],
        skip: usize,
    ) -> Result<()> {
        let mut rows = Vec::new();
        let bad = sequences.iter().position(|sequence| {
            rows.clear();
            !push_rows(self.pooling, side, sequence, skip, &mut rows)
        });
        bad.map_or(Ok(()), |bad| {
            if sequences[bad].is_empty() {
                return Err(Error::Options(format!(
                    "{} has no tokens: its text is empty and the tokenizer adds none",
                    names[bad]
                )));
            }
            Err(Error::Options(format!(
                "pooling {} reads the states at marks, and layout {} gives {} none; use --layout anncur",
                self.pooling,
                self.layout.layout().kind,
                names[bad]
            )))
        })
    }

    fn encode(
        &self,
        side: Side,
        sequences: &[TokenSequence],
        skip: usize,
        vectors: &mut [f32],
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<()> {
        let hidden = self.engine.hidden();
        self.engine.run(
            sequences,
            |sequence, rows| {
                push_rows(self.pooling, side, sequence, skip, rows);
            },
            |parts| {
                let mut current = vec![0.0; parts.len() * hidden];
                for (states, vector) in parts.iter().zip(current.chunks_exact_mut(hidden)) {
                    pool(self.pooling, states, vector);
                }
                for step in &self.steps {
                    match step {
                        PostStep::Normalize => {
                            let width = current.len() / parts.len();
                            current.chunks_exact_mut(width).for_each(normalize);
                        }
                        PostStep::Dense(dense) => {
                            let mut next = vec![0.0; parts.len() * dense.outputs()];
                            dense.apply(&current, &mut next)?;
                            current = next;
                        }
                    }
                }
                Ok(current)
            },
            |sequence, vector| {
                vectors[sequence * self.dim..][..self.dim].copy_from_slice(&vector[..self.dim]);
                progress.advance(1);
            },
            cancel,
        )
    }
}
