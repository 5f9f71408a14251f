//! Running many token sequences through an encoder: sorted, batched, in bounded memory.

use std::sync::Arc;

use loxia_core::Cancel;
use loxia_nn::{CpuEncoder, EncoderBackend, Kernel, PackedBatch, plan_batches};
use rayon::ThreadPool;

use crate::error::{Error, Result};
use crate::families::PositionRule;
use crate::layout::TokenSequence;
use crate::network::{Network, ignores_types};
use crate::options::{ModelOptions, Precision};

/// Tokens in a batch unless asked otherwise: enough to keep matrix products busy, few enough that the
/// activations of a base-sized model stay near the caches.
const TOKEN_BUDGET: usize = 4096;

/// Sequences laid out at once; bounds memory however many are to be computed.
pub(crate) const SEQUENCES_AT_ONCE: usize = 4096;

/// How an engine computes, common to all encoders of one model.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) kernel: Kernel,
    pub(crate) precision: Precision,
    token_budget: usize,
    pool: Option<Arc<ThreadPool>>,
}

impl Machine {
    pub(crate) fn new(options: &ModelOptions) -> Result<Self> {
        let kernel = match options.kernel {
            Some(kernel) => kernel,
            None => Kernel::detect()?,
        };
        let pool = match options.threads {
            None => None,
            Some(0) => return Err(Error::Options("--threads must be at least 1".into())),
            Some(threads) => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                Some(Arc::new(
                    pool.map_err(|e| Error::Options(format!("cannot start {threads} threads: {e}")))?,
                ))
            }
        };
        Ok(Machine {
            kernel,
            precision: options.precision.unwrap_or(Precision::F32),
            token_budget: options.token_budget.unwrap_or(TOKEN_BUDGET).max(1),
            pool,
        })
    }

    /// Runs work on this model's threads.
    pub(crate) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}

/// Rows of a batch's result that belong to one sequence.
pub(crate) struct Rows<'a> {
    /// Which of the sequences handed in.
    pub(crate) sequence: usize,
    /// Its states, row after row.
    pub(crate) states: &'a [f32],
}

/// An encoder ready to run.
pub(crate) struct Engine {
    backend: Box<dyn EncoderBackend>,
    positions: PositionRule,
    zero_types: bool,
    token_budget: usize,
}

impl Engine {
    /// Packs a network's encoder for the machine; `omit_types` where inputs have no token types.
    pub(crate) fn new(network: &mut Network, omit_types: bool, machine: &Machine) -> Result<Self> {
        let architecture = &network.architecture;
        let (positions, zero_types) = (architecture.positions, omit_types || ignores_types(architecture));
        let weights = std::mem::replace(&mut network.encoder, architecture.skeleton());
        let (kernel, precision) = (machine.kernel, machine.precision.into());
        let backend = Box::new(CpuEncoder::new(architecture.shape.clone(), weights, kernel, precision)?);
        Ok(Engine { backend, positions, zero_types, token_budget: machine.token_budget })
    }

    pub(crate) fn hidden(&self) -> usize {
        self.backend.shape().hidden
    }

    pub(crate) fn describe(&self) -> String {
        self.backend.describe()
    }

    /// Computes the states of `rows` (token indices within a sequence, pushed by the first closure) and hands
    /// each batch to `consume`: the wanted rows of its sequences, and their states one after the other.
    pub(crate) fn run(
        &self,
        sequences: &[TokenSequence],
        rows: impl Fn(&TokenSequence, &mut Vec<u32>),
        mut consume: impl FnMut(&[Rows<'_>], &[f32]) -> Result<()>,
        cancel: &Cancel,
    ) -> Result<()> {
        let hidden = self.hidden();
        let lengths: Vec<usize> = sequences.iter().map(TokenSequence::len).collect();
        let mut batch = PackedBatch::new();
        let (mut types, mut positions) = (Vec::new(), Vec::new());
        let (mut wanted, mut local, mut ends, mut states) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for plan in plan_batches(&lengths, self.token_budget) {
            cancel.check()?;
            batch.clear();
            wanted.clear();
            ends.clear();
            for &index in &plan {
                let sequence = &sequences[index];
                types.clear();
                types.extend_from_slice(&sequence.types);
                if self.zero_types {
                    types.fill(0);
                }
                positions.clear();
                positions.extend_from_slice(&sequence.positions);
                self.positions.apply(&sequence.ids, &mut positions);
                let first = batch.push(&sequence.ids, &types, &positions)?;
                local.clear();
                rows(sequence, &mut local);
                wanted.extend(local.iter().map(|row| first + row));
                ends.push(wanted.len());
            }
            states.clear();
            states.resize(wanted.len() * hidden, 0.0);
            self.backend.forward(&batch, &wanted, &mut states)?;
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let parts: Vec<Rows<'_>> = plan
                .iter()
                .zip(starts.zip(&ends))
                .map(|(&sequence, (start, &end))| Rows {
                    sequence,
                    states: &states[start * hidden..end * hidden],
                })
                .collect();
            consume(&parts, &states)?;
        }
        Ok(())
    }
}
