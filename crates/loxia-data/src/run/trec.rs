//! TREC runs: `query Q0 item rank score tag`, separated by white space.

use super::{RunBuilder, RunFile, RunFormat, RunTexts};
use crate::{Line, LineReader, Result};

pub(super) fn read(mut lines: LineReader<'_>) -> Result<RunFile> {
    let mut run = RunBuilder::default();
    while let Some(line) = lines.next_filled()? {
        let [query, _, item, _, score, tag] = columns(&line)?;
        let value = finite(score).ok_or_else(|| {
            line.invalid(format!("score {score:?} is not a finite number (column 5 of: {COLUMNS})"))
        })?;
        if run.queries.is_empty() {
            tag.clone_into(&mut run.tag);
        }
        run.push(query, item, |_| value);
    }
    Ok(run.finish(RunTexts::default(), RunFormat::Trec))
}

/// Whether a line that starts like JSON is none: JSON has quotes, or no two numbers side by side.
pub(super) fn is_line(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let columns: Vec<&str> = line.split_ascii_whitespace().take(7).collect();
    match columns[..] {
        [_, _, _, rank, score, _] => !line.contains('"') && finite(rank).is_some() && finite(score).is_some(),
        _ => false,
    }
}

const COLUMNS: &str = "query Q0 item rank score tag";

fn columns<'a>(line: &Line<'a>) -> Result<[&'a str; 6]> {
    let mut columns = [""; 6];
    let mut count = 0;
    for column in line.text().split_ascii_whitespace() {
        if let Some(slot) = columns.get_mut(count) {
            *slot = column;
        }
        count += 1;
    }
    if count != columns.len() {
        return Err(line.invalid(format!("{count} columns, a TREC run has 6: {COLUMNS}")));
    }
    Ok(columns)
}

fn finite(score: &str) -> Option<f64> {
    score.parse().ok().filter(|score: &f64| score.is_finite())
}
