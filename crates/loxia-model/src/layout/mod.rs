//! From texts to the tokens a model reads.
//!
//! A [`Layout`] is data. Bound to a tokenizer it becomes a [`BoundLayout`], which prepares each query and
//! each item once and then joins pairs by copying ids:
//!
//! 1. [`Layout::bind`] looks up marker tokens and checks the limits.
//! 2. [`BoundLayout::query`] and [`BoundLayout::item`] tokenise one side ([`Prepared`]).
//! 3. [`BoundLayout::pair`] joins two sides; it cannot fail.
//! 4. [`BoundLayout::single_query`] and [`BoundLayout::single_item`] are the sides alone, for dual encoders.
//!
//! # Layouts
//!
//! **`pair`**: the tokenizer's template, as `tokenizer(query, document, truncation=True)` in transformers:
//! what is too long is cut from the longer side first, which for ordinary queries means the document; the
//! template itself is never cut. A mention is read with its contexts as one text, an item as title, space,
//! text.
//!
//! **`anncur`**: `[CLS] left [unused0] mention [unused1] right [SEP] title [unused2] text [SEP]`. Mention and
//! contexts are lower-cased. Each side has its own limit; contexts share what the mention leaves. A mention
//! or a title that is too long is cut so that the markers stay. A plain query is taken as a mention without
//! contexts; an item without a title begins with the tag.
//!
//! **`hard-nce`**: the windows of hard-nce-el. Alone (dual encoder): up to `max_query` tokens around the
//! marked mention; title, tag, text. As a pair (reranker): `[CLS] window [SEP] text [SEP]` without titles
//! (its texts begin with them), the mention marked only with `mark_mention`.
//!
//! **`blink`**: BLINK's rows; as `anncur`, without lower-casing, and a long title may push out the tag.
//!
//! # Compat
//!
//! | compat | what differs |
//! |---|---|
//! | `anncur` | item tokens stand at positions from `max_query` on (padding lay before them); an empty mention has no marks; a mention of `max_query` - 3 or more tokens keeps the beginning of the left context and may lose the mention and `[SEP]`; a title of `max_item` - 2 or more tokens loses the tag |
//! | `hard-nce` | alone: a mention of `max_query` - 5 to - 3 tokens with context on both sides keeps the whole left context and may lose the mention; as a pair: filled up with `[PAD]` to `max_length`, attended to, type 0 |
//! | `blink` | positions and mention windows as under `anncur`; what stands beyond `max_length` is cut |
//!
//! `none` switches a stored compat off. [`BoundLayout::keeping_marks`] is for models that read the states at marks.
//!
//! A token cut from any text sets [`TokenSequence::truncated`].

mod bound;
mod entity;
mod error;
mod mention;
mod plain;
mod sequence;
mod spec;
mod window;

pub use bound::{BoundLayout, Prepared};
pub use error::LayoutError;
pub use sequence::{Marks, TokenSequence};
pub use spec::{Compat, Layout, LayoutKind, Markers};
