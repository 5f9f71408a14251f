//! An encoder's weights in files, given to the engine a piece at a time: what is packed takes the place of what was read,
//! and a model is opened in little more memory than it computes with.

use std::collections::HashSet;
use std::ops::ControlFlow;

use loxia_nn::{EncoderWeights, LayerMap, Matrix, WeightSource};

use crate::error::{Error, Result};
use crate::families::Architecture;
use crate::network::is_finite;
use crate::weights::WeightStore;

/// Weights of an encoder whose names and shapes were checked.
pub(crate) struct StoredEncoder<'a> {
    store: &'a WeightStore,
    architecture: &'a Architecture,
    prefix: &'static str,
    not_finite: HashSet<String>,
}

impl<'a> StoredEncoder<'a> {
    pub(crate) fn new(store: &'a WeightStore, architecture: &'a Architecture) -> Self {
        let prefix = architecture.find_prefix(store);
        StoredEncoder { store, architecture, prefix, not_finite: HashSet::new() }
    }

    /// Tensors, among those that were read, with a number that is not finite.
    pub(crate) fn not_finite(self) -> HashSet<String> {
        self.not_finite
    }

    fn look_at(&mut self, name: &str, values: &[f32]) {
        if !is_finite(values) {
            self.not_finite.insert(name.to_owned());
        }
    }

    fn matrix_names(&self) -> HashSet<String> {
        let layers = 0..self.architecture.shape.layers;
        let maps = layers.flat_map(|index| LayerMap::ALL.map(|map| Matrix::Layer { index, map }));
        maps.chain([Matrix::Words]).map(|matrix| self.architecture.matrix_name(matrix)).collect()
    }
}

impl WeightSource for StoredEncoder<'_> {
    type Error = Error;

    fn frame(&mut self) -> Result<EncoderWeights> {
        let (architecture, matrices) = (self.architecture, self.matrix_names());
        let mut frame = architecture.skeleton();
        let mut failure = Ok(());
        architecture.walk_encoder(&mut frame, &mut |name, _, values| {
            if failure.is_err() || matrices.contains(name) {
                return;
            }
            match self.store.read(&format!("{}{name}", self.prefix)) {
                Ok(read) => {
                    self.look_at(name, &read);
                    *values = read;
                }
                Err(error) => failure = Err(error),
            }
        });
        failure.map(|()| frame)
    }

    fn rows(&mut self, matrix: Matrix, take: &mut dyn FnMut(&[f32]) -> ControlFlow<()>) -> Result<()> {
        let name = self.architecture.matrix_name(matrix);
        let store = self.store;
        store.rows(&format!("{}{name}", self.prefix), &mut |rows| {
            self.look_at(&name, rows);
            take(rows)
        })
    }
}

#[cfg(test)]
mod tests;
