//! Filling a network from a store, and remembering all that does not fit.

use std::collections::HashSet;
use std::path::Path;

use super::{Dtype, WeightStore};
use crate::error::{Error, Result, TensorProblems};

/// Reads named tensors; problems are collected and reported together by [`TensorLoader::finish`].
pub(crate) struct TensorLoader<'a> {
    store: &'a WeightStore,
    taken: HashSet<String>,
    problems: TensorProblems,
    failure: Option<Error>,
    /// The first wanted tensor that is no tensor: worth more than any complaint about its shape.
    opaque: Option<Error>,
    names_only: bool,
}

impl<'a> TensorLoader<'a> {
    pub(crate) fn new(store: &'a WeightStore) -> Self {
        TensorLoader {
            store,
            taken: HashSet::new(),
            problems: TensorProblems::default(),
            failure: None,
            opaque: None,
            names_only: false,
        }
    }

    /// A loader that checks names, shapes and types, and leaves all values empty.
    pub(crate) fn names_only(store: &'a WeightStore) -> Self {
        TensorLoader { names_only: true, ..Self::new(store) }
    }

    pub(crate) fn store(&self) -> &'a WeightStore {
        self.store
    }

    /// Reads `name` into `values` if it is there and has `shape`; notes the problem otherwise.
    pub(crate) fn fill(&mut self, name: &str, shape: &[usize], values: &mut Vec<f32>) {
        let (Some(found), Some(dtype)) = (self.store.shape(name), self.store.dtype(name)) else {
            self.problems.missing.push(name.to_owned());
            return;
        };
        self.taken.insert(name.to_owned());
        if let Some(error) = self.store.opaque_tensor(name) {
            self.opaque.get_or_insert(error);
            return;
        }
        if found != shape {
            self.problems.wrong.push((name.to_owned(), format!("{found:?}"), format!("{shape:?}")));
        } else if !self.store.is_weight(name) {
            self.problems.wrong.push((
                name.to_owned(),
                dtype.to_string(),
                "f32, f16 or bf16, or i8 with its steps".into(),
            ));
        } else if !self.names_only && self.problems.is_empty() && self.failure.is_none() {
            match self.store.read(name) {
                Ok(read) => *values = read,
                Err(error) => self.failure = Some(error),
            }
        }
    }

    /// Number formats of what was read.
    pub(crate) fn dtypes(&self) -> Vec<Dtype> {
        self.store.dtypes(self.taken.iter())
    }

    /// Ends reading: an error that names every problem, or the tensors nobody read. `may_stay` says which
    /// unread tensors are known to be of no use here; any other is unexpected, unless it is no tensor at all.
    pub(crate) fn finish(
        mut self,
        path: &Path,
        model: &str,
        may_stay: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>> {
        let mut unread = Vec::new();
        for name in self.store.names().filter(|name| !self.taken.contains(*name)) {
            if may_stay(name) || self.store.opaque_tensor(name).is_some() {
                unread.push(name.to_owned());
            } else {
                self.problems.unexpected.push(name.to_owned());
            }
        }
        if let Some(error) = self.opaque {
            return Err(error);
        }
        if !self.problems.is_empty() {
            return Err(Error::Tensors {
                path: path.to_owned(),
                model: model.to_owned(),
                problems: Box::new(self.problems),
            });
        }
        match self.failure {
            Some(error) => Err(error),
            None => Ok(unread),
        }
    }
}
