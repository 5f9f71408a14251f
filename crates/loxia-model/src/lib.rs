//! From a model directory to a scorer.
//!
//! 1. A [`ModelSpec`] names a directory, two of them, or a model in the Hugging Face cache.
//! 2. The directory says what it is: `loxia.json`, sentence-transformers' `modules.json`, or the
//!    `architectures` of `config.json`; [`ModelOptions`] decide what is left open, and nothing is guessed.
//! 3. Weights are read by name and checked one by one ([`Error::Tensors`] names all that is wrong), from
//!    safetensors or, without running any code in them, from PyTorch's own files.
//! 4. A [`CrossEncoder`] scores pairs (it is a [`loxia_core::PairScorer`]); a [`TextEncoder`] makes vectors.
//! 5. [`tokenizer`] and [`layout`] turn texts into tokens; [`loxia_nn`] computes.
//!
//! | | |
//! |---|---|
//! | families | BERT, RoBERTa, XLM-R, ELECTRA, DistilBERT, MPNet |
//! | variants | [`Variant::Cls`], [`Variant::Emb`], [`Variant::HardNce`], [`Variant::Dual`] |
//! | weights | safetensors (sharded too), `pytorch_model.bin` (sharded too); f32, f16, bf16 |
//!
//! Every file is treated as hostile: sizes are checked before memory is taken, paths cannot leave the
//! directory, and a configuration that asks for something not computed here is an error, not a guess.

mod check;
mod convert;
mod cross_encoder;
mod digest;
mod directory;
mod dual_plan;
mod engine;
mod error;
mod families;
mod hub;
mod inspect;
mod json;
pub mod layout;
mod loxia_json;
mod named;
mod network;
mod options;
pub mod parse;
mod pickle;
mod pooling;
mod rewrite;
mod save;
mod sentence;
mod spec;
mod stored_encoder;
mod text_encoder;
pub mod tokenizer;
mod weights;

pub use check::{CheckLine, check};
pub use convert::{Conversion, ConvertOptions, convert};
pub use cross_encoder::{CrossEncoder, CrossEncoderFacts};
pub use error::{Error, Malformed, Result, TensorProblems};
pub use families::{Family, HeadLayer};
#[cfg(feature = "hub")]
pub use hub::{Downloaded, download};
pub use hub::{HubModel, cache_root as hub_cache};
pub use inspect::{EncoderSummary, ModelSummary, inspect};
pub use loxia_json::{LoxiaJson, Towers};
pub use options::{ModelOptions, Pooling, Precision, ScoreActivation, Similarity, StoredWeights, Variant};
pub use save::{SaveOptions, save_cross_encoder, save_text_encoder};
pub use spec::ModelSpec;
pub use text_encoder::{Embeddings, TextEncoder, TextEncoderFacts, TowerFacts};
pub use weights::Dtype;
