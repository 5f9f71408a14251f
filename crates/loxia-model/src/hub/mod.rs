//! Models of a Hugging Face hub, by name.
//!
//! Only the local cache is read, unless the feature `hub` is on and a download is asked for.

mod cache;
#[cfg(feature = "hub")]
mod download;

pub use cache::{HubModel, cache_root};
#[cfg(feature = "hub")]
pub use download::{Downloaded, download};
