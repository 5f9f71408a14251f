//! What a layout hands to the model.

/// Where the marker tokens stand in a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// Index of the token before the mention.
    pub start: Option<u32>,
    /// Index of the token after the mention.
    pub end: Option<u32>,
    /// Index of the token between title and text.
    pub tag: Option<u32>,
}

/// Tokens as the model reads them: every one is attended to, none is padding (a layout that attends to
/// padding emits it as ordinary tokens).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TokenSequence {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Token types (segments).
    pub types: Vec<u32>,
    /// Logical positions from 0 on; a family's offset (RoBERTa's 2) is the model's affair. They run without
    /// gaps, except where a published checkpoint left room for padding.
    pub positions: Vec<u32>,
    /// Where the markers are.
    pub marks: Marks,
    /// Whether any text was cut.
    pub truncated: bool,
}

impl TokenSequence {
    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(super) fn with_capacity(capacity: usize) -> Self {
        TokenSequence {
            ids: Vec::with_capacity(capacity),
            types: Vec::with_capacity(capacity),
            positions: Vec::with_capacity(capacity),
            ..Self::default()
        }
    }

    /// Appends tokens of one type at positions that follow the last one.
    pub(super) fn extend(&mut self, ids: &[u32], type_id: u32) {
        let first = self.positions.last().map_or(0, |last| last + 1);
        self.ids.extend_from_slice(ids);
        self.types.resize(self.ids.len(), type_id);
        self.positions.extend((first..).take(ids.len()));
    }

    /// Moves the tokens from index `from` on to positions from `position` on.
    pub(super) fn open_gap(&mut self, from: usize, position: u32) {
        for (place, position) in self.positions[from..].iter_mut().zip(position..) {
            *place = position;
        }
    }

    /// Cuts the tokens at positions from `end` on.
    pub(super) fn cut_positions(&mut self, end: u32) {
        let kept = self.positions.partition_point(|&position| position < end);
        if kept < self.len() {
            self.retain(|at, _| at < kept);
            self.truncated = true;
        }
    }

    /// Takes out a token that the original masks, leaving its position empty.
    pub(super) fn remove(&mut self, id: u32) {
        if self.ids.contains(&id) {
            self.retain(|_, other| other != id);
        }
    }

    /// Appends a token of type 0 until there are `length`.
    pub(super) fn fill(&mut self, id: u32, length: usize) {
        let missing = length.saturating_sub(self.len());
        self.extend(&vec![id; missing], 0);
    }

    fn retain(&mut self, keep: impl Fn(usize, u32) -> bool) {
        let mut new_index = vec![None; self.len()];
        let mut kept = 0;
        for (at, new_index) in new_index.iter_mut().enumerate() {
            if keep(at, self.ids[at]) {
                self.ids[kept] = self.ids[at];
                self.types[kept] = self.types[at];
                self.positions[kept] = self.positions[at];
                *new_index = Some(kept as u32);
                kept += 1;
            }
        }
        self.ids.truncate(kept);
        self.types.truncate(kept);
        self.positions.truncate(kept);
        for mark in [&mut self.marks.start, &mut self.marks.end, &mut self.marks.tag] {
            *mark = mark.and_then(|at| new_index[at as usize]);
        }
    }
}
