//! The hub's cache on disk: `models--owner--name/{refs,snapshots,blobs}`.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::{Error, Result};

/// A model on the hub, `owner/name[@revision]`.
///
/// ```
/// use loxia_model::HubModel;
/// let model: HubModel = "sentence-transformers/all-MiniLM-L6-v2@main".parse().unwrap();
/// assert_eq!(model.revision(), "main");
/// assert!("../etc/passwd".parse::<HubModel>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HubModel {
    name: String,
    revision: Option<String>,
}

impl HubModel {
    /// `owner/name`, or a name without owner.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Branch, tag or commit; `main` unless given.
    pub fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or("main")
    }

    /// The model's directory in the cache.
    pub(crate) fn cache_directory(&self, cache: &Path) -> PathBuf {
        cache.join(format!("models--{}", self.name.replace('/', "--")))
    }

    /// The snapshot in the user's cache, or an error that says where it was looked for.
    pub fn cached(&self) -> Result<PathBuf> {
        self.cached_in(&cache_root()?)
    }

    /// The snapshot in a given cache.
    pub fn cached_in(&self, cache: &Path) -> Result<PathBuf> {
        let directory = self.cache_directory(cache);
        let reference = directory.join("refs").join(self.revision());
        let commit = match fs::read_to_string(&reference) {
            Ok(commit) => commit.trim().to_owned(),
            // A revision may be a commit itself.
            Err(_) => self.revision().to_owned(),
        };
        let plain = !commit.is_empty()
            && commit.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        let snapshot = directory.join("snapshots").join(&commit);
        if plain && !commit.starts_with('.') && snapshot.is_dir() {
            return Ok(snapshot);
        }
        Err(Error::NotCached {
            model: format!("hf:{self}"),
            looked: directory,
            advice: if is_offline() {
                "HF_HUB_OFFLINE is set: download it elsewhere and copy the cache".into()
            } else {
                format!("get it with --download, or with `hf download {}`", self.name)
            },
        })
    }
}

impl FromStr for HubModel {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, revision) = match text.split_once('@') {
            Some((name, revision)) => (name, Some(revision)),
            None => (text, None),
        };
        let word = |word: &str| {
            !word.is_empty()
                && !word.starts_with('.')
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        let parts: Vec<&str> = name.split('/').collect();
        let sound = parts.len() <= 2
            && parts.iter().all(|part| word(part))
            && !name.contains("--")
            && revision.is_none_or(|revision| revision.split('/').all(word));
        if !sound {
            return Err(Error::Options(format!(
                "{text:?} is no model name; hf:owner/name or hf:owner/name@revision"
            )));
        }
        Ok(HubModel { name: name.to_owned(), revision: revision.map(str::to_owned) })
    }
}

impl fmt::Display for HubModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.revision.as_ref().map_or(Ok(()), |revision| write!(f, "@{revision}"))
    }
}

/// Where the hub's cache is: `HF_HUB_CACHE`, else `hub` in `HF_HOME`, else below the user's cache directory.
pub fn cache_root() -> Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("HF_HUB_CACHE")
        .or_else(|| set("HUGGINGFACE_HUB_CACHE"))
        .or_else(|| set("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("huggingface/hub")))
        .or_else(|| {
            set("HOME").or_else(|| set("USERPROFILE")).map(|home| home.join(".cache/huggingface/hub"))
        })
        .ok_or_else(|| Error::Options("no home directory is set; set HF_HOME or HF_HUB_CACHE".into()))
}

/// Whether the user forbids the network.
pub(crate) fn is_offline() -> bool {
    env::var("HF_HUB_OFFLINE")
        .is_ok_and(|value| matches!(value.to_lowercase().as_str(), "1" | "true" | "yes" | "on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_found_by_branch_and_by_commit() {
        let cache = tempfile::tempdir().unwrap();
        let model = cache.path().join("models--owner--name");
        fs::create_dir_all(model.join("refs")).unwrap();
        fs::create_dir_all(model.join("snapshots/abc123")).unwrap();
        fs::write(model.join("refs/main"), "abc123").unwrap();
        fs::write(model.join("refs/evil"), "../../..").unwrap();
        let find = |name: &str| name.parse::<HubModel>().unwrap().cached_in(cache.path());
        assert_eq!(find("owner/name").unwrap(), model.join("snapshots/abc123"));
        assert_eq!(find("owner/name@abc123").unwrap(), model.join("snapshots/abc123"));
        assert!(find("owner/name@evil").is_err());
        let message = find("owner/other").unwrap_err().to_string();
        assert!(message.contains("models--owner--other") && message.contains("hf:owner/other"), "{message}");
    }

    #[test]
    fn names_cannot_leave_the_cache() {
        for name in ["", "a/b/c", "../a", "a/..", "a/b@../c", "a\\b/c", "a/b@"] {
            assert!(name.parse::<HubModel>().is_err(), "{name:?}");
        }
    }
}
