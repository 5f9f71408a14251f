//! From one layout to another.
//!
//! Data sets become BEIR directories ([`to_beir`]) or BLINK ones ([`to_blink`]); runs and judgements
//! change their notation ([`write_run`], [`write_qrels`]). Everything streams: memory holds ids, not
//! texts. Directories and files appear whole or not at all.

mod beir;
mod blink;
mod run;

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

/// What a conversion wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Converted {
    /// Items written.
    pub items: u64,
    /// Queries written.
    pub queries: u64,
    /// Judgements or gold labels written.
    pub judgements: u64,
    /// Queries that came again in another split with the same text, written once.
    pub repeated_queries: u64,
    /// Mentions left out because their gold entity is not among the documents of their world.
    pub without_gold: u64,
}
