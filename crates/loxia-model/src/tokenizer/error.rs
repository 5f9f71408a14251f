//! What can go wrong with a tokenizer's files.

use std::path::PathBuf;

/// A tokenizer that cannot be read, does not fit its model, or fails on a text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// A file could not be read.
    #[error("{path}: cannot read: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file whose content is not a tokenizer's.
    #[error("{path}: {what}", path = path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Found, expected, and what to do.
        what: String,
    },
    /// A directory without any tokenizer file.
    #[error(
        "{path}: no tokenizer found (looked for tokenizer.json, vocab.txt, and vocab.json with merges.txt); \
         copy the tokenizer files of the base model here",
        path = path.display()
    )]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// A SentencePiece model that was never converted.
    #[error(
        "{path}: SentencePiece models are not read; write a tokenizer.json beside it with \
         `AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)` in Python",
        path = path.display()
    )]
    SentencePiece {
        /// The `.model` file.
        path: PathBuf,
    },
    /// Token ids that the model has no embedding for.
    #[error(
        "tokenizer and vocabulary disagree: token {token:?} has id {id}, but the model has {model_vocabulary} \
         embeddings and the tokenizer {tokenizer_vocabulary} tokens; use the tokenizer the model was trained with"
    )]
    Vocabulary {
        /// The largest id.
        id: u32,
        /// Its token.
        token: String,
        /// Tokens of the tokenizer.
        tokenizer_vocabulary: usize,
        /// Rows of the model's embedding.
        model_vocabulary: usize,
    },
    /// The tokenizer refused a text.
    #[error("cannot tokenise {excerpt:?}: {what}")]
    Encode {
        /// The beginning of the text.
        excerpt: String,
        /// The tokenizer's answer.
        what: String,
    },
}

impl TokenizerError {
    pub(crate) fn invalid(path: impl Into<PathBuf>, what: impl std::fmt::Display) -> Self {
        TokenizerError::Invalid { path: path.into(), what: what.to_string() }
    }
}
