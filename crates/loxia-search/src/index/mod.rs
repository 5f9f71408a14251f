//! The index: a fitted `posterior` with its collection's ids, in a directory.
//!
//! | step | function |
//! |---|---|
//! | fit, choose constants, calibrate | [`Index::build`] |
//! | store | [`Index::write`] |
//! | use: it is a [`Method`] | [`Index::open`] |
//! | new items without a new fit | [`Index::add`], and what that costs: [`Index::evaluate_addition`] |
//! | the anchor queries, for `add` | [`Index::with_anchor_queries`], [`Index::anchor_queries`] |
//! | what is in it, is it sound | [`Index::summary`], [`Index::check`] |
//!
//! The directory holds `manifest.json`, `items.ids`, and one file for each matrix (`<name>.f16` or
//! `<name>.f32`, row after row, little endian; FORMATS.md has the list). Matrices are mapped, so a search
//! of millions of items needs little memory of its own. Opening compares kind, version, digests, ids and
//! the size of every file; [`Index::check`] reads everything, compares checksums and looks at each number.

mod add;
mod anchors;
mod build;
mod check;
mod open;
mod summary;
mod write;

use std::path::PathBuf;

use loxia_core::IdTable;
use loxia_core::artefact::{ArtefactKind, Manifest};

use crate::method::{EstimateReach, Goal, Method, Outcome, QueryView};
use crate::plane::{Numbers, Precision};
use crate::posterior::Constants;
use crate::{Ledger, Posterior, Result, Schedule};

pub use add::EvaluatedAddition;
pub use build::{BuildTimes, IndexOptions};
pub use summary::{IndexSummary, PlaneSummary};
pub use write::{Provenance, TextSource};

/// Kind and version of the artefact.
const INDEX_KIND: ArtefactKind = ArtefactKind { name: "index", version: 3 };
const ITEM_IDS_FILE: &str = "items.ids";
const ENCODER_FILE: &str = "query-encoder.bin";
/// Name of the id list among the manifest's digests.
const ITEMS_DIGEST: &str = "items";

/// A fitted method, its items and, where queries are turned into vectors by something that was built with
/// it (TF-IDF), that too.
///
/// ```
/// use loxia_core::{Cancel, IdTable, NoProgress, artefact::Existing};
/// use loxia_search::{AnchorSet, Index, IndexOptions, Method, Provenance, linalg::Dense};
/// let scores = Dense::from_fn(12, 30, |row, col| ((row + 2) * (col + 1) % 13) as f32);
/// let ids: Vec<String> = (0..30).map(|item| format!("d{item}")).collect();
/// let anchors = AnchorSet::new(scores.into(), None).unwrap();
/// let (index, _) = Index::build(
///     &anchors,
///     IdTable::try_from(ids.as_slice()).unwrap(),
///     &IndexOptions::default(),
///     &NoProgress,
///     &Cancel::new(),
/// )
/// .unwrap();
/// let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("index");
/// let made_from = Provenance::new("an example").digest("model", "12ab");
/// index.write(&path, Existing::Refuse, &made_from).unwrap();
///
/// let opened = Index::open(&path, &[("model", "12ab")]).unwrap();
/// assert_eq!((opened.items(), opened.item_ids().get(7)), (30, "d7"));
/// assert!(Index::open(&path, &[("model", "34cd")]).is_err());
/// ```
#[derive(Clone)]
pub struct Index {
    posterior: Posterior,
    ids: std::sync::Arc<IdTable>,
    encoder: Option<Encoder>,
    /// The anchor queries as JSON lines.
    anchor_queries: Option<Numbers<u8>>,
    /// Items added since the fit.
    added: usize,
    stored: Option<std::sync::Arc<Stored>>,
}

/// Something that turns queries into vectors, in a form of its own.
#[derive(Clone)]
struct Encoder {
    name: String,
    bytes: Numbers<u8>,
}

/// Where an index was opened from.
struct Stored {
    directory: PathBuf,
    manifest: Manifest,
    details: Details,
}

/// What the manifest keeps beyond the common fields.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Details {
    posterior: Constants,
    planes: Vec<PlaneRecord>,
    #[serde(default)]
    encoder: Option<EncoderRecord>,
    #[serde(default)]
    anchor_queries: Option<AnchorQueriesRecord>,
    #[serde(default)]
    added: u64,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    sources: Vec<TextSource>,
}

/// A matrix and its file.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct PlaneRecord {
    name: String,
    rows: u64,
    cols: u64,
    dtype: Precision,
    scale: f32,
    sha256: String,
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct EncoderRecord {
    name: String,
    bytes: u64,
    sha256: String,
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct AnchorQueriesRecord {
    bytes: u64,
    sha256: String,
}

impl PlaneRecord {
    fn file_name(&self) -> String {
        format!("{}.{}", self.name, self.dtype.name())
    }
}

impl Index {
    /// Ids of the items, in the order of positions in answers.
    pub fn item_ids(&self) -> &IdTable {
        &self.ids
    }

    /// The method itself.
    pub fn posterior(&self) -> &Posterior {
        &self.posterior
    }

    /// Items that were added since the fit.
    pub fn added(&self) -> usize {
        self.added
    }

    /// With other batches than ten even ones.
    pub fn with_schedule(mut self, schedule: Schedule) -> Self {
        self.posterior = self.posterior.with_schedule(schedule);
        self
    }

    /// With what turns queries into vectors: a name to know it by, and its bytes.
    pub fn with_query_encoder(mut self, name: impl Into<String>, bytes: Vec<u8>) -> Self {
        self.encoder = Some(Encoder { name: name.into(), bytes: Numbers::from_vec(bytes) });
        self
    }

    /// Name and bytes of what turns queries into vectors, where the index holds it.
    pub fn query_encoder(&self) -> Option<(&str, &[u8])> {
        self.encoder.as_ref().map(|encoder| (encoder.name.as_str(), encoder.bytes.as_slice()))
    }

    /// Where the texts of its items lay when it was made, as far as that is known.
    pub fn sources(&self) -> &[TextSource] {
        self.stored.as_ref().map_or(&[], |stored| &stored.details.sources)
    }

    /// The manifest, if it was opened from a directory.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.stored.as_ref().map(|stored| &stored.manifest)
    }
}

impl Method for Index {
    fn name(&self) -> &str {
        self.posterior.name()
    }

    fn items(&self) -> usize {
        self.posterior.items()
    }

    fn estimate_reach(&self, k: usize) -> Option<EstimateReach> {
        self.posterior.estimate_reach(k)
    }

    fn run(&self, query: &QueryView<'_>, goal: &Goal, ledger: &mut Ledger<'_>) -> Result<Outcome> {
        self.posterior.run(query, goal, ledger)
    }
}
