//! What a pickle builds: values in an arena that refer to each other by number.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::weights::Dtype;

/// Longest name of a class, a storage or a tensor: they are repeated, so that long ones would multiply.
pub(crate) const MAX_NAME: usize = 1 << 10;

/// Number of a value in the arena.
pub(crate) type Id = u32;

/// A value a program built; small, and cheap to repeat.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<str>),
    /// Bytes, sets and numbers beyond 64 bits: read, of no use here.
    Other,
    Tuple(Box<[Id]>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Storage(Arc<Storage>),
    Tensor(Arc<Tensor>),
    /// A class or function, named and not resolved.
    Global(Arc<str>),
    /// What a class or function nobody here calls would have made.
    Opaque(Arc<str>),
}

/// A tensor's numbers in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Storage {
    pub(crate) dtype: Dtype,
    pub(crate) key: Arc<str>,
    pub(crate) elements: u64,
}

/// A view of a storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub(crate) storage: Arc<Storage>,
    pub(crate) offset: u64,
    pub(crate) shape: Vec<u64>,
    pub(crate) strides: Vec<u64>,
}

/// What a program left behind.
#[derive(Debug)]
pub(crate) struct Program {
    values: Vec<Value>,
    root: Id,
}

impl Program {
    pub(super) fn new(values: Vec<Value>, root: Id) -> Self {
        Program { values, root }
    }

    pub(crate) fn root(&self) -> &Value {
        self.get(self.root)
    }

    pub(crate) fn get(&self, id: Id) -> &Value {
        &self.values[id as usize]
    }

    /// The value under a text key of a dictionary.
    pub(crate) fn lookup<'p>(&'p self, dict: &'p Value, key: &str) -> Option<&'p Value> {
        let Value::Dict(entries) = dict else { return None };
        let found =
            entries.iter().rev().find(|(name, _)| matches!(self.get(*name), Value::Text(t) if **t == *key));
        found.map(|&(_, value)| self.get(value))
    }

    /// Names of everything that was not resolved, sorted.
    pub(crate) fn opaque(&self) -> Vec<String> {
        let names: BTreeSet<&str> = self
            .values
            .iter()
            .filter_map(|value| match value {
                Value::Opaque(name) => Some(&**name),
                _ => None,
            })
            .collect();
        names.into_iter().map(str::to_owned).collect()
    }
}
