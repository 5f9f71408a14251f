//! ANNCUR, ADACUR and AXN with all their variants: which settings are tried, and how one is made.

use std::sync::Arc;

use loxia_core::Seed;

use super::choose::best_setting;
use super::{BuildOptions, Built, MethodName};
use crate::adacur::{Adacur, AdacurSettings, Strategy};
use crate::anchors::column_means;
use crate::anncur::{AnchorItems, Anncur, AnncurSettings, Preference, projected_rows};
use crate::axn::{Axn, AxnSettings, factorised_item_vectors};
use crate::first_stage::Filled;
use crate::item_scores::ItemScores;
use crate::linalg::Dense;
use crate::paper::PaperAccounting;
use crate::row_model::RowModel;
use crate::{
    AnchorSet, DualScan, Error, FirstStage, FixedItem, Method, RandomStart, Result, Schedule, Solver,
};

/// Shares of the budget that buy anchor items.
const SHARES: [f64; 5] = [0.2, 0.35, 0.5, 0.65, 0.8];
const ADACUR_RIDGES: [f64; 8] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0];
const ANNCUR_RIDGES: [f64; 4] = [0.01, 0.03, 0.1, 0.3];
const MIXES: [f64; 5] = [0.0, 0.2, 0.4, 0.6, 0.8];
/// Rank of the published comparison's factors.
const FACTOR_RANK: usize = 100;

pub(super) fn build(
    name: MethodName,
    anchors: &AnchorSet,
    options: &BuildOptions,
    seeds: &[Seed],
) -> Result<Vec<Built>> {
    match name {
        MethodName::Anncur
        | MethodName::AnncurPlus
        | MethodName::AnncurColumns
        | MethodName::AnncurKMeans
        | MethodName::AnncurDual
        | MethodName::AnncurOracle
        | MethodName::ItemCur => anncur(name, anchors, seeds),
        MethodName::FixedItem => fixed_item(anchors, seeds),
        MethodName::Axn | MethodName::AxnDual | MethodName::AxnFactors | MethodName::AxnPlus => {
            axn(name, anchors, options, seeds)
        }
        _ => adacur(name, anchors, options, seeds),
    }
}

/// Chooses a setting and makes the method for each seed with it.
fn chosen<S: Clone>(
    name: MethodName,
    anchors: &AnchorSet,
    seeds: &[Seed],
    grid: &[S],
    describe: impl Fn(&S) -> String,
    mut make: impl FnMut(&AnchorSet, &S, Seed) -> Result<Box<dyn Method>>,
) -> Result<Vec<Built>> {
    let setting = best_setting(anchors, grid, name.draws(anchors), &mut make)?;
    let built =
        |&seed: &Seed| Ok(Built { method: make(anchors, &setting, seed)?, chosen: describe(&setting) });
    seeds.iter().map(built).collect()
}

fn anncur(name: MethodName, anchors: &AnchorSet, seeds: &[Seed]) -> Result<Vec<Built>> {
    let centre = name == MethodName::AnncurPlus;
    let solvers: Vec<Solver> = if centre {
        ANNCUR_RIDGES.map(|relative| Solver::Ridge { relative }).to_vec()
    } else {
        vec![Solver::published()]
    };
    let grid: Vec<(f64, Solver)> =
        SHARES.iter().flat_map(|&share| solvers.iter().map(move |&solver| (share, solver))).collect();
    let describe = |&(share, solver): &(f64, Solver)| match solver {
        Solver::MinNorm { .. } => format!("share {share}"),
        Solver::Ridge { relative } => format!("share {share}, ridge {relative}"),
    };
    let mut maker = AnncurMaker::new(name, anchors)?;
    chosen(name, anchors, seeds, &grid, describe, |anchors, &(share, solver), seed| {
        Ok(Box::new(maker.make(anchors, share, solver, seed)?))
    })
}

/// Makes ANNCUR in one of its variants.
struct AnncurMaker {
    name: MethodName,
    /// Vectors that k-means runs over.
    clustered: Option<Arc<Dense>>,
    per_query: Option<Arc<dyn FirstStage>>,
    /// Item scores in the place of anchor rows.
    item_rows: Option<AnchorSet>,
    every_row: Option<Arc<Dense>>,
    /// Every row projected on so many anchor rows, for the oracle.
    projected: Option<(usize, Arc<Dense>)>,
    model: ModelCache,
}

impl AnncurMaker {
    fn new(name: MethodName, anchors: &AnchorSet) -> Result<Self> {
        let mut maker = AnncurMaker {
            name,
            clustered: None,
            per_query: None,
            item_rows: None,
            every_row: None,
            projected: None,
            model: ModelCache::default(),
        };
        match name {
            MethodName::AnncurKMeans => {
                // Columns of the anchor rows stand in for item vectors.
                let vectors = anchors.item_vectors().cloned();
                maker.clustered =
                    Some(vectors.unwrap_or_else(|| Arc::new(anchors.rows().scores.transposed())));
            }
            MethodName::AnncurDual => maker.per_query = Some(given_or_scan(anchors, "anncur-dual")?),
            MethodName::AnncurOracle => {
                maker.every_row = Some(anchors.every_row().cloned().ok_or(Error::Missing {
                    method: "anncur-oracle",
                    what: "the whole score matrix",
                    advice: "it is a bound for stored matrices; choose anncur to search",
                })?);
            }
            MethodName::ItemCur => {
                let item_scores = item_scores(anchors, "itemcur")?;
                maker.item_rows = Some(AnchorSet::new(item_scores.rows().clone(), None)?);
            }
            _ => {}
        }
        Ok(maker)
    }

    fn make(&mut self, anchors: &AnchorSet, share: f64, solver: Solver, seed: Seed) -> Result<Anncur> {
        let anchor_items = match (&self.clustered, &self.per_query) {
            (Some(vectors), _) => AnchorItems::KMeans(vectors.clone(), seed),
            (_, Some(first)) => AnchorItems::FirstStage(first.clone()),
            _ => AnchorItems::Random(seed),
        };
        let centre = self.name == MethodName::AnncurPlus;
        let preference = match self.name {
            MethodName::AnncurColumns => Preference::Columns,
            _ => Preference::Rows,
        };
        let settings = AnncurSettings { share, anchor_items, solver, centre, preference };
        if let Some(every_row) = &self.every_row {
            let projected = match &self.projected {
                Some((count, projected)) if *count == anchors.len() => projected.clone(),
                _ => {
                    let made = Arc::new(projected_rows(anchors, every_row)?);
                    self.projected.insert((anchors.len(), made)).1.clone()
                }
            };
            return Anncur::with_projected(anchors, every_row.clone(), projected, settings);
        }
        let rows = self.item_rows.as_ref().unwrap_or(anchors);
        Anncur::with_model(self.model.get(rows, solver, centre), settings)
    }
}

fn fixed_item(anchors: &AnchorSet, seeds: &[Seed]) -> Result<Vec<Built>> {
    let item_scores = item_scores(anchors, "fixed-item")?;
    let describe = |share: &f64| format!("share {share}");
    chosen(MethodName::FixedItem, anchors, seeds, &SHARES, describe, |_, &share, _| {
        Ok(Box::new(FixedItem::new(item_scores.clone(), share)?))
    })
}

fn item_scores(anchors: &AnchorSet, method: &'static str) -> Result<Arc<ItemScores>> {
    anchors.item_scores().cloned().ok_or(Error::Missing {
        method,
        what: "scores of items in the query slot",
        advice: "score the anchor items as queries, or choose a method that works with anchor queries",
    })
}

/// Methods whose published accounting differs, for one seed; `None` for all others.
pub(super) fn build_for_paper(
    name: MethodName,
    anchors: &AnchorSet,
    seed: Seed,
) -> Result<Option<Box<dyn PaperAccounting>>> {
    let solver = match name {
        MethodName::Anncur
        | MethodName::AnncurColumns
        | MethodName::AnncurKMeans
        | MethodName::AnncurDual
        | MethodName::AnncurOracle
        | MethodName::ItemCur => Solver::published(),
        // The smallest of the grid: a split is tried for each cost, a ridge is not.
        MethodName::AnncurPlus => Solver::Ridge { relative: ANNCUR_RIDGES[0] },
        MethodName::FixedItem => {
            return Ok(Some(Box::new(FixedItem::new(item_scores(anchors, "fixed-item")?, SHARES[0])?)));
        }
        _ => return Ok(None),
    };
    Ok(Some(Box::new(AnncurMaker::new(name, anchors)?.make(anchors, SHARES[0], solver, seed)?)))
}

fn adacur(
    name: MethodName,
    anchors: &AnchorSet,
    options: &BuildOptions,
    seeds: &[Seed],
) -> Result<Vec<Built>> {
    let centre = name == MethodName::AdacurPlus;
    let strategy = match name {
        MethodName::AdacurSoftMax | MethodName::AdacurSoftMaxSplit => Strategy::SoftMax { temperature: 1.0 },
        MethodName::AdacurVariance | MethodName::AdacurVarianceAll => Strategy::Variance,
        MethodName::AdacurUniform => Strategy::Random,
        _ => Strategy::Top,
    };
    let solvers: Vec<Solver> = if centre {
        ADACUR_RIDGES.map(|relative| Solver::Ridge { relative }).to_vec()
    } else {
        vec![Solver::published()]
    };
    // Exploring anchor items are of no use in the answer: those strategies need a share for the best guesses.
    let splits: Vec<Option<f64>> = match name {
        MethodName::AdacurSplit
        | MethodName::AdacurSoftMaxSplit
        | MethodName::AdacurUniform
        | MethodName::AdacurVariance => SHARES.map(Some).to_vec(),
        _ => vec![None],
    };
    let grid: Vec<(Option<f64>, Solver)> =
        splits.iter().flat_map(|&split| solvers.iter().map(move |&solver| (split, solver))).collect();
    let schedule = Schedule::RemainderLast { rounds: options.rounds };
    let describe = |&(split, solver): &(Option<f64>, Solver)| match (split, solver) {
        (Some(split), _) => format!("split {split}"),
        (None, Solver::Ridge { relative }) => format!("ridge {relative}"),
        (None, Solver::MinNorm { .. }) => String::new(),
    };
    let mut model = ModelCache::default();
    chosen(name, anchors, seeds, &grid, describe, |anchors, &(split, solver), seed| {
        let first_stage: Arc<dyn FirstStage> = match name {
            MethodName::AdacurRandom => Arc::new(RandomStart::new(anchors.items(), seed)),
            _ => first_stage(anchors, seed),
        };
        let schedule = schedule.clone();
        let settings = AdacurSettings { first_stage, strategy, schedule, split, solver, centre, seed };
        Ok(Box::new(Adacur::with_model(model.get(anchors, solver, centre), settings)?))
    })
}

/// Where AXN's item vectors come from.
#[derive(Debug, Clone, Copy, PartialEq)]
enum AxnVectors {
    Dual,
    Factors,
    Centred,
}

fn axn(name: MethodName, anchors: &AnchorSet, options: &BuildOptions, seeds: &[Seed]) -> Result<Vec<Built>> {
    // Only a scan of vectors scores every item, which a mix needs.
    let scans = anchors.item_vectors().is_some() && anchors.first_stage().is_none();
    let mixes: &[f64] = if scans { &MIXES } else { &MIXES[..1] };
    let settings = |vectors: AxnVectors, ridges: &[f64]| -> Vec<(AxnVectors, f64, f64)> {
        ridges.iter().flat_map(|&ridge| mixes.iter().map(move |&mix| (vectors, ridge, mix))).collect()
    };
    let dual = || settings(AxnVectors::Dual, &[0.01, 0.1, 0.5]);
    let factors = || settings(AxnVectors::Factors, &[0.01, 0.1]);
    let grid = match name {
        MethodName::AxnDual => {
            dual_scan(anchors, "axn-dual")?;
            dual()
        }
        MethodName::AxnFactors => factors(),
        MethodName::AxnPlus => settings(AxnVectors::Centred, &[0.01, 0.03, 0.1, 0.3, 1.0]),
        _ if anchors.item_vectors().is_some() => [factors(), dual()].concat(),
        _ => factors(),
    };
    let schedule = Schedule::RemainderLast { rounds: options.rounds };
    let describe = |&(vectors, ridge, mix): &(AxnVectors, f64, f64)| {
        let source = if vectors == AxnVectors::Dual { "dual encoder" } else { "factors" };
        format!("{source}, ridge {ridge}, mix {mix}")
    };
    let mut cache: Option<(usize, bool, Arc<Dense>)> = None;
    chosen(name, anchors, seeds, &grid, describe, |anchors, &(vectors, relative, mix), seed| {
        let item_vectors = match (vectors, anchors.item_vectors()) {
            (AxnVectors::Dual, Some(item_vectors)) => item_vectors.clone(),
            _ => {
                let wanted = (anchors.len(), vectors == AxnVectors::Factors);
                match &cache {
                    Some((count, with_mean, made)) if (*count, *with_mean) == wanted => made.clone(),
                    _ => {
                        let made = Arc::new(factorised_item_vectors(anchors, FACTOR_RANK, wanted.1)?);
                        cache.insert((wanted.0, wanted.1, made)).2.clone()
                    }
                }
            }
        };
        let settings = AxnSettings {
            first_stage: first_stage(anchors, seed),
            schedule: schedule.clone(),
            solver: Solver::Ridge { relative },
            mix,
            shortlist: options.axn_shortlist,
        };
        let method = Axn::new(item_vectors, settings)?;
        Ok(Box::new(match vectors {
            AxnVectors::Centred => method.centred(Arc::new(column_means(&anchors.rows().scores)))?,
            AxnVectors::Dual | AxnVectors::Factors => method,
        }))
    })
}

/// The centred rows are the same for all settings of a grid: they are made once for each anchor set.
#[derive(Default)]
struct ModelCache(Option<(usize, RowModel)>);

impl ModelCache {
    fn get(&mut self, anchors: &AnchorSet, solver: Solver, centre: bool) -> RowModel {
        match &self.0 {
            Some((count, model)) if *count == anchors.len() => model.with_solver(solver),
            _ => self.0.insert((anchors.len(), RowModel::new(anchors, solver, centre))).1.clone(),
        }
    }
}

fn dual_scan(anchors: &AnchorSet, method: &'static str) -> Result<DualScan> {
    let vectors = anchors.item_vectors().ok_or(Error::Missing {
        method,
        what: "item and query vectors",
        advice: "give the vectors of a dual encoder or of TF-IDF, or choose a method that works without",
    })?;
    Ok(DualScan::new(vectors.clone()))
}

/// The first stage that was given, else a scan of the item vectors.
pub(super) fn given_or_scan(anchors: &AnchorSet, method: &'static str) -> Result<Arc<dyn FirstStage>> {
    match anchors.first_stage() {
        Some(stage) => Ok(stage.clone()),
        None => Ok(Arc::new(dual_scan(anchors, method)?)),
    }
}

/// The same, and random items where there is neither, or where a first stage finds too few.
fn first_stage(anchors: &AnchorSet, seed: Seed) -> Arc<dyn FirstStage> {
    let random = RandomStart::new(anchors.items(), seed);
    match (anchors.first_stage(), anchors.item_vectors()) {
        (Some(stage), _) => Arc::new(Filled::new(stage.clone(), random)),
        (None, Some(vectors)) => Arc::new(DualScan::new(vectors.clone())),
        (None, None) => Arc::new(random),
    }
}
