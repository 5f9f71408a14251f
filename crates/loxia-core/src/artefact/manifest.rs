//! What an artefact says about itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::io_error;
use crate::{Error, Result};

/// Name of the manifest within an artefact directory.
pub const MANIFEST_FILE: &str = "manifest.json";

/// A manifest is a page of text; whatever is larger was not written by us.
const LARGEST_MANIFEST: u64 = 16 << 20;

/// A kind of artefact and the version of its format that this release reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArtefactKind {
    /// Its name, for instance `score-matrix`.
    pub name: &'static str,
    /// Version of the format.
    pub version: u32,
}

/// Content of `manifest.json`. It holds neither times nor process numbers: the same work gives the same
/// bytes.
///
/// ```
/// use loxia_core::artefact::{ArtefactKind, Manifest};
/// let mut manifest = Manifest::new(ArtefactKind { name: "vectors", version: 1 });
/// manifest.shape = vec![10, 384];
/// manifest.digests.insert("model".into(), "12ab".into());
/// let again = Manifest::parse("manifest.json".as_ref(), manifest.to_json().as_bytes()).unwrap();
/// assert_eq!(again, manifest);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the format of this kind.
    pub format_version: u32,
    /// Name of the kind.
    pub kind: String,
    /// Extents, outermost first; what they count depends on the kind.
    #[serde(default)]
    pub shape: Vec<u64>,
    /// Type of the numbers (`f32`), empty where there are none.
    #[serde(default)]
    pub dtype: String,
    /// What it was made from, by name: `model`, `layout`, `data`.
    #[serde(default)]
    pub digests: BTreeMap<String, String>,
    /// The command that began it.
    #[serde(default)]
    pub command: String,
    /// The release of Loxia that began it.
    #[serde(default)]
    pub created_by: String,
    /// Whatever else the kind keeps.
    #[serde(default)]
    pub details: Map<String, Value>,
}

impl Manifest {
    /// An empty manifest of a kind, made by this release.
    pub fn new(kind: ArtefactKind) -> Self {
        Manifest {
            format_version: kind.version,
            kind: kind.name.to_owned(),
            shape: Vec::new(),
            dtype: String::new(),
            digests: BTreeMap::new(),
            command: String::new(),
            created_by: concat!("loxia ", env!("CARGO_PKG_VERSION")).to_owned(),
            details: Map::new(),
        }
    }

    /// The text of `manifest.json`: indented, with a final line break.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("strings and numbers always serialise");
        text.push('\n');
        text
    }

    /// Reads the manifest in `directory` and refuses another kind or format version.
    pub fn read(directory: &Path, kind: ArtefactKind) -> Result<Self> {
        let path = directory.join(MANIFEST_FILE);
        let json = parse_json(&path, &read_bounded(&path)?)?;
        // Before the other fields: a later version may have other ones.
        check_kind(&path, &json, kind)?;
        from_json(&path, json)
    }

    /// Reads the manifest in `directory`, whatever it is of.
    pub fn read_any(directory: &Path) -> Result<Self> {
        let path = directory.join(MANIFEST_FILE);
        Self::parse(&path, &read_bounded(&path)?)
    }

    /// Reads a manifest of any kind from bytes; `path` is for the error.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        from_json(path, parse_json(path, bytes)?)
    }

    /// Refuses a digest other than `expected`; one that is missing counts as other.
    pub fn check_digest(&self, directory: &Path, name: &str, expected: &str) -> Result<()> {
        let found = self.digests.get(name).map_or("missing", String::as_str);
        if found == expected {
            return Ok(());
        }
        let or = or_computed_otherwise(name);
        Err(mismatch(
            &directory.join(MANIFEST_FILE),
            &format!("digest of {name}"),
            found,
            expected,
            &format!("it was made from another {name}{or}: use that one, or make the artefact again"),
        ))
    }
}

/// Why the digest of a model may be another one although the model is the same: what computes its numbers is part of it.
pub(crate) fn or_computed_otherwise(name: &str) -> &'static str {
    if matches!(name, "model" | "dual") {
        ", or with another --precision or kernel (`loxia doctor`, LOXIA_KERNEL)"
    } else {
        ""
    }
}

/// An [`Error::Mismatch`] from anything printable.
pub(crate) fn mismatch(
    path: &Path,
    field: &str,
    found: impl ToString,
    expected: impl ToString,
    advice: &str,
) -> Error {
    Error::Mismatch {
        path: path.to_owned(),
        field: field.to_owned(),
        found: found.to_string(),
        expected: expected.to_string(),
        advice: advice.to_owned(),
    }
}

fn read_bounded(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(io_error(path, "open"))?;
    let mut bytes = Vec::new();
    file.take(LARGEST_MANIFEST + 1).read_to_end(&mut bytes).map_err(io_error(path, "read"))?;
    if bytes.len() as u64 > LARGEST_MANIFEST {
        return Err(Error::corrupt(path, "larger than 16 MiB, which no manifest is; is it another file?"));
    }
    Ok(bytes)
}

fn parse_json(path: &Path, bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes).map_err(|error| broken(path, &error))
}

fn from_json(path: &Path, json: Value) -> Result<Manifest> {
    serde_json::from_value(json).map_err(|error| broken(path, &error))
}

fn broken(path: &Path, error: &serde_json::Error) -> Error {
    Error::corrupt(path, format!("not a manifest: {error}; make the artefact again"))
}

fn check_kind(path: &Path, json: &Value, kind: ArtefactKind) -> Result<()> {
    let name = json.get("kind").and_then(Value::as_str).unwrap_or("missing");
    if name != kind.name {
        return Err(mismatch(path, "kind", name, kind.name, "give an artefact of that kind"));
    }
    let version = json.get("format_version").and_then(Value::as_u64);
    if version == Some(u64::from(kind.version)) {
        return Ok(());
    }
    let found = version.map_or("missing".to_owned(), |version| version.to_string());
    let advice = match version {
        Some(version) if version > u64::from(kind.version) => "open it with a newer release of Loxia",
        _ => "make it again with this release",
    };
    Err(mismatch(path, "format_version", found, kind.version, advice))
}
