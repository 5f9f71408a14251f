//! An encoder with what stands on it, as read from a directory.

use std::path::Path;

use loxia_nn::{EncoderWeights, Linear};

use crate::error::{Error, Result};
use crate::families::{Architecture, Family, HeadLayer, ModelConfig, may_stay_unread};
use crate::sentence::Step;
use crate::weights::{Dtype, TensorLoader, WeightStore};

/// What stands on the encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Top {
    /// Nothing: states are used as they are.
    Bare,
    /// The tanh pooler.
    Pooler,
    /// A classification head with this many labels, or as many as its tensor has.
    Classifier(Option<usize>),
}

/// Weights of a model in f32, under no kernel's order yet.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    pub(crate) architecture: Architecture,
    pub(crate) encoder: EncoderWeights,
    /// Layers that read the first token's state.
    pub(crate) top: Vec<HeadLayer>,
    /// Tensors in the files that nothing here reads.
    pub(crate) unread: Vec<String>,
    /// Number formats of the tensors that are read.
    pub(crate) dtypes: Vec<Dtype>,
    /// Classes in a checkpoint that were not resolved.
    pub(crate) opaque: Vec<String>,
}

impl Network {
    /// Reads a network from a directory's weights, which must be finite: kernels may make a plausible score of a NaN.
    pub(crate) fn read(directory: &Path, config: &ModelConfig, top: Top) -> Result<Self> {
        let network = Self::read_any(directory, config, top)?;
        network.finite(directory)
    }

    /// The network, unless a number in it is not finite; `source` is for the message.
    pub(crate) fn finite(mut self, source: &Path) -> Result<Self> {
        let mut bad = NotFinite::default();
        self.walk("", &mut |name, _, values| bad.look_at(name, values));
        bad.refuse(source)?;
        Ok(self)
    }

    /// Reads a network whatever its numbers are.
    pub(crate) fn read_any(directory: &Path, config: &ModelConfig, top: Top) -> Result<Self> {
        let store = WeightStore::open(directory)?;
        Self::load(directory, config, top, TensorLoader::new(&store))
    }

    /// Checks names and shapes without reading a number.
    pub(crate) fn check(directory: &Path, config: &ModelConfig, top: Top) -> Result<Self> {
        let store = WeightStore::open(directory)?;
        Self::load(directory, config, top, TensorLoader::names_only(&store))
    }

    /// Fills a network from a loader; `directory` is for messages.
    pub(crate) fn load(
        directory: &Path,
        config: &ModelConfig,
        top: Top,
        mut loader: TensorLoader<'_>,
    ) -> Result<Self> {
        let store = loader.store();
        let architecture = config.architecture.clone();
        let prefix = architecture.find_prefix(store);
        let mut encoder = architecture.skeleton();
        architecture.walk_encoder(&mut encoder, &mut |name, shape, values| {
            loader.fill(&format!("{prefix}{name}"), shape, values);
        });
        let mut layers = match top {
            Top::Bare => Vec::new(),
            Top::Pooler if architecture.has_pooler() => vec![architecture.pooler_skeleton()],
            Top::Pooler => {
                return Err(Error::Options(format!(
                    "{} models have no tanh pooler; choose another --pooling",
                    architecture.family
                )));
            }
            Top::Classifier(labels) => {
                let stored =
                    store.shape(architecture.label_tensor()).and_then(|shape| shape.first().copied());
                architecture.head_skeleton(labels.or(stored).unwrap_or(1))
            }
        };
        let mut fill = |name: &str, shape: &[usize], values: &mut Vec<f32>| loader.fill(name, shape, values);
        match top {
            Top::Bare => {}
            Top::Pooler => architecture.walk_pooler(prefix, &mut layers[0], &mut fill),
            Top::Classifier(_) => architecture.walk_head(prefix, &mut layers, &mut fill),
        }
        let model = format!("{} with {}", architecture.family, top.describe());
        let dtypes = loader.dtypes();
        let unread = loader.finish(directory, &model, may_stay_unread)?;
        Ok(Network { architecture, encoder, top: layers, unread, dtypes, opaque: store.opaque() })
    }

    /// Number of weights, from shapes alone.
    pub(crate) fn parameters(&mut self) -> usize {
        let mut count = 0;
        let Network { architecture, encoder, top, .. } = self;
        architecture.walk_encoder(encoder, &mut |_, shape, _| count += shape.iter().product::<usize>());
        let layers = top.iter().map(|layer| layer.linear.outputs * (layer.linear.inputs + 1));
        count + layers.sum::<usize>()
    }

    /// Every tensor under the name it has beside a head (`prefix`) or alone, for writing.
    pub(crate) fn walk(&mut self, prefix: &str, visit: &mut crate::families::Visitor<'_>) {
        let Network { architecture, encoder, top, .. } = self;
        architecture.walk_encoder(encoder, &mut |name, shape, values| {
            visit(&format!("{prefix}{name}"), shape, values);
        });
        match top.as_mut_slice() {
            [] => {}
            [pooler] => architecture.walk_pooler(prefix, pooler, visit),
            head => architecture.walk_head(prefix, head, visit),
        }
    }
}

/// Names of tensors that hold a NaN or an infinity.
#[derive(Debug, Default)]
pub(crate) struct NotFinite(pub(crate) Vec<String>);

impl NotFinite {
    pub(crate) fn look_at(&mut self, name: &str, values: &[f32]) {
        // Without a way out within a block, blocks are compared many at a time.
        let sound = |block: &[f32]| block.iter().fold(true, |sound, value| sound & value.is_finite());
        if !values.chunks(4096).all(sound) {
            self.0.push(name.to_owned());
        }
    }

    fn refuse(self, directory: &Path) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let what = format!(
            "these tensors hold NaN or infinity: {}; the file is damaged, or its training diverged, or its numbers \
             overflowed when they were stored in fewer bits",
            self.0.join(", ")
        );
        Err(Error::Malformed { path: directory.into(), what })
    }
}

impl Top {
    fn describe(self) -> &'static str {
        match self {
            Top::Bare => "no head",
            Top::Pooler => "its tanh pooler",
            Top::Classifier(_) => "a classification head",
        }
    }
}

/// Families whose inputs have no token types, or only one: whatever the layout says, the type is 0.
pub(crate) fn ignores_types(architecture: &Architecture) -> bool {
    architecture.shape.types < 2 || matches!(architecture.family, Family::DistilBert | Family::MpNet)
}

/// The dense layer of a sentence-transformers module.
pub(crate) fn read_dense(step: &Step) -> Result<Option<HeadLayer>> {
    let Step::Dense { directory, inputs, outputs, bias, activation } = step else { return Ok(None) };
    let store = WeightStore::open(directory)?;
    let mut loader = TensorLoader::new(&store);
    let mut linear =
        Linear { weight: Vec::new(), bias: bias.then(Vec::new), inputs: *inputs, outputs: *outputs };
    loader.fill("linear.weight", &[*outputs, *inputs], &mut linear.weight);
    if let Some(values) = &mut linear.bias {
        loader.fill("linear.bias", &[*outputs], values);
    }
    loader.finish(directory, "a Dense module", |_| false)?;
    let mut bad = NotFinite::default();
    bad.look_at("linear.weight", &linear.weight);
    linear.bias.iter().for_each(|values| bad.look_at("linear.bias", values));
    bad.refuse(directory)?;
    Ok(Some(HeadLayer { linear, activation: *activation }))
}
