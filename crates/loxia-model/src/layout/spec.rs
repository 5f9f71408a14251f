//! Layouts as data: what `loxia.json` stores and flags set.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Gives an enum its one spelling, for serde, flags and messages alike.
macro_rules! named {
    ($type:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// All values.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];

            /// The name in files and flags.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(name: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|value| value.name() == name).ok_or_else(|| {
                    let known: Vec<_> = Self::ALL.iter().map(|value| value.name()).collect();
                    format!("{name:?} is unknown; known are {}", known.join(", "))
                })
            }
        }
    };
}

/// How a query and an item become one sequence of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LayoutKind {
    /// The tokenizer's own template around query and item.
    Pair,
    /// Marked mention in context against title, tag and text, as ANNCUR lays it out.
    Anncur,
    /// The windows of hard-nce-el: one for dual encoders, one for its reranker.
    HardNce,
    /// The rows of BLINK.
    Blink,
}
named!(LayoutKind { Pair = "pair", Anncur = "anncur", HardNce = "hard-nce", Blink = "blink" });

/// The quirks of a published system, for checkpoints that were trained with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Compat {
    /// Item tokens at positions from `max_query` on; windows and titles cut as the original slices; no marks
    /// around an empty mention.
    Anncur,
    /// Retriever windows cut as the original slices; the reranker attends to padding.
    HardNce,
    /// Item tokens at positions from `max_query` on; the pair cut to `max_length`; no marks around an empty
    /// mention. Windows are cut as without it.
    Blink,
    /// Reserved for the sparse cross-encoders.
    Ecir24,
}
named!(Compat { Anncur = "anncur", HardNce = "hard-nce", Blink = "blink", Ecir24 = "ecir24" });

/// The tokens that mark a mention and part a title from its text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Markers {
    /// Before the mention.
    pub start: String,
    /// After the mention.
    pub end: String,
    /// Between title and text.
    pub tag: String,
}

impl Default for Markers {
    fn default() -> Self {
        Markers { start: "[unused0]".into(), end: "[unused1]".into(), tag: "[unused2]".into() }
    }
}

/// A layout with its limits. What a limit counts:
///
/// | layout | `max_query`, `max_item` | `max_length` |
/// |---|---|---|
/// | `pair` | tokens of the side's text (no cap) | the sequence (the model's limit) |
/// | `anncur`, `blink` | the side with its own `[CLS]` and `[SEP]` (128) | the sequence (the model's limit; `blink`: at most 256) |
/// | `hard-nce` | a side alone with `[CLS]` and `[SEP]`, for dual encoders only (128) | the reranker's sequence (256) |
///
/// In brackets what `None` means.
///
/// ```
/// use loxia_model::layout::{Layout, LayoutKind};
/// let mut layout = Layout::new(LayoutKind::Anncur);
/// layout.max_query = Some(64);
/// assert_eq!(serde_json::to_string(&layout).unwrap(), r#"{"kind":"anncur","max_query":64}"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Layout {
    /// Which layout.
    pub kind: LayoutKind,
    /// Longest query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_query: Option<usize>,
    /// Longest item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_item: Option<usize>,
    /// Longest sequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<usize>,
    /// Marker tokens; `pair` uses none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub markers: Markers,
    /// Whether the reranker of `hard-nce` marks the mention (its `--inputmark`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub mark_mention: bool,
    /// Published quirks, or `None` for correct behaviour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compat: Option<Compat>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Layout {
    /// A layout with default limits and markers.
    pub fn new(kind: LayoutKind) -> Self {
        Layout {
            kind,
            max_query: None,
            max_item: None,
            max_length: None,
            markers: Markers::default(),
            mark_mention: false,
            compat: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_everywhere() {
        for &kind in LayoutKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("{:?}", kind.name()));
        }
        for &compat in Compat::ALL {
            assert_eq!(compat.name().parse(), Ok(compat));
            assert_eq!(serde_json::to_string(&compat).unwrap(), format!("{:?}", compat.name()));
        }
        assert!("sparse".parse::<LayoutKind>().unwrap_err().contains("pair, anncur, hard-nce, blink"));
    }

    #[test]
    fn layouts_survive_json_and_refuse_unknown_fields() {
        let mut layout = Layout::new(LayoutKind::HardNce);
        layout.mark_mention = true;
        layout.markers.tag = "<t>".into();
        layout.compat = Some(Compat::HardNce);
        let json = serde_json::to_string(&layout).unwrap();
        assert_eq!(serde_json::from_str::<Layout>(&json).unwrap(), layout);
        assert!(serde_json::from_str::<Layout>(r#"{"kind":"pair","max_lenght":3}"#).is_err());
    }
}
