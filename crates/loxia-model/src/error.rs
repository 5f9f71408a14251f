//! What can go wrong between a model directory and a score.

use std::fmt;
use std::path::PathBuf;

use crate::layout::LayoutError;
use crate::tokenizer::TokenizerError;

/// Result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a model: it names the file, the tensor or the option, what was found, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{path}: cannot {action}: {source}", path = path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// What was tried, as a verb phrase.
        action: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A path that holds no model.
    #[error("{path}: {what}", path = path.display())]
    NotAModel {
        /// The path.
        path: PathBuf,
        /// What was looked for, and what to do.
        what: String,
    },
    /// A file whose content contradicts its format.
    #[error("{path}: {what}", path = path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where in it, what was found, and what was expected.
        what: String,
    },
    /// A configuration that asks for something this crate does not compute.
    #[error("{path}: {key} is {found}; {expected}", path = path.display())]
    Config {
        /// The configuration file.
        path: PathBuf,
        /// The key.
        key: String,
        /// Its value.
        found: String,
        /// The values that are understood, or what to do.
        expected: String,
    },
    /// Weights that do not fit the configuration; all of them, not only the first.
    #[error("{path}: the weights do not fit {model}{problems}", path = path.display())]
    Tensors {
        /// The model directory.
        path: PathBuf,
        /// What was to be built of them.
        model: String,
        /// Every tensor that is missing, misshapen or unexpected.
        problems: Box<TensorProblems>,
    },
    /// A directory from which several models could be built.
    #[error("{path}: {why}; give {flags}", path = path.display())]
    Undecided {
        /// The model directory.
        path: PathBuf,
        /// Why it cannot be decided.
        why: String,
        /// The flags that decide it.
        flags: String,
    },
    /// Options that do not fit the model or each other.
    #[error("{0}")]
    Options(String),
    /// A score or vector that is not a number.
    #[error(
        "the model's {what} is {value}; its weights or its precision are at fault (see `loxia model check`)"
    )]
    NotFinite {
        /// Whose value it is: the pair, the query or the item.
        what: String,
        /// NaN or an infinity.
        value: f32,
    },
    /// A tensor that depends on a class this crate never loads.
    #[error("{path}: tensor {tensor} depends on {class}, which is not a plain tensor and is never executed; \
        save the weights again as safetensors", path = path.display())]
    Opaque {
        /// The checkpoint.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// The class or function it is made by.
        class: String,
    },
    /// A model that is not in the hub cache.
    #[error("{model} is not in the Hugging Face cache (looked in {looked}); {advice}", looked = looked.display())]
    NotCached {
        /// The model as it was asked for.
        model: String,
        /// The directory that would hold it.
        looked: PathBuf,
        /// How to get it.
        advice: String,
    },
    /// A download that failed.
    #[error("cannot download {url}: {what}")]
    Download {
        /// The address.
        url: String,
        /// The server's answer, and what to do.
        what: String,
    },
    /// The tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] loxia_nn::Error),
    /// The core.
    #[error(transparent)]
    Core(#[from] loxia_core::Error),
}

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>, action: &'static str, source: std::io::Error) -> Self {
        Error::Io { path: path.into(), action, source }
    }

    pub(crate) fn malformed(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Error::Malformed { path: path.into(), what: what.into() }
    }
}

impl From<Error> for loxia_core::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Core(error) => error,
            other => loxia_core::Error::Scorer(Box::new(other)),
        }
    }
}

/// A complaint about bytes that have no path yet; the caller who knows the file adds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(pub(crate) String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

impl Malformed {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Malformed(what.into())
    }

    pub(crate) fn at(self, path: impl Into<PathBuf>) -> Error {
        Error::malformed(path, self.0)
    }
}

/// The tensors that are wrong in a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TensorProblems {
    /// Names the model needs and no file has.
    pub missing: Vec<String>,
    /// Name, found shape or type, expected shape or type.
    pub wrong: Vec<(String, String, String)>,
    /// Names in the files that belong to no part of the model.
    pub unexpected: Vec<String>,
}

impl TensorProblems {
    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.wrong.is_empty() && self.unexpected.is_empty()
    }
}

impl fmt::Display for TensorProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.missing.is_empty() {
            write!(f, "; missing: {}", self.missing.join(", "))?;
        }
        for (index, (name, found, expected)) in self.wrong.iter().enumerate() {
            let lead = if index == 0 { "; wrong: " } else { ", " };
            write!(f, "{lead}{name} is {found}, expected {expected}")?;
        }
        if !self.unexpected.is_empty() {
            write!(f, "; unexpected: {}", self.unexpected.join(", "))?;
        }
        Ok(())
    }
}
