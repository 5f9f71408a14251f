//! Names of the methods.

use crate::{AnchorSet, Error, Result};

/// A method by name. A `+` means centred columns and a ridge chosen on anchor rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MethodName {
    /// Everything.
    Exact,
    /// The first stage's best.
    Rerank,
    /// Fixed random anchor items, as published.
    Anncur,
    /// The same, centred, with a ridge.
    AnncurPlus,
    /// As published, items kept as their anchor scores and not as embeddings: the same guesses up to rounding.
    AnncurColumns,
    /// Anchor items nearest to the centres of a k-means over item vectors, or over anchor scores where
    /// there are none.
    AnncurKMeans,
    /// The dual encoder's best as anchor items, other ones for each query.
    AnncurDual,
    /// With the best link, made from the whole matrix: a bound, no method.
    AnncurOracle,
    /// ANNCUR with items in the query slot in place of anchor queries.
    ItemCur,
    /// Items described by their scores, in the query slot, against fixed anchor items.
    FixedItem,
    /// Adaptive anchor items from the first stage's best, as published.
    Adacur,
    /// The same, centred, with a ridge.
    AdacurPlus,
    /// Adaptive anchor items from a random first round, as published.
    AdacurRandom,
    /// Adaptive anchor items drawn by the exponential of their guess.
    AdacurSoftMax,
    /// The same for a share of the budget, then the best of the last guess.
    AdacurSoftMaxSplit,
    /// Later rounds drawn uniformly, then the best of the last guess.
    AdacurUniform,
    /// Adaptive anchor items where guesses differ most, then the best of the last guess.
    AdacurVariance,
    /// Where guesses differ most, to the end.
    AdacurVarianceAll,
    /// Adaptive anchor items for a share of the budget, then the best of the last guess.
    AdacurSplit,
    /// Regression on item vectors, from the dual encoder or from factors, whichever does better.
    Axn,
    /// Regression on the dual encoder's item vectors.
    AxnDual,
    /// Regression on factors of the anchor rows.
    AxnFactors,
    /// Regression of centred scores on factors of the anchor rows.
    AxnPlus,
    /// The posterior method.
    Posterior,
}

const NAMES: [(MethodName, &str); 24] = [
    (MethodName::Exact, "exact"),
    (MethodName::Rerank, "rerank"),
    (MethodName::Anncur, "anncur"),
    (MethodName::AnncurPlus, "anncur+"),
    (MethodName::AnncurColumns, "anncur-columns"),
    (MethodName::AnncurKMeans, "anncur-kmeans"),
    (MethodName::AnncurDual, "anncur-dual"),
    (MethodName::AnncurOracle, "anncur-oracle"),
    (MethodName::ItemCur, "itemcur"),
    (MethodName::FixedItem, "fixed-item"),
    (MethodName::Adacur, "adacur"),
    (MethodName::AdacurPlus, "adacur+"),
    (MethodName::AdacurRandom, "adacur-random"),
    (MethodName::AdacurSoftMax, "adacur-softmax"),
    (MethodName::AdacurSoftMaxSplit, "adacur-softmax-split"),
    (MethodName::AdacurUniform, "adacur-uniform"),
    (MethodName::AdacurVariance, "adacur-variance"),
    (MethodName::AdacurVarianceAll, "adacur-variance-all"),
    (MethodName::AdacurSplit, "adacur-split"),
    (MethodName::Axn, "axn"),
    (MethodName::AxnDual, "axn-dual"),
    (MethodName::AxnFactors, "axn-factors"),
    (MethodName::AxnPlus, "axn+"),
    (MethodName::Posterior, "posterior"),
];

impl MethodName {
    /// All of them.
    pub fn all() -> impl Iterator<Item = MethodName> {
        NAMES.iter().map(|&(method, _)| method)
    }

    /// Whether the method reads a first stage: reranking, and those that begin with one or take anchor items of it.
    pub fn has_first_stage(self) -> bool {
        self == MethodName::Rerank || self == MethodName::AnncurDual || self.is_axn() || self.is_adacur()
    }

    /// Whether it is a variant of AXN.
    pub fn is_axn(self) -> bool {
        self.in_family("axn")
    }

    /// Whether it spends its budget in rounds.
    pub fn is_adaptive(self) -> bool {
        self == MethodName::Posterior || self.is_axn() || self.is_adacur()
    }

    fn is_adacur(self) -> bool {
        self.in_family("adacur")
    }

    /// Whether its name is that of a family, or of a variant of it.
    fn in_family(self, family: &str) -> bool {
        NAMES.iter().any(|(method, name)| *method == self && name.starts_with(family))
    }

    /// Whether the method depends on the seed: it draws anchor items, its first round or later ones.
    pub fn draws(self, anchors: &AnchorSet) -> bool {
        match self {
            MethodName::Anncur | MethodName::AnncurPlus | MethodName::AnncurKMeans => true,
            MethodName::AnncurColumns | MethodName::AnncurOracle | MethodName::ItemCur => true,
            MethodName::AdacurRandom | MethodName::AdacurSoftMax | MethodName::AdacurSoftMaxSplit => true,
            MethodName::AdacurUniform | MethodName::AdacurVariance | MethodName::AdacurVarianceAll => true,
            MethodName::Exact | MethodName::Rerank | MethodName::AnncurDual => false,
            MethodName::FixedItem | MethodName::AxnDual | MethodName::Posterior => false,
            MethodName::Adacur | MethodName::AdacurPlus | MethodName::AdacurSplit => {
                starts_at_random(anchors)
            }
            MethodName::Axn | MethodName::AxnFactors | MethodName::AxnPlus => starts_at_random(anchors),
        }
    }
}

/// Without vectors or another first stage the first round is drawn.
fn starts_at_random(anchors: &AnchorSet) -> bool {
    anchors.item_vectors().is_none() && anchors.first_stage().is_none()
}

impl std::str::FromStr for MethodName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        NAMES.iter().find(|(_, name)| *name == text).map(|&(method, _)| method).ok_or_else(|| {
            let known: Vec<&str> = NAMES.iter().map(|&(_, name)| name).collect();
            loxia_core::Error::Invalid(format!("no method {text:?}; there are {}", known.join(", "))).into()
        })
    }
}

impl std::fmt::Display for MethodName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = NAMES.iter().find(|(method, _)| method == self).map_or("?", |&(_, name)| name);
        f.pad(name)
    }
}
