//! Where a model is: a directory, two directories, or a name on the hub.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::hub::HubModel;

/// A model as a user names it.
///
/// ```
/// use loxia_model::ModelSpec;
/// assert!(matches!("models/minilm".parse().unwrap(), ModelSpec::Directory(_)));
/// assert!(matches!("query-tower,item-tower".parse().unwrap(), ModelSpec::Towers(_, _)));
/// assert!(matches!("hf:owner/name@main".parse().unwrap(), ModelSpec::Hub(_)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSpec {
    /// A directory.
    Directory(PathBuf),
    /// `hf:owner/name[@revision]`, read from the Hugging Face cache.
    Hub(HubModel),
    /// `QUERY,ITEM`: a dual encoder's two towers.
    Towers(Box<ModelSpec>, Box<ModelSpec>),
}

impl std::str::FromStr for ModelSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // A directory whose name has a comma is still a directory.
        if std::path::Path::new(text).is_dir() {
            return Ok(ModelSpec::Directory(text.into()));
        }
        match text.split(',').collect::<Vec<_>>().as_slice() {
            [one] => one_model(one),
            [query, item] => Ok(ModelSpec::Towers(Box::new(one_model(query)?), Box::new(one_model(item)?))),
            _ => Err(Error::Options(format!("{text:?}: one directory, or two (QUERY,ITEM), make a model"))),
        }
    }
}

fn one_model(text: &str) -> Result<ModelSpec> {
    match text.strip_prefix("hf:") {
        Some(name) => name.parse().map(ModelSpec::Hub),
        None if text.is_empty() => Err(Error::Options("the model's name is empty".into())),
        None => Ok(ModelSpec::Directory(text.into())),
    }
}

impl From<PathBuf> for ModelSpec {
    fn from(path: PathBuf) -> Self {
        ModelSpec::Directory(path)
    }
}

impl From<&std::path::Path> for ModelSpec {
    fn from(path: &std::path::Path) -> Self {
        ModelSpec::Directory(path.to_owned())
    }
}

impl ModelSpec {
    /// The directory of a model that has one; nothing is downloaded.
    pub(crate) fn directory(&self) -> Result<PathBuf> {
        match self {
            ModelSpec::Directory(path) => Ok(path.clone()),
            ModelSpec::Hub(model) => model.cached(),
            ModelSpec::Towers(..) => {
                Err(Error::Options("two directories make a dual encoder; a cross-encoder is one".into()))
            }
        }
    }
}

impl std::fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ModelSpec::Directory(path) => write!(f, "{}", path.display()),
            ModelSpec::Hub(model) => write!(f, "hf:{model}"),
            ModelSpec::Towers(query, item) => write!(f, "{query},{item}"),
        }
    }
}
