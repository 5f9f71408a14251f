//! What an encoder has to compute, by formula, and how much of it this process has done.
//!
//! A multiplication with its addition counts as two operations. For a sequence of n tokens, hidden width h and
//! feed-forward width i, one layer takes
//!
//! - 2n(4h² + 2hi) for its six products,
//! - 4n²h for attention: queries times keys, and weights times values.
//!
//! In the last layer everything but keys and values is needed for the rows only that the head reads. Where these are few,
//! keys and values are not made either: r rows then take 4rh² for maps head by head and 4rhn for each head's attention over
//! the states themselves. That is what a sequence needs: beside one that needs its keys, some that are not needed may be made. Norms, activations, embeddings and heads are left out: they are a few per mille. Padding does
//! not exist, so it is never counted.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::encoder::is_less_work;

static DONE: AtomicU64 = AtomicU64::new(0);

/// What decides how much an encoder computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Number of layers.
    pub layers: usize,
    /// Attention heads of each.
    pub heads: usize,
    /// Width of a state.
    pub hidden: usize,
    /// Width of the feed-forward layer.
    pub intermediate: usize,
}

/// Operations for one sequence of `length` tokens of which the head reads `rows`.
///
/// ```
/// let mini_lm = loxia_nn::Sizes { layers: 6, heads: 12, hidden: 384, intermediate: 1536 };
/// let all_rows = loxia_nn::operations(mini_lm, 256, 256);
/// let one_row = loxia_nn::operations(mini_lm, 256, 1);
/// assert!(0.83 * all_rows < one_row && one_row < 0.85 * all_rows);
/// ```
pub fn operations(sizes: Sizes, length: usize, rows: usize) -> f64 {
    let few = is_less_work(sizes, length, rows);
    let [hidden, inner, heads] = [sizes.hidden, sizes.intermediate, sizes.heads].map(|count| count as f64);
    let [length, rows] = [length, rows].map(|count| count as f64);
    let keys_values = 4.0 * length * hidden * hidden;
    let attention = |rows: f64| 4.0 * rows * length * hidden;
    let rest = |rows: f64| rows * (4.0 * hidden * hidden + 4.0 * hidden * inner);
    let whole = keys_values + attention(length) + rest(length);
    let last = match few {
        true => 4.0 * rows * hidden * hidden + heads * attention(rows) + rest(rows),
        false => keys_values + attention(rows) + rest(rows),
    };
    match sizes.layers {
        0 => 0.0,
        _ if rows == 0.0 => (sizes.layers - 1) as f64 * whole,
        _ => (sizes.layers - 1) as f64 * whole + last,
    }
}

/// Operations that all encoders of this process have done so far.
pub fn operations_done() -> u64 {
    DONE.load(Ordering::Relaxed)
}

/// Adds to what was done.
pub(crate) fn count(operations: f64) {
    DONE.fetch_add(operations as u64, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_its_products_and_its_attention() {
        let sizes = Sizes { layers: 3, heads: 2, hidden: 8, intermediate: 32 };
        let (n, h, i) = (10.0, 8.0, 32.0);
        let layer = 2.0 * n * (4.0 * h * h + 2.0 * h * i) + 4.0 * n * n * h;
        assert_eq!(operations(sizes, 10, 10), 3.0 * layer);
        // By keys and values, and without.
        let row = 4.0 * h * h + 4.0 * h * i;
        assert_eq!(operations(sizes, 10, 2), 2.0 * layer + 4.0 * n * h * h + 2.0 * (row + 4.0 * h * n));
        assert_eq!(operations(sizes, 10, 1), 2.0 * layer + row + 4.0 * h * h + 4.0 * h * n * 2.0);
        assert_eq!(operations(sizes, 10, 0), 2.0 * layer);
        assert_eq!(operations(Sizes { layers: 0, ..sizes }, 10, 1), 0.0);
    }
}
