//! The encoder on the CPU.
//!
//! Blocks of rows go through the layers (`passage`), so that a block's data stays in cache from attention up to
//! the next layer's queries; the threads of the current rayon pool share the blocks of a batch. In the last
//! layer only the wanted rows take more than the projection to keys and values, and where few rows of a sequence are
//! wanted not even these are made (`few_rows`).

mod attend;
mod embeddings;
mod few_rows;
mod layer;
mod passage;
mod read;
mod words;

use std::sync::Arc;

use rayon::ThreadPool;

use crate::kernels::{AttentionScratch, DistanceBias, Isa};
use crate::memory::{Buffer, Extent, Pool, Scratch};
use crate::operations;
use crate::profile::Profile;
use crate::{EncoderBackend, EncoderShape, Error, Kernel, PackedBatch, Precision, Result};
use embeddings::Embeddings;
use few_rows::FewRows;
pub(crate) use few_rows::is_less_work;
use layer::{BlockScratch, Layer, Run};
use passage::Passage;

/// An encoder of the BERT class on the CPU.
///
/// ```
/// use loxia_nn::*;
/// # let linear = |outputs, inputs| Linear { weight: vec![0.1; outputs * inputs], bias: None, inputs, outputs };
/// # let norm = || LayerNorm { scale: vec![1.0; 4], shift: vec![0.0; 4], eps: 1e-12 };
/// # let weights = EncoderWeights {
/// #     word: (0..40).map(|i| i as f32).collect(), position: None, types: None, embedding_norm: norm(),
/// #     embedding_projection: None, relative_bias: None,
/// #     layers: vec![LayerWeights {
/// #         query: linear(4, 4), key: linear(4, 4), value: linear(4, 4), attention_output: linear(4, 4),
/// #         attention_norm: norm(), intermediate: linear(8, 4), output: linear(4, 8), output_norm: norm(),
/// #     }],
/// # };
/// let shape = EncoderShape {
///     vocab: 10, embedding: 4, hidden: 4, layers: 1, heads: 2, intermediate: 8, positions: 16, types: 0,
///     layer_norm_eps: 1e-12, activation: Activation::GeluErf, relative: None,
/// };
/// let encoder = CpuEncoder::new(shape, weights, Kernel::detect()?, Precision::F32)?;
/// let mut batch = PackedBatch::new();
/// let first = batch.push(&[1, 5, 2], &[0; 3], &[0, 1, 2])?;
/// let mut state = [0.0; 4];
/// encoder.forward(&batch, &[first], &mut state)?;
/// # Ok::<(), loxia_nn::Error>(())
/// ```
pub struct CpuEncoder {
    shape: EncoderShape,
    kernel: Kernel,
    precision: Precision,
    isa: Isa,
    embeddings: Embeddings,
    bias: Option<DistanceBias>,
    layers: Vec<Layer>,
    /// Another way through the last layer, where there is one.
    few_rows: Option<FewRows>,
    /// Whose threads share a batch, if not those of the pool it is called in.
    threads: Option<Arc<ThreadPool>>,
    batches: Pool<BatchScratch>,
    blocks: Pool<BlockScratch>,
    attention: Pool<AttentionScratch>,
}

/// Memory for a whole batch.
#[derive(Default)]
struct BatchScratch {
    states: Buffer,
    queries: Buffer,
    /// Of the layer at hand and of the next.
    keys_values: [Buffer; 2],
}

impl Scratch for BatchScratch {
    fn extent(&self) -> Extent {
        let [even, odd] = &self.keys_values;
        [&self.states, &self.queries, even, odd].into_iter().map(Buffer::extent).sum()
    }
}

/// Most bytes kept between calls for whole batches: about 8k tokens of a BERT-base. Longer batches never keep their
/// memory, shorter ones only as long as it is of use (see [`Pool`]).
const KEPT_FOR_BATCHES: usize = 128 << 20;
/// Most bytes kept between calls for blocks: about one BERT-large block for each of 128 threads.
const KEPT_FOR_BLOCKS: usize = 256 << 20;
/// Most bytes kept between calls for attention: about 512 keys of a BERT-large head for each of 128 threads.
const KEPT_FOR_ATTENTION: usize = 64 << 20;

impl CpuEncoder {
    /// With the threads of a pool: a caller from outside computes with the help of all of them but one, and need not hand
    /// the work over to one of them first. Otherwise they are those of the pool it is called in, or else of the global one.
    pub fn with_threads(mut self, pool: Arc<ThreadPool>) -> Self {
        self.threads = Some(pool);
        self
    }

    /// The kernel it computes with.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The precision of its products.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Hidden states of all tokens after the embeddings and after each layer, `[tokens][hidden]` each.
    pub fn all_states(&self, batch: &PackedBatch) -> Result<Vec<Vec<f32>>> {
        self.check(batch)?;
        let run = self.run(None, 1);
        Ok(self.batches.with(|scratch| {
            let mut all = Vec::new();
            Passage::new(self, run, batch, 0..batch.tokens() as u32, scratch)
                .watch(|states| all.push(states));
            all
        }))
    }

    /// [`EncoderBackend::forward`] that adds the time of each kind of work to a profile.
    pub fn forward_profiled(
        &self,
        batch: &PackedBatch,
        rows: &[u32],
        out: &mut [f32],
        profile: &Profile,
    ) -> Result<()> {
        self.forward_with(batch, rows, out, Some(profile), self.threads())
    }

    fn run<'a>(&'a self, profile: Option<&'a Profile>, threads: usize) -> Run<'a> {
        Run { isa: self.isa, shape: &self.shape, precision: self.precision, profile, threads }
    }

    fn check(&self, batch: &PackedBatch) -> Result<()> {
        self.embeddings.check(batch, &self.shape)?;
        let Some(bias) = &self.bias else { return Ok(()) };
        let lengths = (0..batch.sequences()).map(|sequence| (sequence, batch.range(sequence).len()));
        match lengths.into_iter().find(|(_, length)| *length > bias.reach()) {
            None => Ok(()),
            Some((sequence, length)) => Err(Error::Sequence {
                sequence,
                what: format!("it has {length} tokens, the model reaches {}", bias.reach()),
            }),
        }
    }

    fn forward_with(
        &self,
        batch: &PackedBatch,
        rows: &[u32],
        out: &mut [f32],
        profile: Option<&Profile>,
        threads: usize,
    ) -> Result<()> {
        let hidden = self.shape.hidden;
        if out.len() != rows.len() * hidden {
            let expected = rows.len() * hidden;
            return Err(Error::Length { what: "output of the encoder", found: out.len(), expected });
        }
        if let Some(&row) = rows.iter().find(|&&row| row as usize >= batch.tokens()) {
            return Err(Error::Row { row, tokens: batch.tokens() });
        }
        self.check(batch)?;
        if rows.is_empty() {
            return Ok(());
        }
        let run = self.run(profile, threads);
        self.batches.with(|scratch| {
            let passage = Passage::new(self, run, batch, rows.iter().copied(), scratch);
            passage.finish();
            passage.write(out);
        });
        self.count_operations(batch, rows);
        Ok(())
    }

    fn count_operations(&self, batch: &PackedBatch, rows: &[u32]) {
        let mut wanted = vec![0; batch.sequences()];
        let mut distinct = rows.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        distinct.iter().for_each(|&row| wanted[batch.sequence_of(row as usize)] += 1);
        let each = wanted.into_iter().enumerate();
        let of_each = each.map(|(sequence, rows)| {
            operations::operations(self.shape.sizes(), batch.range(sequence).len(), rows)
        });
        operations::count(of_each.sum());
    }
}

impl EncoderBackend for CpuEncoder {
    fn forward(&self, batch: &PackedBatch, rows: &[u32], out: &mut [f32]) -> Result<()> {
        self.forward_with(batch, rows, out, None, self.threads())
    }

    fn forward_among(
        &self,
        threads: usize,
        batch: &PackedBatch,
        rows: &[u32],
        out: &mut [f32],
    ) -> Result<()> {
        self.forward_with(batch, rows, out, None, threads.max(1))
    }

    fn threads(&self) -> usize {
        self.threads.as_ref().map_or_else(rayon::current_num_threads, |pool| pool.current_num_threads())
    }

    fn shape(&self) -> &EncoderShape {
        &self.shape
    }

    fn describe(&self) -> String {
        let threads = self.threads();
        format!("cpu, {} kernel, {}, {threads} threads", self.kernel, self.precision)
    }

    fn scratch_bytes(&self) -> usize {
        self.batches.bytes() + self.blocks.bytes() + self.attention.bytes()
    }

    fn most_scratch_bytes(&self) -> usize {
        // A batch borrows while its blocks do, and they while their attention does.
        self.batches.most_at_once() + self.blocks.most_at_once() + self.attention.most_at_once()
    }

    fn release_scratch(&self) {
        self.batches.clear();
        self.blocks.clear();
        self.attention.clear();
    }
}

impl std::fmt::Debug for CpuEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CpuEncoder").field("shape", &self.shape).field("kernel", &self.kernel).finish()
    }
}
