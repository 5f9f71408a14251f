//! All methods by name, their constants chosen on anchor rows.
//!
//! Every fifth anchor row (at most 50) is held out, the method is made from the others with each
//! setting of a grid, and the setting of the highest mean recall (k = 10, 50, 100 at cost 100 and 500)
//! wins, the earlier one of equals. No test row is ever looked at.

use std::sync::Arc;

use loxia_core::Seed;

use crate::adacur::{Adacur, AdacurSettings, Strategy};
use crate::anchors::column_means;
use crate::anncur::{AnchorItems, Anncur, AnncurSettings};
use crate::axn::{Axn, AxnSettings, factorised_item_vectors};
use crate::evaluate::mean_recall;
use crate::linalg::Dense;
use crate::posterior::{Posterior, PosteriorSettings, choose_settings};
use crate::row_model::RowModel;
use crate::{
    AnchorSet, DualScan, Error, Exact, FirstStage, Method, RandomStart, Rerank, Result, Schedule, Solver,
};

/// A method by name. A `+` means centred columns and a ridge chosen on anchor rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MethodName {
    /// Everything.
    Exact,
    /// The dual encoder's best.
    Rerank,
    /// Fixed random anchor items, as published.
    Anncur,
    /// The same, centred, with a ridge.
    AnncurPlus,
    /// Adaptive anchor items from the dual encoder's best, as published.
    Adacur,
    /// The same, centred, with a ridge.
    AdacurPlus,
    /// Adaptive anchor items from a random first round, as published.
    AdacurRandom,
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

const NAMES: [(MethodName, &str); 12] = [
    (MethodName::Exact, "exact"),
    (MethodName::Rerank, "rerank"),
    (MethodName::Anncur, "anncur"),
    (MethodName::AnncurPlus, "anncur+"),
    (MethodName::Adacur, "adacur"),
    (MethodName::AdacurPlus, "adacur+"),
    (MethodName::AdacurRandom, "adacur-random"),
    (MethodName::Axn, "axn"),
    (MethodName::AxnDual, "axn-dual"),
    (MethodName::AxnFactors, "axn-factors"),
    (MethodName::AxnPlus, "axn+"),
    (MethodName::Posterior, "posterior"),
];

impl MethodName {
    /// Whether the method depends on the seed: it draws anchor items or its first round at random.
    pub fn draws(self, anchors: &AnchorSet) -> bool {
        match self {
            MethodName::Anncur | MethodName::AnncurPlus | MethodName::AdacurRandom => true,
            MethodName::Adacur | MethodName::AdacurPlus => !has_vectors(anchors),
            MethodName::Axn | MethodName::AxnFactors | MethodName::AxnPlus => !has_vectors(anchors),
            MethodName::Exact | MethodName::Rerank | MethodName::AxnDual | MethodName::Posterior => false,
        }
    }
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

/// What all methods of a comparison share.
#[derive(Debug, Clone, Copy)]
pub struct BuildOptions {
    /// Rounds of the adaptive methods.
    pub rounds: usize,
    /// Seed of everything drawn.
    pub seed: Seed,
    /// Whether methods that can estimate their recall are calibrated.
    pub calibrate: bool,
}

impl Default for BuildOptions {
    fn default() -> Self {
        BuildOptions { rounds: 10, seed: Seed(0), calibrate: false }
    }
}

/// A method with the settings that were chosen for it, in words.
pub struct Built {
    /// The method.
    pub method: Box<dyn Method>,
    /// Its chosen settings, for tables.
    pub chosen: String,
}

/// Makes a method from anchor rows, choosing its constants on them.
///
/// ```
/// use loxia_search::{AnchorSet, BuildOptions, MethodName, build, linalg::Dense};
/// let scores = Dense::from_fn(6, 20, |row, col| ((row + 1) * col % 7) as f32);
/// let anchors = AnchorSet::new(scores.into(), None).unwrap();
/// let built = build(MethodName::AdacurRandom, &anchors, &BuildOptions::default()).unwrap();
/// assert_eq!(built.method.items(), 20);
/// ```
pub fn build(name: MethodName, anchors: &AnchorSet, options: &BuildOptions) -> Result<Built> {
    let schedule = Schedule::RemainderLast { rounds: options.rounds };
    let plain = |method: Box<dyn Method>| Ok(Built { method, chosen: String::new() });
    match name {
        MethodName::Exact => plain(Box::new(Exact::new(anchors.items()))),
        MethodName::Rerank => plain(Box::new(Rerank::new(dual_scan(anchors, "rerank")?))),
        MethodName::Anncur | MethodName::AnncurPlus => build_anncur(name, anchors, options),
        MethodName::Adacur => plain(Box::new(Adacur::new(
            anchors,
            adacur_settings(first_stage(anchors, options), schedule, Solver::published(), false, options),
        )?)),
        MethodName::AdacurRandom => {
            let first = Arc::new(RandomStart::new(anchors.items(), options.seed));
            let settings = adacur_settings(first, schedule, Solver::published(), false, options);
            plain(Box::new(Adacur::new(anchors, settings)?))
        }
        MethodName::AdacurPlus => build_adacur_plus(anchors, &schedule, options),
        MethodName::Axn => {
            let mut grid = axn_grid(AxnVectors::Factors, &[0.01, 0.1], has_vectors(anchors));
            if has_vectors(anchors) {
                grid.extend(axn_grid(AxnVectors::Dual, &[0.01, 0.1, 0.5], true));
            }
            build_axn(anchors, grid, &schedule, options)
        }
        MethodName::AxnDual => {
            dual_scan(anchors, "axn-dual")?;
            build_axn(anchors, axn_grid(AxnVectors::Dual, &[0.01, 0.1, 0.5], true), &schedule, options)
        }
        MethodName::AxnFactors => {
            let grid = axn_grid(AxnVectors::Factors, &[0.01, 0.1], has_vectors(anchors));
            build_axn(anchors, grid, &schedule, options)
        }
        MethodName::AxnPlus => {
            let grid = axn_grid(AxnVectors::Centred, &[0.01, 0.03, 0.1, 0.3, 1.0], has_vectors(anchors));
            build_axn(anchors, grid, &schedule, options)
        }
        MethodName::Posterior => {
            let settings = choose_settings(anchors, PosteriorSettings::default())?;
            let chosen = format!(
                "transform {:?}, query ridge {}, noise {}, item kernel {}",
                settings.transform, settings.query_ridge, settings.noise, settings.item_kernel
            );
            let schedule = Schedule::Even { rounds: options.rounds };
            let mut method = Posterior::fit(anchors, settings)?.with_schedule(schedule);
            if options.calibrate {
                method = method.calibrated(anchors)?;
            }
            Ok(Built { method: Box::new(method), chosen })
        }
    }
}

fn has_vectors(anchors: &AnchorSet) -> bool {
    anchors.item_vectors().is_some()
}

fn dual_scan(anchors: &AnchorSet, method: &'static str) -> Result<DualScan> {
    let vectors = anchors.item_vectors().ok_or(Error::Missing {
        method,
        what: "item and query vectors",
        advice: "give the vectors of a dual encoder or of TF-IDF, or choose a method that works without",
    })?;
    Ok(DualScan::new(vectors.clone()))
}

/// The dual encoder where there is one, else random items.
fn first_stage(anchors: &AnchorSet, options: &BuildOptions) -> Arc<dyn FirstStage> {
    match anchors.item_vectors() {
        Some(vectors) => Arc::new(DualScan::new(vectors.clone())),
        None => Arc::new(RandomStart::new(anchors.items(), options.seed)),
    }
}

/// Makes a method with each setting on the kept anchors, measures it on the held-out ones, and makes
/// the best one anew from all anchors. With too few anchors to hold any out the first setting stays.
fn choose<S: Clone>(
    anchors: &AnchorSet,
    grid: Vec<S>,
    mut make: impl FnMut(&AnchorSet, &S) -> Result<Box<dyn Method>>,
) -> Result<(S, Box<dyn Method>)> {
    let mut best = 0;
    if let Some((kept, held)) = anchors.hold_out(0, 5, 50).filter(|_| grid.len() > 1) {
        let mut highest = f64::NEG_INFINITY;
        for (at, settings) in grid.iter().enumerate() {
            let recall = mean_recall(&*make(&kept, settings)?, &held, &[100, 500])?;
            if recall > highest {
                (best, highest) = (at, recall);
            }
        }
    }
    let settings = grid[best].clone();
    let method = make(anchors, &settings)?;
    Ok((settings, method))
}

fn build_anncur(name: MethodName, anchors: &AnchorSet, options: &BuildOptions) -> Result<Built> {
    let centre = name == MethodName::AnncurPlus;
    let solvers: Vec<Solver> = if centre {
        [0.01, 0.03, 0.1, 0.3].map(|relative| Solver::Ridge { relative }).to_vec()
    } else {
        vec![Solver::published()]
    };
    let shares = [0.2, 0.35, 0.5, 0.65, 0.8];
    let grid = shares.iter().flat_map(|&share| solvers.iter().map(move |&solver| (share, solver))).collect();
    let mut model: Option<(usize, RowModel)> = None;
    let ((share, solver), method) = choose(anchors, grid, |anchors, &(share, solver)| {
        let model = cached_model(&mut model, anchors, solver, centre);
        let anchor_items = AnchorItems::Random(options.seed);
        Ok(Box::new(Anncur::with_model(model, AnncurSettings { share, anchor_items, solver, centre })?))
    })?;
    Ok(Built { method, chosen: format!("share {share}, {}", describe(solver)) })
}

fn build_adacur_plus(anchors: &AnchorSet, schedule: &Schedule, options: &BuildOptions) -> Result<Built> {
    let grid = vec![0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0];
    let mut model: Option<(usize, RowModel)> = None;
    let (relative, method) = choose(anchors, grid, |anchors, &relative| {
        let solver = Solver::Ridge { relative };
        let model = cached_model(&mut model, anchors, solver, true);
        let first = first_stage(anchors, options);
        let settings = adacur_settings(first, schedule.clone(), solver, true, options);
        Ok(Box::new(Adacur::with_model(model, settings)?))
    })?;
    Ok(Built { method, chosen: format!("ridge {relative}") })
}

/// The centred rows are the same for all settings of a grid: they are made once for each anchor set.
fn cached_model(
    cache: &mut Option<(usize, RowModel)>,
    anchors: &AnchorSet,
    solver: Solver,
    centre: bool,
) -> RowModel {
    match cache {
        Some((count, model)) if *count == anchors.len() => model.with_solver(solver),
        _ => cache.insert((anchors.len(), RowModel::new(anchors, solver, centre))).1.clone(),
    }
}

fn adacur_settings(
    first_stage: Arc<dyn FirstStage>,
    schedule: Schedule,
    solver: Solver,
    centre: bool,
    options: &BuildOptions,
) -> AdacurSettings {
    let seed = options.seed;
    AdacurSettings { first_stage, strategy: Strategy::Top, schedule, split: None, solver, centre, seed }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum AxnVectors {
    Dual,
    Factors,
    Centred,
}

// Rank of the published comparison's factors.
const FACTOR_RANK: usize = 100;

fn axn_grid(vectors: AxnVectors, ridges: &[f64], mixed: bool) -> Vec<(AxnVectors, f64, f64)> {
    let mixes: &[f64] = if mixed { &[0.0, 0.2, 0.4, 0.6, 0.8] } else { &[0.0] };
    ridges.iter().flat_map(|&ridge| mixes.iter().map(move |&mix| (vectors, ridge, mix))).collect()
}

fn build_axn(
    anchors: &AnchorSet,
    grid: Vec<(AxnVectors, f64, f64)>,
    schedule: &Schedule,
    options: &BuildOptions,
) -> Result<Built> {
    let mut factors: Option<(usize, bool, Arc<Dense>)> = None;
    let ((vectors, ridge, mix), method) = choose(anchors, grid, |anchors, &(vectors, relative, mix)| {
        let first_stage = first_stage(anchors, options);
        let solver = Solver::Ridge { relative };
        let settings = AxnSettings { first_stage, schedule: schedule.clone(), solver, mix };
        let item_vectors = match (vectors, anchors.item_vectors()) {
            (AxnVectors::Dual, Some(item_vectors)) => item_vectors.clone(),
            _ => {
                let with_mean = vectors != AxnVectors::Centred;
                match &factors {
                    Some((count, mean, made)) if (*count, *mean) == (anchors.len(), with_mean) => {
                        made.clone()
                    }
                    _ => {
                        let made = Arc::new(factorised_item_vectors(anchors, FACTOR_RANK, with_mean)?);
                        factors = Some((anchors.len(), with_mean, made.clone()));
                        made
                    }
                }
            }
        };
        let axn = Axn::new(item_vectors, settings)?;
        Ok(Box::new(if vectors == AxnVectors::Centred {
            axn.centred(Arc::new(column_means(&anchors.rows().scores)))?
        } else {
            axn
        }))
    })?;
    let source = match vectors {
        AxnVectors::Dual => "dual encoder",
        AxnVectors::Factors | AxnVectors::Centred => "factors",
    };
    Ok(Built { method, chosen: format!("{source}, ridge {ridge}, mix {mix}") })
}

fn describe(solver: Solver) -> String {
    match solver {
        Solver::MinNorm { rcond } => format!("pseudo-inverse {rcond:e}"),
        Solver::Ridge { relative } => format!("ridge {relative}"),
    }
}
