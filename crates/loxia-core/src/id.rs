//! Names of queries and items.

use std::fmt;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

use crate::{Error, Result};

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                $name(Arc::from(id))
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                $name(Arc::from(id))
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

string_id! {
    /// Id of a query: a TREC topic, a mention.
    QueryId
}
string_id! {
    /// Id of an item: a document, passage or entity.
    ItemId
}

/// Unique ids in order, in one arena: about `length + 16` bytes an id, looked up both ways.
///
/// ```
/// let mut ids = loxia_core::IdTable::new();
/// ids.push("d1").unwrap();
/// ids.push("d2").unwrap();
/// assert_eq!(ids.position("d2"), Some(1));
/// assert_eq!(ids.get(0), "d1");
/// assert!(ids.push("d1").is_err());
/// ```
#[derive(Clone, Default)]
pub struct IdTable {
    text: String,
    ends: Vec<u64>,
    positions: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl IdTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an id and returns its position; an id that is already there is an error.
    pub fn push(&mut self, id: &str) -> Result<u32> {
        let position = u32::try_from(self.ends.len())
            .ok()
            .filter(|&p| p < u32::MAX)
            .ok_or_else(|| Error::Invalid("more than 4,294,967,294 ids in one table".into()))?;
        if let Some(first) = self.position(id) {
            return Err(Error::DuplicateId {
                id: id.to_owned(),
                first: first as usize,
                second: position as usize,
            });
        }
        self.text.push_str(id);
        self.ends.push(self.text.len() as u64);
        let Self { text, ends, positions, hasher } = self;
        let hash = hasher.hash_one(id);
        positions.insert_unique(hash, position, |&p| hasher.hash_one(slice(text, ends, p)));
        Ok(position)
    }

    /// Gives back memory kept for ids still to come.
    pub fn shrink_to_fit(&mut self) {
        let Self { text, ends, positions, hasher } = self;
        text.shrink_to_fit();
        ends.shrink_to_fit();
        positions.shrink_to_fit(|&p| hasher.hash_one(slice(text, ends, p)));
    }

    /// Where an id stands, if it is there.
    pub fn position(&self, id: &str) -> Option<u32> {
        self.positions.find(self.hasher.hash_one(id), |&p| slice(&self.text, &self.ends, p) == id).copied()
    }

    /// The id at a position.
    ///
    /// # Panics
    /// If `position` is not below [`IdTable::len`].
    pub fn get(&self, position: u32) -> &str {
        slice(&self.text, &self.ends, position)
    }

    /// Number of ids.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no id is in it.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All ids in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + '_ {
        (0..self.len()).map(|p| self.get(p as u32))
    }
}

fn slice<'a>(text: &'a str, ends: &[u64], position: u32) -> &'a str {
    let position = position as usize;
    let start = if position == 0 { 0 } else { ends[position - 1] as usize };
    &text[start..ends[position] as usize]
}

impl fmt::Debug for IdTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdTable({} ids)", self.len())
    }
}

impl<S: AsRef<str>> TryFrom<&[S]> for IdTable {
    type Error = Error;

    fn try_from(ids: &[S]) -> Result<Self> {
        let mut table = IdTable::new();
        for id in ids {
            table.push(id.as_ref())?;
        }
        Ok(table)
    }
}
