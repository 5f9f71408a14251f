//! The seam between encoders and what computes them.

use crate::{EncoderShape, PackedBatch, Result};

/// An encoder on some device: a packed batch in, rows of the last hidden states out.
///
/// A sequence's hidden states never depend on what else is in the batch, on its place there, on the number of
/// threads or on which rows of others are asked for: the same backend, weights and rows of its own give the same bits. Few
/// rows of a sequence may be computed in another way than many, to the same result but for rounding.
pub trait EncoderBackend: Send + Sync {
    /// Computes the last hidden states of `rows`, token indices of the packed batch in any order, into
    /// `out`, `[rows.len()][hidden]`.
    fn forward(&self, batch: &PackedBatch, rows: &[u32], out: &mut [f32]) -> Result<()>;

    /// The same laid out for `threads` threads, for callers that compute several batches at once: the calling one, and
    /// others of its pool that have nothing else to do.
    fn forward_among(
        &self,
        threads: usize,
        batch: &PackedBatch,
        rows: &[u32],
        out: &mut [f32],
    ) -> Result<()> {
        let _ = threads;
        self.forward(batch, rows, out)
    }

    /// Threads that share a batch of [`EncoderBackend::forward`].
    fn threads(&self) -> usize {
        rayon::current_num_threads()
    }

    /// Shape of the encoder.
    fn shape(&self) -> &EncoderShape;

    /// One line for people: device, kernel, precision.
    fn describe(&self) -> String;

    /// Bytes of memory for intermediate results that are kept between calls.
    fn scratch_bytes(&self) -> usize {
        0
    }

    /// Most bytes of memory for intermediate results that there were at once so far, kept or freed since; with several
    /// threads an estimate.
    fn most_scratch_bytes(&self) -> usize {
        0
    }

    /// Frees what [`EncoderBackend::scratch_bytes`] counts.
    fn release_scratch(&self) {}
}
