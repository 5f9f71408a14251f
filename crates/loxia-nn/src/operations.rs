//! What an encoder has to compute, by formula, and how much of it this process has done.
//!
//! A multiplication with its addition counts as two operations. For a sequence of n tokens, hidden width h and
//! feed-forward width i, one layer takes
//!
//! - 2n(4h² + 2hi) for its six products,
//! - 4n²h for attention: queries times keys, and weights times values.
//!
//! The last layer's keys and values are needed for every token, everything else only for the rows that the
//! head reads. Norms, activations, embeddings and heads are left out: they are a few per mille. Padding does
//! not exist, so it is never counted.

use std::sync::atomic::{AtomicU64, Ordering};

static DONE: AtomicU64 = AtomicU64::new(0);

/// Operations for one sequence of `length` tokens of which the head reads `rows`.
///
/// ```
/// let all_rows = loxia_nn::operations(6, 384, 1536, 256, 256);
/// let one_row = loxia_nn::operations(6, 384, 1536, 256, 1);
/// assert!(0.8 * all_rows < one_row && one_row < 0.9 * all_rows);
/// ```
pub fn operations(layers: usize, hidden: usize, intermediate: usize, length: usize, rows: usize) -> f64 {
    let [hidden, inner, length, rows] = [hidden, intermediate, length, rows].map(|count| count as f64);
    let keys_values = |tokens: f64| 4.0 * tokens * hidden * hidden;
    let rest = |tokens: f64| tokens * (4.0 * hidden * hidden + 4.0 * hidden * inner + 4.0 * length * hidden);
    match layers {
        0 => 0.0,
        _ => (layers - 1) as f64 * (keys_values(length) + rest(length)) + keys_values(length) + rest(rows),
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
        let (n, h, i) = (10.0, 8.0, 32.0);
        let layer = 2.0 * n * (4.0 * h * h + 2.0 * h * i) + 4.0 * n * n * h;
        assert_eq!(operations(3, 8, 32, 10, 10), 3.0 * layer);
        let one_row = 2.0 * layer + 4.0 * n * h * h + 4.0 * h * h + 4.0 * h * i + 4.0 * n * h;
        assert_eq!(operations(3, 8, 32, 10, 1), one_row);
        assert_eq!(operations(0, 8, 32, 10, 10), 0.0);
    }
}
