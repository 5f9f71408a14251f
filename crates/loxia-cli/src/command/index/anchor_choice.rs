//! Which queries become anchors.

use std::str::FromStr;

use loxia::core::Seed;

use crate::flags::Positions;

/// Anchors scored unless told otherwise; with fewer queries, all of them.
pub(super) const DEFAULT_ANCHORS: usize = 500;

/// `--anchors`: how many, or which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnchorChoice {
    /// As many, drawn at random.
    Count(usize),
    /// These, by position.
    Range(Positions),
}

impl FromStr for AnchorChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("..") {
            return text.parse().map(AnchorChoice::Range);
        }
        match text.parse() {
            Ok(0) => Err("an index needs at least one anchor query".into()),
            Ok(count) => Ok(AnchorChoice::Count(count)),
            Err(_) => Err(format!("{text:?} is neither a number nor a range A..B (half-open)")),
        }
    }
}

impl AnchorChoice {
    /// Positions of the anchors among `len` of `what`, ascending. A count above `len` is refused, never
    /// shortened silently.
    pub(super) fn positions(&self, len: usize, what: &str, seed: Seed) -> anyhow::Result<Vec<usize>> {
        let positions: Vec<usize> = match self {
            AnchorChoice::Range(range) => range.within(len, what)?.collect(),
            AnchorChoice::Count(count) if *count > len => {
                return crate::exit::usage(format!("--anchors {count}, but there are {len} {what}"));
            }
            AnchorChoice::Count(count) => draw(len, *count, seed),
        };
        if positions.is_empty() {
            return crate::exit::usage(format!(
                "no anchors: there are {len} {what}, and an index needs at least one"
            ));
        }
        Ok(positions)
    }
}

/// `count` of `len` positions, ascending.
pub(super) fn draw(len: usize, count: usize, seed: Seed) -> Vec<usize> {
    let drawn = seed.stream("index/anchors").sample(len as u64, count.min(len));
    drawn.into_iter().map(|position| position as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_drawn_and_ranges_taken_as_they_are() {
        let choice: AnchorChoice = "3..5".parse().unwrap();
        assert_eq!(choice.positions(9, "queries", Seed(0)).unwrap(), [3, 4]);
        let choice: AnchorChoice = "4".parse().unwrap();
        let drawn = choice.positions(100, "queries", Seed(0)).unwrap();
        assert_eq!(drawn.len(), 4);
        assert_eq!(drawn, choice.positions(100, "queries", Seed(0)).unwrap());
        assert_ne!(drawn, choice.positions(100, "queries", Seed(1)).unwrap());
        assert!(choice.positions(3, "queries", Seed(0)).unwrap_err().to_string().contains("there are 3"));
        for wrong in ["0", "x", "5..3"] {
            assert!(wrong.parse::<AnchorChoice>().is_err(), "{wrong}");
        }
    }
}
