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
            *self = Buffer::zeros(length);
        }
        self.length = length;
        self
    }

    /// Bytes allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.lines.len() * LINE_BYTES
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

/// Scratch memory that can say how much it is.
pub(crate) trait Scratch: Default + Send {
    /// Bytes allocated.
    fn bytes(&self) -> usize;
}

/// Scratch memory kept between calls.
///
/// A pool and not thread-locals: a thread that waits for its part of a product may be given another part of
/// the same work meanwhile, and would find its own memory in use.
pub(crate) struct Pool<T> {
    free: Mutex<Vec<T>>,
    kept_bytes: usize,
}

impl<T: Scratch> Pool<T> {
    /// A pool that keeps at most `kept_bytes`; what comes back beyond that is freed.
    pub(crate) fn new(kept_bytes: usize) -> Self {
        Pool { free: Mutex::new(Vec::new()), kept_bytes }
    }

    /// Lends memory to `work`.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let taken = self.lock().pop();
        let mut scratch = taken.unwrap_or_default();
        let result = work(&mut scratch);
        let mut free = self.lock();
        if free.iter().map(T::bytes).sum::<usize>() + scratch.bytes() <= self.kept_bytes {
            free.push(scratch);
        }
        result
    }

    /// Frees everything that is not lent.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Bytes that wait for the next call.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().iter().map(T::bytes).sum()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<T>> {
        // Scratch has no invariants that a panic could break.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct One(Buffer);

    impl Scratch for One {
        fn bytes(&self) -> usize {
            self.0.bytes()
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
}
