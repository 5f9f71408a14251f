//! Layouts as data: what `loxia.json` stores and flags set.

use serde::{Deserialize, Serialize};

use crate::named::named;

named! {
/// How a query and an item become one sequence of tokens.
LayoutKind, "layout" {
    /// The tokenizer's own template around query and item.
    Pair = "pair",
    /// Marked mention in context against title, tag and text, as ANNCUR lays it out.
    Anncur = "anncur",
    /// The windows of hard-nce-el: one for dual encoders, one for its reranker.
    HardNce = "hard-nce",
    /// The rows of BLINK.
    Blink = "blink",
}
}

named! {
/// The quirks of a published system, for checkpoints that were trained with them.
Compat, "compat" {
    /// Item tokens at positions from `max_query` on; windows and titles cut as the original slices; no marks
    /// around an empty mention.
    Anncur = "anncur",
    /// Retriever windows cut as the original slices; the reranker attends to padding.
    HardNce = "hard-nce",
    /// Item tokens at positions from `max_query` on; the pair cut to `max_length`; no marks around an empty
    /// mention. Windows are cut as without it.
    Blink = "blink",
    /// Reserved for the sparse cross-encoders.
    Ecir24 = "ecir24",
    /// No quirks: switches off what `loxia.json` stores.
    None = "none",
}
}

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
            assert_eq!(kind.name().parse::<LayoutKind>().unwrap(), kind);
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("{:?}", kind.name()));
        }
        for &compat in Compat::ALL {
            assert_eq!(compat.name().parse::<Compat>().unwrap(), compat);
            assert_eq!(serde_json::to_string(&compat).unwrap(), format!("{:?}", compat.name()));
        }
        assert!(
            "sparse".parse::<LayoutKind>().unwrap_err().to_string().contains("pair, anncur, hard-nce, blink")
        );
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
