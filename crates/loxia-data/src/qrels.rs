//! Relevance judgements: TREC's four columns, or BEIR's three with a header.

use std::io::BufRead;
use std::path::Path;

use loxia_core::Qrels;

use crate::{Line, LineReader, ReadOptions, Result};

/// Judgements as they were read.
#[derive(Debug, Clone, PartialEq)]
pub struct QrelsFile {
    /// The judgements, in file order.
    pub qrels: Qrels,
    /// Lines that repeated an earlier judgement with the same level.
    pub repeated: u64,
    /// How the file was written.
    pub format: QrelsFormat,
}

/// How judgements are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QrelsFormat {
    /// `query 0 item level`, separated by white space.
    Trec,
    /// A header `query-id corpus-id score`, then three columns separated by tabs.
    Beir,
}

/// Reads judgements; the format is told by the header line.
pub fn read_qrels(path: impl AsRef<Path>, options: &ReadOptions) -> Result<QrelsFile> {
    read(LineReader::open(path, &options.limits)?)
}

/// Reads judgements from any reader; `name` stands for the path in messages.
///
/// ```
/// use loxia_data::{ReadOptions, parse_qrels};
/// let file = parse_qrels(&b"q1 0 d7 2\n"[..], "example.qrels", &ReadOptions::default()).unwrap();
/// assert_eq!(file.qrels.get("q1").unwrap()["d7"], 2);
/// ```
pub fn parse_qrels(input: impl BufRead + Send, name: &str, options: &ReadOptions) -> Result<QrelsFile> {
    read(LineReader::new(input, name, &options.limits)?)
}

fn read(mut lines: LineReader<'_>) -> Result<QrelsFile> {
    let mut file = QrelsFile { qrels: Qrels::new(), repeated: 0, format: QrelsFormat::Trec };
    let mut first = true;
    while let Some(line) = lines.next_filled()? {
        if std::mem::take(&mut first) && is_header(line.text()) {
            file.format = QrelsFormat::Beir;
            continue;
        }
        let (query, item, level) = match file.format {
            QrelsFormat::Trec => trec_columns(&line)?,
            QrelsFormat::Beir => beir_columns(&line)?,
        };
        let level = level
            .parse()
            .map_err(|_| line.invalid(format!("relevance {level:?} is not an integer of 32 bits")))?;
        match file.qrels.insert(query.into(), item.into(), level) {
            None => {}
            Some(before) if before == level => file.repeated += 1,
            Some(before) => {
                let what =
                    format!("query {query:?}, item {item:?} is judged {level} here and {before} before");
                return Err(line.invalid(what));
            }
        }
    }
    Ok(file)
}

fn is_header(line: &str) -> bool {
    line.split('\t').map(str::trim).eq(["query-id", "corpus-id", "score"])
}

fn trec_columns<'a>(line: &Line<'a>) -> Result<(&'a str, &'a str, &'a str)> {
    let columns: Vec<&str> = line.text().split_ascii_whitespace().take(5).collect();
    match columns[..] {
        [query, _, item, level] => Ok((query, item, level)),
        _ => Err(line.invalid(format!(
            "{} columns, TREC judgements have 4: query 0 item level (BEIR's 3 columns need their header: \
             query-id, corpus-id, score)",
            line.text().split_ascii_whitespace().count()
        ))),
    }
}

fn beir_columns<'a>(line: &Line<'a>) -> Result<(&'a str, &'a str, &'a str)> {
    let columns: Vec<&str> = line.text().split('\t').take(4).collect();
    match columns[..] {
        [query, item, level] if !query.is_empty() && !item.is_empty() => Ok((query, item, level.trim())),
        _ => Err(line.invalid("expected three columns separated by tabs: query-id corpus-id score")),
    }
}
