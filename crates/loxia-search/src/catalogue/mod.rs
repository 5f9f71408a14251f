//! All methods by name, their constants chosen on anchor rows.

mod choose;
mod families;
mod name;

use loxia_core::Seed;

use crate::posterior::{Posterior, PosteriorSettings, choose_settings};
use crate::{AnchorSet, Exact, Method, PaperAccounting, Rerank, Result, Schedule};

pub use name::MethodName;

/// What all methods of a comparison share.
#[derive(Debug, Clone, Copy)]
pub struct BuildOptions {
    /// Rounds of the adaptive methods.
    pub rounds: usize,
    /// Seed of everything drawn.
    pub seed: Seed,
    /// AXN looks only at as many of the first stage's best.
    pub axn_shortlist: Option<usize>,
    /// Whether methods that can estimate their recall are calibrated.
    pub calibrate: bool,
}

impl Default for BuildOptions {
    fn default() -> Self {
        BuildOptions { rounds: 10, seed: Seed(0), axn_shortlist: None, calibrate: false }
    }
}

/// A method with the settings that were chosen for it, in words.
pub struct Built {
    /// The method.
    pub method: Box<dyn Method>,
    /// Its chosen settings, for tables.
    pub chosen: String,
}

impl Built {
    /// A method without settings to choose.
    fn plain(method: impl Method + 'static) -> Self {
        Built { method: Box::new(method), chosen: String::new() }
    }
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
    let mut built = build_for_seeds(name, anchors, options, &[options.seed])?;
    Ok(built.remove(0))
}

/// The methods whose published accounting differs from ours (see [`PaperAccounting`]), for one seed; `None`
/// for all others.
pub fn build_for_paper(
    name: MethodName,
    anchors: &AnchorSet,
    seed: Seed,
) -> Result<Option<Box<dyn PaperAccounting>>> {
    families::build_for_paper(name, anchors, seed)
}

/// Makes a method once for each seed; its constants are chosen once, for all of them.
pub fn build_for_seeds(
    name: MethodName,
    anchors: &AnchorSet,
    options: &BuildOptions,
    seeds: &[Seed],
) -> Result<Vec<Built>> {
    let each = |make: &dyn Fn() -> Result<Built>| seeds.iter().map(|_| make()).collect();
    match name {
        MethodName::Exact => each(&|| Ok(Built::plain(Exact::new(anchors.items())))),
        MethodName::Rerank => {
            each(&|| Ok(Built::plain(Rerank::new(families::given_or_scan(anchors, "rerank")?))))
        }
        MethodName::Posterior => {
            let settings = choose_settings(anchors, PosteriorSettings::default())?;
            let chosen = settings.to_string();
            let schedule = Schedule::Even { rounds: options.rounds };
            let mut method = Posterior::fit(anchors, settings)?.with_schedule(schedule);
            if options.calibrate {
                method = method.calibrated(anchors)?;
            }
            each(&|| Ok(Built { method: Box::new(method.clone()), chosen: chosen.clone() }))
        }
        _ => families::build(name, anchors, options, seeds),
    }
}
