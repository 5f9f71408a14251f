//! Memory of work that has ended, for the work that comes next on the same thread.
//!
//! A search needs numbers of every item for a few milliseconds. Freed, such memory goes back to the system, and the
//! next search has it made page by page: that took a fifth of the time of a search over 100,000 items. A thread keeps
//! 32 MiB at most, until it ends.

use std::cell::RefCell;

/// Most vectors kept by a thread, most bytes in all, and fewest of one that are worth it.
const MOST: usize = 16;
const MOST_BYTES: usize = 32 << 20;
const FEWEST_BYTES: usize = 32 << 10;
/// Vectors that are longer than asked for by more than this factor wait for those that need them.
const MOST_TIMES: usize = 16;

thread_local! {
    static SPARE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

fn bytes(values: &Vec<f32>) -> usize {
    values.capacity() * size_of::<f32>()
}

/// So many numbers; what they are is left over from before.
pub(crate) fn take(length: usize) -> Vec<f32> {
    if length * size_of::<f32>() < FEWEST_BYTES {
        return vec![0.0; length];
    }
    let fits = |values: &Vec<f32>| values.capacity() >= length && values.capacity() / MOST_TIMES <= length;
    let found = SPARE.with_borrow_mut(|spare| {
        let fitting = spare.iter().enumerate().filter(|(_, values)| fits(values));
        let smallest = fitting.min_by_key(|(_, values)| values.capacity()).map(|(at, _)| at);
        smallest.map(|at| spare.swap_remove(at))
    });
    match found {
        Some(mut values) => {
            values.resize(length, 0.0);
            values
        }
        None => vec![0.0; length],
    }
}

/// A copy.
pub(crate) fn copy(values: &[f32]) -> Vec<f32> {
    let mut copy = take(values.len());
    copy.copy_from_slice(values);
    copy
}

/// Keeps numbers that nobody needs any more for [`take`]; if there are too many, the smallest go.
pub(crate) fn give(values: Vec<f32>) {
    if bytes(&values) < FEWEST_BYTES || bytes(&values) > MOST_BYTES {
        return;
    }
    // A thread that ends keeps nothing.
    let _ = SPARE.try_with(|spare| {
        let spare = &mut *spare.borrow_mut();
        spare.push(values);
        while spare.len() > MOST || spare.iter().map(bytes).sum::<usize>() > MOST_BYTES {
            let smallest = (0..spare.len()).min_by_key(|&at| spare[at].capacity()).unwrap_or(0);
            spare.swap_remove(smallest);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_comes_back_and_is_bounded() {
        let one = vec![1.0; 20_000];
        let place = one.as_ptr();
        give(one);
        give(vec![2.0; 40_000]);
        let again = take(15_000);
        assert_eq!((again.as_ptr(), again.len()), (place, 15_000));
        assert_eq!(take(50_000).len(), 50_000);
        // A short one does not take what long ones need.
        assert!(take(10).capacity() < 1000);
        for _ in 0..40 {
            give(vec![0.0; 4 << 20]);
        }
        let kept = SPARE.with_borrow(|spare| spare.iter().map(bytes).sum::<usize>());
        assert!(kept <= MOST_BYTES && kept > MOST_BYTES / 2, "{kept}");
    }
}
