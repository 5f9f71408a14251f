//! Title, tag, text: an item as entity linkers read it.

use loxia_core::Item;

use super::sequence::Marks;
use crate::tokenizer::{Tokenizer, TokenizerError};

/// A row of pieces without `[CLS]` and `[SEP]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntityRow {
    pub(super) ids: Vec<u32>,
    pub(super) marks: Marks,
    pub(super) truncated: bool,
}

/// Lays out at most `budget` tokens. With `keep_tag` a long title makes room for the tag.
pub(super) fn entity_row(
    tokenizer: &Tokenizer,
    item: &Item,
    tag: u32,
    budget: usize,
    keep_tag: bool,
) -> Result<EntityRow, TokenizerError> {
    let title_budget = if keep_tag { budget - 1 } else { budget };
    let title = tokenizer.encode_prefix(item.title.as_deref().unwrap_or_default(), title_budget)?;
    let mut ids = title.ids;
    let mut marks = Marks::default();
    if ids.len() < budget {
        marks.tag = Some(ids.len() as u32);
        ids.push(tag);
    }
    let lost_tag = marks.tag.is_none();
    let text = tokenizer.encode_prefix(&item.text, budget - ids.len())?;
    ids.extend(text.ids);
    Ok(EntityRow { ids, marks, truncated: title.cut || lost_tag || text.cut })
}
