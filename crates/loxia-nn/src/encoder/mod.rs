//! The encoder on the CPU.
//!
//! A layer takes two passes over the batch. The first computes keys and values of all tokens; the second
//! takes blocks of rows through everything else, so that a block's data stays in cache from the query
//! projection to the last norm. Blocks are shared among the threads of the current rayon pool. The last layer
//! runs its second pass over the wanted rows only.

mod embeddings;
mod layer;

use rayon::prelude::*;

use crate::kernels::{DistanceBias, Isa, Packed};
use crate::memory::{Buffer, Pool, Scratch};
use crate::{EncoderBackend, EncoderShape, EncoderWeights, Error, Kernel, PackedBatch, Result};
use embeddings::Embeddings;
use layer::{BlockScratch, Context, Layer};

/// An encoder of the BERT class in `f32` on the CPU.
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
/// let encoder = CpuEncoder::new(shape, weights, Kernel::detect()?)?;
/// let mut batch = PackedBatch::new();
/// let first = batch.push(&[1, 5, 2], &[0; 3], &[0, 1, 2])?;
/// let mut state = [0.0; 4];
/// encoder.forward(&batch, &[first], &mut state)?;
/// # Ok::<(), loxia_nn::Error>(())
/// ```
pub struct CpuEncoder {
    shape: EncoderShape,
    kernel: Kernel,
    isa: Isa,
    embeddings: Embeddings,
    bias: Option<DistanceBias>,
    layers: Vec<Layer>,
    batches: Pool<BatchScratch>,
    blocks: Pool<BlockScratch>,
}

/// Memory for a whole batch.
#[derive(Default)]
struct BatchScratch {
    states: Buffer,
    keys_values: Buffer,
}

impl Scratch for BatchScratch {
    fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        [&self.states, &self.keys_values].into_iter()
    }
}

/// Most bytes kept between calls for whole batches: 64k tokens of a BERT-base.
const KEPT_FOR_BATCHES: usize = 600 << 20;
/// Most bytes kept between calls for blocks: about one BERT-large block for each of 128 threads.
const KEPT_FOR_BLOCKS: usize = 400 << 20;

impl CpuEncoder {
    /// Checks the weights against the shape and packs them for a kernel.
    pub fn new(shape: EncoderShape, weights: EncoderWeights, kernel: Kernel) -> Result<Self> {
        let isa = kernel.check()?;
        weights.check(&shape)?;
        let bias = match (shape.relative, &weights.relative_bias) {
            (Some(relative), Some(bias)) => {
                Some(DistanceBias::new(relative, bias, shape.heads, shape.positions))
            }
            _ => None,
        };
        let embeddings = Embeddings {
            word: weights.word,
            types: weights.types,
            position: weights.position,
            norm: weights.embedding_norm,
            projection: weights.embedding_projection.as_ref().map(|map| Packed::new(isa, &[map])),
        };
        // One layer at a time: each one's plain weights are freed before the next is packed.
        let layers = weights.layers.into_iter().map(|layer| Layer::new(isa, layer)).collect();
        let (batches, blocks) = (Pool::new(KEPT_FOR_BATCHES), Pool::new(KEPT_FOR_BLOCKS));
        Ok(CpuEncoder { shape, kernel, isa, embeddings, bias, layers, batches, blocks })
    }

    /// The kernel it computes with.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Hidden states of all tokens after the embeddings and after each layer, `[tokens][hidden]` each.
    pub fn all_states(&self, batch: &PackedBatch) -> Result<Vec<Vec<f32>>> {
        self.check(batch)?;
        Ok(self.batches.with(|scratch| {
            let tokens: Vec<u32> = (0..batch.tokens() as u32).collect();
            self.embed(batch, &mut scratch.states);
            let mut all = vec![scratch.states.to_vec()];
            for layer in &self.layers {
                self.keys_values(layer, scratch);
                self.advance(layer, batch, &scratch.keys_values, &tokens, &mut scratch.states);
                all.push(scratch.states.to_vec());
            }
            all
        }))
    }

    /// Frees the scratch memory kept between calls.
    pub fn release_scratch(&self) {
        self.batches.clear();
        self.blocks.clear();
    }

    /// Bytes of scratch memory kept between calls.
    pub fn scratch_bytes(&self) -> usize {
        self.batches.bytes() + self.blocks.bytes()
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

    fn embed(&self, batch: &PackedBatch, states: &mut Buffer) {
        let hidden = self.shape.hidden;
        let states = states.sized(batch.tokens() * hidden);
        for_blocks(batch.tokens(), hidden, states, |first, states| {
            self.blocks.with(|block| {
                self.embeddings.embed(self.isa, batch, first, &mut block.queries, states);
            });
        });
    }

    fn keys_values(&self, layer: &Layer, scratch: &mut BatchScratch) {
        let hidden = self.shape.hidden;
        let states: &[f32] = &scratch.states;
        let tokens = states.len() / hidden;
        let out = scratch.keys_values.sized(tokens * 2 * hidden);
        for_blocks(tokens, 2 * hidden, out, |first, out| {
            let states = &states[first * hidden..][..out.len() / 2];
            layer.project_keys_values(self.isa, states, out);
        });
    }

    fn advance(
        &self,
        layer: &Layer,
        batch: &PackedBatch,
        keys_values: &[f32],
        tokens: &[u32],
        states: &mut [f32],
    ) {
        let hidden = self.shape.hidden;
        let context = Context { isa: self.isa, shape: &self.shape, bias: self.bias.as_ref(), batch };
        for_blocks(tokens.len(), hidden, states, |first, states| {
            let tokens = &tokens[first..][..states.len() / hidden];
            self.blocks.with(|block| layer.advance(context, keys_values, tokens, states, block));
        });
    }
}

impl EncoderBackend for CpuEncoder {
    fn forward(&self, batch: &PackedBatch, rows: &[u32], out: &mut [f32]) -> Result<()> {
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
        self.batches.with(|scratch| {
            self.embed(batch, &mut scratch.states);
            if let Some((last, earlier)) = self.layers.split_last() {
                let tokens: Vec<u32> = (0..batch.tokens() as u32).collect();
                for layer in earlier {
                    self.keys_values(layer, scratch);
                    self.advance(layer, batch, &scratch.keys_values, &tokens, &mut scratch.states);
                }
                self.keys_values(last, scratch);
            }
            for (&row, out) in rows.iter().zip(out.chunks_exact_mut(hidden)) {
                out.copy_from_slice(&scratch.states[row as usize * hidden..][..hidden]);
            }
            if let Some(last) = self.layers.last() {
                self.advance(last, batch, &scratch.keys_values, rows, out);
            }
        });
        Ok(())
    }

    fn shape(&self) -> &EncoderShape {
        &self.shape
    }

    fn describe(&self) -> String {
        format!("cpu, {} kernel, f32, {} threads", self.kernel, rayon::current_num_threads())
    }
}

impl std::fmt::Debug for CpuEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CpuEncoder").field("shape", &self.shape).field("kernel", &self.kernel).finish()
    }
}

/// Rows of a full block: enough to read a layer's weights seldom, few enough to stay in the second cache.
const BLOCK_ROWS: usize = 96;
/// Blocks are made of whole register tiles of every kernel (4, 6 or 8 rows).
const ROW_STEP: usize = 24;

/// Runs `work(first row, rows)` over blocks of `rows`, on several threads when there are several blocks.
fn for_blocks(rows: usize, width: usize, data: &mut [f32], work: impl Fn(usize, &mut [f32]) + Sync) {
    let threads = rayon::current_num_threads();
    // With few rows for many threads, smaller blocks; three for each thread even out their differences.
    let block = match threads {
        1 => BLOCK_ROWS,
        _ => rows.div_ceil(3 * threads).next_multiple_of(ROW_STEP).clamp(ROW_STEP, BLOCK_ROWS),
    };
    if rows <= block || threads == 1 {
        for (index, chunk) in data.chunks_mut(block * width).enumerate() {
            work(index * block, chunk);
        }
    } else {
        let chunks = data.par_chunks_mut(block * width).enumerate();
        chunks.for_each(|(index, chunk)| work(index * block, chunk));
    }
}
