//! Writers of runs, judgements, queries and items.
//!
//! They write to any [`Write`](std::io::Write) as they go, a record at a time, and refuse what a format
//! cannot hold (white space in an id of a TREC file) instead of writing a file that reads back
//! differently. Wrap the output in a buffer; the caller flushes.

mod records;
mod runs;

pub use records::{BlinkRecord, candidates_json, item_json, mention_json, query_json, write_line, write_tsv};
pub use runs::{JsonRunWriter, TrecRunWriter, best_first, write_qrels_beir, write_qrels_trec};

use crate::{Error, Result};

/// What ends a column of a file whose columns are separated by tabs.
pub(crate) fn ends_column(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r')
}

/// An id that a file of columns can hold: something, without a character that would end the column.
pub(crate) fn column<'a>(what: &str, id: &'a str, ends_column: fn(char) -> bool) -> Result<&'a str> {
    // A byte-order mark would be lost at the start of a file.
    if id.is_empty() || id.contains(ends_column) || id.starts_with('\u{feff}') {
        let what = format!(
            "{what} {id:?} in a file of columns: it is empty or has white space that ends a column or line; \
             write JSON lines, or change it"
        );
        return Err(Error::Unwritable { what });
    }
    Ok(id)
}
