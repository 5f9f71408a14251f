//! Where the texts of items come from, and what of a query is looked at.

use loxia_core::{Item, QueryText};

use crate::Result;

/// Item texts that can be gone through more than once: in memory, or read from a file each time.
pub trait ItemTexts: Sync {
    /// Calls `see` with the text of every item, in their order, and stops at its first error.
    fn for_each(&self, see: &mut dyn FnMut(&str) -> Result<()>) -> Result<()>;
}

/// Title and text, joined by a space.
impl ItemTexts for [Item] {
    fn for_each(&self, see: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
        self.iter().try_for_each(|item| see(&item.title_and_text()))
    }
}

impl ItemTexts for Vec<Item> {
    fn for_each(&self, see: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
        self.as_slice().for_each(see)
    }
}

/// The text that stands for a query: a mention counts three times beside its context, because the item is
/// named by it.
pub(crate) fn query_terms(query: &QueryText) -> String {
    match query {
        QueryText::Plain(text) => text.clone(),
        QueryText::Mention { left, mention, right } => {
            format!("{mention} {mention} {mention} {left} {right}")
        }
    }
}
