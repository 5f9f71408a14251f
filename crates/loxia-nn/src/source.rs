//! Where an encoder's weights come from: all at once, or piece by piece out of files larger than memory should be.

use std::ops::ControlFlow;

use crate::{EncoderWeights, Error, LayerWeights, Linear};

/// A map of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LayerMap {
    /// [`LayerWeights::query`]
    Query,
    /// [`LayerWeights::key`]
    Key,
    /// [`LayerWeights::value`]
    Value,
    /// [`LayerWeights::attention_output`]
    AttentionOutput,
    /// [`LayerWeights::intermediate`]
    Intermediate,
    /// [`LayerWeights::output`]
    Output,
}

impl LayerMap {
    /// All of them, in the order in which they are packed.
    pub const ALL: [LayerMap; 6] = [
        LayerMap::Query,
        LayerMap::Key,
        LayerMap::Value,
        LayerMap::AttentionOutput,
        LayerMap::Intermediate,
        LayerMap::Output,
    ];

    /// Its name in errors, that of its field.
    pub fn name(self) -> &'static str {
        match self {
            LayerMap::Query => "query",
            LayerMap::Key => "key",
            LayerMap::Value => "value",
            LayerMap::AttentionOutput => "attention_output",
            LayerMap::Intermediate => "intermediate",
            LayerMap::Output => "output",
        }
    }

    /// This map among a layer's weights.
    pub fn of(self, layer: &LayerWeights) -> &Linear {
        match self {
            LayerMap::Query => &layer.query,
            LayerMap::Key => &layer.key,
            LayerMap::Value => &layer.value,
            LayerMap::AttentionOutput => &layer.attention_output,
            LayerMap::Intermediate => &layer.intermediate,
            LayerMap::Output => &layer.output,
        }
    }

    /// This map among a layer's weights, to be filled.
    pub fn of_mut(self, layer: &mut LayerWeights) -> &mut Linear {
        match self {
            LayerMap::Query => &mut layer.query,
            LayerMap::Key => &mut layer.key,
            LayerMap::Value => &mut layer.value,
            LayerMap::AttentionOutput => &mut layer.attention_output,
            LayerMap::Intermediate => &mut layer.intermediate,
            LayerMap::Output => &mut layer.output,
        }
    }
}

/// One of the matrices that make up nearly all of an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Matrix {
    /// [`EncoderWeights::word`]
    Words,
    /// The weight of a layer's map.
    Layer {
        /// Which layer.
        index: usize,
        /// Which of its maps.
        map: LayerMap,
    },
}

/// An encoder's weights, for [`crate::CpuEncoder::read`]: first everything small, then matrix after matrix, each in
/// pieces, so that next to the packed weights only a piece of plain ones need be in memory.
///
/// The numbers must be finite, as those of [`EncoderWeights`].
pub trait WeightSource {
    /// Why a part cannot be had.
    type Error: From<Error>;

    /// Everything but the matrices: what [`Matrix`] names is left empty.
    fn frame(&mut self) -> Result<EncoderWeights, Self::Error>;

    /// Gives `take` the rows of a matrix in order, any number of whole rows at a time, until there are no more or it has
    /// seen enough. The word table may be asked for twice.
    fn rows(
        &mut self,
        matrix: Matrix,
        take: &mut dyn FnMut(&[f32]) -> ControlFlow<()>,
    ) -> Result<(), Self::Error>;
}
