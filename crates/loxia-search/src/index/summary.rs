//! What is in an index, for people and machines.

use std::collections::BTreeMap;

use super::Index;
use crate::{Method, PosteriorSettings};

/// Facts of an index.
#[derive(Debug, Clone, serde::Serialize)]
pub struct IndexSummary {
    /// Number of items.
    pub items: usize,
    /// Number of anchor queries.
    pub anchors: usize,
    /// Items that were added since the fit.
    pub added: usize,
    /// Numbers of an item's vector, where it was built with vectors.
    pub vector_dimensions: Option<usize>,
    /// Whether answers carry a recall estimate.
    pub calibrated: bool,
    /// Constants, as chosen.
    pub settings: PosteriorSettings,
    /// Name of what turns queries into vectors, where the index holds it.
    pub query_encoder: Option<String>,
    /// Its matrices.
    pub planes: Vec<PlaneSummary>,
    /// Bytes of all matrices.
    pub bytes: u64,
    /// What it was made from, if it is stored.
    pub digests: BTreeMap<String, String>,
    /// The command that made it, if it is stored.
    pub command: String,
    /// The release that made it, if it is stored.
    pub created_by: String,
    /// The seed it was made with, if it is stored.
    pub seed: Option<u64>,
}

/// A matrix of an index.
#[derive(Debug, Clone, serde::Serialize)]
pub struct PlaneSummary {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: usize,
    /// Its columns.
    pub cols: usize,
    /// Type of its numbers.
    pub dtype: &'static str,
}

impl Index {
    /// What is in it.
    pub fn summary(&self) -> IndexSummary {
        let (_, planes) = self.posterior.to_parts();
        let manifest = self.manifest();
        let planes_of = |(name, plane): &(&str, crate::plane::Plane)| PlaneSummary {
            name: (*name).to_owned(),
            rows: plane.rows(),
            cols: plane.cols(),
            dtype: plane.precision().name(),
        };
        IndexSummary {
            items: self.items(),
            anchors: self.posterior.anchors(),
            added: self.added,
            vector_dimensions: self.posterior.vector_dimensions(),
            calibrated: self.posterior.is_calibrated(),
            settings: *self.posterior.settings(),
            query_encoder: self.query_encoder().map(|(name, _)| name.to_owned()),
            planes: planes.iter().map(planes_of).collect(),
            bytes: planes.iter().map(|(_, plane)| plane.bytes().len() as u64).sum(),
            digests: manifest.map(|manifest| manifest.digests.clone()).unwrap_or_default(),
            command: manifest.map(|manifest| manifest.command.clone()).unwrap_or_default(),
            created_by: manifest.map(|manifest| manifest.created_by.clone()).unwrap_or_default(),
            seed: self.stored.as_ref().map(|stored| stored.details.seed),
        }
    }
}
