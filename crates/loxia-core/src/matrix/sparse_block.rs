//! The bytes of one tile of a sparse matrix: a block of whole rows.
//!
//! `u32` number of scores of each row, then the `u32` columns of all rows, then their `f32` scores; all
//! little endian. Every part is a multiple of four bytes, so a mapped file is used in place.

use super::SparseRow;

/// Bytes of a block.
pub(super) fn encode(rows: &[SparseRow<'_>]) -> Vec<u8> {
    let scores: usize = rows.iter().map(|row| row.scores.len()).sum();
    let mut bytes = Vec::with_capacity(rows.len() * 4 + scores * 8);
    rows.iter().for_each(|row| bytes.extend((row.columns.len() as u32).to_le_bytes()));
    rows.iter().for_each(|row| bytes.extend(bytemuck::cast_slice::<u32, u8>(row.columns)));
    rows.iter().for_each(|row| bytes.extend(bytemuck::cast_slice::<f32, u8>(row.scores)));
    bytes
}

/// Where the rows of a block lie: within its numbers (words of four bytes), the columns and the scores.
#[derive(Debug)]
pub(super) struct BlockRows<'a> {
    counts: &'a [u32],
    words: usize,
}

impl<'a> BlockRows<'a> {
    /// Reads the counts of a block of `rows` rows; they must add up to its length.
    pub(super) fn parse(words: &'a [u32], rows: usize) -> Result<Self, String> {
        let counts = words.get(..rows).ok_or("it ends within the counts of its rows")?;
        let scores: u64 = counts.iter().map(|&count| u64::from(count)).sum();
        let (found, expected) = (words.len() as u64, rows as u64 + 2 * scores);
        if found != expected {
            return Err(format!("{} bytes, but its rows need {}", found * 4, expected.saturating_mul(4)));
        }
        Ok(BlockRows { counts, words: words.len() })
    }

    /// First column, first score and count of each row, in words from the start of the block.
    pub(super) fn places(self) -> impl Iterator<Item = (usize, usize, u32)> + 'a {
        let rows = self.counts.len();
        let scores = (self.words - rows) / 2;
        self.counts.iter().scan(rows, move |columns, &count| {
            let place = (*columns, *columns + scores, count);
            *columns += count as usize;
            Some(place)
        })
    }
}

/// What is wrong with a row of a matrix of `cols` columns, if anything.
pub(super) fn fault(row: &SparseRow<'_>, cols: usize) -> Option<String> {
    if row.columns.len() != row.scores.len() {
        return Some(format!("{} columns but {} scores", row.columns.len(), row.scores.len()));
    }
    if let Some(pair) = row.columns.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Some(format!("column {} follows column {}; columns must ascend", pair[1], pair[0]));
    }
    let last = row.columns.last().filter(|&&col| col as usize >= cols)?;
    Some(format!("column {last} of {cols}"))
}
