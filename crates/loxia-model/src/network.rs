//! An encoder with what stands on it, as read from a directory.

use std::collections::HashSet;
use std::path::Path;

use loxia_nn::{EncoderWeights, Linear};

use crate::error::{Error, Result};
use crate::families::{Architecture, Family, HeadLayer, ModelConfig, Visitor, may_stay_unread};
use crate::sentence::Step;
use crate::weights::{Dtype, TensorCheck, WeightStore};

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

/// Weights of a model in f32, under no kernel's order yet; the encoder's are empty where the engine has read them already.
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
        Self::read_any(directory, config, top)?.finite(directory, &HashSet::new())
    }

    /// The network, unless a number in it is not finite, or one of those `known` among what was packed already; `source`
    /// is for the message.
    pub(crate) fn finite(mut self, source: &Path, known: &HashSet<String>) -> Result<Self> {
        let mut bad = NotFinite::default();
        self.walk("", &mut |name, _, values| {
            if known.contains(name) {
                bad.0.push(name.to_owned());
            } else {
                bad.look_at(name, values);
            }
        });
        bad.refuse(source)?;
        Ok(self)
    }

    /// Reads a network whatever its numbers are.
    pub(crate) fn read_any(directory: &Path, config: &ModelConfig, top: Top) -> Result<Self> {
        Self::load(directory, config, top, &WeightStore::open(directory)?)
    }

    /// Checks names and shapes without reading a number.
    pub(crate) fn check(directory: &Path, config: &ModelConfig, top: Top) -> Result<Self> {
        Self::structure(directory, config, top, &WeightStore::open(directory)?)
    }

    /// Reads a network from a store; `directory` is for messages.
    pub(crate) fn load(
        directory: &Path,
        config: &ModelConfig,
        top: Top,
        store: &WeightStore,
    ) -> Result<Self> {
        let mut network = Self::structure(directory, config, top, store)?;
        network.fill(store, Self::walk)?;
        Ok(network)
    }

    /// Reads what stands on the encoder.
    pub(crate) fn read_top(&mut self, store: &WeightStore) -> Result<()> {
        self.fill(store, Self::walk_top)
    }

    /// Reads the tensors of a walk.
    fn fill(&mut self, store: &WeightStore, walk: fn(&mut Self, &str, &mut Visitor<'_>)) -> Result<()> {
        let mut failure = Ok(());
        let prefix = self.architecture.find_prefix(store);
        walk(self, prefix, &mut |name, _, values| {
            if failure.is_ok() {
                failure = store.read(name).map(|read| *values = read);
            }
        });
        failure
    }

    /// A network whose tensors are those of a store, without their values.
    pub(crate) fn structure(
        directory: &Path,
        config: &ModelConfig,
        top: Top,
        store: &WeightStore,
    ) -> Result<Self> {
        let architecture = config.architecture.clone();
        let layers = match top {
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
        let mut network = Network {
            encoder: architecture.skeleton(),
            top: layers,
            unread: Vec::new(),
            dtypes: Vec::new(),
            opaque: store.opaque(),
            architecture,
        };
        let mut check = TensorCheck::new(store);
        let prefix = network.architecture.find_prefix(store);
        network.walk(prefix, &mut |name, shape, _| check.expect(name, shape));
        network.dtypes = check.dtypes();
        let model = format!("{} with {}", network.architecture.family, top.describe());
        network.unread = check.finish(directory, &model, may_stay_unread)?;
        Ok(network)
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
    pub(crate) fn walk(&mut self, prefix: &str, visit: &mut Visitor<'_>) {
        let Network { architecture, encoder, .. } = self;
        architecture.walk_encoder(encoder, &mut |name, shape, values| {
            visit(&format!("{prefix}{name}"), shape, values);
        });
        self.walk_top(prefix, visit);
    }

    fn walk_top(&mut self, prefix: &str, visit: &mut Visitor<'_>) {
        let Network { architecture, top, .. } = self;
        match top.as_mut_slice() {
            [] => {}
            [pooler] => architecture.walk_pooler(prefix, pooler, visit),
            head => architecture.walk_head(prefix, head, visit),
        }
    }
}

/// Whether no number is NaN or infinite.
pub(crate) fn is_finite(values: &[f32]) -> bool {
    // Without a way out within a block, blocks are compared many at a time.
    let sound = |block: &[f32]| block.iter().fold(true, |sound, value| sound & value.is_finite());
    values.chunks(4096).all(sound)
}

/// Names of tensors that hold a NaN or an infinity.
#[derive(Debug, Default)]
pub(crate) struct NotFinite(pub(crate) Vec<String>);

impl NotFinite {
    pub(crate) fn look_at(&mut self, name: &str, values: &[f32]) {
        if !is_finite(values) {
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
    let (weight, bias_name) = ("linear.weight", "linear.bias");
    let mut check = TensorCheck::new(&store);
    check.expect(weight, &[*outputs, *inputs]);
    if *bias {
        check.expect(bias_name, &[*outputs]);
    }
    check.finish(directory, "a Dense module", |_| false)?;
    let linear = Linear {
        weight: store.read(weight)?,
        bias: if *bias { Some(store.read(bias_name)?) } else { None },
        inputs: *inputs,
        outputs: *outputs,
    };
    let mut bad = NotFinite::default();
    bad.look_at(weight, &linear.weight);
    linear.bias.iter().for_each(|values| bad.look_at(bias_name, values));
    bad.refuse(directory)?;
    Ok(Some(HeadLayer { linear, activation: *activation }))
}
