//! From one layout to another.
//!
//! Data sets become BEIR directories ([`to_beir`]) or BLINK ones ([`to_blink`]); runs and judgements
//! change their notation ([`write_run`], [`write_qrels`]). Everything streams: memory holds ids, not
//! texts. Directories and files appear whole or not at all.

mod beir;
mod blink;
mod run;

use loxia_core::{ItemId, QueryId};

pub use beir::to_beir;
pub use blink::to_blink;
pub use run::{TextSources, write_qrels, write_run};

/// How a mention in its context becomes one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MentionText {
    /// Contexts and mention joined by spaces.
    #[default]
    Joined,
    /// The same with `[unused0]` before and `[unused1]` after the mention.
    Marked,
}

/// How many mentions without a gold entity are named; the rest are only counted.
const NAMED: usize = 10;

/// What a conversion wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Converted {
    /// Items written.
    pub items: u64,
    /// Queries written.
    pub queries: u64,
    /// Judgements or gold labels written.
    pub judgements: u64,
    /// Judgements that repeated an earlier one with the same level, written once.
    pub repeated_judgements: u64,
    /// Queries that came again in another split with the same text, written once.
    pub repeated_queries: u64,
    /// Mentions left out because their gold entity is not among the documents of their world.
    pub without_gold: WithoutGold,
}

/// Mentions whose gold entity is not among the documents of their world.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WithoutGold {
    /// How many.
    pub count: u64,
    /// The first ten of them, each with its gold entity.
    pub first: Vec<(QueryId, ItemId)>,
}

impl WithoutGold {
    fn add(&mut self, query: &QueryId, gold: &ItemId) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push((query.clone(), gold.clone()));
        }
    }
}
