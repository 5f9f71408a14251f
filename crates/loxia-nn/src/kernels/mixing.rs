//! Mixing the numbers of a row before they become codes of 8 bits.
//!
//! A few inputs of a layer are many times as large as the others, for every token; they would take the range of
//! a row's codes for themselves. Sums and differences of inputs (a Hadamard matrix) spread them over many, and
//! the weights, mixed the same way once, undo it: with `T` symmetric and `T T = p`, `x · w = T x · T w / p`.
//! That halves the loss of 8 bits, for two or three additions an input.
//!
//! Inputs are mixed in groups of 16 that stay side by side, so that no vector is taken apart and every kernel
//! adds the same numbers in the same order. Where three times a power of two groups are to be mixed (384 and 768
//! inputs), the thirds are mixed by a reflection.

/// Inputs that stay side by side: the lanes of the widest vector.
pub(crate) const GROUP: usize = 16;
/// Twice the share of each third in a reflection.
pub(crate) const TWO_THIRDS: f32 = 2.0 / 3.0;

/// How rows of some width are mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mixing {
    /// Groups that each sum goes over: a power of two, the p above.
    pub(crate) groups: usize,
    /// Whether thirds are mixed as well.
    pub(crate) thirds: bool,
}

impl Mixing {
    /// For rows of so many inputs. A width that is no multiple of a group is left as it is.
    pub(crate) fn of(inputs: usize) -> Self {
        if inputs == 0 || !inputs.is_multiple_of(GROUP) {
            return Mixing { groups: 1, thirds: false };
        }
        let groups = 1 << (inputs / GROUP).trailing_zeros();
        Mixing { groups, thirds: inputs / GROUP == 3 * groups }
    }

    /// Whether rows stay as they are.
    pub(crate) fn is_none(self) -> bool {
        self.groups == 1 && !self.thirds
    }
}

/// Plain twin of the kernels' mixing.
pub(crate) fn mix(row: &mut [f32]) {
    let mixing = Mixing::of(row.len());
    let mut stride = GROUP;
    while stride < GROUP * mixing.groups {
        for block in row.chunks_exact_mut(2 * stride) {
            let (left, right) = block.split_at_mut(stride);
            for (a, b) in left.iter_mut().zip(right) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        stride *= 2;
    }
    if mixing.thirds {
        let (first, rest) = row.split_at_mut(row.len() / 3);
        let (second, third) = rest.split_at_mut(rest.len() / 2);
        for ((a, b), c) in first.iter_mut().zip(second).zip(third) {
            let shift = (*a + *b + *c) * TWO_THIRDS;
            (*a, *b, *c) = (*a - shift, *b - shift, *c - shift);
        }
    }
}

/// Weights of one output, mixed so that their products with mixed inputs are those of both unmixed.
pub(crate) fn mix_weights(row: &mut [f32]) {
    mix(row);
    let inverse = 1.0 / Mixing::of(row.len()).groups as f32;
    row.iter_mut().for_each(|weight| *weight *= inverse);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_stay_as_they_were() {
        for inputs in [1, 16, 20, 32, 48, 128, 384, 768, 1536] {
            let x: Vec<f32> = (0..inputs).map(|i| (i as f32 * 0.7).sin()).collect();
            let w: Vec<f32> = (0..inputs).map(|i| (i as f32 * 1.3).cos()).collect();
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            let (mut mixed, mut weights) = (x.clone(), w.clone());
            mix(&mut mixed);
            mix_weights(&mut weights);
            assert!((dot(&mixed, &weights) - dot(&x, &w)).abs() < 1e-3, "{inputs}");
        }
    }

    #[test]
    fn one_large_input_is_spread() {
        let mut row = vec![0.0; 384];
        row[100] = 8.0;
        mix(&mut row);
        let largest = row.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
        // Of length 8 √8, none of the 24 that share it has more than two thirds of 8.
        assert!(row.iter().filter(|x| **x != 0.0).count() == 24 && largest < 5.4, "{largest}");
    }
}
