//! A batch's way through the layers, in blocks of rows that any number of threads take.
//!
//! Stage 0 of a block makes its embeddings, stage n takes it through layer n - 1; every stage but the last ends
//! with the keys, values and queries that the next layer needs. Only attention looks beyond a block, at the keys
//! and values of the stage before or, for few rows of the last layer, at its states, so threads wait for one another
//! once a layer; queries are made after a block has told that its keys and values are there, which leaves time for
//! others to come up. Two copies of keys and values take turns: nobody writes the one that others still read; and
//! states are written no more once those of the last stage but one are told to be there.
//!
//! A thread claims tasks stage by stage, its own blocks first, whose numbers are in its caches, then those that
//! others have not come to. What a claimed task waits for is therefore done, or in the hands of a thread that waits
//! only for earlier ones: no number of threads, one included, gets stuck.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::{Duration, Instant};

use super::attend::{AttentionPlan, lay_out_slots};
use super::few_rows::{Wanted, is_less_work};
use super::layer::{BlockScratch, Run};
use super::{BatchScratch, CpuEncoder};
use crate::PackedBatch;
use crate::kernels::{Operand, PIECE, Rows, Shelf};
use crate::memory::Buffer;
use crate::profile::{Work, timed};

/// Rows of a full block: enough to read a layer's weights seldom, few enough to stay in the second cache.
const BLOCK_ROWS: usize = 192;
/// Rows of a block that ends with a sequence: where keys are kept as rows, attention packs a sequence's keys for every
/// block that has rows of it.
const MOST_ROWS: usize = 256;
/// Fewest rows that are worth another block.
const FEWEST_ROWS: usize = 24;
/// How long threads stay awake for a caller who comes back.
const LINGERING: Duration = Duration::from_micros(200);
/// Looks at a counter before the processor is offered to others.
const SPINS: usize = 4096;

/// One forward pass.
pub(super) struct Passage<'a> {
    encoder: &'a CpuEncoder,
    run: Run<'a>,
    batch: &'a PackedBatch,
    blocks: Vec<Mutex<Block<'a>>>,
    /// Hidden states of each block, `[tokens][hidden]`. Only the last stage reads those of others.
    states: Vec<RwLock<&'a mut [f32]>>,
    /// Where each block ends.
    ends: Vec<usize>,
    /// How each sequence goes through the last layer.
    ways: Vec<Way>,
    /// The first slot of each sequence on the shelf.
    slots: Vec<usize>,
    shelf: Shelf,
    /// What is on the shelf, head by head, as attention reads it and so that threads seldom meet: of even and of odd
    /// stages.
    kept: [Vec<RwLock<&'a mut [f32]>>; 2],
    /// Which tasks are claimed: stage times number of blocks, plus block.
    claimed: Vec<AtomicBool>,
    /// Blocks that have done what others need of each stage.
    ended: Vec<AtomicUsize>,
}

/// Neighbouring tokens of a batch.
struct Block<'a> {
    tokens: Range<usize>,
    /// Queries for the layer that comes next: of all tokens; of the wanted ones before the last.
    queries: &'a mut [f32],
    /// Attention of all rows, and of the wanted ones in the last layer.
    attention: AttentionPlan,
    last_attention: AttentionPlan,
    /// Whether attention in the last layer needs its keys and values.
    last_keys: bool,
    /// Wanted tokens and their places in the output, in the order of the tokens.
    wanted: Vec<(u32, usize)>,
    /// Last states of the wanted tokens, each once.
    out: Vec<f32>,
}

impl<'a> Passage<'a> {
    /// Lays out a batch of which `rows` are wanted.
    pub(super) fn new(
        encoder: &'a CpuEncoder,
        run: Run<'a>,
        batch: &'a PackedBatch,
        rows: impl Iterator<Item = u32>,
        scratch: &'a mut BatchScratch,
    ) -> Self {
        let (hidden, tokens) = (run.shape.hidden, batch.tokens());
        let BatchScratch { states, queries, keys_values } = scratch;
        let (mut states, mut queries) = (states.sized(tokens * hidden), queries.sized(tokens * hidden));
        let ends = if run.threads == 1 { whole_sequences(batch) } else { block_ends(tokens, run.threads) };
        let ends = between_pieces(batch, ends);
        let keeping = run.isa.keeping(run.precision);
        let (slots, count) = lay_out_slots(batch, keeping);
        let mut blocks: Vec<Block<'_>> = Vec::with_capacity(ends.len());
        let mut states_of = Vec::with_capacity(ends.len());
        for &end in &ends {
            let tokens = blocks.last().map_or(0, |block| block.tokens.end)..end;
            let attention = AttentionPlan::new(batch, &slots, tokens.clone().map(|token| token as u32));
            let own = tokens.len() * hidden;
            let (states, queries) = (states.split_off_mut(..own), queries.split_off_mut(..own));
            let (Some(states), Some(queries)) = (states, queries) else { break };
            states_of.push(RwLock::new(states));
            blocks.push(Block {
                tokens,
                queries,
                attention,
                last_attention: AttentionPlan::default(),
                last_keys: false,
                wanted: Vec::new(),
                out: Vec::new(),
            });
        }
        for (place, row) in rows.enumerate() {
            let block = ends.partition_point(|&end| end <= row as usize);
            blocks[block].wanted.push((row, place));
        }
        blocks.iter_mut().for_each(|block| block.wanted.sort_unstable());
        let ways = ways(encoder, batch, &blocks);
        for block in &mut blocks {
            block.last_keys = !block.tokens.is_empty()
                && (batch.sequence_of(block.tokens.start)..=batch.sequence_of(block.tokens.end - 1))
                    .any(|sequence| ways[sequence] == Way::Keys);
        }
        let shelf = Shelf { keeping, slots: count, width: run.shape.head_width() };
        let of_head = shelf.of_head();
        let kept = keys_values.each_mut().map(|buffer| {
            let heads = buffer.sized(run.shape.heads * of_head).chunks_exact_mut(of_head.max(1));
            heads.map(RwLock::new).collect()
        });
        let stages = encoder.layers.len() + 1;
        Passage {
            encoder,
            run,
            batch,
            claimed: (0..stages * blocks.len()).map(|_| AtomicBool::new(false)).collect(),
            blocks: blocks.into_iter().map(Mutex::new).collect(),
            states: states_of,
            ends,
            ways,
            slots,
            shelf,
            kept,
            ended: (0..stages).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    /// Runs all stages on the threads it was laid out for.
    pub(super) fn finish(&self) {
        let threads = self.run.threads.min(self.blocks.len());
        if threads <= 1 {
            return self.work(0);
        }
        // In place: work that a thread from outside hands over has to be waited for twice, at its start and at its end.
        let pool = self.encoder.threads.as_deref();
        match pool {
            Some(pool) => pool.in_place_scope(|scope| self.share(scope, threads)),
            None => rayon::in_place_scope(|scope| self.share(scope, threads)),
        }
        if rayon::current_thread_index().is_none() {
            for _ in 1..threads {
                match pool {
                    Some(pool) => pool.spawn(linger),
                    None => rayon::spawn(linger),
                }
            }
        }
    }

    /// Runs all stages on this thread and on others of a scope, so many in all.
    fn share<'s>(&'s self, scope: &rayon::Scope<'s>, threads: usize) {
        for thread in 1..threads {
            scope.spawn(move |_| {
                self.work(thread * self.blocks.len() / threads);
                // Until all is done: the next batch mostly comes right then, and finds this thread awake.
                if let Some(last) = self.ended.last() {
                    wait_for(last, self.blocks.len());
                }
            });
        }
        self.work(0);
    }

    /// Runs all stages on this thread, calling `after` with the states of all tokens after each of them; all
    /// tokens must be wanted.
    pub(super) fn watch(&self, mut after: impl FnMut(Vec<f32>)) {
        for stage in 0..self.ended.len() {
            let mut states = Vec::with_capacity(self.batch.tokens() * self.run.shape.hidden);
            for (index, block) in self.blocks.iter().enumerate() {
                let mut block = block.lock().unwrap_or_else(PoisonError::into_inner);
                self.take(stage, index, &mut block, None);
                match stage + 1 == self.ended.len() {
                    true => states.extend_from_slice(&block.out),
                    false => states.extend_from_slice(&read(&self.states[index])),
                }
            }
            after(states);
        }
    }

    /// Writes the last states of the wanted rows, after [`Passage::finish`].
    pub(super) fn write(self, out: &mut [f32]) {
        let hidden = self.run.shape.hidden;
        for block in self.blocks {
            let block = block.into_inner().unwrap_or_else(PoisonError::into_inner);
            let of_token = block.wanted.chunk_by(|(token, _), (next, _)| token == next);
            for (places, state) in of_token.zip(block.out.chunks_exact(hidden)) {
                places.iter().for_each(|(_, place)| out[place * hidden..][..hidden].copy_from_slice(state));
            }
        }
    }

    /// Takes tasks until there are none, in each stage from block `home` on.
    fn work(&self, home: usize) {
        let count = self.blocks.len();
        for (stage, ended) in self.ended.iter().enumerate() {
            for block in (home..count).chain(0..home) {
                let claimed = &self.claimed[stage * count + block];
                if claimed.load(Ordering::Relaxed) || claimed.swap(true, Ordering::Relaxed) {
                    continue;
                }
                if let Some(before) = stage.checked_sub(1) {
                    wait_for(&self.ended[before], count);
                }
                // Counts when dropped, so that a panic here does not leave others waiting.
                let ended = Some(Count(ended));
                // A block that panicked makes the whole pass panic in the end.
                let mut locked = self.blocks[block].lock().unwrap_or_else(PoisonError::into_inner);
                self.take(stage, block, &mut locked, ended);
            }
        }
    }

    /// One stage of one block; `ended` is dropped when others may go on.
    fn take(&self, stage: usize, index: usize, block: &mut Block<'_>, ended: Option<Count<'_>>) {
        let (encoder, run) = (self.encoder, self.run);
        let depth = encoder.layers.len();
        encoder.blocks.with(|scratch| {
            if stage == depth && depth > 0 {
                self.attend(depth - 1, block, scratch);
                self.attend_few(block, scratch);
                return encoder.layers[depth - 1].finish(run, &mut block.out, scratch);
            }
            let mut states = self.states[index].write().unwrap_or_else(PoisonError::into_inner);
            match stage.checked_sub(1) {
                None => self.embed(block, &mut scratch.intermediate, &mut states),
                Some(before) => {
                    self.attend(before, block, scratch);
                    encoder.layers[before].finish(run, &mut states, scratch);
                }
            }
            if stage + 1 < depth {
                return self.project(stage, block, &states, scratch, ended);
            }
            self.keep_wanted(block, &states);
            if depth > 0 {
                self.project_last(stage, block, states, scratch, ended);
            }
        });
    }

    fn embed(&self, block: &Block<'_>, scratch: &mut Buffer, states: &mut [f32]) {
        let (embeddings, first) = (&self.encoder.embeddings, block.tokens.start);
        timed(self.run.profile, Work::Embeddings, || {
            embeddings.embed(self.run.isa, self.batch, first, scratch, states);
        });
    }

    /// Copies the wanted states, each once however often it is wanted: from here on only they go on.
    fn keep_wanted(&self, block: &mut Block<'_>, states: &[f32]) {
        let (hidden, first) = (self.run.shape.hidden, block.tokens.start);
        let mut tokens: Vec<u32> = block.wanted.iter().map(|&(token, _)| token).collect();
        tokens.dedup();
        let wanted = tokens.iter().map(|&token| &states[(token as usize - first) * hidden..][..hidden]);
        block.out = wanted.flatten().copied().collect();
        block.last_attention = AttentionPlan::new(self.batch, &self.slots, tokens.into_iter());
    }

    /// Keys and values of a block for a layer, then its queries.
    fn project(
        &self,
        layer: usize,
        block: &mut Block<'_>,
        states: &[f32],
        scratch: &mut BlockScratch,
        ended: Option<Count<'_>>,
    ) {
        let BlockScratch { projected, codes, .. } = scratch;
        let weights = &self.encoder.layers[layer];
        let operand = self.run.operand(states, &weights.keys_values, codes);
        self.keys_values(layer, block, operand, projected);
        drop(ended);
        self.run.project(operand, &weights.queries, block.queries);
    }

    /// The same for the last layer: keys and values only if some sequence of the block needs them, queries of the wanted
    /// rows.
    fn project_last(
        &self,
        layer: usize,
        block: &mut Block<'_>,
        states: RwLockWriteGuard<'_, &mut [f32]>,
        scratch: &mut BlockScratch,
        ended: Option<Count<'_>>,
    ) {
        let BlockScratch { projected, codes, .. } = scratch;
        let weights = &self.encoder.layers[layer];
        if block.last_keys {
            let operand = self.run.operand(&states, &weights.keys_values, codes);
            self.keys_values(layer, block, operand, projected);
        }
        // Others read them as soon as they may.
        drop(states);
        drop(ended);
        let operand = self.run.operand(&block.out, &weights.queries, codes);
        self.run.project(operand, &weights.queries, &mut block.queries[..block.out.len()]);
    }

    /// Makes a block's keys and values and shelves them.
    fn keys_values(&self, layer: usize, block: &Block<'_>, operand: Operand<'_>, projected: &mut Buffer) {
        let projected = projected.sized(block.tokens.len() * 2 * self.run.shape.hidden);
        self.run.project(operand, &self.encoder.layers[layer].keys_values, projected);
        timed(self.run.profile, Work::Attention, || self.keep(layer, block, projected));
    }

    /// Puts a block's keys and values, side by side in `projected`, on the shelf.
    fn keep(&self, layer: usize, block: &Block<'_>, projected: &[f32]) {
        let (hidden, width) = (self.run.shape.hidden, self.run.shape.head_width());
        let heads = &self.kept[layer % 2];
        // Threads come here at about the same time: each begins with another head.
        let home = block.tokens.start * heads.len() / self.batch.tokens();
        for head in (home..heads.len()).chain(0..home) {
            let rows = Rows { values: projected, stride: 2 * hidden };
            let (keys, values) = (rows.from(0, head * width), rows.from(0, hidden + head * width));
            let mut kept = soon_free(&heads[head]);
            for (slot, rows) in block.attention.new_rows(keys, values, width) {
                self.run.isa.keep(rows, self.shelf, slot, &mut kept);
            }
        }
    }

    /// Attention of a block's rows in a layer, into the scratch memory.
    fn attend(&self, layer: usize, block: &Block<'_>, scratch: &mut BlockScratch) {
        let hidden = self.run.shape.hidden;
        let last = layer + 1 == self.encoder.layers.len();
        let plan = if last { &block.last_attention } else { &block.attention };
        let heads = self.kept[layer % 2].iter();
        let heads: Vec<_> = heads.map(|head| head.read().unwrap_or_else(PoisonError::into_inner)).collect();
        let heads: Vec<&[f32]> = heads.iter().map(|head| &***head).collect();
        let queries = Rows { values: &*block.queries, stride: hidden };
        let out = scratch.attended.sized(plan.rows() * hidden);
        let (pattern, bias) = (self.batch.pattern(), self.encoder.bias.as_ref());
        let kept = (self.shelf, heads.as_slice());
        let with_keys = |sequence: usize| !last || self.ways[sequence] == Way::Keys;
        self.encoder.attention.with(|memory| {
            plan.run(self.run, pattern, bias, queries, kept, with_keys, memory, out);
        });
    }

    /// Attention in the last layer of a block's rows whose sequences have no keys there.
    fn attend_few(&self, block: &Block<'_>, scratch: &mut BlockScratch) {
        let parts: Vec<_> = block.last_attention.parts().collect();
        let few = parts.iter().filter(|part| self.ways[part.sequence] == Way::States);
        let few: Vec<_> = few.map(|part| (part, self.blocks_of(part.sequence))).collect();
        let (Some(few_rows), false) = (&self.encoder.few_rows, few.is_empty()) else { return };
        // A block may hold the states of several sequences, and is locked once.
        let mut held: Vec<Option<RwLockReadGuard<'_, &mut [f32]>>> = Vec::new();
        held.resize_with(self.states.len(), || None);
        for block in few.iter().flat_map(|(_, blocks)| blocks.clone()) {
            held[block].get_or_insert_with(|| read(&self.states[block]));
        }
        let sequences = few.into_iter().map(|(part, blocks)| Wanted {
            rows: part.rows.clone(),
            places: part.places,
            states: self.pieces(part.sequence, blocks, &held),
        });
        let sequences: Vec<_> = sequences.collect();
        let bias = self.encoder.bias.as_ref();
        self.encoder.attention.with(|memory| {
            few_rows.attend(self.run, bias, &sequences, block.queries, scratch, &mut memory.scores);
        });
    }

    /// The blocks that hold states of a sequence.
    fn blocks_of(&self, sequence: usize) -> Range<usize> {
        let tokens = self.batch.range(sequence);
        let block_of = |token: usize| self.ends.partition_point(|&end| end <= token);
        block_of(tokens.start)..block_of(tokens.end - 1) + 1
    }

    /// The states of a sequence, from the blocks that have them.
    fn pieces<'s>(
        &self,
        sequence: usize,
        blocks: Range<usize>,
        held: &'s [Option<RwLockReadGuard<'_, &mut [f32]>>],
    ) -> Vec<&'s [f32]> {
        let (hidden, tokens) = (self.run.shape.hidden, self.batch.range(sequence));
        let piece = |block: usize| {
            let first = block.checked_sub(1).map_or(0, |before| self.ends[before]);
            let (start, end) = (tokens.start.max(first), tokens.end.min(self.ends[block]));
            held[block].as_ref().map(|states| &states[(start - first) * hidden..(end - first) * hidden])
        };
        blocks.filter_map(piece).collect()
    }
}

/// How a sequence goes through the last layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// None of its rows is wanted.
    Nowhere,
    /// By keys and values of all its tokens, as through the other layers.
    Keys,
    /// By its states themselves, for few rows.
    States,
}

/// How each sequence of a batch goes through the last layer, which only its own wanted rows decide.
fn ways(encoder: &CpuEncoder, batch: &PackedBatch, blocks: &[Block<'_>]) -> Vec<Way> {
    let mut counts = vec![0; batch.sequences()];
    let mut last = (0, 0..0);
    for block in blocks {
        for tokens in block.wanted.chunk_by(|(token, _), (next, _)| token == next) {
            let token = tokens[0].0 as usize;
            if !last.1.contains(&token) {
                let sequence = batch.sequence_of(token);
                last = (sequence, batch.range(sequence));
            }
            counts[last.0] += 1;
        }
    }
    let way = |(sequence, count): (usize, usize)| match count {
        0 => Way::Nowhere,
        _ if encoder.few_rows.is_none() => Way::Keys,
        _ if is_less_work(encoder.shape.sizes(), batch.range(sequence).len(), count) => Way::States,
        _ => Way::Keys,
    };
    counts.into_iter().enumerate().map(way).collect()
}

/// Where blocks end: as many for each thread, all of nearly the same size.
fn block_ends(tokens: usize, threads: usize) -> Vec<usize> {
    let of_each = tokens.div_ceil(threads * BLOCK_ROWS).max(1);
    let count = (threads * of_each).min(tokens.div_ceil(FEWEST_ROWS));
    (1..=count).map(|block| tokens * block / count).collect()
}

/// Where the blocks of a thread that is alone end: with sequences, but for long ones.
fn whole_sequences(batch: &PackedBatch) -> Vec<usize> {
    let mut ends: Vec<usize> = Vec::new();
    let mut first = 0;
    for sequence in 0..batch.sequences() {
        let range = batch.range(sequence);
        if range.end - first > MOST_ROWS && range.start > first {
            ends.push(range.start);
            first = range.start;
        }
        if range.len() > MOST_ROWS {
            let count = range.len().div_ceil(BLOCK_ROWS);
            ends.extend((1..=count).map(|block| range.start + range.len() * block / count));
            first = range.end;
        }
    }
    if first < batch.tokens() {
        ends.push(batch.tokens());
    }
    ends
}

/// These ends of blocks, moved to where the rows of a sequence can be kept in pieces.
fn between_pieces(batch: &PackedBatch, ends: Vec<usize>) -> Vec<usize> {
    let mut moved: Vec<usize> = Vec::with_capacity(ends.len());
    for end in ends {
        let range = batch.range(batch.sequence_of(end - 1));
        let whole = (end - range.start).next_multiple_of(PIECE);
        let end = range.end.min(range.start + whole);
        if moved.last() != Some(&end) {
            moved.push(end);
        }
    }
    moved
}

/// Locks what others hold only while they shelve one head of a block: going to sleep would take longer than that.
fn soon_free<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    let mut looks = 0;
    loop {
        match lock.try_write() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(error)) => return error.into_inner(),
            Err(TryLockError::WouldBlock) => pause(&mut looks),
        }
    }
}

/// Locks what nobody writes any more.
fn read<'s, 'a>(states: &'s RwLock<&'a mut [f32]>) -> RwLockReadGuard<'s, &'a mut [f32]> {
    states.read().unwrap_or_else(PoisonError::into_inner)
}

fn wait_for(counter: &AtomicUsize, count: usize) {
    let mut looks = 0;
    while counter.load(Ordering::Acquire) < count {
        pause(&mut looks);
    }
}

/// Between two looks: mostly nothing, now and then the processor is offered to others.
fn pause(looks: &mut usize) {
    *looks += 1;
    if looks.is_multiple_of(SPINS) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

/// Keeps a thread of the pool awake for a little while after it has helped a caller from outside, who mostly comes back
/// with the next batch at once. A thread that sleeps is slow to wake, on virtual machines above all: there an idle
/// processor looks taken to the system, which then wakes the helper on the processor of the one it should help.
fn linger() {
    let start = Instant::now();
    while start.elapsed() < LINGERING {
        match rayon::yield_now() {
            Some(rayon::Yield::Idle) => std::hint::spin_loop(),
            _ => return,
        }
    }
}

/// Adds one to a counter when dropped.
struct Count<'a>(&'a AtomicUsize);

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
