//! Numbers only: packed batches, kernels, and the forward pass of encoders of the BERT class.
//!
//! The way through the crate:
//! 1. [`EncoderShape`] and [`EncoderWeights`] describe a model; [`CpuEncoder::new`] checks every tensor's shape
//!    and packs it for a [`Kernel`]. [`CpuEncoder::read`] does so as weights come from a [`WeightSource`], piece by piece.
//! 2. [`plan_batches`] groups sequences by length, [`PackedBatch`] holds a group back to back. There is no
//!    padding anywhere.
//! 3. [`EncoderBackend::forward`] returns the last hidden states of the rows a head asks for; [`Dense`] is such
//!    a head's affine map.
//!
//! # The same bits
//!
//! For one kernel, a sequence's hidden states do not depend on what else is in the batch, on its place there,
//! on the number of threads or on which rows of other sequences are asked for; few of its own rows may be computed
//! in another way than many (see [`EncoderBackend`]). Each output of a product is one chain of
//! additions over its inputs, in order, whatever tile computed it; attention and norms reduce within a row,
//! in an order fixed by the row's length. General matrix libraries do not promise that.
//!
//! In 8-bit integers ([`Precision::Int8`]) the same holds: a token's codes depend on that token alone, and sums of
//! integers are exact.
//!
//! # Threads
//!
//! Work is shared among the threads of the current rayon pool by blocks of rows; a batch of one block stays
//! on the calling thread.
//!
//! # What it does not do
//!
//! Files, tokens and texts are not known here. There is no backward pass yet.
#![warn(missing_docs)]

mod activation;
mod backend;
mod batch;
mod dense;
mod encoder;
mod error;
mod kernel;
mod kernels;
mod memory;
mod operations;
mod plan;
mod precision;
mod profile;
mod shape;
mod source;
mod weights;

pub use activation::Activation;
pub use backend::EncoderBackend;
pub use batch::{AttentionPattern, PackedBatch};
pub use dense::Dense;
pub use encoder::CpuEncoder;
pub use error::{Error, Result};
pub use kernel::Kernel;
pub use kernels::int8::{quantise_rows, restore_rows};
pub use operations::{Sizes, operations, operations_done};
pub use plan::plan_batches;
pub use precision::Precision;
pub use profile::{Profile, Work};
pub use shape::{EncoderShape, RelativeBuckets};
pub use source::{LayerMap, Matrix, WeightSource};
pub use weights::{EncoderWeights, LayerNorm, LayerWeights, Linear};
