//! Texts without marks: prefixes, words, and sharing a budget between two sides.

use std::sync::OnceLock;

use crate::tokenizer::{Tokenizer, TokenizerError};

/// How many tokens of either side stay when both may have `budget` together: the longer side is cut first,
/// and if both are longer than half, the budget is halved, an odd token going to the longer (on a tie, the
/// second). This is transformers' `longest_first`.
pub(super) fn longest_first(first: usize, second: usize, budget: usize) -> (usize, usize) {
    if first + second <= budget {
        return (first, second);
    }
    let (small, large) = (budget / 2, budget - budget / 2);
    match (first <= small, second <= small) {
        (true, _) => (first, budget - first),
        (_, true) => (budget - second, second),
        _ if first > second => (large, small),
        _ => (small, large),
    }
}

/// A text of which only the beginning was tokenised. Its full length matters in one case only, so it is
/// counted when that case comes.
#[derive(Debug, Clone)]
pub(super) struct Unread {
    text: Box<str>,
    cap: usize,
    length: OnceLock<usize>,
}

impl Unread {
    pub(super) fn new(text: &str, cap: usize) -> Self {
        Unread { text: text.into(), cap, length: OnceLock::new() }
    }

    /// Tokens of the whole text, no more than the side's cap.
    pub(super) fn length(&self, tokenizer: &Tokenizer) -> usize {
        // The beginning of this text was tokenised before; should the end fail, the beginning counts.
        *self.length.get_or_init(|| tokenizer.encode(&self.text).map_or(0, |ids| ids.len()).min(self.cap))
    }
}

/// White space as Python's `str.split` sees it.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn words(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// The words of a text, one space between.
pub(super) fn all_words(text: &str) -> String {
    words(text).collect::<Vec<_>>().join(" ")
}

/// The first `count` words, and whether there are more.
pub(super) fn first_words(text: &str, count: usize) -> (String, bool) {
    let mut words = words(text);
    let kept: Vec<_> = words.by_ref().take(count).collect();
    (kept.join(" "), words.next().is_some())
}

/// The last `count` words, and whether there are more.
pub(super) fn last_words(text: &str, count: usize) -> (String, bool) {
    let mut words = words(text).rev();
    let mut kept: Vec<_> = words.by_ref().take(count).collect();
    kept.reverse();
    (kept.join(" "), words.next().is_some())
}

/// The first `words` words of a text, and of these the first `tokens` tokens; whether anything is left out.
pub(super) fn encode_words(
    tokenizer: &Tokenizer,
    text: &str,
    words: usize,
    tokens: usize,
) -> Result<(Vec<u32>, bool), TokenizerError> {
    let (text, more) = first_words(text, words);
    let part = tokenizer.encode_prefix(&text, tokens)?;
    Ok((part.ids, more || part.cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_side_gives_first() {
        assert_eq!(longest_first(3, 4, 7), (3, 4));
        assert_eq!(longest_first(3, 40, 9), (3, 6));
        assert_eq!(longest_first(40, 3, 9), (6, 3));
        assert_eq!(longest_first(40, 41, 9), (4, 5));
        assert_eq!(longest_first(41, 40, 9), (5, 4));
        assert_eq!(longest_first(40, 40, 9), (4, 5));
        assert_eq!(longest_first(5, 5, 9), (4, 5));
        assert_eq!(longest_first(0, 20, 8), (0, 8));
        assert_eq!(longest_first(3, 3, 0), (0, 0));
    }

    #[test]
    fn words_are_counted_from_either_end() {
        assert_eq!(first_words(" a\tb\u{1f}c ", 2), ("a b".into(), true));
        assert_eq!(last_words(" a\tb\u{1f}c ", 2), ("b c".into(), true));
        assert_eq!(last_words("a b", 2), ("a b".into(), false));
        assert_eq!(all_words("  a  b "), "a b");
    }
}
