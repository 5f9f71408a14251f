//! Whether a stored index is sound, to the last byte.

use loxia_core::artefact::{Digester, digest_bytes};
use loxia_core::{Cancel, Error, Progress};

use super::anchors::ANCHORS_FILE;
use super::{ENCODER_FILE, Index};
use crate::Result;

/// Bytes between two looks at the cancel flag.
const CHUNK: usize = 1 << 22;

impl Index {
    /// How many bytes [`Index::check`] reads, for a progress bar.
    pub fn stored_bytes(&self) -> u64 {
        let (_, planes) = self.posterior.to_parts();
        planes.iter().map(|(_, plane)| plane.bytes().len() as u64).sum()
    }

    /// Reads everything: compares each file with its checksum and looks at each number. Does nothing for an
    /// index that is not stored.
    pub fn check(&self, progress: &dyn Progress, cancel: &Cancel) -> Result<()> {
        let Some(stored) = &self.stored else { return Ok(()) };
        let (_, planes) = self.posterior.to_parts();
        for record in &stored.details.planes {
            let path = stored.directory.join(record.file_name());
            let corrupt = |what: String| Error::corrupt(&path, format!("{what}; build the index again"));
            let Some((_, plane)) = planes.iter().find(|(name, _)| *name == record.name) else {
                return Err(corrupt("it belongs to no part of the index".into()).into());
            };
            let mut digester = Digester::new();
            for chunk in plane.bytes().chunks(CHUNK) {
                cancel.check()?;
                digester.update(chunk);
                progress.advance(chunk.len() as u64);
            }
            let found = digester.finish();
            if found != record.sha256 {
                return Err(corrupt(format!("SHA-256 {found}, the manifest says {}", record.sha256)).into());
            }
            if let Some((row, col)) = plane.find_not_finite() {
                return Err(corrupt(format!("row {row}, column {col} is not finite")).into());
            }
        }
        let encoder = stored.details.encoder.as_ref().zip(self.query_encoder());
        let anchors = stored.details.anchor_queries.as_ref().zip(self.anchor_queries.as_ref());
        let files = [
            encoder.map(|(record, (_, bytes))| (ENCODER_FILE, &record.sha256, bytes)),
            anchors.map(|(record, bytes)| (ANCHORS_FILE, &record.sha256, bytes.as_slice())),
        ];
        for (name, expected, bytes) in files.into_iter().flatten() {
            let found = digest_bytes(bytes);
            if found != *expected {
                let what = format!("SHA-256 {found}, the manifest says {expected}; build the index again");
                return Err(Error::corrupt(stored.directory.join(name), what).into());
            }
        }
        self.anchor_queries()?;
        Ok(())
    }
}
