//! An index into a directory.

use std::collections::BTreeMap;
use std::path::Path;

use loxia_core::Seed;
use loxia_core::artefact::{
    ArtefactWriter, Existing, Manifest, OutputFile, digest_bytes, digest_ids, write_id_list,
};

use super::anchors::ANCHORS_FILE;
use super::{
    AnchorQueriesRecord, Details, ENCODER_FILE, EncoderRecord, INDEX_KIND, ITEM_IDS_FILE, ITEMS_DIGEST,
    Index, PlaneRecord,
};
use crate::Result;

/// What an index was made from and by.
#[derive(Debug, Clone, Default)]
pub struct Provenance {
    digests: BTreeMap<String, String>,
    command: String,
    seed: u64,
    sources: Vec<TextSource>,
}

/// Where texts of items lay when an index was made: what a search reads unless it is told otherwise.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TextSource {
    /// Path of the data set.
    pub path: String,
    /// Its format, where it had to be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Its world, where one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<String>,
    /// Its split, where one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
}

impl Provenance {
    /// The command that makes it.
    pub fn new(command: impl Into<String>) -> Self {
        Provenance { command: command.into(), ..Provenance::default() }
    }

    /// Adds the digest of something it was made from: `model`, `layout`, `data`.
    pub fn digest(mut self, name: impl Into<String>, digest: impl Into<String>) -> Self {
        self.digests.insert(name.into(), digest.into());
        self
    }

    /// Adds a place where texts of the items are; a second mention of one changes nothing.
    pub fn source(mut self, source: TextSource) -> Self {
        if !self.sources.contains(&source) {
            self.sources.push(source);
        }
        self
    }

    /// The seed of what was drawn at random on the way to it.
    pub fn seed(mut self, seed: Seed) -> Self {
        self.seed = seed.0;
        self
    }
}

impl Index {
    /// Writes a directory that appears whole or not at all.
    pub fn write(&self, path: &Path, existing: Existing, made_from: &Provenance) -> Result<()> {
        let (posterior, planes) = self.posterior.to_parts();
        let mut writer = ArtefactWriter::create(path, existing)?;
        let mut records = Vec::new();
        for (name, plane) in &planes {
            let record = PlaneRecord {
                name: (*name).to_owned(),
                rows: plane.rows() as u64,
                cols: plane.cols() as u64,
                dtype: plane.precision(),
                scale: plane.scale(),
                sha256: digest_bytes(plane.bytes()),
            };
            writer.add_file(&record.file_name(), |file| file.write_bytes(plane.bytes()))?;
            records.push(record);
        }
        let mut encoder = None;
        if let Some((name, bytes)) = self.query_encoder() {
            writer.add_file(ENCODER_FILE, |file| file.write_bytes(bytes))?;
            let (name, sha256) = (name.to_owned(), digest_bytes(bytes));
            encoder = Some(EncoderRecord { name, bytes: bytes.len() as u64, sha256 });
        }
        let mut anchor_queries = None;
        if let Some(bytes) = self.anchor_queries.as_ref().map(|bytes| bytes.as_slice()) {
            writer.add_file(ANCHORS_FILE, |file| file.write_bytes(bytes))?;
            let sha256 = digest_bytes(bytes);
            anchor_queries = Some(AnchorQueriesRecord { bytes: bytes.len() as u64, sha256 });
        }
        writer.add_file(ITEM_IDS_FILE, |file: &mut OutputFile| {
            write_id_list(&self.ids, file).map_err(|error| file.error(error))
        })?;
        let (added, seed) = (self.added as u64, made_from.seed);
        let anchors = self.posterior.anchors() as u64;
        let sources = made_from.sources.clone();
        let details = Details { posterior, planes: records, encoder, anchor_queries, added, seed, sources };
        let mut manifest = Manifest::new(INDEX_KIND);
        manifest.shape = vec![self.ids.len() as u64, anchors];
        manifest.dtype = "f16".into();
        manifest.command = made_from.command.clone();
        manifest.digests = made_from.digests.clone();
        manifest.digests.insert(ITEMS_DIGEST.into(), digest_ids(&self.ids)?);
        if let Ok(serde_json::Value::Object(details)) = serde_json::to_value(&details) {
            manifest.details = details;
        }
        writer.add_manifest(&manifest)?;
        Ok(writer.commit()?)
    }
}
