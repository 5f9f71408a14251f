//! Constants by recall on held-out anchor rows.
//!
//! Every fifth anchor row (at most 50) is held out, the method is made from the others with each setting of
//! a grid, and the setting of the highest mean recall (k = 10, 50, 100 at cost 100 and 500) wins, the
//! earlier one of equals. No test row is ever looked at.

use loxia_core::Seed;

use crate::evaluate::mean_recall;
use crate::{AnchorSet, Method, Result};

const COSTS: [u64; 2] = [100, 500];
const HELD_OUT: usize = 50;
/// What is drawn at random decides more than some settings do, so settings are compared over as many draws.
const DRAWS: u64 = 5;

/// Makes a method with a setting and a seed from anchor rows.
pub(super) type Make<'a, S> = dyn FnMut(&AnchorSet, &S, Seed) -> Result<Box<dyn Method>> + 'a;

/// The best setting of a grid, compared over several draws where the method draws. With too few anchors to
/// hold any out the first setting stays.
pub(super) fn best_setting<S: Clone>(
    anchors: &AnchorSet,
    grid: &[S],
    draws: bool,
    make: &mut Make<'_, S>,
) -> Result<S> {
    let mut best = 0;
    if let Some((kept, held)) = anchors.hold_out(0, 5, HELD_OUT).filter(|_| grid.len() > 1) {
        let mut highest = f64::NEG_INFINITY;
        for (at, setting) in grid.iter().enumerate() {
            let mut recall = 0.0;
            for draw in 0..if draws { DRAWS } else { 1 } {
                recall += mean_recall(&*make(&kept, setting, Seed(draw))?, &held, &COSTS)?;
            }
            if recall > highest {
                (best, highest) = (at, recall);
            }
        }
    }
    Ok(grid[best].clone())
}
