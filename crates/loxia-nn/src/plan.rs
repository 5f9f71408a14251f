//! Grouping sequences into batches.

/// Groups sequences by length into batches of at most `token_budget` tokens.
///
/// Longest first, so that memory peaks at once and not near the end; equal lengths keep their order, so the
/// plan is a function of the lengths alone. A sequence longer than the budget gets a batch of its own.
///
/// ```
/// let plan = loxia_nn::plan_batches(&[3, 9, 4, 3], 8);
/// assert_eq!(plan, [vec![1], vec![2, 0], vec![3]]);
/// ```
pub fn plan_batches(lengths: &[usize], token_budget: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(lengths[index]));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    // Tokens that still fit into the last batch; none when its only sequence is over the budget already.
    let mut room: Option<usize> = None;
    for index in order {
        let length = lengths[index];
        match (batches.last_mut(), room.and_then(|room| room.checked_sub(length))) {
            (Some(batch), Some(left)) => {
                batch.push(index);
                room = Some(left);
            }
            _ => {
                batches.push(vec![index]);
                room = token_budget.checked_sub(length);
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_sequence_comes_once_and_budgets_hold(
            lengths in prop::collection::vec(0usize..50, 0..60),
            budget in 0usize..120,
        ) {
            let plan = plan_batches(&lengths, budget);
            let mut seen: Vec<usize> = plan.iter().flatten().copied().collect();
            let longest_first = seen.windows(2).all(|pair| lengths[pair[0]] >= lengths[pair[1]]);
            prop_assert!(longest_first);
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..lengths.len()).collect::<Vec<_>>());
            for batch in &plan {
                let tokens: usize = batch.iter().map(|&index| lengths[index]).sum();
                prop_assert!(tokens <= budget || batch.len() == 1);
            }
        }
    }
}
