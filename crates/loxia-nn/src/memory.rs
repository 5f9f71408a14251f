//! Buffers aligned to cache lines, and a pool that keeps scratch memory between calls.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;

/// A cache line, so that a `Vec` of them is aligned to one.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE_BYTES]);

const LINE_BYTES: usize = 64;

// SAFETY: an array of bytes, for which all zero is a value.
unsafe impl bytemuck::Zeroable for Line {}
// SAFETY: 64 bytes fill it exactly, so there is no padding, and every bit pattern is a value.
unsafe impl bytemuck::Pod for Line {}

/// A vector of plain numbers that starts on a cache line.
#[derive(Clone)]
pub(crate) struct Buffer<T = f32> {
    lines: Vec<Line>,
    length: usize,
    kind: PhantomData<T>,
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Buffer { lines: Vec::new(), length: 0, kind: PhantomData }
    }
}

impl<T: Pod> Buffer<T> {
    const IN_LINE: usize = LINE_BYTES / size_of::<T>();

    /// A buffer of zeros.
    pub(crate) fn zeros(length: usize) -> Self {
        Buffer { lines: bytemuck::zeroed_vec(length.div_ceil(Self::IN_LINE)), length, kind: PhantomData }
    }

    /// The first `length` elements, after growing where needed; what they hold is left over from before.
    pub(crate) fn sized(&mut self, length: usize) -> &mut [T] {
        if length > self.lines.len() * Self::IN_LINE {
            // Freed first: nobody needs both.
            self.lines = Vec::new();
            *self = Buffer::zeros(length);
        }
        self.length = length;
        self
    }

    /// How large it is and how much of that was last asked for.
    pub(crate) fn extent(&self) -> Extent {
        Extent { allocated: self.lines.len() * LINE_BYTES, used: self.length * size_of::<T>() }
    }
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &bytemuck::cast_slice(&self.lines)[..self.length]
    }
}

impl<T: Pod> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.length]
    }
}

/// Size of some memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// What it takes.
    pub(crate) allocated: usize,
    /// What the last work with it asked for.
    pub(crate) used: usize,
}

impl std::iter::Sum for Extent {
    fn sum<I: Iterator<Item = Extent>>(parts: I) -> Extent {
        parts.fold(Extent::default(), |sum, part| Extent {
            allocated: sum.allocated + part.allocated,
            used: sum.used + part.used,
        })
    }
}

/// Scratch memory that can say how much it is.
pub(crate) trait Scratch: Default + Send {
    /// Size of all its parts.
    fn extent(&self) -> Extent;
}

/// Loans after which a pool looks back at what they needed.
const LOANS_BETWEEN_LOOKS: usize = 64;
/// Memory that is so many times what the largest of these loans needed is given back.
const FAR_TOO_LARGE: usize = 4;

/// Scratch memory kept between calls.
///
/// A pool and not thread-locals: a thread that waits for its part of a product may be given another part of
/// the same work meanwhile, and would find its own memory in use.
///
/// What a burst of long texts or of many threads left behind goes after [`LOANS_BETWEEN_LOOKS`] loans that had no
/// use for it. Making it again, should another burst come, is little beside the work that fills it.
pub(crate) struct Pool<T> {
    kept: Mutex<Kept<T>>,
    most_bytes: usize,
}

struct Kept<T> {
    free: Vec<T>,
    /// Loans that are out, and the most bytes that there were so far, lent and free.
    lent: usize,
    most: usize,
    /// Since the last look: loans, the most that one of them needed, and the fewest that were free meanwhile.
    loans: usize,
    needed: usize,
    idle: usize,
}

impl<T: Scratch> Pool<T> {
    /// A pool that keeps at most `most_bytes`; what comes back beyond that is freed.
    pub(crate) fn new(most_bytes: usize) -> Self {
        let kept = Kept { free: Vec::new(), lent: 0, most: 0, loans: 0, needed: 0, idle: usize::MAX };
        Pool { kept: Mutex::new(kept), most_bytes }
    }

    /// Lends memory to `work`.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let taken = {
            let mut kept = self.lock();
            let taken = kept.free.pop();
            kept.idle = kept.idle.min(kept.free.len());
            kept.lent += 1;
            taken
        };
        let lost = Lost(self);
        let mut scratch = taken.unwrap_or_default();
        let result = work(&mut scratch);
        std::mem::forget(lost);
        let extent = scratch.extent();
        let mut kept = self.lock();
        let with_this = kept.allocated() + extent.allocated;
        kept.lent -= 1;
        kept.most = kept.most.max(with_this + kept.lent * extent.used);
        if with_this <= self.most_bytes {
            kept.free.push(scratch);
        }
        kept.needed = kept.needed.max(extent.used);
        kept.loans += 1;
        if kept.loans == LOANS_BETWEEN_LOOKS {
            kept.give_back();
        }
        result
    }

    /// Frees everything that is not lent.
    pub(crate) fn clear(&self) {
        self.lock().free.clear();
    }

    /// Bytes that wait for the next call.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().allocated()
    }

    /// Most bytes that there were at once so far, lent and free, whatever became of them. Looked at when a loan comes back:
    /// exact where one thread borrows; otherwise loans that are still out count as what this one used.
    pub(crate) fn most_at_once(&self) -> usize {
        self.lock().most
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept<T>> {
        // Scratch has no invariants that a panic could break.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A loan whose work panics: its memory is gone, and it is no longer out.
struct Lost<'a, T: Scratch>(&'a Pool<T>);

impl<T: Scratch> Drop for Lost<'_, T> {
    fn drop(&mut self) {
        self.0.lock().lent -= 1;
    }
}

impl<T: Scratch> Kept<T> {
    fn allocated(&self) -> usize {
        self.free.iter().map(|scratch| scratch.extent().allocated).sum()
    }

    /// Frees what the loans since the last look did not touch, and what was far too large for them.
    fn give_back(&mut self) {
        // Loans are taken from the end: what none of them touched is at the beginning.
        self.free.drain(..self.idle.min(self.free.len()));
        let largest = FAR_TOO_LARGE * self.needed;
        self.free.retain(|scratch| scratch.extent().allocated <= largest);
        (self.loans, self.needed, self.idle) = (0, 0, usize::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct One(Buffer);

    impl Scratch for One {
        fn extent(&self) -> Extent {
            self.0.extent()
        }
    }

    #[test]
    fn buffers_are_aligned_and_have_their_length() {
        let mut buffer: Buffer = Buffer::default();
        for length in [0, 1, 15, 16, 17, 1000, 3] {
            assert_eq!(buffer.sized(length).len(), length);
            assert_eq!(buffer.as_ptr().align_offset(64), 0);
        }
    }

    #[test]
    fn the_pool_keeps_within_its_bound() {
        let pool: Pool<One> = Pool::new(1024);
        pool.with(|one| one.0.sized(256).fill(1.0));
        assert_eq!(pool.bytes(), 1024);
        pool.with(|one| one.0.sized(257).fill(1.0));
        assert_eq!(pool.bytes(), 0);
        pool.with(|one| one.0.sized(16).fill(1.0));
        pool.clear();
        assert_eq!(pool.bytes(), 0);
    }

    #[test]
    fn the_pool_remembers_what_it_did_not_keep() {
        let pool: Pool<One> = Pool::new(1024);
        let line = |pool: &Pool<One>| pool.with(|one| one.0.sized(16).fill(1.0));
        assert_eq!(pool.most_at_once(), 0);
        line(&pool);
        assert_eq!(pool.most_at_once(), 64);
        // It outgrows the bound, and is freed at once.
        pool.with(|one| one.0.sized(1600).fill(1.0));
        line(&pool);
        pool.clear();
        assert_eq!((pool.bytes(), pool.most_at_once()), (0, 6400));
    }

    #[test]
    fn loans_that_are_out_count_as_large_as_the_one_that_comes_back() {
        let pool: Pool<One> = Pool::new(1 << 20);
        pool.with(|one| {
            one.0.sized(1600).fill(1.0);
            pool.with(|other| other.0.sized(1600).fill(1.0));
            assert_eq!(pool.most_at_once(), 2 * 6400);
        });
        assert_eq!(pool.most_at_once(), 2 * 6400);
        // What is free meanwhile is counted as it is.
        pool.with(|one| one.0.sized(16).fill(1.0));
        assert_eq!(pool.most_at_once(), 2 * 6400);
    }

    #[test]
    fn a_loan_that_is_lost_to_a_panic_is_out_no_more() {
        let pool: Pool<One> = Pool::new(1 << 20);
        let lost = std::panic::AssertUnwindSafe(|| pool.with(|_| panic!("in the middle of it")));
        assert!(std::panic::catch_unwind(lost).is_err());
        pool.with(|one| one.0.sized(16).fill(1.0));
        assert_eq!(pool.most_at_once(), 64);
    }

    #[test]
    fn the_pool_gives_back_what_later_work_has_no_use_for() {
        let pool: Pool<One> = Pool::new(1 << 20);
        let small = || pool.with(|one| one.0.sized(16).fill(1.0));
        // Two loans at once, both large.
        pool.with(|one| {
            one.0.sized(1600).fill(1.0);
            pool.with(|other| other.0.sized(1600).fill(1.0));
        });
        assert_eq!(pool.bytes(), 2 * 6400);
        // The first look sees the large loans, the second only small ones.
        (2..LOANS_BETWEEN_LOOKS).for_each(|_| small());
        assert_eq!(pool.bytes(), 2 * 6400);
        (0..LOANS_BETWEEN_LOOKS).for_each(|_| small());
        assert_eq!(pool.bytes(), 0);
        small();
        assert_eq!(pool.bytes(), 64);

        // One more that nobody takes goes as well, however small.
        pool.with(|_| small());
        assert_eq!(pool.bytes(), 2 * 64);
        (0..2 * LOANS_BETWEEN_LOOKS).for_each(|_| small());
        assert_eq!(pool.bytes(), 64);
    }
}
