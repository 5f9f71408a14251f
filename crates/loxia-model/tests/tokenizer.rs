//! Tokenizers against what transformers gives.
