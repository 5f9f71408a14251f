//! What a matrix on disk is to hold and what it is made from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde_json::Value;

use super::{TileGrid, TileShape};
use crate::artefact::{ArtefactKind, MANIFEST_FILE, Manifest, digest_ids, mismatch, or_computed_otherwise};
use crate::{Error, IdTable, Result};

/// Kind and format version of matrix directories.
pub const MATRIX_KIND: ArtefactKind = ArtefactKind { name: "score-matrix", version: 1 };

/// Kind and format version of directories of vectors: a dense matrix whose rows are texts and whose columns
/// are dimensions, named by their numbers.
pub const EMBEDDINGS_KIND: ArtefactKind = ArtefactKind { name: "embeddings", version: 1 };

/// Digests of the two id lists, beside those of the caller.
const ROWS: &str = "rows";
const COLS: &str = "cols";

/// Whether every pair has a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// Every pair has one.
    Dense,
    /// Each row has scores for some columns.
    Sparse,
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Storage::Dense => "dense",
            Storage::Sparse => "sparse",
        })
    }
}

/// What a matrix directory will hold: given to a writer when it begins, and again when it goes on, so that
/// unfinished work of another model or other data is never continued.
///
/// ```
/// use loxia_core::{IdTable, matrix::MatrixSpec};
/// let rows = IdTable::try_from(&["q1", "q2"][..]).unwrap();
/// let cols = IdTable::try_from(&["d1", "d2", "d3"][..]).unwrap();
/// let spec = MatrixSpec::dense(&rows, &cols).digest("model", "12ab").command("loxia score ...");
/// assert_eq!(spec.tile.cols, 3);
/// ```
#[derive(Debug, Clone)]
pub struct MatrixSpec<'a> {
    /// What the numbers are: [`MATRIX_KIND`] or [`EMBEDDINGS_KIND`].
    pub kind: ArtefactKind,
    /// Ids of the rows.
    pub row_ids: &'a IdTable,
    /// Ids of the columns.
    pub col_ids: &'a IdTable,
    /// Dense or sparse.
    pub storage: Storage,
    /// Extents of a tile; a sparse tile always spans all columns.
    pub tile: TileShape,
    /// What the scores are made from, by name: `model`, `layout`, `data`. `rows` and `cols` are taken.
    pub digests: BTreeMap<String, String>,
    /// The command, for people. Not compared when work goes on: the first one stays.
    pub command: String,
}

impl<'a> MatrixSpec<'a> {
    /// A dense matrix in tiles of the usual shape.
    pub fn dense(row_ids: &'a IdTable, col_ids: &'a IdTable) -> Self {
        let tile = TileShape::for_matrix(row_ids.len(), col_ids.len());
        let (digests, command) = (BTreeMap::new(), String::new());
        MatrixSpec { kind: MATRIX_KIND, row_ids, col_ids, storage: Storage::Dense, tile, digests, command }
    }

    /// A sparse matrix in tiles of 16 rows.
    pub fn sparse(row_ids: &'a IdTable, col_ids: &'a IdTable) -> Self {
        let tile = TileShape { rows: row_ids.len().clamp(1, 16), cols: col_ids.len().max(1) };
        MatrixSpec { storage: Storage::Sparse, tile, ..Self::dense(row_ids, col_ids) }
    }

    /// Says what the numbers are.
    pub fn kind(mut self, kind: ArtefactKind) -> Self {
        self.kind = kind;
        self
    }

    /// Chooses the extents of a tile; a sparse tile keeps its width.
    pub fn tile(mut self, tile: TileShape) -> Self {
        let cols = if self.storage == Storage::Sparse { self.tile.cols } else { tile.cols };
        self.tile = TileShape { rows: tile.rows, cols };
        self
    }

    /// Adds a digest of something the scores are made from.
    pub fn digest(mut self, name: impl Into<String>, digest: impl Into<String>) -> Self {
        self.digests.insert(name.into(), digest.into());
        self
    }

    /// Names the command.
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = command.into();
        self
    }

    pub(super) fn grid(&self) -> Result<TileGrid> {
        TileGrid::new(self.row_ids.len(), self.col_ids.len(), self.tile)
    }

    pub(super) fn manifest(&self) -> Result<Manifest> {
        if let Some(name) = [ROWS, COLS].into_iter().find(|&name| self.digests.contains_key(name)) {
            return Err(Error::Invalid(format!("the digest {name:?} is that of the matrix's own ids")));
        }
        let mut manifest = Manifest::new(self.kind);
        manifest.shape = vec![self.row_ids.len() as u64, self.col_ids.len() as u64];
        manifest.dtype = "f32".to_owned();
        manifest.digests = self.digests.clone();
        manifest.digests.insert(ROWS.to_owned(), digest_ids(self.row_ids)?);
        manifest.digests.insert(COLS.to_owned(), digest_ids(self.col_ids)?);
        manifest.command = self.command.clone();
        manifest.details.insert("storage".to_owned(), self.storage.to_string().into());
        manifest.details.insert("tile_rows".to_owned(), self.tile.rows.into());
        manifest.details.insert("tile_cols".to_owned(), self.tile.cols.into());
        Ok(manifest)
    }

    /// Refuses a directory whose manifest is not this spec's; returns the manifest of the directory.
    pub(super) fn check(&self, directory: &Path) -> Result<Manifest> {
        const ADVICE: &str = "go on with what it was begun with, or give --overwrite to begin again";
        let path = directory.join(MANIFEST_FILE);
        let found = Manifest::read(directory, self.kind)?;
        let expected = self.manifest()?;
        let differs = |field: &str, found: String, expected: String| {
            if found == expected { Ok(()) } else { Err(mismatch(&path, field, found, expected, ADVICE)) }
        };
        differs("shape", format!("{:?}", found.shape), format!("{:?}", expected.shape))?;
        differs("dtype", found.dtype.clone(), expected.dtype.clone())?;
        for name in ["storage", "tile_rows", "tile_cols"] {
            differs(name, detail(&found, name), detail(&expected, name))?;
        }
        for name in found.digests.keys().chain(expected.digests.keys()) {
            let text = |manifest: &BTreeMap<String, String>| {
                manifest.get(name).cloned().unwrap_or_else(|| "missing".to_owned())
            };
            let (found, expected) = (text(&found.digests), text(&expected.digests));
            if found != expected {
                let or = or_computed_otherwise(name);
                let advice = format!("it was begun with another {name}{or}: {ADVICE}");
                return Err(mismatch(&path, &format!("digest of {name}"), found, expected, &advice));
            }
        }
        Ok(found)
    }
}

/// A detail as text, without the quotes of a string.
fn detail(manifest: &Manifest, name: &str) -> String {
    match manifest.details.get(name) {
        None => "missing".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Storage and tiles as a manifest tells them.
pub(super) fn layout_of(manifest: &Manifest) -> Result<(Storage, TileGrid), String> {
    let storage = match manifest.details.get("storage").and_then(Value::as_str) {
        Some("dense") => Storage::Dense,
        Some("sparse") => Storage::Sparse,
        other => return Err(format!("storage is {other:?}, expected \"dense\" or \"sparse\"")),
    };
    if manifest.dtype != "f32" {
        return Err(format!("dtype is {:?}, expected \"f32\"", manifest.dtype));
    }
    let extent = |value: u64| usize::try_from(value).map_err(|error| error.to_string());
    let [rows, cols] = manifest.shape[..] else {
        return Err(format!("shape {:?} does not have two extents", manifest.shape));
    };
    let tile_extent = |name: &str| {
        let value = manifest.details.get(name).and_then(Value::as_u64);
        extent(value.ok_or_else(|| format!("{name} is not a number"))?)
    };
    let tile = TileShape { rows: tile_extent("tile_rows")?, cols: tile_extent("tile_cols")? };
    let (rows, cols) = (extent(rows)?, extent(cols)?);
    if storage == Storage::Sparse && tile.cols < cols {
        return Err(format!("sparse tiles of {} columns, but the matrix has {cols}", tile.cols));
    }
    let grid = TileGrid::new(rows, cols, tile).map_err(|error| error.to_string())?;
    Ok((storage, grid))
}

/// The digests of the id lists that a manifest holds: rows, columns.
pub(super) fn id_digests(manifest: &Manifest) -> [&str; 2] {
    [ROWS, COLS].map(|name| manifest.digests.get(name).map_or("missing", String::as_str))
}
