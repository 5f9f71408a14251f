//! Groups of flags that several commands share, and what they mean.

use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context as _, Result};
use clap::Args;
use loxia::core::IdTable;
use loxia::core::artefact::Existing;
use loxia::data::{DataFormat, DataOptions, DataSet, QueryStore};
use loxia::model::layout::{Compat, LayoutKind};
use loxia::model::{
    CrossEncoder, ModelOptions, ModelSpec, Pooling, Precision, ScoreActivation, Similarity, TextEncoder,
    Variant,
};
use loxia::search::TextSource;

use crate::context::Context;

/// A half-open range of positions: `A..B`, `A..`, `..B` or `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Positions {
    start: usize,
    end: Option<usize>,
}

impl Positions {
    /// The range within `0..len`; one that reaches beyond is refused, never shortened silently.
    pub(crate) fn within(&self, len: usize, what: &str) -> anyhow::Result<Range<usize>> {
        let end = self.end.unwrap_or(len);
        if self.start > end || end > len {
            return crate::exit::usage(format!(
                "range {self} does not fit: there are {len} {what}, so it must lie within 0..{len}"
            ));
        }
        Ok(self.start..end)
    }
}

impl Positions {
    /// Where it ends, if that was said.
    pub(crate) fn end(&self) -> Option<usize> {
        self.end
    }
}

impl std::fmt::Display for Positions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.end {
            Some(end) => write!(f, "{}..{end}", self.start),
            None => write!(f, "{}..", self.start),
        }
    }
}

impl FromStr for Positions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let advice = || format!("{text:?} is no range; write A..B (half-open), for instance 0..500");
        let (start, end) = text.split_once("..").ok_or_else(advice)?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| advice());
        let start = if start.is_empty() { 0 } else { number(start)? };
        let end = if end.is_empty() { None } else { Some(number(end)?) };
        if end.is_some_and(|end| end < start) {
            return Err(format!("range {text} ends before it starts"));
        }
        Ok(Positions { start, end })
    }
}

/// Where the result goes, and what happens to one that is there already.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputFlags {
    /// Where to write; - is stdout
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: PathBuf,
    /// Replace an existing output
    #[arg(long)]
    pub(crate) overwrite: bool,
}

impl OutputFlags {
    /// What happens to an output that is there.
    pub(crate) fn existing(&self) -> Existing {
        if self.overwrite { Existing::Overwrite } else { Existing::Refuse }
    }

    /// Whether the result goes to stdout.
    pub(crate) fn is_stdout(&self) -> bool {
        self.output.as_os_str() == "-"
    }
}

/// How a model directory is to be read, where it does not say so itself.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model options")]
pub(crate) struct ModelFlags {
    /// What is built on the encoder: cls, emb, hard-nce or dual [default: from loxia.json, modules.json or config.json]
    #[arg(long, value_name = "NAME")]
    variant: Option<Variant>,
    /// How query and item become tokens: pair, anncur, hard-nce or blink [default: from loxia.json, else pair]
    #[arg(long, value_name = "NAME")]
    layout: Option<LayoutKind>,
    /// Most tokens of the query side
    #[arg(long, value_name = "TOKENS")]
    max_query: Option<usize>,
    /// Most tokens of the item side
    #[arg(long, value_name = "TOKENS")]
    max_item: Option<usize>,
    /// Most tokens of the whole input [default: what tokenizer and positions allow]
    #[arg(long, value_name = "TOKENS")]
    max_length: Option<usize>,
    /// How states become a vector: cls, tanh, mean, max, lse or marker (dual encoders; beside a cross-encoder, a --dual that does not say it, which then has its layout too)
    #[arg(long, value_name = "NAME")]
    pooling: Option<Pooling>,
    /// How vectors are compared: dot or cosine (dual encoders)
    #[arg(long, value_name = "NAME")]
    similarity: Option<Similarity>,
    /// Reproduce a published system's quirks: anncur, hard-nce or blink; none switches off a stored one
    #[arg(long, value_name = "NAME")]
    compat: Option<Compat>,
    /// In which numbers to compute: f32, or int8 (faster with AVX2 and better, a little less exact; `loxia model check` measures it); --dual too [default: f32]
    #[arg(long, value_name = "NAME")]
    precision: Option<Precision>,
    /// What to do to a logit: identity, sigmoid, or default (what sentence-transformers would) [default: identity]
    #[arg(long, value_name = "NAME")]
    activation: Option<ScoreActivation>,
    /// Whose logit is the score, for heads of more than two labels
    #[arg(long, value_name = "INDEX")]
    label: Option<usize>,
    /// Tokens in one batch; changes speed and memory, never a score
    #[arg(long, value_name = "TOKENS", value_parser = token_budget)]
    token_budget: Option<usize>,
    /// Fetch an hf: model that is not in the cache (needs a build with the feature hub)
    #[arg(long)]
    download: bool,
}

/// At least one token.
fn token_budget(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("a batch of no tokens holds no text; leave the flag out for the default".into()),
        Ok(tokens) => Ok(tokens),
        Err(error) => Err(error.to_string()),
    }
}

impl ModelFlags {
    /// The flags as the model crate takes them.
    pub(crate) fn options(&self) -> ModelOptions {
        ModelOptions {
            variant: self.variant,
            layout: self.layout,
            max_query: self.max_query,
            max_item: self.max_item,
            max_length: self.max_length,
            pooling: self.pooling,
            similarity: self.similarity,
            compat: self.compat,
            precision: self.precision,
            activation: self.activation,
            label: self.label,
            token_budget: self.token_budget,
            ..ModelOptions::default()
        }
    }

    /// Opens a cross-encoder.
    pub(crate) fn cross_encoder(&self, model: &str, context: &Context) -> Result<CrossEncoder> {
        self.refuse(&["pooling", "similarity"], "of dual encoders; there is none here")?;
        self.cross_encoder_beside_dual(model, context)
    }

    /// The same where flags of dual encoders are for the `--dual` beside it.
    fn cross_encoder_beside_dual(&self, model: &str, context: &Context) -> Result<CrossEncoder> {
        let options = ModelOptions { pooling: None, similarity: None, ..self.options() };
        let model = CrossEncoder::open(&self.spec(model, context)?, &options)?;
        if model.facts().variant != Variant::Cls {
            self.refuse(&["activation", "label"], "of models with a classification head (--variant cls)")?;
        }
        Ok(model)
    }

    /// Opens a cross-encoder in a command that may have a dual encoder beside it.
    pub(crate) fn cross_encoder_and(
        &self,
        model: &str,
        dual: Option<&str>,
        context: &Context,
    ) -> Result<CrossEncoder> {
        match dual {
            Some(_) => self.cross_encoder_beside_dual(model, context),
            None => self.cross_encoder(model, context),
        }
    }

    /// What is asked of a dual encoder beside a cross-encoder. Flags of a model are the cross-encoder's; of the dual
    /// encoder its own directories decide, but for the precision, which holds for both. With `--pooling` it is one whose
    /// directories do not say what it is, and reads its texts as the cross-encoder does.
    pub(crate) fn dual_options(&self) -> ModelOptions {
        let ModelOptions { layout, max_query, max_item, compat, pooling, similarity, precision, .. } =
            self.options();
        let told = ModelOptions { pooling, similarity, precision, ..ModelOptions::default() };
        if pooling.is_none() {
            return told;
        }
        ModelOptions { variant: Some(Variant::Dual), layout, max_query, max_item, compat, ..told }
    }

    /// Opens a dual encoder: one directory, or `QUERY,ITEM`.
    pub(crate) fn text_encoder(&self, model: &str, context: &Context) -> Result<TextEncoder> {
        self.refuse(&["activation", "label"], "of cross-encoders; this command needs a dual encoder")?;
        Ok(TextEncoder::open(&self.spec(model, context)?, &self.options())?)
    }

    /// Refuses flags that were given but would do nothing.
    pub(crate) fn refuse(&self, names: &[&str], because: &str) -> Result<()> {
        match self.given().into_iter().find(|given| names.contains(given)) {
            Some(name) => crate::exit::usage(format!("--{name} is a flag {because}")),
            None => Ok(()),
        }
    }

    /// Names of the flags that were given.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        [
            ("variant", self.variant.is_some()),
            ("layout", self.layout.is_some()),
            ("max-query", self.max_query.is_some()),
            ("max-item", self.max_item.is_some()),
            ("max-length", self.max_length.is_some()),
            ("pooling", self.pooling.is_some()),
            ("similarity", self.similarity.is_some()),
            ("compat", self.compat.is_some()),
            ("precision", self.precision.is_some()),
            ("activation", self.activation.is_some()),
            ("label", self.label.is_some()),
            ("token-budget", self.token_budget.is_some()),
            ("download", self.download),
        ]
        .into_iter()
        .filter_map(|(name, given)| given.then_some(name))
        .collect()
    }

    /// Where the model is, fetched first if that was asked for.
    pub(crate) fn spec(&self, model: &str, context: &Context) -> Result<ModelSpec> {
        let spec: ModelSpec = model.parse()?;
        if self.download {
            fetch(&spec, context)?;
        }
        Ok(spec)
    }
}

#[cfg(feature = "hub")]
fn fetch(spec: &ModelSpec, context: &Context) -> Result<()> {
    match spec {
        ModelSpec::Hub(model) => {
            let bar = context.bar(0, "bytes");
            let downloaded = loxia::model::download(model, &bar, &context.cancel);
            bar.finish();
            downloaded?;
        }
        ModelSpec::Towers(query, item) => {
            fetch(query, context)?;
            fetch(item, context)?;
        }
        ModelSpec::Directory(_) => {}
    }
    Ok(())
}

#[cfg(not(feature = "hub"))]
fn fetch(_spec: &ModelSpec, _context: &Context) -> Result<()> {
    crate::exit::usage("--download needs a build with the feature hub: cargo install --features hub")
}

/// Which data set, and what of it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Data options")]
pub(crate) struct DataFlags {
    /// How the data set is laid out [default: recognised]
    #[arg(long, value_name = "NAME", value_parser = data_format)]
    data_format: Option<DataFormat>,
    /// One world of an entity-linking data set
    #[arg(long, value_name = "NAME")]
    world: Option<String>,
    /// train, val, test, ...
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
}

/// A parser that shows the names.
fn data_format(name: &str) -> Result<DataFormat, String> {
    name.parse().map_err(|error: loxia::data::Error| error.to_string())
}

impl DataFlags {
    /// The queries of a data set of both; a plain file holds either, and is taken for items here.
    pub(crate) fn queries_beside_items(data: &DataSet) -> Result<&QueryStore> {
        if data.format().is_plain_file() {
            let path = data.path().display();
            return crate::exit::usage(format!(
                "{path} is a file of items; the queries must come from elsewhere"
            ));
        }
        Ok(data.queries()?)
    }

    /// The flags as they concern items: beside a directory of queries, world and split say nothing about a
    /// plain file.
    pub(crate) fn of_items(&self, items: &std::path::Path, queries: Option<&std::path::Path>) -> DataFlags {
        if queries.is_some_and(std::path::Path::is_dir) && !items.is_dir() {
            return DataFlags { world: None, split: None, ..self.clone() };
        }
        self.clone()
    }

    /// Opens a data set for its queries alone; world and split say nothing about a plain file.
    pub(crate) fn open_queries(&self, path: &std::path::Path) -> Result<DataSet> {
        if path.is_dir() {
            return self.open(path);
        }
        DataFlags { world: None, split: None, ..self.clone() }.open(path)
    }

    /// The data set at `path` for others to find again, if its name can be written down.
    pub(crate) fn source(&self, path: &std::path::Path) -> Option<TextSource> {
        let path = std::path::absolute(path).ok()?.to_str()?.to_owned();
        let format = self.data_format.map(|format| format.name().to_owned());
        Some(TextSource { path, format, world: self.world.clone(), split: self.split.clone() })
    }

    /// Opens the data set that an index remembers.
    pub(crate) fn open_source(source: &TextSource) -> Result<DataSet> {
        let data_format = source.format.as_deref().map(str::parse).transpose()?;
        let flags = DataFlags { data_format, world: source.world.clone(), split: source.split.clone() };
        flags.open(source.path.as_ref())
    }

    /// Opens the data set at `path`.
    pub(crate) fn open(&self, path: &std::path::Path) -> Result<DataSet> {
        let options = DataOptions {
            format: self.data_format,
            world: self.world.clone(),
            split: self.split.clone(),
            ..DataOptions::default()
        };
        DataSet::open(path, &options).with_context(|| format!("cannot open the data set {}", path.display()))
    }
}

/// The double whose shortest decimal form is that of the float: files say 0.1, not 0.10000000149011612.
pub(crate) fn shortest(score: f32) -> f64 {
    score.to_string().parse().unwrap_or(f64::from(score))
}

/// The ids at some positions of a table.
pub(crate) fn ids_of(ids: &IdTable, positions: Range<usize>) -> Result<IdTable> {
    let mut chosen = IdTable::new();
    for position in positions {
        chosen.push(ids.get(position as u32))?;
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_half_open_and_never_cut() {
        let range: Positions = "2..5".parse().unwrap();
        assert_eq!(range.within(9, "rows").unwrap(), 2..5);
        assert_eq!("..".parse::<Positions>().unwrap().within(3, "rows").unwrap(), 0..3);
        assert_eq!("1..".parse::<Positions>().unwrap().within(3, "rows").unwrap(), 1..3);
        let error = range.within(4, "mentions").unwrap_err().to_string();
        assert!(error.contains("there are 4 mentions"), "{error}");
        assert!("5..2".parse::<Positions>().is_err());
        assert!("5".parse::<Positions>().is_err());
    }
}
