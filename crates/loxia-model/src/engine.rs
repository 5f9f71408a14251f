//! Running many token sequences through an encoder: sorted, batched, in bounded memory.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use loxia_core::Cancel;
use loxia_nn::{CpuEncoder, EncoderBackend, Kernel, PackedBatch, plan_batches};
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::families::{ModelConfig, PositionRule};
use crate::layout::TokenSequence;
use crate::network::{Network, Top, ignores_types};
use crate::options::{ModelOptions, Precision};
use crate::stored_encoder::StoredEncoder;
use crate::weights::WeightStore;

/// Tokens in a batch unless asked otherwise: enough that reading the weights costs nothing beside using them, few
/// enough that the activations of a batch for each thread stay near the caches.
const TOKEN_BUDGET: usize = 2048;

/// Batches for each thread, where there is enough to do: they end at about the same time.
const BATCHES_A_THREAD: usize = 4;

/// Fewer tokens than these are not worth a batch: reading the weights would begin to count.
const LEAST_TOKENS: usize = 256;

/// Sequences laid out at once; bounds memory however many are to be computed.
pub(crate) const SEQUENCES_AT_ONCE: usize = 4096;

/// Most scratch memory, in bytes, that stays between runs.
const IDLE_SCRATCH: usize = 64 << 20;

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

    /// Runs work about so many texts on this model's threads. For a single one that is the calling thread, with the help
    /// of others: handing it over would take a tenth of its time.
    pub(crate) fn install<R: Send>(&self, texts: usize, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) if texts > 1 => pool.install(work),
            _ => work(),
        }
    }
}

/// What is made of each, in order; a single one on the calling thread, for which there is no need to wake another.
pub(crate) fn of_each<T: Sync, R: Send>(
    all: &[T],
    make: impl Fn(&T) -> Result<R> + Sync + Send,
) -> Result<Vec<R>> {
    match all {
        [one] => Ok(vec![make(one)?]),
        _ => all.par_iter().map(make).collect(),
    }
}

/// An encoder ready to run.
pub(crate) struct Engine {
    backend: Box<dyn EncoderBackend>,
    positions: PositionRule,
    zero_types: bool,
    token_budget: usize,
}

/// Gives memory back at the end of a run, however it ends: a program that goes idle after a burst of long texts should
/// not sit on it. Making it again costs less than a hundredth of a run that needs so much.
struct Tidy<'a>(&'a Engine);

impl Drop for Tidy<'_> {
    fn drop(&mut self) {
        if self.0.backend.scratch_bytes() > IDLE_SCRATCH {
            self.0.backend.release_scratch();
        }
    }
}

impl Engine {
    /// Reads a model from a directory's weights, which must be finite, and packs its encoder for the machine on the way:
    /// the network that comes back has everything but the encoder's numbers.
    pub(crate) fn open(
        directory: &Path,
        config: &ModelConfig,
        top: Top,
        machine: &Machine,
    ) -> Result<(Self, Network)> {
        let store = WeightStore::open(directory)?;
        let mut network = Network::structure(directory, config, top, &store)?;
        network.read_top(&store)?;
        let architecture = &network.architecture;
        let mut encoder = StoredEncoder::new(&store, architecture);
        let (kernel, precision) = (machine.kernel, machine.precision.into());
        let mut backend = CpuEncoder::read(architecture.shape.clone(), &mut encoder, kernel, precision)?;
        let not_finite = encoder.not_finite();
        if let Some(pool) = &machine.pool {
            backend = backend.with_threads(pool.clone());
        }
        let engine = Engine {
            backend: Box::new(backend),
            positions: architecture.positions,
            zero_types: ignores_types(architecture),
            token_budget: machine.token_budget,
        };
        Ok((engine, network.finite(directory, &not_finite)?))
    }

    /// The same for inputs without token types, if `omit` says that they have none.
    pub(crate) fn omitting_types(self, omit: bool) -> Self {
        Engine { zero_types: self.zero_types || omit, ..self }
    }

    pub(crate) fn hidden(&self) -> usize {
        self.backend.shape().hidden
    }

    pub(crate) fn describe(&self) -> String {
        self.backend.describe()
    }

    pub(crate) fn most_scratch_bytes(&self) -> usize {
        self.backend.most_scratch_bytes()
    }

    /// Computes the states of `rows` (token indices within a sequence, pushed by the first closure). What
    /// `finish` makes of a batch, the same number of values for each sequence, goes to `store` sequence by
    /// sequence; batches come in any order.
    ///
    /// Threads take batches in turn, each by itself; the last ones are laid out so that threads that find none any more
    /// can help.
    pub(crate) fn run(
        &self,
        sequences: &[TokenSequence],
        rows: impl Fn(&TokenSequence, &mut Vec<u32>) + Sync,
        finish: impl Fn(&[&[f32]]) -> Result<Vec<f32>> + Sync,
        store: impl FnMut(usize, &[f32]) + Send,
        cancel: &Cancel,
    ) -> Result<()> {
        let lengths: Vec<usize> = sequences.iter().map(TokenSequence::len).collect();
        let threads = self.backend.threads();
        let plans = plan_batches(&lengths, self.budget_for(lengths.iter().sum(), threads));
        let store = Mutex::new(store);
        let _tidy = Tidy(self);
        let run_one = |plan: &[usize], among: usize| {
            cancel.check()?;
            let values = self.run_batch(sequences, plan, &rows, &finish, among)?;
            // A panic elsewhere ends the whole run: what it left half done is not looked at again.
            let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
            let of_each = values.chunks_exact(values.len() / plan.len());
            plan.iter().zip(of_each).for_each(|(&sequence, values)| (*store)(sequence, values));
            Ok(())
        };
        if threads == 1 || plans.len() <= 1 {
            return plans.iter().try_for_each(|plan| run_one(plan, threads));
        }
        // A thread that waits for helpers may take another run's turns meanwhile: that costs time, never a result.
        let last = plans.len().min(threads);
        let next = AtomicUsize::new(0);
        let in_turn = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(plan) = plans.get(index) else { return Ok(()) };
                let left = plans.len() - index;
                let among = if left > last { 1 } else { threads.div_ceil(left).max(2) };
                if let Err(error) = run_one(plan, among) {
                    next.store(plans.len(), Ordering::Relaxed);
                    return Err(error);
                }
            }
        };
        (0..threads).into_par_iter().with_max_len(1).try_for_each(|_| in_turn())
    }

    /// Tokens in a batch: fewer where that gives every thread some batches of its own.
    fn budget_for(&self, tokens: usize, threads: usize) -> usize {
        if threads == 1 {
            return self.token_budget;
        }
        (tokens / (BATCHES_A_THREAD * threads)).max(LEAST_TOKENS).min(self.token_budget)
    }

    fn run_batch(
        &self,
        sequences: &[TokenSequence],
        plan: &[usize],
        rows: &impl Fn(&TokenSequence, &mut Vec<u32>),
        finish: &impl Fn(&[&[f32]]) -> Result<Vec<f32>>,
        among: usize,
    ) -> Result<Vec<f32>> {
        let hidden = self.hidden();
        let mut batch = PackedBatch::new();
        let (mut types, mut positions) = (Vec::new(), Vec::new());
        let (mut wanted, mut local, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for &index in plan {
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
        let mut states = vec![0.0; wanted.len() * hidden];
        self.backend.forward_among(among, &batch, &wanted, &mut states)?;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let parts: Vec<&[f32]> =
            starts.zip(&ends).map(|(start, &end)| &states[start * hidden..end * hidden]).collect();
        finish(&parts)
    }
}
