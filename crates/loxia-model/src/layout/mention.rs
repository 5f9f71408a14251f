//! Mentions in context: the query side of the entity-linking layouts.

use std::borrow::Cow;

use loxia_core::QueryText;

use super::plain::{all_words, first_words, last_words};
use super::sequence::Marks;
use super::window::{Slicing, Window, half_window, quota_window, reranker_window};
use crate::tokenizer::{Tokenizer, TokenizerError};

/// Marker ids around a mention.
#[derive(Debug, Clone, Copy)]
pub(super) struct MentionMarks {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl MentionMarks {
    fn around(self, mention: &[u32]) -> Vec<u32> {
        let mut block = Vec::with_capacity(mention.len() + 2);
        block.push(self.start);
        block.extend_from_slice(mention);
        block.push(self.end);
        block
    }
}

/// Left context, mention, right context. A plain query is a mention without contexts.
fn parts(query: &QueryText) -> [&str; 3] {
    match query {
        QueryText::Plain(text) => ["", text, ""],
        QueryText::Mention { left, mention, right } => [left, mention, right],
    }
}

/// A window with the places of the marks in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MarkedWindow {
    pub(super) ids: Vec<u32>,
    pub(super) marks: Marks,
    pub(super) truncated: bool,
}

impl MarkedWindow {
    /// `block` is the marked mention, or empty where there are no marks to find.
    fn new(window: Window, block: &[u32], already_cut: bool) -> Self {
        let inside = |at: usize| (at < window.ids.len()).then_some(at as u32);
        let marks = match window.block {
            Some(at) if !block.is_empty() => {
                Marks { start: inside(at), end: inside(at + block.len() - 1), tag: None }
            }
            _ => Marks::default(),
        };
        MarkedWindow { marks, truncated: window.truncated || already_cut, ids: window.ids }
    }
}

/// How ANNCUR and BLINK cut, apart from the length.
#[derive(Debug, Clone, Copy)]
pub(super) struct QuotaRule {
    pub(super) lower_case: bool,
    /// Masks, joins and leaves out the marks of an empty mention as the original does.
    pub(super) original: bool,
    /// How the left context is cut; only the original of ANNCUR lets a quota go below zero.
    pub(super) slicing: Slicing,
}

/// The window of `anncur` and `blink` between `[CLS]` and `[SEP]`, in a sequence of `length` tokens. With
/// [`Slicing::Python`] it may be more than fits; the caller cuts.
pub(super) fn quota_query(
    tokenizer: &Tokenizer,
    query: &QueryText,
    marks: MentionMarks,
    length: usize,
    rule: QuotaRule,
) -> Result<MarkedWindow, TokenizerError> {
    let [left, mention, right] = parts(query)
        .map(|part| if rule.lower_case { Cow::Owned(part.to_lowercase()) } else { Cow::Borrowed(part) });
    // Python's slices can reach the far end of the left context and count a whole mention.
    let [left_tokens, mention_tokens] = match rule.slicing {
        Slicing::Python => [usize::MAX; 2],
        Slicing::Clamped => [length, length - 4],
    };
    let left = tokenizer.encode_suffix(&left, left_tokens)?;
    let right = tokenizer.encode_prefix(&right, length)?;
    let mention_part = tokenizer.encode_prefix(&mention, mention_tokens)?;
    let block =
        if rule.original && mention.is_empty() { Vec::new() } else { marks.around(&mention_part.ids) };
    let window = quota_window(&left.ids, &block, &right.ids, length, rule.slicing);
    Ok(MarkedWindow::new(window, &block, left.cut || mention_part.cut || right.cut))
}

/// The window of hard-nce-el's retriever, at most `budget` tokens.
pub(super) fn retriever_query(
    tokenizer: &Tokenizer,
    query: &QueryText,
    marks: MentionMarks,
    budget: usize,
    slicing: Slicing,
) -> Result<MarkedWindow, TokenizerError> {
    let [left, mention, right] = parts(query);
    let (left, left_cut) = last_words(left, budget + 1);
    let (right, right_cut) = first_words(right, budget + 1);
    let block = marks.around(&tokenizer.encode(&all_words(mention))?);
    let window = half_window(&tokenizer.encode(&left)?, &block, &tokenizer.encode(&right)?, budget, slicing);
    Ok(MarkedWindow::new(window, &block, left_cut || right_cut))
}

/// The window of hard-nce-el's reranker, at most `budget` tokens.
pub(super) fn reranker_query(
    tokenizer: &Tokenizer,
    query: &QueryText,
    marks: Option<MentionMarks>,
    budget: usize,
) -> Result<MarkedWindow, TokenizerError> {
    let [left, mention, right] = parts(query);
    let (left, left_cut) = last_words(left, budget);
    let (right, right_cut) = first_words(right, budget);
    let mention = tokenizer.encode(&all_words(mention))?;
    let block = marks.map_or_else(|| mention.clone(), |marks| marks.around(&mention));
    let window = reranker_window(&tokenizer.encode(&left)?, &block, &tokenizer.encode(&right)?, budget);
    let marked = if marks.is_some() { block.as_slice() } else { &[] };
    Ok(MarkedWindow::new(window, marked, left_cut || right_cut))
}
