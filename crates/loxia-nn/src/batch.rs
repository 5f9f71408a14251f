//! Several sequences back to back.

use crate::{Error, Result};

/// Which keys a query attends to. The seam for windowed and asymmetric patterns: a pattern is a rule that
/// yields key ranges, never a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AttentionPattern {
    /// Every token attends to every token of its own sequence.
    #[default]
    Full,
}

/// Tokens of several sequences in one array, without padding.
///
/// ```
/// let mut batch = loxia_nn::PackedBatch::new();
/// let first = batch.push(&[101, 7592, 102], &[0, 0, 0], &[0, 1, 2]).unwrap();
/// let second = batch.push(&[101, 102], &[0, 0], &[0, 1]).unwrap();
/// assert_eq!((first, second), (0, 3));
/// assert_eq!((batch.tokens(), batch.sequences()), (5, 2));
/// assert_eq!(batch.range(1), 3..5);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedBatch {
    ids: Vec<u32>,
    types: Vec<u32>,
    positions: Vec<u32>,
    /// `starts[s]..starts[s + 1]` are the tokens of sequence `s`.
    starts: Vec<u32>,
    pattern: AttentionPattern,
}

impl Default for PackedBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl PackedBatch {
    /// An empty batch with full attention.
    pub fn new() -> Self {
        PackedBatch {
            ids: Vec::new(),
            types: Vec::new(),
            positions: Vec::new(),
            starts: vec![0],
            pattern: AttentionPattern::Full,
        }
    }

    /// Appends a sequence and returns the index of its first token.
    ///
    /// The three slices have one entry for each token; a model without types ignores them.
    pub fn push(&mut self, ids: &[u32], types: &[u32], positions: &[u32]) -> Result<u32> {
        let refused = |what: String| Err(Error::Sequence { sequence: self.sequences(), what });
        if ids.is_empty() {
            return refused("it has no tokens".into());
        }
        if types.len() != ids.len() || positions.len() != ids.len() {
            return refused(format!(
                "{} ids, {} types and {} positions; one of each is needed for a token",
                ids.len(),
                types.len(),
                positions.len()
            ));
        }
        let Some(end) = u32::try_from(self.ids.len() + ids.len()).ok() else {
            return refused("more than 4,294,967,295 tokens in one batch".into());
        };
        let first = self.ids.len() as u32;
        self.ids.extend_from_slice(ids);
        self.types.extend_from_slice(types);
        self.positions.extend_from_slice(positions);
        self.starts.push(end);
        Ok(first)
    }

    /// Removes all sequences and keeps the memory.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.types.clear();
        self.positions.clear();
        self.starts.truncate(1);
    }

    /// Number of tokens of all sequences.
    pub fn tokens(&self) -> usize {
        self.ids.len()
    }

    /// Number of sequences.
    pub fn sequences(&self) -> usize {
        self.starts.len() - 1
    }

    /// Tokens of one sequence.
    ///
    /// # Panics
    /// If there is no such sequence.
    pub fn range(&self, sequence: usize) -> std::ops::Range<usize> {
        self.starts[sequence] as usize..self.starts[sequence + 1] as usize
    }

    /// First token of every sequence, then the number of tokens.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Token ids.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Token types (segments).
    pub fn types(&self) -> &[u32] {
        &self.types
    }

    /// Rows of the position table.
    pub fn positions(&self) -> &[u32] {
        &self.positions
    }

    /// The attention pattern of all sequences.
    pub fn pattern(&self) -> AttentionPattern {
        self.pattern
    }

    /// The sequence a token belongs to.
    pub(crate) fn sequence_of(&self, token: usize) -> usize {
        self.starts.partition_point(|&start| start as usize <= token) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_found_again() {
        let mut batch = PackedBatch::new();
        for length in [1usize, 4, 2] {
            let zeros = vec![0; length];
            batch.push(&zeros, &zeros, &zeros).unwrap();
        }
        let found: Vec<usize> = (0..7).map(|token| batch.sequence_of(token)).collect();
        assert_eq!(found, [0, 1, 1, 1, 1, 2, 2]);
        batch.clear();
        assert_eq!(batch, PackedBatch::new());
    }

    #[test]
    fn bad_sequences_are_refused() {
        let mut batch = PackedBatch::new();
        assert_eq!(batch.push(&[], &[], &[]).unwrap_err().to_string(), "sequence 0: it has no tokens");
        let error = batch.push(&[1, 2], &[0], &[0, 1]).unwrap_err().to_string();
        assert!(error.contains("2 ids, 1 types and 2 positions"), "{error}");
        assert_eq!(batch.sequences(), 0);
    }
}
