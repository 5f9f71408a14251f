//! Panics of the `tokenizers` crate as errors.
//!
//! That crate panics on some files it has read without complaint and on some texts. Files come from anywhere,
//! so every call that depends on one goes through [`contained`].

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `work`; a panic in it becomes its message.
///
/// What `work` borrows is either dropped by the caller after an error or a pipeline, which a panic leaves as it
/// was: encoding changes nothing but caches, which give up on a poisoned lock.
pub(super) fn contained<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let message = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = message.or_else(|| payload.downcast_ref::<String>().cloned());
        format!(
            "the tokenizers library failed ({}); write the file again with `AutoTokenizer.from_pretrained(DIR)\
             .save_pretrained(DIR)` in Python",
            message.unwrap_or_else(|| "without a message".to_owned())
        )
    })
}
