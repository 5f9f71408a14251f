//! The models and the world that are built into the program (assets/README.md says where they are from).

use std::path::PathBuf;

use anyhow::{Context as _, Result};

macro_rules! asset {
    ($path:literal) => {
        ($path, include_bytes!(concat!("../../../assets/", $path)))
    };
}

const FILES: &[(&str, &[u8])] = &[
    asset!("tiny-models/emb-cross-encoder/config.json"),
    asset!("tiny-models/emb-cross-encoder/loxia.json"),
    asset!("tiny-models/emb-cross-encoder/model.safetensors"),
    asset!("tiny-models/emb-cross-encoder/tokenizer.json"),
    asset!("tiny-models/emb-cross-encoder/tokenizer_config.json"),
    asset!("tiny-models/dual-query/config.json"),
    asset!("tiny-models/dual-query/loxia.json"),
    asset!("tiny-models/dual-query/model.safetensors"),
    asset!("tiny-models/dual-query/tokenizer.json"),
    asset!("tiny-models/dual-query/tokenizer_config.json"),
    asset!("tiny-models/dual-item/config.json"),
    asset!("tiny-models/dual-item/loxia.json"),
    asset!("tiny-models/dual-item/model.safetensors"),
    asset!("tiny-models/dual-item/tokenizer.json"),
    asset!("tiny-models/dual-item/tokenizer_config.json"),
    asset!("worlds/documents/verb.motion.jsonl.gz"),
    asset!("worlds/mentions/test.jsonl.gz"),
];

/// The embedded files, written to a temporary directory that goes when this does.
pub(crate) struct Embedded(tempfile::TempDir);

impl Embedded {
    /// Writes the files out: models and data are read through the same doors as a user's own.
    pub(crate) fn unpack() -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("loxia-demo-")
            .tempdir()
            .context("cannot make a temporary directory for the embedded models")?;
        for (name, bytes) in FILES {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(directory.path()))
                .and_then(|()| std::fs::write(&path, bytes))
                .with_context(|| format!("{}: cannot write", path.display()))?;
        }
        Ok(Embedded(directory))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The [EMB] cross-encoder.
    pub(crate) fn cross_encoder(&self) -> String {
        self.path("tiny-models/emb-cross-encoder").display().to_string()
    }

    /// The two towers of the dual encoder, as `--dual` takes them.
    pub(crate) fn dual_encoder(&self) -> String {
        let tower = |name: &str| self.path(name).display().to_string();
        format!("{},{}", tower("tiny-models/dual-query"), tower("tiny-models/dual-item"))
    }

    /// The world: senses of verbs of motion, and mentions of them.
    pub(crate) fn world(&self) -> PathBuf {
        self.path("worlds")
    }

    /// Name of the world.
    pub(crate) const WORLD: &str = "verb.motion";
}
