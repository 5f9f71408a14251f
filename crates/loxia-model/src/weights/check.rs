//! Whether the tensors of a store are those of a network, and all that does not fit.

use std::collections::HashSet;
use std::path::Path;

use super::{Dtype, WeightStore};
use crate::error::{Error, Result, TensorProblems};

/// Looks for named tensors; problems are collected and reported together by [`TensorCheck::finish`]. No number is read.
pub(crate) struct TensorCheck<'a> {
    store: &'a WeightStore,
    found: HashSet<String>,
    problems: TensorProblems,
    /// The first wanted tensor that is no tensor: worth more than any complaint about its shape.
    opaque: Option<Error>,
}

impl<'a> TensorCheck<'a> {
    pub(crate) fn new(store: &'a WeightStore) -> Self {
        TensorCheck { store, found: HashSet::new(), problems: TensorProblems::default(), opaque: None }
    }

    /// Notes what keeps `name` from being read as weights of `shape`.
    pub(crate) fn expect(&mut self, name: &str, shape: &[usize]) {
        let (Some(found), Some(dtype)) = (self.store.shape(name), self.store.dtype(name)) else {
            self.problems.missing.push(name.to_owned());
            return;
        };
        self.found.insert(name.to_owned());
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
        }
    }

    /// Number formats of what was found.
    pub(crate) fn dtypes(&self) -> Vec<Dtype> {
        self.store.dtypes(self.found.iter())
    }

    /// An error that names every problem, or the tensors nobody asked for. `may_stay` says which of these are known to
    /// be of no use here; any other is unexpected, unless it is no tensor at all.
    pub(crate) fn finish(
        mut self,
        path: &Path,
        model: &str,
        may_stay: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>> {
        let mut unread = Vec::new();
        for name in self.store.names().filter(|name| !self.found.contains(*name)) {
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
        Ok(unread)
    }
}
