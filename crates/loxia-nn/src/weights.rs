//! Weights as they come from a file: plain vectors in PyTorch's layout, checked before they are packed.

use crate::{EncoderShape, Error, LayerMap, Result};

/// An affine map `y = W x + b`.
///
/// ```
/// let linear = loxia_nn::Linear { weight: vec![1.0, 2.0], bias: Some(vec![0.5]), inputs: 2, outputs: 1 };
/// linear.check("head").unwrap();
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Linear {
    /// `[outputs][inputs]`.
    pub weight: Vec<f32>,
    /// `[outputs]`, where there is one.
    pub bias: Option<Vec<f32>>,
    /// Width of `x`.
    pub inputs: usize,
    /// Width of `y`.
    pub outputs: usize,
}

impl Linear {
    /// Checks that the vectors have the lengths the widths ask for; `name` is used in the error.
    pub fn check(&self, name: &str) -> Result<()> {
        if self.inputs == 0 || self.outputs == 0 {
            return Err(Error::Tensor {
                name: format!("{name}.weight"),
                found: format!("[{}, {}]", self.outputs, self.inputs),
                expected: "at least one input and one output".into(),
            });
        }
        self.check_weight(name)?;
        self.check_bias(name)
    }

    /// Checks it all for a map between two widths.
    fn check_as(&self, name: &str, inputs: usize, outputs: usize) -> Result<()> {
        self.check_sides(name, inputs, outputs)?;
        self.check(name)
    }

    /// Checks everything but the weight.
    fn check_frame(&self, name: &str, inputs: usize, outputs: usize) -> Result<()> {
        self.check_sides(name, inputs, outputs)?;
        self.check_bias(name)
    }

    fn check_sides(&self, name: &str, inputs: usize, outputs: usize) -> Result<()> {
        if (self.inputs, self.outputs) == (inputs, outputs) {
            return Ok(());
        }
        Err(Error::Tensor {
            name: format!("{name}.weight"),
            found: format!("[{}, {}]", self.outputs, self.inputs),
            expected: format!("[{outputs}, {inputs}]"),
        })
    }

    fn check_weight(&self, name: &str) -> Result<()> {
        check_table(&format!("{name}.weight"), &self.weight, self.outputs, self.inputs)
    }

    fn check_bias(&self, name: &str) -> Result<()> {
        self.bias.iter().try_for_each(|bias| check_vector(&format!("{name}.bias"), bias, self.outputs))
    }
}

/// Normalisation of a row to mean 0 and variance 1, then `scale · x + shift`.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerNorm {
    /// Factor for each element; `weight` in model files.
    pub scale: Vec<f32>,
    /// Addend for each element; `bias` in model files.
    pub shift: Vec<f32>,
    /// Added to the variance.
    pub eps: f32,
}

impl LayerNorm {
    fn check(&self, name: &str, width: usize) -> Result<()> {
        check_vector(&format!("{name}.scale"), &self.scale, width)?;
        check_vector(&format!("{name}.shift"), &self.shift, width)
    }
}

/// Weights of one layer.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerWeights {
    /// Query projection, `hidden` to `hidden`.
    pub query: Linear,
    /// Key projection, `hidden` to `hidden`.
    pub key: Linear,
    /// Value projection, `hidden` to `hidden`.
    pub value: Linear,
    /// Projection of the heads' results, `hidden` to `hidden`.
    pub attention_output: Linear,
    /// Norm after attention.
    pub attention_norm: LayerNorm,
    /// First feed-forward map, `hidden` to `intermediate`.
    pub intermediate: Linear,
    /// Second feed-forward map, `intermediate` to `hidden`.
    pub output: Linear,
    /// Norm after the feed-forward part.
    pub output_norm: LayerNorm,
}

impl LayerWeights {
    /// Checks everything but the maps' weights.
    fn check_frame(&self, name: &str, shape: &EncoderShape) -> Result<()> {
        for map in LayerMap::ALL {
            let (inputs, outputs) = match map {
                LayerMap::Intermediate => (shape.hidden, shape.intermediate),
                LayerMap::Output => (shape.intermediate, shape.hidden),
                _ => (shape.hidden, shape.hidden),
            };
            map.of(self).check_frame(&format!("{name}.{}", map.name()), inputs, outputs)?;
        }
        self.attention_norm.check(&format!("{name}.attention_norm"), shape.hidden)?;
        self.output_norm.check(&format!("{name}.output_norm"), shape.hidden)
    }

    fn check_weights(&self, name: &str) -> Result<()> {
        LayerMap::ALL
            .into_iter()
            .try_for_each(|map| map.of(self).check_weight(&format!("{name}.{}", map.name())))
    }
}

/// All weights of an encoder.
///
/// Their numbers must be finite, which those who read them have to see to: only shapes are checked here. A NaN mostly
/// makes NaN of the states, but it need not: in the bias of values, with nearly all of its bits set, it is a 0 once it
/// is rounded to bfloat16, as for the attention of 8-bit models.
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderWeights {
    /// Word table, `[vocab][embedding]`.
    pub word: Vec<f32>,
    /// Position table, `[positions][embedding]`, where there is one.
    pub position: Option<Vec<f32>>,
    /// Type table, `[types][embedding]`, where there is one.
    pub types: Option<Vec<f32>>,
    /// Norm of the summed embeddings, `embedding` wide.
    pub embedding_norm: LayerNorm,
    /// Map from `embedding` to `hidden`, after the norm (ELECTRA); needed where the two differ.
    pub embedding_projection: Option<Linear>,
    /// Attention bias by bucket of distance, `[buckets][heads]` (MPNet).
    pub relative_bias: Option<Vec<f32>>,
    /// One entry for each layer.
    pub layers: Vec<LayerWeights>,
}

impl EncoderWeights {
    /// Checks every tensor against the shape.
    pub fn check(&self, shape: &EncoderShape) -> Result<()> {
        shape.check()?;
        check_table("word", &self.word, shape.vocab, shape.embedding)?;
        self.check_frame(shape)?;
        let mut layers = self.layers.iter().enumerate();
        layers.try_for_each(|(index, layer)| layer.check_weights(&format!("layers[{index}]")))
    }

    /// Checks everything but the matrices (see [`crate::Matrix`]).
    pub(crate) fn check_frame(&self, shape: &EncoderShape) -> Result<()> {
        if let Some(position) = &self.position {
            check_table("position", position, shape.positions, shape.embedding)?;
        }
        match &self.types {
            Some(types) => check_table("types", types, shape.types, shape.embedding)?,
            None if shape.types > 0 => return Err(missing("types", &[shape.types, shape.embedding])),
            None => {}
        }
        self.embedding_norm.check("embedding_norm", shape.embedding)?;
        match &self.embedding_projection {
            Some(map) => map.check_as("embedding_projection", shape.embedding, shape.hidden)?,
            None if shape.embedding != shape.hidden => {
                return Err(missing("embedding_projection.weight", &[shape.hidden, shape.embedding]));
            }
            None => {}
        }
        match (&self.relative_bias, shape.relative) {
            (Some(bias), Some(relative)) => {
                check_table("relative_bias", bias, relative.buckets, shape.heads)?;
            }
            (None, Some(relative)) => {
                return Err(missing("relative_bias", &[relative.buckets, shape.heads]));
            }
            (Some(bias), None) => {
                return Err(Error::Tensor {
                    name: "relative_bias".into(),
                    found: format!("{} elements", bias.len()),
                    expected: "none, the shape has no relative buckets".into(),
                });
            }
            (None, None) => {}
        }
        if self.layers.len() != shape.layers {
            return Err(Error::Tensor {
                name: "layers".into(),
                found: format!("{} layers", self.layers.len()),
                expected: format!("{} layers", shape.layers),
            });
        }
        let mut layers = self.layers.iter().enumerate();
        layers.try_for_each(|(index, layer)| layer.check_frame(&format!("layers[{index}]"), shape))
    }
}

fn missing(name: &str, dimensions: &[usize]) -> Error {
    Error::Tensor { name: name.into(), found: "nothing".into(), expected: format!("{dimensions:?}") }
}

fn check_vector(name: &str, values: &[f32], length: usize) -> Result<()> {
    if values.len() == length {
        return Ok(());
    }
    Err(Error::Tensor {
        name: name.into(),
        found: format!("{} elements", values.len()),
        expected: format!("[{length}]"),
    })
}

fn check_table(name: &str, values: &[f32], rows: usize, columns: usize) -> Result<()> {
    check_count(|| name.into(), values.len(), rows, columns)
}

/// Checks how many elements a matrix has.
pub(crate) fn check_count(
    name: impl FnOnce() -> String,
    found: usize,
    rows: usize,
    columns: usize,
) -> Result<()> {
    // A product that overflows cannot be the length of a vector, so it is simply unequal.
    if rows.checked_mul(columns) == Some(found) {
        return Ok(());
    }
    Err(Error::Tensor {
        name: name(),
        found: format!("{found} elements"),
        expected: format!("[{rows}, {columns}]"),
    })
}
