//! The formulas, each from a query's [`JudgedRanking`] in one pass over it.
//!
//! They follow trec_eval 10 to the digit, its conventions included: a query without relevant items has
//! the value 0; precision divides by k even when fewer were retrieved; items that were not judged count
//! as not relevant, except where a measure is about them (bpref, infAP, Judged). The one place where
//! trec_eval 9 (and pytrec_eval) differ is `IPrec`: see [`interpolated_precision`].

use super::{Kind, Measure};
use crate::judged::{Grade, JudgedRanking};

/// Gains of 2^level - 1 beyond this say nothing any more, and their sums could overflow.
pub(crate) const HIGHEST_EXPONENTIAL_LEVEL: u32 = 64;

/// Keeps infAP's estimate of a proportion defined when nothing was judged.
const INFERRED_AP_EPSILON: f64 = 0.00001;

impl Measure {
    /// The value for one query; the caller has dropped what was not judged if `judged_only` asks for it.
    pub(crate) fn value(&self, ranking: &JudgedRanking) -> f64 {
        let level = self.level();
        let depth = self.cutoff.unwrap_or(usize::MAX);
        let relevant = ranking.relevant(level);
        let found = || ranking.relevant_within(level, depth);
        match self.kind {
            Kind::Ndcg { exponential: false } => ndcg(ranking, depth, f64::from),
            Kind::Ndcg { exponential: true } => ndcg(ranking, depth, |level| f64::from(level).exp2() - 1.0),
            Kind::ReciprocalRank => {
                let first = ranking.head(depth).iter().position(|grade| grade.is_relevant(level));
                first.map_or(0.0, |position| 1.0 / (position + 1) as f64)
            }
            Kind::AveragePrecision | Kind::GeometricAveragePrecision => {
                average_precision(ranking, level, depth)
            }
            Kind::Precision => ratio(found(), depth),
            Kind::Recall => ratio(found(), relevant),
            Kind::Success => f64::from(u8::from(found() > 0)),
            Kind::RPrecision => ratio(ranking.relevant_within(level, relevant), relevant),
            Kind::Judged => {
                let head = ranking.head(depth);
                ratio(head.iter().filter(|&&grade| grade != Grade::NotPooled).count(), head.len())
            }
            Kind::Bpref => bpref(ranking, level),
            Kind::InferredAp => inferred_ap(ranking, level),
            Kind::InterpolatedPrecision { recall } => interpolated_precision(ranking, level, recall),
            Kind::SetPrecision { relative: false } => ratio(found(), ranking.retrieved()),
            Kind::SetPrecision { relative: true } => ratio(found(), ranking.retrieved().min(relevant)),
            Kind::SetRecall => ratio(found(), relevant),
            Kind::SetF { beta } => {
                let (precision, recall) = (ratio(found(), ranking.retrieved()), ratio(found(), relevant));
                if precision == 0.0 {
                    return 0.0;
                }
                (beta + 1.0) * precision * recall / (beta * precision + recall)
            }
            Kind::SetAp => ratio(found(), ranking.retrieved()) * ratio(found(), relevant),
            Kind::NumQueries => 1.0,
            Kind::NumRetrieved => ranking.retrieved() as f64,
            Kind::NumRelevant => relevant as f64,
            Kind::NumRelevantRetrieved => found() as f64,
        }
    }
}

/// A proportion; 0 of nothing is 0.
fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Discounted gain of the ranking over that of all judged items in their best order.
fn ndcg(ranking: &JudgedRanking, depth: usize, gain: impl Fn(u32) -> f64) -> f64 {
    let discounted = |(position, level): (usize, u32)| gain(level) / ((position + 2) as f64).log2();
    let levels = ranking.head(depth).iter().enumerate().filter_map(|(position, grade)| match grade {
        Grade::Level(level) if *level > 0 => Some((position, *level)),
        _ => None,
    });
    // Not `sum`: over nothing that is negative zero, which would be printed as such.
    let add = |sum: f64, term: f64| sum + term;
    let found = levels.map(discounted).fold(0.0, add);
    let positive = ranking.levels().iter().copied().take_while(|&level| level > 0);
    let ideal = positive.take(depth).enumerate().map(discounted).fold(0.0, add);
    if ideal > 0.0 { found / ideal } else { 0.0 }
}

fn average_precision(ranking: &JudgedRanking, level: u32, depth: usize) -> f64 {
    let mut found = 0usize;
    let mut sum = 0.0;
    for (position, grade) in ranking.head(depth).iter().enumerate() {
        if grade.is_relevant(level) {
            found += 1;
            sum += found as f64 / (position + 1) as f64;
        }
    }
    if found == 0 { 0.0 } else { sum / ranking.relevant(level) as f64 }
}

/// For each relevant item the fraction of the first R judged non-relevant items that do *not* stand above
/// it, R being the number of relevant items (Buckley and Voorhees 2004).
fn bpref(ranking: &JudgedRanking, level: u32) -> f64 {
    let relevant = ranking.relevant(level);
    let non_relevant = ranking.levels().len() - relevant;
    let bound = non_relevant.min(relevant) as f64;
    let mut above = 0usize;
    let mut sum = 0.0;
    for grade in &ranking.grades {
        match grade {
            Grade::Level(own) if *own < level => above += 1,
            Grade::Level(_) if above == 0 => sum += 1.0,
            Grade::Level(_) => sum += 1.0 - above.min(relevant) as f64 / bound,
            Grade::PooledUnjudged | Grade::NotPooled => {}
        }
    }
    if relevant == 0 { 0.0 } else { sum / relevant as f64 }
}

/// Average precision where the pool was judged only in part: above each relevant item, the pooled share
/// of the ranks times the relevant share of those judged (Yilmaz and Aslam 2006).
fn inferred_ap(ranking: &JudgedRanking, level: u32) -> f64 {
    let relevant = ranking.relevant(level);
    let (mut relevant_above, mut judged_above, mut pooled_above) = (0usize, 0usize, 0usize);
    let mut sum = 0.0;
    for (above, grade) in ranking.grades.iter().enumerate() {
        match grade {
            Grade::NotPooled => continue,
            Grade::PooledUnjudged => {}
            Grade::Level(own) => {
                if *own >= level {
                    let rank = (above + 1) as f64;
                    sum += 1.0 / rank;
                    if above > 0 {
                        let above = above as f64;
                        let pooled = pooled_above as f64 / above;
                        let precision = (relevant_above as f64 + INFERRED_AP_EPSILON)
                            / (judged_above as f64 + 2.0 * INFERRED_AP_EPSILON);
                        sum += above / rank * pooled * precision;
                    }
                    relevant_above += 1;
                }
                judged_above += 1;
            }
        }
        pooled_above += 1;
    }
    if relevant == 0 { 0.0 } else { sum / relevant as f64 }
}

/// The best precision at any rank from the one on where the recall is reached.
///
/// A recall stands for a number of relevant items. trec_eval 10 rounds `recall * relevant` to the nearest,
/// halves away from zero; trec_eval 9 and pytrec_eval add 0.9 and cut off. We do as trec_eval 10.
fn interpolated_precision(ranking: &JudgedRanking, level: u32, recall: f64) -> f64 {
    let wanted = (recall * ranking.relevant(level) as f64).round() as usize;
    let mut found = 0usize;
    let mut best = 0.0f64;
    for (position, grade) in ranking.grades.iter().enumerate() {
        if grade.is_relevant(level) {
            found += 1;
            if found >= wanted {
                // Precision is at its highest on relevant ranks, so no other rank needs a look.
                best = best.max(found as f64 / (position + 1) as f64);
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ranking from letters: a digit is a level, `u` pooled but unjudged, `-` not pooled; then the
    /// levels of judged items that were not retrieved.
    fn value(measure: &str, ranking: &str, unretrieved: &[i32]) -> f64 {
        let entries: Vec<_> = (0..ranking.len())
            .map(|i| loxia_core::RunEntry { item: format!("d{i}").into(), score: -(i as f64) })
            .collect();
        let judged = ranking.bytes().enumerate().filter(|&(_, grade)| grade != b'-').map(|(i, grade)| {
            let level = if grade == b'u' { -1 } else { i32::from(grade - b'0') };
            (format!("d{i}").into(), level)
        });
        let rest = unretrieved.iter().enumerate().map(|(i, &level)| (format!("x{i}").into(), level));
        let judgements = judged.chain(rest).collect();
        let ranking = JudgedRanking::new("run", &"q".into(), &entries, &judgements).unwrap();
        let measure: Measure = measure.parse().unwrap();
        measure.value(&if measure.judged_only { ranking.judged_only() } else { ranking })
    }

    #[track_caller]
    fn check(measure: &str, ranking: &str, unretrieved: &[i32], expected: f64) {
        let found = value(measure, ranking, unretrieved);
        assert!((found - expected).abs() < 1e-9, "{measure} of {ranking:?}: {found}, expected {expected}");
    }

    #[test]
    fn gains() {
        // Found 3 at rank 1 and 1 at rank 3 (log2 4 = 2); best: 3, 2, 1.
        let ideal = 3.0 + 2.0 / 3f64.log2() + 0.5;
        check("nDCG", "301", &[2], 3.5 / ideal);
        check("nDCG@1", "301", &[2], 1.0);
        check("nDCG@2", "301", &[2], 3.0 / (3.0 + 2.0 / 3f64.log2()));
        let ideal = 7.0 + 3.0 / 3f64.log2() + 0.5;
        check("nDCG(dcg='exp-log2')", "301", &[2], 7.5 / ideal);
        check("nDCG", "u-0", &[-1], 0.0);
    }

    #[test]
    fn precision_and_recall() {
        check("AP", "0101", &[1], (0.5 + 0.5) / 3.0);
        check("AP@2", "0101", &[1], 0.5 / 3.0);
        check("AP(rel=2)", "0201", &[1], 0.5);
        check("P@10", "0101", &[], 0.2);
        check("R@2", "0101", &[1], 1.0 / 3.0);
        check("Success@1", "0101", &[], 0.0);
        check("Success@2", "0101", &[], 1.0);
        check("Rprec", "0101", &[1], 1.0 / 3.0);
        check("RR", "0-u1", &[], 0.25);
        check("RR@3", "0-u1", &[], 0.0);
        check("RR(judged_only=True)", "0-u1", &[], 0.5);
    }

    #[test]
    fn incomplete_judgements() {
        check("Judged@2", "1-u0", &[], 0.5);
        check("Judged@10", "1-u0", &[], 0.75);
        check("Judged", "", &[1], 0.0);
        // Two relevant, two non-relevant: the second relevant has one of two above it.
        check("Bpref", "1-u0-1", &[0], (1.0 + 0.5) / 2.0);
        check("Bpref", "001", &[], 0.0);
        check("Bpref", "11", &[], 1.0);
        check("infAP", "1", &[], 1.0);
        // Rank 3: 1/3 + 2/3 of (1 of 2 pooled) times (1 of 1 judged relevant).
        let second = 1.0 / 3.0 + (2.0 / 3.0) * 0.5 * (1.0 + 1e-5) / (1.0 + 2e-5);
        check("infAP", "1-1", &[], (1.0 + second) / 2.0);
    }

    #[test]
    fn interpolated() {
        // Precisions on relevant ranks: 1/2, 2/3, 3/6.
        for (recall, expected) in [("0.0", 2.0 / 3.0), ("0.5", 2.0 / 3.0), ("0.75", 0.5), ("1.0", 0.0)] {
            check(&format!("IPrec@{recall}"), "011001", &[1], expected);
        }
    }

    #[test]
    fn sets_and_counts() {
        check("SetP", "0110", &[1, 1], 0.5);
        check("SetR", "0110", &[1, 1], 0.5);
        check("SetRelP", "0110", &[], 1.0);
        check("SetAP", "0110", &[1, 1], 0.25);
        check("SetF", "0110", &[], 2.0 / 3.0);
        check("SetF(beta=3.0)", "0110", &[], 4.0 * 0.5 / (1.5 + 1.0));
        check("SetF", "00", &[1], 0.0);
        check("NumRet", "01-u", &[1], 4.0);
        check("NumRel", "01-u", &[2], 2.0);
        check("NumRelRet", "01-u", &[2], 1.0);
        check("NumQ", "", &[], 1.0);
    }
}
