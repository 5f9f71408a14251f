//! `loxia.json`: what `config.json` cannot say about a ranking model.
//!
//! Written into every directory this crate saves, so that nobody has to remember the flags a model was
//! trained with. `format` is 1; unknown keys are refused, because ignoring one could change scores.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Malformed, Result};
use crate::json::read_json_if_present;
use crate::layout::Layout;
use crate::options::{Pooling, Similarity, Variant};

/// Name of the file.
pub(crate) const FILE_NAME: &str = "loxia.json";

const FORMAT: u32 = 1;

/// The content of `loxia.json`.
///
/// With `towers` it stores neither layout nor pooling: each tower's directory has a file of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoxiaJson {
    /// Version of this file's format.
    pub format: u32,
    /// What is built on the encoder; left out where the directory's other files say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<Variant>,
    /// How texts become tokens: kind, lengths, markers, compat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// How states become a vector (dual encoders).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooling: Option<Pooling>,
    /// How vectors are compared (dual encoders).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<Similarity>,
    /// The label whose logit is the score, for heads of more than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<usize>,
    /// Directories of the two towers, where queries and items have an encoder each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub towers: Option<Towers>,
}

/// Names of the towers' directories, beside `loxia.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Towers {
    /// Of the queries' tower.
    pub query: String,
    /// Of the items' tower.
    pub item: String,
}

impl LoxiaJson {
    /// A description of a model with one encoder.
    pub fn new(variant: Variant, layout: Layout) -> Self {
        LoxiaJson { variant: Some(variant), layout: Some(layout), ..Self::bare() }
    }

    /// A description of two towers, each with a description of its own in its directory.
    pub(crate) fn of_towers(similarity: Similarity, towers: Towers) -> Self {
        LoxiaJson {
            variant: Some(Variant::Dual),
            similarity: Some(similarity),
            towers: Some(towers),
            ..Self::bare()
        }
    }

    /// The mark of a directory written here whose other files say everything.
    pub(crate) fn bare() -> Self {
        LoxiaJson {
            format: FORMAT,
            variant: None,
            layout: None,
            pooling: None,
            similarity: None,
            label: None,
            towers: None,
        }
    }

    /// The file of a directory, if it has one.
    pub(crate) fn read(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(FILE_NAME);
        let Some(file) = read_json_if_present::<LoxiaJson>(&path)? else { return Ok(None) };
        file.check().map_err(|e| e.at(&path))?;
        Ok(Some(file))
    }

    /// Parses and checks the file's text.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let file: LoxiaJson = serde_json::from_slice(bytes).map_err(|e| Malformed::new(e.to_string()))?;
        file.check()?;
        Ok(file)
    }

    fn check(&self) -> Result<(), Malformed> {
        if self.format != FORMAT {
            let found = self.format;
            return Err(Malformed::new(format!(
                "format is {found}, this version reads {FORMAT}; update Loxia"
            )));
        }
        for name in self.towers.iter().flat_map(|towers| [&towers.query, &towers.item]) {
            if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\']) {
                return Err(Malformed::new(format!("tower {name:?} is not a directory beside this file")));
            }
        }
        if self.towers.is_some() && (self.layout.is_some() || self.pooling.is_some()) {
            return Err(Malformed::new(
                "layout and pooling beside towers: each tower has its own, in the loxia.json of its directory",
            ));
        }
        Ok(())
    }
}
