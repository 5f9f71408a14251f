//! An index out of a directory, its matrices mapped.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use loxia_core::artefact::{MANIFEST_FILE, Manifest, read_counted_id_list};
use memmap2::Mmap;

use super::anchors::ANCHORS_FILE;
use super::{
    AnchorQueriesRecord, Details, ENCODER_FILE, Encoder, EncoderRecord, INDEX_KIND, ITEM_IDS_FILE,
    ITEMS_DIGEST, Index, PlaneRecord, Stored,
};
use crate::plane::{Numbers, Plane};
use crate::posterior::PLANES;
use crate::{Posterior, Result};

const REBUILD: &str = "build the index again";

impl Index {
    /// Opens a directory if it was made from what `expected` names: pairs like `("model", DIGEST)`. A
    /// digest that differs is refused with both values.
    pub fn open(directory: &Path, expected: &[(&str, &str)]) -> Result<Self> {
        let manifest = Manifest::read(directory, INDEX_KIND)?;
        for (name, digest) in expected {
            manifest.check_digest(directory, name, digest)?;
        }
        let manifest_path = directory.join(MANIFEST_FILE);
        let corrupt = |what: String| loxia_core::Error::corrupt(&manifest_path, format!("{what}; {REBUILD}"));
        let details: Details = serde_json::from_value(serde_json::Value::Object(manifest.details.clone()))
            .map_err(|error| corrupt(error.to_string()))?;
        let &[items, anchors] = manifest.shape.as_slice() else {
            return Err(corrupt(format!("shape {:?} is not [items, anchors]", manifest.shape)).into());
        };
        let (items, anchors) = (count(items).map_err(corrupt)?, count(anchors).map_err(corrupt)?);
        if details.added > items as u64 {
            return Err(corrupt(format!("{} of {items} items are said to be added", details.added)).into());
        }
        let mut planes = Vec::new();
        for record in &details.planes {
            if !PLANES.contains(&record.name.as_str()) || planes.iter().any(|(name, _)| *name == record.name)
            {
                return Err(corrupt(format!("plane {:?} is unknown or named twice", record.name)).into());
            }
            planes.push((record.name.clone(), open_plane(directory, record)?));
        }
        let ids_path = directory.join(ITEM_IDS_FILE);
        let (ids, digest) = read_counted_id_list(&ids_path, items)?;
        if manifest.digests.get(ITEMS_DIGEST) != Some(&digest) {
            let said = manifest.digests.get(ITEMS_DIGEST).map_or("nothing", String::as_str);
            let what = format!("SHA-256 {digest}, the manifest says {said}; {REBUILD}");
            return Err(loxia_core::Error::corrupt(ids_path, what).into());
        }
        let posterior = Posterior::from_parts(details.posterior.clone(), items, anchors, |name| {
            let at = planes.iter().position(|(known, _)| known == name)?;
            Some(planes.swap_remove(at).1)
        })
        .map_err(corrupt)?;
        let encoder = details.encoder.as_ref().map(|record| open_encoder(directory, record)).transpose()?;
        let anchor_queries =
            details.anchor_queries.as_ref().map(|record| open_anchors(directory, record)).transpose()?;
        let added = details.added as usize;
        let stored = Stored { directory: directory.to_owned(), manifest, details };
        let stored = Some(Arc::new(stored));
        Ok(Index { posterior, ids: Arc::new(ids), encoder, anchor_queries, added, stored })
    }
}

fn count(number: u64) -> Result<usize, String> {
    // Positions are 32 bits wide.
    usize::try_from(number)
        .ok()
        .filter(|&count| count > 0 && count < u32::MAX as usize)
        .ok_or_else(|| format!("{number} items or anchors"))
}

fn open_plane(directory: &Path, record: &PlaneRecord) -> Result<Plane> {
    let path = directory.join(record.file_name());
    let corrupt = |what: String| loxia_core::Error::corrupt(&path, format!("{what}; {REBUILD}"));
    let (rows, cols) = (usize::try_from(record.rows).ok(), usize::try_from(record.cols).ok());
    let shape = rows.zip(cols);
    let bytes = shape.and_then(|(rows, cols)| rows.checked_mul(cols)?.checked_mul(record.dtype.bytes()));
    let (Some((rows, cols)), Some(bytes)) = (shape, bytes) else {
        return Err(corrupt(format!("{} x {} is beyond this machine", record.rows, record.cols)).into());
    };
    let map = map_file(&path, bytes as u64)?;
    Plane::mapped(rows, cols, record.dtype, record.scale, map)
        .ok_or_else(|| corrupt(format!("a scale of {} is no power of two", record.scale)).into())
}

fn open_encoder(directory: &Path, record: &EncoderRecord) -> Result<Encoder> {
    let path = directory.join(ENCODER_FILE);
    let map = map_file(&path, record.bytes)?;
    let bytes = Numbers::from_map(map, record.bytes as usize)
        .ok_or_else(|| loxia_core::Error::corrupt(path, format!("its length changed; {REBUILD}")))?;
    Ok(Encoder { name: record.name.clone(), bytes })
}

fn open_anchors(directory: &Path, record: &AnchorQueriesRecord) -> Result<Numbers<u8>> {
    let path = directory.join(ANCHORS_FILE);
    let map = map_file(&path, record.bytes)?;
    Numbers::from_map(map, record.bytes as usize)
        .ok_or_else(|| loxia_core::Error::corrupt(path, format!("its length changed; {REBUILD}")).into())
}

/// Maps a file that must have `expected` bytes; an empty one has no map.
fn map_file(path: &Path, expected: u64) -> Result<Option<Mmap>> {
    let file = File::open(path).map_err(|error| loxia_core::Error::io(path, "open", error))?;
    let found = file.metadata().map_err(|error| loxia_core::Error::io(path, "look up", error))?.len();
    if found != expected {
        let what = format!("{found} bytes, expected {expected}; {REBUILD}");
        return Err(loxia_core::Error::corrupt(path, what).into());
    }
    if found == 0 {
        return Ok(None);
    }
    // SAFETY: the map is only read, and a finished artefact is never written again but replaced as a
    // whole. A foreign process that cuts the file short ends this one with SIGBUS, as with every program
    // that maps files.
    let map = unsafe { Mmap::map(&file) };
    Ok(Some(map.map_err(|error| loxia_core::Error::io(path, "map into memory", error))?))
}
