//! Cutting a context window around a mention. Pure arithmetic on slices of ids.
//!
//! Two rules are in use. ANNCUR and BLINK split what a sequence of `L` tokens leaves beside the marked
//! mention into quotas of nearly equal size, and a side that does not use its quota passes it on
//! ([`quota_window`]). hard-nce-el gives each side half of what is left ([`half_window`] for the retriever,
//! [`reranker_window`]).

/// How to take the last `n` of a slice when `n` may be zero or below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slicing {
    /// Nothing.
    Clamped,
    /// As `left[-n:]` in Python: everything for 0, all but the first `-n` below.
    Python,
}

impl Slicing {
    fn last(self, ids: &[u32], count: i64) -> &[u32] {
        let count = match self {
            Slicing::Clamped => count.max(0),
            Slicing::Python => count,
        };
        let magnitude = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX).min(ids.len());
        match (self, count > 0) {
            (_, true) => &ids[ids.len() - magnitude..],
            (Slicing::Clamped, false) => &[],
            (Slicing::Python, false) => &ids[magnitude..],
        }
    }
}

/// A mention with the contexts that were kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Window {
    pub(super) ids: Vec<u32>,
    /// Index of the first token of the block in `ids`, if it is there.
    pub(super) block: Option<usize>,
    pub(super) truncated: bool,
}

impl Window {
    fn join(left: &[u32], block: &[u32], right: &[u32], all: usize) -> Self {
        let ids = [left, block, right].concat();
        Window { block: Some(left.len()), truncated: ids.len() < all, ids }
    }

    fn cut(mut self, length: usize) -> Self {
        if self.ids.len() > length {
            self.ids.truncate(length);
            self.truncated = true;
        }
        self
    }
}

/// ANNCUR's and BLINK's window: what stands between `[CLS]` and `[SEP]` in a sequence of `length` tokens.
///
/// With `m` block tokens the left quota is `floor((length - m) / 2) - 1` and the right one
/// `length - m - left - 2`; if just one side needs less, the other gets the difference. The caller cuts a
/// block that is too long, or leaves it to the final cut of the original.
pub(super) fn quota_window(
    left: &[u32],
    block: &[u32],
    right: &[u32],
    length: usize,
    slicing: Slicing,
) -> Window {
    let [room, left_len, right_len] =
        [length as i64 - block.len() as i64, left.len() as i64, right.len() as i64];
    let mut left_quota = room.div_euclid(2) - 1;
    let mut right_quota = room - left_quota - 2;
    if left_len <= left_quota {
        if right_len > right_quota {
            right_quota += left_quota - left_len;
        }
    } else if right_len <= right_quota {
        left_quota += right_quota - right_len;
    }
    let kept_right = usize::try_from(right_quota).unwrap_or(0).min(right.len());
    let all = left.len() + block.len() + right.len();
    Window::join(slicing.last(left, left_quota), block, &right[..kept_right], all)
}

/// hard-nce-el's retriever: a window of at most `budget` tokens, marks included.
///
/// A mention that fills the budget alone is cut and loses its marks (`marked` is the mention between them).
pub(super) fn half_window(
    left: &[u32],
    marked: &[u32],
    right: &[u32],
    budget: usize,
    slicing: Slicing,
) -> Window {
    let mention = &marked[1..marked.len() - 1];
    if mention.len() >= budget {
        return Window { ids: mention[..budget].to_vec(), block: None, truncated: true };
    }
    let rest = budget as i64 - marked.len() as i64;
    let half = rest.div_euclid(2);
    let kept = match (left.len() as i64 > half, right.len() as i64 > half) {
        (true, true) => half,
        (true, false) => rest - right.len() as i64,
        (false, _) => left.len() as i64,
    };
    let all = left.len() + marked.len() + right.len();
    Window::join(slicing.last(left, kept), marked, right, all).cut(budget)
}

/// hard-nce-el's reranker: at most `budget` tokens; the block holds the marks if there are any.
pub(super) fn reranker_window(left: &[u32], block: &[u32], right: &[u32], budget: usize) -> Window {
    let all = left.len() + block.len() + right.len();
    let rest = budget.saturating_sub(block.len());
    let half = rest.div_ceil(2);
    let kept = match (left.len() >= half, right.len() >= half) {
        (true, true) => half,
        (true, false) => rest - right.len(),
        (false, _) => left.len(),
    };
    Window::join(&left[left.len() - kept.min(left.len())..], block, right, all).cut(budget)
}
