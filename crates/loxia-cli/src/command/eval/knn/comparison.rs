//! How far `posterior` is ahead of the others, at equal rounds and cost.

use loxia::search::MethodName;

use super::grid::{Cell, MethodResult};

const PUBLISHED: [MethodName; 3] = [MethodName::Anncur, MethodName::Adacur, MethodName::Axn];
const PLUS: [MethodName; 3] = [MethodName::AnncurPlus, MethodName::AdacurPlus, MethodName::AxnPlus];

/// `posterior` beside the best of a group.
#[derive(Debug)]
pub(super) struct Lead {
    /// `published` or `centred, with a ridge`.
    pub(super) group: &'static str,
    pub(super) anchors: usize,
    /// The best of the group by mean12, and how far it is behind.
    pub(super) best: Option<(MethodName, f64)>,
    /// The cell in which the group's best is closest or ahead: the method, the cell, and the difference.
    pub(super) closest: Option<(MethodName, Cell, f64)>,
}

/// Compares with every group of which methods were run.
pub(super) fn leads(results: &[MethodResult]) -> Vec<Lead> {
    let mut leads = Vec::new();
    for posterior in results.iter().filter(|result| result.method == MethodName::Posterior) {
        for (group, names) in [("as published", PUBLISHED), ("centred, with a ridge", PLUS)] {
            let members: Vec<&MethodResult> = results
                .iter()
                .filter(|other| other.anchors == posterior.anchors && names.contains(&other.method))
                .collect();
            if !members.is_empty() {
                leads.push(lead(group, posterior, &members));
            }
        }
    }
    leads
}

fn lead(group: &'static str, posterior: &MethodResult, members: &[&MethodResult]) -> Lead {
    let best = posterior.mean12.and_then(|own| {
        let means = members.iter().filter_map(|member| Some((member.method, member.mean12?.recall)));
        let (method, highest) = means.max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((method, own.recall - highest))
    });
    let own: Vec<&Cell> = posterior.cells.iter().flatten().collect();
    let rivals = members.iter().flat_map(|member| {
        member
            .cells
            .iter()
            .flatten()
            .zip(&own)
            .map(|(cell, own)| (member.method, **own, own.recall - cell.recall))
    });
    let closest = rivals.min_by(|a, b| a.2.total_cmp(&b.2));
    Lead { group, anchors: posterior.anchors, best, closest }
}

impl Lead {
    /// One sentence.
    pub(super) fn sentence(&self) -> String {
        let mut text = format!("posterior against methods {}", self.group);
        if let Some((method, ahead)) = self.best {
            text += &format!(": mean12 {ahead:+.4} to the best of them ({method})");
        }
        if let Some((method, cell, ahead)) = &self.closest {
            text += &format!("; closest cell {ahead:+.4} at k = {}, cost {} ({method})", cell.k, cell.cost);
        }
        text
    }
}
