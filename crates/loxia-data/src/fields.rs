//! Fields that files write in more than one way.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// An id: a JSON string, or an integer taken as its digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdField<'a>(pub(crate) Cow<'a, str>);

impl IdField<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for IdField<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;

        impl<'de> Visitor<'de> for IdVisitor {
            type Value = IdField<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id (a string or an integer)")
            }

            fn visit_borrowed_str<E: de::Error>(self, id: &'de str) -> Result<Self::Value, E> {
                Ok(IdField(Cow::Borrowed(id)))
            }

            fn visit_str<E: de::Error>(self, id: &str) -> Result<Self::Value, E> {
                Ok(IdField(Cow::Owned(id.to_owned())))
            }

            fn visit_u64<E: de::Error>(self, id: u64) -> Result<Self::Value, E> {
                Ok(IdField(Cow::Owned(id.to_string())))
            }

            fn visit_i64<E: de::Error>(self, id: i64) -> Result<Self::Value, E> {
                Ok(IdField(Cow::Owned(id.to_string())))
            }
        }

        deserializer.deserialize_any(IdVisitor)
    }
}

/// What names the gold entity of a mention: its id (a string) or its line in the world's file, from 0
/// (a number), as BLINK has it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum LabelField {
    /// Line of the world's file, from 0.
    Row(u64),
    /// Id of the entity.
    Id(String),
}

/// Splits text as Python's `str.split()` does, which is how entity-linking files count words: Unicode
/// white space and the four separators of ASCII.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_strings_or_integers() {
        let id = |json: &'static str| serde_json::from_str::<IdField<'static>>(json);
        assert_eq!(id("\"a\\u00e9\"").unwrap().as_str(), "aé");
        assert_eq!(id("17").unwrap().as_str(), "17");
        assert_eq!(id("-3").unwrap().as_str(), "-3");
        let error = id("1.5").unwrap_err().to_string();
        assert!(error.contains("expected an id (a string or an integer)"), "{error}");
        assert!(id("null").is_err() && id("true").is_err());
    }

    #[test]
    fn words_are_pythons() {
        let split: Vec<&str> = words(" a\u{a0}b\u{1c}c\u{85}d\u{200b}e\tf ").collect();
        assert_eq!(split, ["a", "b", "c", "d\u{200b}e", "f"]);
    }
}
