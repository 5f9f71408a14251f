//! Flags and matrices of the examples; not every example needs all of it.

#![allow(dead_code)]

use std::collections::HashMap;
use std::error::Error;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use loxia_core::npy::read_npy_matrix;
use loxia_search::linalg::Dense;
use loxia_search::{AnchorSet, QueryRows};

/// Result of an example.
pub(crate) type Fallible<T> = Result<T, Box<dyn Error>>;

/// What the command line says.
pub(crate) struct Flags(HashMap<String, String>);

impl Flags {
    /// Reads `--name value` pairs; `--json` stands alone.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Fallible<Self> {
        let mut flags = HashMap::new();
        while let Some(argument) = arguments.next() {
            let name = argument.strip_prefix("--").ok_or(format!("unexpected argument {argument}"))?;
            let value = match name {
                "json" => String::new(),
                _ => arguments.next().ok_or(format!("{argument} needs a value"))?,
            };
            flags.insert(name.to_owned(), value);
        }
        Ok(Flags(flags))
    }

    /// A flag's value, if given.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A flag's value, or an error that names it.
    pub(crate) fn needed(&self, name: &str) -> Fallible<&str> {
        Ok(self.get(name).ok_or(format!("--{name} is missing"))?)
    }

    /// Numbers between commas.
    pub(crate) fn list<T: std::str::FromStr<Err = std::num::ParseIntError>>(
        &self,
        name: &str,
        default: &str,
    ) -> Fallible<Vec<T>> {
        Ok(self.get(name).unwrap_or(default).split(',').map(str::parse).collect::<Result<_, _>>()?)
    }

    /// Anchor rows and test rows: `--scores`, `--query-vectors`, `--item-vectors`, `--anchors`, `--test`.
    pub(crate) fn read_rows(&self) -> Fallible<(AnchorSet, QueryRows)> {
        let scores = read_matrix(self.needed("scores")?)?;
        let (anchors, test) = (parse_range(self.needed("anchors")?)?, parse_range(self.needed("test")?)?);
        let (Some(queries), Some(items)) = (self.get("query-vectors"), self.get("item-vectors")) else {
            let anchors = AnchorSet::new(part(&scores, &anchors)?, None)?;
            return Ok((anchors, QueryRows { scores: part(&scores, &test)?, vectors: None, queries: None }));
        };
        let (queries, items) = (read_matrix(queries)?, Arc::new(read_matrix(items)?));
        let anchors = AnchorSet::new(part(&scores, &anchors)?, Some((part(&queries, &anchors)?, items)))?;
        let vectors = Some(part(&queries, &test)?);
        Ok((anchors, QueryRows { scores: part(&scores, &test)?, vectors, queries: None }))
    }
}

fn part(matrix: &Dense, range: &Range<usize>) -> Fallible<Arc<Dense>> {
    if range.end > matrix.rows() {
        return Err(format!("rows {range:?} asked for, but there are {}", matrix.rows()).into());
    }
    Ok(Arc::new(matrix.select_rows(&range.clone().collect::<Vec<_>>())))
}

fn parse_range(text: &str) -> Fallible<Range<usize>> {
    let (start, end) = text.split_once("..").ok_or(format!("{text} is no range like 0..500"))?;
    Ok(start.parse()?..end.parse()?)
}

/// A whole npy file.
pub(crate) fn read_matrix(path: impl AsRef<Path>) -> Fallible<Dense> {
    let matrix = read_npy_matrix(path.as_ref())?;
    Ok(Dense::new(matrix.rows, matrix.cols, matrix.values)?)
}
