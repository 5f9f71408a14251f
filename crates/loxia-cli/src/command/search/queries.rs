//! What is asked: a query as typed, lines of stdin, or a data set.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Context as _, Result};
use loxia::core::{Query, QueryId, QueryText};
use loxia::data::DataSet;
use serde::Deserialize;

use super::SearchFlags;
use crate::context::Context;
use crate::exit::usage;
use crate::flags::DataFlags;
use crate::report::Summary;

/// A query as JSON; `context_left` and `context_right` are what files of mentions say.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonQuery {
    #[serde(alias = "_id")]
    id: Option<String>,
    #[serde(alias = "query")]
    text: Option<String>,
    #[serde(alias = "context_left", default)]
    left: String,
    mention: Option<String>,
    #[serde(alias = "context_right", default)]
    right: String,
}

/// A query as typed: JSON if it is an object, else text.
pub(super) fn typed(text: &str) -> Result<Query> {
    let mut query = Query { id: QueryId::from("query"), text: QueryText::typed(text) };
    if text.trim_start().starts_with('{') {
        let json: JsonQuery = match serde_json::from_str(text) {
            Ok(json) => json,
            Err(error) => return usage(format!("the query begins like JSON, but: {error}")),
        };
        query.text = match (json.text, json.mention) {
            // As in a file: what a program writes is taken at its word.
            (Some(text), None) => QueryText::Plain(text),
            (None, Some(mention)) => QueryText::Mention { left: json.left, mention, right: json.right },
            _ => return usage("a query as JSON has either a text or a mention"),
        };
        if let Some(id) = json.id {
            query.id = QueryId::from(id);
        }
    }
    if query.text.is_blank() {
        return usage("the query is empty; there is nothing to search for");
    }
    Ok(query)
}

/// The queries of `--queries` or of the data set; blank ones are counted as skipped.
pub(super) fn of_data(flags: &SearchFlags, data: &DataSet, summary: &mut Summary) -> Result<Vec<Query>> {
    let other = flags.queries.as_ref().map(|path| flags.data_flags.open_queries(path)).transpose()?;
    let queries = match &other {
        Some(other) => other.queries()?,
        None => DataFlags::queries_beside_items(data).context("give --query, --queries or -i")?,
    };
    let rows = match &flags.rows {
        Some(range) => range.within(queries.len(), "queries")?,
        None => 0..queries.len(),
    };
    let mut read = queries.read(rows)?;
    read.retain(|query| {
        let blank = query.text.is_blank();
        if blank {
            summary.skip(format!("query {:?}: its text is empty", query.id));
        }
        !blank
    });
    if read.is_empty() {
        return usage("there is no query to search for");
    }
    Ok(read)
}

/// Lines of stdin that are not blank, with a prompt where a person types them.
pub(super) fn lines(context: &Context) -> impl Iterator<Item = Result<String>> {
    let prompts = !context.quiet && std::io::stdin().is_terminal();
    let mut lines = std::io::stdin().lock().lines();
    std::iter::from_fn(move || {
        loop {
            if prompts {
                let mut stderr = std::io::stderr().lock();
                let _ = write!(stderr, "query> ").and_then(|()| stderr.flush());
            }
            match lines.next()? {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => return Some(Ok(line)),
                Err(error) => return Some(Err(anyhow::Error::new(error).context("stdin: cannot read"))),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_mentions_and_json_are_told_apart() {
        let mention = |left: &str, mention: &str, right: &str| QueryText::Mention {
            left: left.into(),
            mention: mention.into(),
            right: right.into(),
        };
        assert_eq!(typed("a bird").unwrap().text, QueryText::Plain("a bird".into()));
        assert_eq!(typed("he [[ran]] home").unwrap().text, mention("he", "ran", "home"));
        let json = typed(r#"{"id": "q7", "context_left": "he", "mention": "ran"}"#).unwrap();
        assert_eq!((json.id.as_str(), json.text), ("q7", mention("he", "ran", "")));
        assert_eq!(typed(r#"{"query": "a bird"}"#).unwrap().text, QueryText::Plain("a bird".into()));
        for wrong in ["", " ", "{", r#"{"left": "he"}"#, r#"{"text": ""}"#, r#"{"txt": "a"}"#] {
            assert!(typed(wrong).is_err(), "{wrong}");
        }
    }
}
