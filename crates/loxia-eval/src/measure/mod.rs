//! Measures: what they are called, what they take, how they are averaged.
//!
//! Names are those of ir_measures (`nDCG@10`, `AP(rel=2)@100`); trec_eval's (`ndcg_cut_10`, `map`) are
//! understood as well, and case does not matter. [`Measure`] prints the ir_measures name.

mod names;
mod parse;
mod trec_eval;
mod value;

use std::fmt;

use serde::{Serialize, Serializer};

pub(crate) use value::HIGHEST_EXPONENTIAL_LEVEL;

/// Which formula; parameters that only one formula has are inside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Ndcg { exponential: bool },
    ReciprocalRank,
    AveragePrecision,
    GeometricAveragePrecision,
    Precision,
    Recall,
    Success,
    RPrecision,
    Judged,
    Bpref,
    InferredAp,
    InterpolatedPrecision { recall: f64 },
    SetPrecision { relative: bool },
    SetRecall,
    SetF { beta: f64 },
    SetAp,
    NumQueries,
    NumRetrieved,
    NumRelevant,
    NumRelevantRetrieved,
}

/// How the values of the queries become one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregation {
    /// The arithmetic mean.
    Mean,
    /// The sum: all counts.
    Sum,
    /// The geometric mean, each value raised to at least 0.00001 (`gm_map`).
    GeometricMean,
}

/// A measure with its parameters.
///
/// | name | also | what it is |
/// |---|---|---|
/// | `nDCG`, `nDCG@k`, `nDCG(dcg='exp-log2')@k` | `ndcg`, `ndcg_cut_k` | gain (the level, or 2^level - 1) over log2(rank + 1), over that of the best order of all judged items |
/// | `RR`, `RR@k` | `recip_rank`, `MRR` | 1 over the rank of the first relevant item |
/// | `AP`, `AP@k` | `map`, `map_cut_k` | precision at each relevant item, over the number of relevant items |
/// | `gm_map` | | geometric mean of `AP` over the queries |
/// | `P@k`, `R@k`, `Success@k` | `P_k`, `recall_k`, `success_k` | relevant among the first k: over k; over all relevant; any |
/// | `Rprec` | | `P` at the number of relevant items |
/// | `Judged`, `Judged@k` | | fraction of the first k that the qrels hold; over what was retrieved if that is fewer than k |
/// | `Bpref` | `bpref` | for each relevant item, how few of the judged non-relevant stand above it |
/// | `infAP` | | `AP` estimated from a sampled pool (negative level = pooled, not judged) |
/// | `IPrec@r` | `iprec_at_recall_r` | best precision at recall r or beyond |
/// | `SetP`, `SetRelP`, `SetR`, `SetF(beta=b)`, `SetAP` | `set_P`, `set_relative_P`, `set_recall`, `set_F`, `set_map` | of the retrieved as a set |
/// | `NumQ`, `NumRet`, `NumRel`, `NumRelRet` | `num_q`, `num_ret`, `num_rel`, `num_rel_ret` | counts, summed over queries |
///
/// `rel=N` is the lowest level that counts as relevant (1 unless given; nDCG has none). `judged_only=True`
/// drops items without a judgement from the ranking first.
///
/// ```
/// use loxia_eval::Measure;
/// let measure: Measure = "ndcg_cut_10".parse()?;
/// assert_eq!(measure.to_string(), "nDCG@10");
/// assert_eq!(measure, "nDCG@10".parse()?);
/// assert_eq!("AP".parse::<Measure>()?, "AP(rel=1)".parse()?);
/// let error = "nDGC@10".parse::<Measure>().unwrap_err();
/// assert!(error.to_string().contains("did you mean nDCG"));
/// # Ok::<(), loxia_eval::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    pub(crate) kind: Kind,
    pub(crate) cutoff: Option<usize>,
    pub(crate) rel: Option<u32>,
    pub(crate) judged_only: bool,
}

impl Measure {
    pub(crate) const fn new(kind: Kind) -> Self {
        Measure { kind, cutoff: None, rel: None, judged_only: false }
    }

    pub(crate) const fn at(kind: Kind, cutoff: usize) -> Self {
        Measure { kind, cutoff: Some(cutoff), rel: None, judged_only: false }
    }

    /// How the values of the queries are put together.
    pub fn aggregation(&self) -> Aggregation {
        match self.kind {
            Kind::NumQueries | Kind::NumRetrieved | Kind::NumRelevant | Kind::NumRelevantRetrieved => {
                Aggregation::Sum
            }
            Kind::GeometricAveragePrecision => Aggregation::GeometricMean,
            _ => Aggregation::Mean,
        }
    }

    /// Sets the lowest relevant level (trec_eval's `-l`), unless the measure was written with its own or
    /// has none.
    ///
    /// ```
    /// use loxia_eval::Measure;
    /// let with_level = |name: &str| name.parse::<Measure>().unwrap().with_level(2).to_string();
    /// assert_eq!(with_level("RR@10"), "RR(rel=2)@10");
    /// assert_eq!(with_level("AP(rel=3)"), "AP(rel=3)");
    /// assert_eq!(with_level("nDCG@10"), "nDCG@10");
    /// ```
    #[must_use]
    pub fn with_level(mut self, level: u32) -> Self {
        if self.takes_level() {
            self.rel.get_or_insert(level);
        }
        self
    }

    /// The lowest level that counts as relevant.
    pub(crate) fn level(&self) -> u32 {
        self.rel.unwrap_or(1)
    }

    fn takes_level(&self) -> bool {
        !matches!(self.kind, Kind::Ndcg { .. } | Kind::Judged | Kind::NumQueries | Kind::NumRetrieved)
    }

    /// The measures that trec_eval prints when it is asked for none.
    ///
    /// ```
    /// assert_eq!(loxia_eval::Measure::official().len(), 29);
    /// ```
    pub fn official() -> Vec<Measure> {
        names::official()
    }
}

/// A level of 1 is the same written or not; only [`Measure::with_level`] tells the two apart.
impl PartialEq for Measure {
    fn eq(&self, other: &Self) -> bool {
        let values = |measure: &Measure| (measure.kind, measure.cutoff, measure.level(), measure.judged_only);
        values(self) == values(other)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parameters = Vec::new();
        match self.kind {
            // ir_measures writes the relevant retrieved as NumRet with a level, so 1 is not left out.
            Kind::NumRelevantRetrieved => parameters.push(format!("rel={}", self.level())),
            _ if self.level() != 1 => parameters.push(format!("rel={}", self.level())),
            _ => {}
        }
        match self.kind {
            Kind::Ndcg { exponential: true } => parameters.push("dcg='exp-log2'".to_owned()),
            Kind::SetPrecision { relative: true } => parameters.push("relative=True".to_owned()),
            Kind::SetF { beta } if beta != 1.0 => parameters.push(format!("beta={beta:?}")),
            _ => {}
        }
        if self.judged_only {
            parameters.push("judged_only=True".to_owned());
        }
        let mut text = names::canonical(self.kind).to_owned();
        if !parameters.is_empty() {
            text = format!("{text}({})", parameters.join(","));
        }
        match (self.kind, self.cutoff) {
            (Kind::InterpolatedPrecision { recall }, _) => text = format!("{text}@{recall:?}"),
            (_, Some(cutoff)) => text = format!("{text}@{cutoff}"),
            _ => {}
        }
        f.pad(&text)
    }
}

impl Serialize for Measure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
