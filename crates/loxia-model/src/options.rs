//! What a caller may ask of a model.

use loxia_nn::Kernel;

use crate::layout::{Compat, LayoutKind};
use crate::named::named;

named! {
    /// What is built on an encoder.
    ///
    /// ```
    /// use loxia_model::Variant;
    /// assert_eq!("emb".parse::<Variant>().unwrap(), Variant::Emb);
    /// assert!("embed".parse::<Variant>().unwrap_err().to_string().contains("cls, emb, hard-nce, dual"));
    /// ```
    Variant, "variant" {
        /// A cross-encoder with a classification head on the first token.
        Cls = "cls",
        /// A cross-encoder that scores with states at marks: half the sum at the mention's two, dot the tag's.
        Emb = "emb",
        /// The "full" reranker of hard-nce: tanh pooler and a linear layer, in that system's layout.
        HardNce = "hard-nce",
        /// One encoder or two that turn each text into a vector.
        Dual = "dual",
    }
}

named! {
    /// How a text's states become one vector.
    Pooling, "pooling" {
        /// The first token's state.
        Cls = "cls",
        /// The first token's state through the encoder's tanh pooler.
        Tanh = "tanh",
        /// The mean of all states.
        Mean = "mean",
        /// The largest value of each coordinate.
        Max = "max",
        /// Log-sum-exp of each coordinate.
        Lse = "lse",
        /// Half the sum of the states at a mention's marks; the state at the tag for an item.
        Marker = "marker",
    }
}

named! {
    /// How two vectors are compared.
    Similarity, "similarity" {
        /// Dot product.
        Dot = "dot",
        /// Cosine.
        Cosine = "cosine",
    }
}

named! {
    /// What is done to a cross-encoder's logit.
    ScoreActivation, "activation" {
        /// Nothing: raw scores.
        Identity = "identity",
        /// The logistic function.
        Sigmoid = "sigmoid",
        /// What sentence-transformers would apply to this model.
        Default = "default",
    }
}

named! {
    /// In which numbers the network computes.
    Precision, "precision" {
        /// 32-bit floating point.
        F32 = "f32",
        /// 8-bit integers in the matrix products, quantised at load: faster, with a small loss that
        /// `loxia model check` measures.
        Int8 = "int8",
    }
}

named! {
    /// In which numbers weights are written.
    #[derive(Default)]
    StoredWeights, "format of weights" {
        /// 32-bit floating point.
        #[default]
        F32 = "f32",
        /// 16-bit floating point; a value that it cannot hold is an error.
        F16 = "f16",
        /// The maps of the layers in 8-bit integers, as [`Precision::Int8`] would quantise them; all else as f32.
        /// Only this crate reads it.
        Int8 = "int8",
    }
}

impl Precision {
    /// What digests say: other words than before wherever scores came to have other bits. First the word table of 8-bit
    /// models went to half precision, then few rows of the last layer got a way of their own.
    pub(crate) fn in_digests(self) -> &'static str {
        match self {
            Precision::F32 => "f32, few rows",
            Precision::Int8 => "int8, words f16, few rows",
        }
    }
}

impl From<Precision> for loxia_nn::Precision {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::F32 => loxia_nn::Precision::F32,
            Precision::Int8 => loxia_nn::Precision::Int8,
        }
    }
}

/// What a caller asks of a model; whatever is left out comes from the directory.
///
/// ```
/// use loxia_model::{ModelOptions, Variant, layout::LayoutKind};
/// let options = ModelOptions {
///     variant: Some(Variant::Emb),
///     layout: Some(LayoutKind::Anncur),
///     max_query: Some(64),
///     max_item: Some(64),
///     ..ModelOptions::default()
/// };
/// assert_eq!(options.token_budget, None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ModelOptions {
    /// `--variant`
    pub variant: Option<Variant>,
    /// `--layout`
    pub layout: Option<LayoutKind>,
    /// `--max-query`: most tokens of the query side.
    pub max_query: Option<usize>,
    /// `--max-item`: most tokens of the item side.
    pub max_item: Option<usize>,
    /// `--max-length`: most tokens of the whole input.
    pub max_length: Option<usize>,
    /// `--pooling`, for dual encoders.
    pub pooling: Option<Pooling>,
    /// `--similarity`, for dual encoders.
    pub similarity: Option<Similarity>,
    /// `--compat`: reproduce a published system's quirks; [`Compat::None`] switches off what the model stores.
    pub compat: Option<Compat>,
    /// `--precision`
    pub precision: Option<Precision>,
    /// `--activation`; raw scores if left out.
    pub activation: Option<ScoreActivation>,
    /// `--label`: which label's logit is the score, for heads of more than two.
    pub label: Option<usize>,
    /// Instruction set; the best of the machine if left out.
    pub kernel: Option<Kernel>,
    /// `--threads`; all cores if left out.
    pub threads: Option<usize>,
    /// Tokens in one batch. It changes speed and memory, never a score.
    pub token_budget: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_not_those_of_scores_with_other_bits() {
        let before = ["f32", "int8", "int8, words f16"];
        for precision in [Precision::F32, Precision::Int8] {
            assert!(!before.contains(&precision.in_digests()), "{precision}");
        }
    }
}
