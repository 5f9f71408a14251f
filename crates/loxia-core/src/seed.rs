//! Named random streams: one seed, and a stream of its own for each consumer, so that adding a consumer
//! moves nobody else.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// The one seed of a run.
///
/// ```
/// use loxia_core::Seed;
/// let mut anchors = Seed(42).stream("anchors");
/// let again = Seed(42).stream("anchors").below(1000);
/// assert_eq!(anchors.below(1000), again);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// The stream of a name: the same for the same seed and name, on every machine and in every release.
    pub fn stream(self, name: &str) -> Stream {
        let mut hash = Sha256::new();
        hash.update(self.0.to_le_bytes());
        hash.update(name.as_bytes());
        let seed: [u8; 32] = hash.finalize().into();
        Stream(ChaCha8Rng::from_seed(seed))
    }
}

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..bound`, without bias.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "below(0) has no value to return");
        // Lemire's multiplication, redrawing the few values that would favour small results.
        let rejected = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            if wide as u64 >= rejected {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Uniform in `[0, 1)`, with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Shuffles in place (Fisher and Yates).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// `count` distinct values of `0..bound`, ascending (Floyd's algorithm: memory for `count` only).
    ///
    /// # Panics
    /// If `count` is above `bound`.
    pub fn sample(&mut self, bound: u64, count: usize) -> Vec<u64> {
        assert!(count as u64 <= bound, "cannot draw {count} distinct values below {bound}");
        let mut chosen = std::collections::BTreeSet::new();
        for high in bound - count as u64..bound {
            let value = self.below(high + 1);
            if !chosen.insert(value) {
                chosen.insert(high);
            }
        }
        chosen.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_fixed_for_ever() {
        // Stored results depend on these values: they may never change.
        let mut stream = Seed(42).stream("anchors");
        assert_eq!(stream.next_u64(), 15_073_940_775_635_148_181);
        assert_eq!(stream.next_u64(), 11_015_823_019_803_729_819);
    }

    #[test]
    fn streams_of_other_names_and_seeds_differ() {
        let first = |seed: u64, name: &str| Seed(seed).stream(name).next_u64();
        assert_ne!(first(42, "anchors"), first(42, "negatives"));
        assert_ne!(first(42, "anchors"), first(43, "anchors"));
    }

    #[test]
    fn samples_are_distinct_sorted_and_cover_everything() {
        let mut stream = Seed(1).stream("sample");
        assert_eq!(stream.sample(5, 5), [0, 1, 2, 3, 4]);
        let mut hits = [0u32; 10];
        for _ in 0..2000 {
            let sample = stream.sample(10, 3);
            assert!(sample.windows(2).all(|pair| pair[0] < pair[1]));
            sample.iter().for_each(|&value| hits[value as usize] += 1);
        }
        assert!(hits.iter().all(|&count| (480..720).contains(&count)), "{hits:?}");
    }
}
