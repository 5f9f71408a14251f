//! Vectors of queries and items: those of a dual encoder, or of TF-IDF weights.

use anyhow::{Context as _, Result};
use loxia::core::{NoProgress, Query};
use loxia::model::{ModelOptions, Precision, Similarity, TextEncoder};
use loxia::search::linalg::Dense;
use loxia::search::{Index, QueryEncoder, TfidfSettings, TfidfVectors, normalise_rows};
use std::path::Path;

use super::items::{OrderedItems, ToldTexts};
use crate::context::Context;
use crate::exit::usage;
use crate::flags::ModelFlags;

/// Texts encoded at once.
const AT_ONCE: usize = 1024;
/// Passes over the texts that making a TF-IDF space takes: terms are counted for words and for character
/// runs, then weighted.
const TFIDF_PASSES: u64 = 3;
/// Name of what the index holds to encode queries with.
const TFIDF: &str = "tfidf";
/// Name of the digest of a dual encoder.
pub(super) const DUAL_DIGEST: &str = "dual";

/// Something that gives queries and items vectors of one space.
pub(crate) enum VectorSpace {
    /// The two sides of a dual encoder.
    Dual(Box<TextEncoder>),
    /// TF-IDF weights, projected.
    Tfidf(Box<TfidfVectors>),
}

impl VectorSpace {
    /// The space of a dual encoder, or of TF-IDF weights where there is none; with the vectors of the items.
    pub(crate) fn of_texts(
        dual: Option<Self>,
        items: &OrderedItems<'_>,
        context: &Context,
    ) -> Result<(Self, Dense)> {
        let Some(space) = dual else { return Self::tfidf(items, context) };
        let vectors = space.items(items, context)?;
        Ok((space, vectors))
    }

    /// Opens a dual encoder.
    pub(crate) fn dual(spec: &str, flags: &ModelFlags, context: &Context) -> Result<Self> {
        Self::dual_with(spec, &flags.dual_options(), flags, context)
    }

    fn dual_with(spec: &str, options: &ModelOptions, flags: &ModelFlags, context: &Context) -> Result<Self> {
        let encoder = TextEncoder::open(&flags.spec(spec, context)?, options).with_context(|| {
            let hint = if options.pooling.is_none() {
                " (beside a cross-encoder: --pooling and --similarity are flags of the dual encoder, which with --pooling \
                 takes --layout, --max-query and --max-item as well; --variant is the cross-encoder's)"
            } else {
                ""
            };
            format!("--dual {spec}{hint}")
        });
        Ok(VectorSpace::Dual(Box::new(encoder?)))
    }

    /// Makes a TF-IDF space from items; gives their vectors too.
    fn tfidf(items: &OrderedItems<'_>, context: &Context) -> Result<(Self, Dense)> {
        let bar = context.bar(TFIDF_PASSES * items.len() as u64, "texts for TF-IDF");
        let texts = ToldTexts { items, progress: &bar };
        let made = TfidfVectors::fit(&texts, &TfidfSettings::default(), &context.cancel);
        bar.finish();
        let (space, vectors) = made?;
        Ok((VectorSpace::Tfidf(Box::new(space)), vectors))
    }

    /// What an index needs to encode queries; `None` if it needs nothing.
    pub(crate) fn of_index(
        index: &Index,
        path: &Path,
        dual: Option<&str>,
        flags: &ModelFlags,
        context: &Context,
    ) -> Result<Option<Self>> {
        let Some(width) = index.posterior().vector_dimensions() else { return Ok(None) };
        if let Some((name, bytes)) = index.query_encoder() {
            if name != TFIDF {
                let what = format!("queries are encoded by {name:?}, which this release does not know");
                return Err(loxia::core::Error::corrupt(path, what).into());
            }
            return Ok(Some(VectorSpace::Tfidf(Box::new(TfidfVectors::parse(path, bytes)?))));
        }
        let Some(dual) = dual else {
            return usage(format!(
                "{} was built with vectors of {width} dimensions; give the encoder that made them with --dual",
                path.display()
            ));
        };
        let mut space = VectorSpace::dual(dual, flags, context)?;
        if let Some(manifest) = index.manifest().filter(|manifest| manifest.digests.contains_key(DUAL_DIGEST))
        {
            let is_it = |space: &VectorSpace| {
                Ok::<_, anyhow::Error>(space.digest()?.as_ref() == manifest.digests.get(DUAL_DIGEST))
            };
            if !is_it(&space)? {
                // Vectors may have been made in another precision than the scores.
                let asked = flags.dual_options();
                let in_8_bits = asked.precision == Some(Precision::Int8);
                let other = if in_8_bits { Precision::F32 } else { Precision::Int8 };
                let options = ModelOptions { precision: Some(other), ..asked };
                // Not every processor and model can do 8 bits; then the first one is what there is to tell.
                if let Ok(again) = VectorSpace::dual_with(dual, &options, flags, context)
                    && is_it(&again)?
                {
                    context.say(format_args!("--dual computes in {other}, as when the index was built"));
                    space = again;
                }
            }
            manifest.check_digest(path, DUAL_DIGEST, &space.digest()?.unwrap_or_default())?;
        }
        if space.dimensions() != width {
            return Err(loxia::core::Error::Mismatch {
                path: path.to_owned(),
                field: "width of the vectors".into(),
                found: width.to_string(),
                expected: space.dimensions().to_string(),
                advice: "give the dual encoder that it was built with".into(),
            }
            .into());
        }
        Ok(Some(space))
    }

    /// The dual encoder, if it is one.
    pub(crate) fn into_encoder(self) -> Option<TextEncoder> {
        match self {
            VectorSpace::Dual(encoder) => Some(*encoder),
            VectorSpace::Tfidf(_) => None,
        }
    }

    /// Numbers of a vector.
    pub(super) fn dimensions(&self) -> usize {
        match self {
            VectorSpace::Dual(encoder) => encoder.dim(),
            VectorSpace::Tfidf(space) => space.dims(),
        }
    }

    /// Digest of a model; TF-IDF is stored in the index itself.
    pub(super) fn digest(&self) -> Result<Option<String>> {
        Ok(match self {
            VectorSpace::Dual(encoder) => Some(encoder.info()?.digest),
            VectorSpace::Tfidf(_) => None,
        })
    }

    /// The index with what it needs to encode queries itself.
    pub(super) fn stored_in(&self, index: Index) -> Result<Index> {
        match self {
            VectorSpace::Dual(_) => Ok(index),
            VectorSpace::Tfidf(space) => {
                let mut bytes = Vec::new();
                space.write_to(&mut bytes)?;
                Ok(index.with_query_encoder(TFIDF, bytes))
            }
        }
    }

    /// In words.
    pub(super) fn name(&self) -> Result<String> {
        Ok(match self {
            VectorSpace::Dual(encoder) => encoder.info()?.name,
            VectorSpace::Tfidf(_) => TFIDF.to_owned(),
        })
    }

    /// Vectors of queries, one a row.
    pub(crate) fn queries(&self, queries: &[Query], context: &Context) -> Result<Dense> {
        match self {
            VectorSpace::Dual(encoder) => {
                let bar = context.bar(queries.len() as u64, "queries to encode");
                let embedded = encoder.encode_queries(queries, &bar, &context.cancel);
                bar.finish();
                rows(embedded?.vectors, encoder)
            }
            VectorSpace::Tfidf(space) => {
                let mut values = Vec::with_capacity(queries.len() * space.dims());
                for query in queries {
                    values.extend(space.encode(query)?);
                }
                Ok(Dense::new(queries.len(), space.dims(), values)?)
            }
        }
    }

    /// The vector of one query.
    pub(crate) fn query(&self, query: &Query, context: &Context) -> Result<Vec<f32>> {
        match self {
            VectorSpace::Dual(encoder) => {
                let one = std::slice::from_ref(query);
                let embedded = encoder.encode_queries(one, &NoProgress, &context.cancel)?;
                Ok(rows(embedded.vectors, encoder)?.into_values())
            }
            VectorSpace::Tfidf(space) => Ok(space.encode(query)?),
        }
    }

    /// Vectors of items, one a row.
    pub(super) fn items(&self, items: &OrderedItems<'_>, context: &Context) -> Result<Dense> {
        let bar = context.bar(items.len() as u64, "items to encode");
        let encoded = match self {
            VectorSpace::Dual(encoder) => encode_items(encoder, items, &bar, context),
            VectorSpace::Tfidf(space) => {
                Ok(space.encode_items(&ToldTexts { items, progress: &bar }, &context.cancel)?)
            }
        };
        bar.finish();
        encoded
    }
}

fn encode_items(
    encoder: &TextEncoder,
    items: &OrderedItems<'_>,
    bar: &crate::context::Bar,
    context: &Context,
) -> Result<Dense> {
    let mut values = Vec::with_capacity(items.len() * encoder.dim());
    for start in (0..items.len()).step_by(AT_ONCE) {
        let block = items.read(start..(start + AT_ONCE).min(items.len()))?;
        values.extend(encoder.encode_items(&block, bar, &context.cancel)?.vectors);
    }
    rows(values, encoder)
}

/// Vectors as rows, of length 1 where cosines are compared.
fn rows(vectors: Vec<f32>, encoder: &TextEncoder) -> Result<Dense> {
    let mut matrix = Dense::new(vectors.len() / encoder.dim(), encoder.dim(), vectors)?;
    if encoder.similarity() == Similarity::Cosine {
        normalise_rows(&mut matrix);
    }
    Ok(matrix)
}
