//! Names of the methods.

use crate::{AnchorSet, Error, Result};

/// A method by name. A `+` means centred columns and a ridge chosen on anchor rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MethodName {
    /// Everything.
    Exact,
    /// The dual encoder's best.
    Rerank,
    /// Fixed random anchor items, as published.
    Anncur,
    /// The same, centred, with a ridge.
    AnncurPlus,
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
    /// Adaptive anchor items from the dual encoder's best, as published.
    Adacur,
    /// The same, centred, with a ridge.
    AdacurPlus,
    /// Adaptive anchor items from a random first round, as published.
    AdacurRandom,
    /// Adaptive anchor items drawn by the exponential of their guess.
    AdacurSoftMax,
    /// Adaptive anchor items where guesses differ most, then the best of the last guess.
    AdacurVariance,
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

const NAMES: [(MethodName, &str); 20] = [
    (MethodName::Exact, "exact"),
    (MethodName::Rerank, "rerank"),
    (MethodName::Anncur, "anncur"),
    (MethodName::AnncurPlus, "anncur+"),
    (MethodName::AnncurKMeans, "anncur-kmeans"),
    (MethodName::AnncurDual, "anncur-dual"),
    (MethodName::AnncurOracle, "anncur-oracle"),
    (MethodName::ItemCur, "itemcur"),
    (MethodName::FixedItem, "fixed-item"),
    (MethodName::Adacur, "adacur"),
    (MethodName::AdacurPlus, "adacur+"),
    (MethodName::AdacurRandom, "adacur-random"),
    (MethodName::AdacurSoftMax, "adacur-softmax"),
    (MethodName::AdacurVariance, "adacur-variance"),
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

    /// Whether the method depends on the seed: it draws anchor items, its first round or later ones.
    pub fn draws(self, anchors: &AnchorSet) -> bool {
        match self {
            MethodName::Anncur | MethodName::AnncurPlus | MethodName::AnncurKMeans => true,
            MethodName::AnncurOracle | MethodName::ItemCur => true,
            MethodName::AdacurRandom | MethodName::AdacurSoftMax | MethodName::AdacurVariance => true,
            MethodName::Exact | MethodName::Rerank | MethodName::AnncurDual => false,
            MethodName::FixedItem | MethodName::AxnDual | MethodName::Posterior => false,
            MethodName::Adacur | MethodName::AdacurPlus | MethodName::AdacurSplit => no_vectors(anchors),
            MethodName::Axn | MethodName::AxnFactors | MethodName::AxnPlus => no_vectors(anchors),
        }
    }
}

/// Without vectors the first round is drawn.
fn no_vectors(anchors: &AnchorSet) -> bool {
    anchors.item_vectors().is_none()
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
