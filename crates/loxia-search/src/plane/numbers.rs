//! A run of numbers in memory or in a mapped file.

use std::sync::Arc;

use memmap2::Mmap;

/// Numbers that many searches share.
#[derive(Clone)]
pub(crate) struct Numbers<T>(Source<T>);

#[derive(Clone)]
enum Source<T> {
    Memory(Arc<Vec<T>>),
    File(Arc<Mmap>),
}

impl<T: bytemuck::Pod> Numbers<T> {
    pub(crate) fn from_vec(values: Vec<T>) -> Self {
        Numbers(Source::Memory(Arc::new(values)))
    }

    /// The numbers of a mapped file (an empty file has no map) if there are `count` of them.
    pub(crate) fn from_map(map: Option<Mmap>, count: usize) -> Option<Self> {
        let Some(map) = map else { return (count == 0).then(|| Numbers::from_vec(Vec::new())) };
        // A map begins at a page, so the alignment always fits.
        let found = bytemuck::try_cast_slice::<u8, T>(&map).ok()?.len();
        (found == count).then_some(Numbers(Source::File(Arc::new(map))))
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        match &self.0 {
            Source::Memory(values) => values,
            Source::File(map) => bytemuck::cast_slice(map),
        }
    }
}
