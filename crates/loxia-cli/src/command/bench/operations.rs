//! What an encoder has to compute, by formula.
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

use loxia::model::EncoderSummary;

/// Operations for one sequence of `length` tokens of which the head reads `rows`.
pub(super) fn operations(shape: &EncoderSummary, length: usize, rows: usize) -> f64 {
    of_layers(shape.layers, shape.hidden as f64, shape.intermediate as f64, length as f64, rows as f64)
}

fn of_layers(layers: usize, hidden: f64, inner: f64, length: f64, rows: f64) -> f64 {
    let keys_values = |tokens: f64| 4.0 * tokens * hidden * hidden;
    let rest = |tokens: f64| tokens * (4.0 * hidden * hidden + 4.0 * hidden * inner + 4.0 * length * hidden);
    match layers {
        0 => 0.0,
        _ => (layers - 1) as f64 * (keys_values(length) + rest(length)) + keys_values(length) + rest(rows),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_its_products_and_its_attention() {
        let (n, h, i) = (10.0, 8.0, 32.0);
        let layer = 2.0 * n * (4.0 * h * h + 2.0 * h * i) + 4.0 * n * n * h;
        assert_eq!(of_layers(3, h, i, n, n), 3.0 * layer);
        let one_row = of_layers(3, h, i, n, 1.0);
        assert_eq!(one_row, 2.0 * layer + 4.0 * n * h * h + 4.0 * h * h + 4.0 * h * i + 4.0 * n * h);
        assert_eq!(of_layers(0, h, i, n, n), 0.0);
    }
}
