//! How long the sequences of a workload are: `256x8`, `32..256x64`, or a file with one length a line.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context as _, Result, bail};
use loxia::core::Seed;

use crate::exit::usage;
use crate::flags::Positions;

/// Most tokens of one workload: a measurement is repeated, it need not be long.
const MOST_TOKENS: usize = 1 << 24;

/// Lengths as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lengths {
    /// So many sequences of one length.
    Equal { length: usize, count: usize },
    /// So many, uniform in a half-open range.
    Uniform { range: Positions, count: usize },
    /// One length a line.
    File(PathBuf),
}

impl Lengths {
    /// The lengths, none beyond `longest`; drawn ones are the same every time.
    pub(super) fn draw(&self, longest: usize) -> Result<Vec<usize>> {
        let lengths = match self {
            Lengths::Equal { length, count } => vec![*length; checked(*count, *length)?],
            Lengths::Uniform { range, count } => {
                let end = range.end().unwrap_or(longest.saturating_add(1));
                if end > longest.saturating_add(1) {
                    return usage(format!(
                        "--lengths: {range} reaches beyond the {longest} tokens that the model takes; write A..{}x{count}",
                        longest + 1
                    ));
                }
                let range = range.within(end, "lengths")?;
                if range.is_empty() {
                    bail!("{range:?} is a range without a length");
                }
                let mut stream = Seed(0).stream("bench lengths");
                let count = checked(*count, range.end)?;
                (0..count).map(|_| range.start + stream.below(range.len() as u64) as usize).collect()
            }
            Lengths::File(path) => {
                let text = match std::fs::read_to_string(path) {
                    Ok(text) => text,
                    Err(error) => {
                        let neither = "neither LENGTHxCOUNT nor A..BxCOUNT, and no file of lengths to read";
                        return usage(format!("--lengths {}: {neither}: {error}", path.display()));
                    }
                };
                let parse = |(line, text): (usize, &str)| {
                    text.trim().parse::<usize>().with_context(|| {
                        format!("{}, line {}: {text:?} is no length", path.display(), line + 1)
                    })
                };
                text.lines().enumerate().map(parse).collect::<Result<_>>()?
            }
        };
        if let Some(length) = lengths.iter().find(|&&length| length > longest) {
            bail!("--lengths: a sequence of {length} tokens is longer than the model's {longest}");
        }
        if lengths.is_empty() {
            bail!("there is no sequence to compute");
        }
        checked(1, lengths.iter().fold(0, |sum, &length| sum.saturating_add(length)))?;
        Ok(lengths)
    }
}

/// The count, unless so many sequences of such a length are too much.
fn checked(count: usize, length: usize) -> Result<usize> {
    match count.checked_mul(length) {
        Some(tokens) if tokens <= MOST_TOKENS => Ok(count),
        _ => bail!("a workload of more than {MOST_TOKENS} tokens; a few thousand are enough to measure"),
    }
}

impl FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let typed = text.rsplit_once('x').and_then(|(length, count)| {
            let count = count.parse().ok()?;
            match length.parse() {
                Ok(length) => Some(Lengths::Equal { length, count }),
                Err(_) => Some(Lengths::Uniform { range: length.parse().ok()?, count }),
            }
        });
        Ok(typed.unwrap_or_else(|| Lengths::File(text.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(text: &str) -> Result<Vec<usize>> {
        text.parse::<Lengths>().unwrap().draw(256)
    }

    #[test]
    fn lengths_are_drawn_as_typed() {
        assert_eq!(draw("256x3").unwrap(), [256; 3]);
        let drawn = draw("32..64x200").unwrap();
        assert_eq!((drawn.len(), drawn.iter().min(), drawn.iter().max()), (200, Some(&32), Some(&63)));
        assert_eq!(drawn, draw("32..64x200").unwrap());
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for (typed, said) in [
            ("257x1", "longer than the model's 256"),
            ("32..300x4", "beyond the 256 tokens that the model takes; write A..257x4"),
            ("8x0", "no sequence"),
            ("256x99999999", "more than"),
            ("no-such-file", "no-such-file"),
        ] {
            let error = format!("{:#}", draw(typed).unwrap_err());
            assert!(error.contains(said), "{typed}: {error}");
        }
    }
}
