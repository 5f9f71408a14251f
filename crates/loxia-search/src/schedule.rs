//! How a budget is cut into batches.
//!
//! Many small batches choose better and cost more overhead; gains fade after about ten.

/// Sizes of the batches that a search pays for, one a round.
///
/// ```
/// use loxia_search::Schedule;
/// assert_eq!(Schedule::Even { rounds: 4 }.sizes(10), [2, 3, 2, 3]);
/// assert_eq!(Schedule::RemainderLast { rounds: 4 }.sizes(10), [2, 2, 2, 4]);
/// assert_eq!(Schedule::Fixed(vec![4, 2]).sizes(9), [4, 2, 2, 1]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedule {
    /// Batches that differ by one at most.
    Even {
        /// Number of batches.
        rounds: usize,
    },
    /// Equal batches, what is left over in the last (as published for ADACUR and AXN).
    RemainderLast {
        /// Number of batches.
        rounds: usize,
    },
    /// These sizes whatever the budget, the last repeated: a larger budget then only adds items.
    Fixed(Vec<usize>),
}

impl Schedule {
    /// The schedule of searches that may stop at any time: small batches first, so that easy queries
    /// end early.
    pub fn anytime() -> Self {
        Schedule::Fixed(vec![20, 10, 10, 10, 15, 15, 20, 25, 25, 25, 25, 50])
    }

    /// Batches for a budget; none is empty, and together they are the budget.
    pub fn sizes(&self, budget: usize) -> Vec<usize> {
        let mut sizes: Vec<usize> = match self {
            Schedule::Even { rounds } => {
                let rounds = (*rounds).clamp(1, budget.max(1));
                // Products of two machine-sized numbers may not fit one.
                let edge = |round: usize| (budget as u128 * round as u128 / rounds as u128) as usize;
                (0..rounds).map(|round| edge(round + 1) - edge(round)).collect()
            }
            Schedule::RemainderLast { rounds } => {
                let rounds = (*rounds).clamp(1, budget.max(1));
                let mut sizes = vec![budget / rounds; rounds];
                sizes[rounds - 1] += budget % rounds;
                sizes
            }
            Schedule::Fixed(given) => {
                let mut left = budget;
                let last = given.last().copied().unwrap_or(budget).max(1);
                let endless = given.iter().copied().chain(std::iter::repeat(last));
                endless
                    .map_while(|size| {
                        let size = size.min(left);
                        left -= size;
                        (size > 0 || left > 0).then_some(size)
                    })
                    .collect()
            }
        };
        sizes.retain(|&size| size > 0);
        sizes
    }
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule::Even { rounds: 10 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn batches_are_the_budget(budget in 0usize..2000, rounds in 0usize..30, size in 0usize..60) {
            for schedule in [
                Schedule::Even { rounds },
                Schedule::RemainderLast { rounds },
                Schedule::Fixed(vec![3, size]),
                Schedule::anytime(),
            ] {
                let sizes = schedule.sizes(budget);
                prop_assert_eq!(sizes.iter().sum::<usize>(), budget);
                prop_assert!(sizes.iter().all(|&size| size > 0));
            }
        }

        #[test]
        fn a_larger_budget_begins_like_a_smaller_one(small in 0usize..500, more in 0usize..500) {
            let (first, second) = (Schedule::anytime().sizes(small), Schedule::anytime().sizes(small + more));
            let whole = first.len().saturating_sub(1);
            prop_assert_eq!(&first[..whole], &second[..whole]);
        }
    }
}
