//! What can be wrong with a layout.

use super::{Compat, LayoutKind};
use crate::tokenizer::TokenizerError;

/// A layout that does not fit its tokenizer or model, or a text it cannot lay out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The tokenizer failed.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// A marker that is no token of the vocabulary.
    #[error(
        "layout {kind}: the tokenizer has no token {token:?}; name other markers, or add the token with \
         `loxia model convert`"
    )]
    MissingMarker {
        /// The layout.
        kind: LayoutKind,
        /// The marker.
        token: String,
    },
    /// A special token that the layout needs and the tokenizer lacks.
    #[error(
        "layout {kind}: the tokenizer has no {role} token; name it as {role}_token in tokenizer_config.json"
    )]
    MissingSpecial {
        /// The layout.
        kind: LayoutKind,
        /// `cls`, `sep` or `pad`.
        role: &'static str,
    },
    /// A limit too small to hold the layout's own tokens.
    #[error("layout {kind}: {name} is {found}, but at least {least} tokens are needed")]
    TooShort {
        /// The layout.
        kind: LayoutKind,
        /// Which limit.
        name: &'static str,
        /// Its value.
        found: usize,
        /// The smallest that works.
        least: usize,
    },
    /// A limit beyond the model's positions.
    #[error("layout {kind}: {name} is {found}, but the model takes {most} tokens; lower it")]
    TooLong {
        /// The layout.
        kind: LayoutKind,
        /// Which limit.
        name: &'static str,
        /// Its value.
        found: usize,
        /// The largest that works.
        most: usize,
    },
    /// Both sides fit alone, but not together.
    #[error(
        "layout {kind}: a query of {max_query} and an item of {max_item} tokens do not fit into {max_length} \
         together; lower --max-query or --max-item"
    )]
    PairTooLong {
        /// The layout.
        kind: LayoutKind,
        /// Longest query.
        max_query: usize,
        /// Longest item.
        max_item: usize,
        /// Longest sequence.
        max_length: usize,
    },
    /// A published variant of another layout.
    #[error("compat {compat} does not belong to layout {kind}; leave it out or change --layout")]
    Compat {
        /// The layout.
        kind: LayoutKind,
        /// The variant.
        compat: Compat,
    },
}
