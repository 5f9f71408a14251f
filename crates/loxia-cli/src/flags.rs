//! Groups of flags that several commands share, and what they mean.

use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

/// A half-open range of positions: `A..B`, `A..`, `..B` or `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Positions {
    start: usize,
    end: Option<usize>,
}

impl Positions {
    /// The range within `0..len`; one that reaches beyond is refused, never shortened silently.
    pub(crate) fn within(&self, len: usize, what: &str) -> anyhow::Result<Range<usize>> {
        let end = self.end.unwrap_or(len);
        if self.start > end || end > len {
            return crate::exit::usage(format!(
                "range {self} does not fit: there are {len} {what}, so it must lie within 0..{len}"
            ));
        }
        Ok(self.start..end)
    }
}

impl std::fmt::Display for Positions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.end {
            Some(end) => write!(f, "{}..{end}", self.start),
            None => write!(f, "{}..", self.start),
        }
    }
}

impl FromStr for Positions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let advice = || format!("{text:?} is no range; write A..B (half-open), for instance 0..500");
        let (start, end) = text.split_once("..").ok_or_else(advice)?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| advice());
        let start = if start.is_empty() { 0 } else { number(start)? };
        let end = if end.is_empty() { None } else { Some(number(end)?) };
        if end.is_some_and(|end| end < start) {
            return Err(format!("range {text} ends before it starts"));
        }
        Ok(Positions { start, end })
    }
}

/// Where the result goes, and what happens to one that is there already.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputFlags {
    /// Where to write; - is stdout
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: PathBuf,
    /// Replace an existing output
    #[arg(long)]
    pub(crate) overwrite: bool,
}

impl OutputFlags {
    /// Whether the result goes to stdout.
    pub(crate) fn is_stdout(&self) -> bool {
        self.output.as_os_str() == "-"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_half_open_and_never_cut() {
        let range: Positions = "2..5".parse().unwrap();
        assert_eq!(range.within(9, "rows").unwrap(), 2..5);
        assert_eq!("..".parse::<Positions>().unwrap().within(3, "rows").unwrap(), 0..3);
        assert_eq!("1..".parse::<Positions>().unwrap().within(3, "rows").unwrap(), 1..3);
        let error = range.within(4, "mentions").unwrap_err().to_string();
        assert!(error.contains("there are 4 mentions"), "{error}");
        assert!("5..2".parse::<Positions>().is_err());
        assert!("5".parse::<Positions>().is_err());
    }
}
