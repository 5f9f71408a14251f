//! TF-IDF retrieval.
