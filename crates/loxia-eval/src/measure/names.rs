//! The table of names: ir_measures', trec_eval's, and what each measure accepts.

use super::{Kind, Measure};

/// What may stand behind the `@`, or behind trec_eval's `_`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum At {
    Nothing,
    /// A cutoff or none.
    OptionalCutoff,
    Cutoff,
    /// A recall between 0 and 1.
    Recall,
}

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Name {
    /// As ir_measures writes it.
    pub(crate) canonical: &'static str,
    /// Other names for the same thing.
    pub(crate) aliases: &'static [&'static str],
    /// The formula, with the parameters the name implies.
    pub(crate) kind: Kind,
    pub(crate) at: At,
    /// Names of the parameters it takes in parentheses.
    pub(crate) parameters: &'static [&'static str],
}

const fn name(
    canonical: &'static str,
    aliases: &'static [&'static str],
    kind: Kind,
    at: At,
    parameters: &'static [&'static str],
) -> Name {
    Name { canonical, aliases, kind, at, parameters }
}

pub(crate) const NAMES: &[Name] = &[
    name("nDCG", &[], Kind::Ndcg { exponential: false }, At::OptionalCutoff, &["dcg", "judged_only"]),
    name("RR", &["MRR", "recip_rank"], Kind::ReciprocalRank, At::OptionalCutoff, LEVEL_AND_JUDGED),
    name("AP", &["MAP"], Kind::AveragePrecision, At::OptionalCutoff, LEVEL_AND_JUDGED),
    name("gm_map", &[], Kind::GeometricAveragePrecision, At::Nothing, LEVEL_AND_JUDGED),
    name("P", &["Precision"], Kind::Precision, At::Cutoff, LEVEL_AND_JUDGED),
    name("R", &["Recall"], Kind::Recall, At::Cutoff, LEVEL_AND_JUDGED),
    name("Success", &[], Kind::Success, At::Cutoff, LEVEL_AND_JUDGED),
    name("Rprec", &[], Kind::RPrecision, At::Nothing, LEVEL_AND_JUDGED),
    name("Judged", &[], Kind::Judged, At::OptionalCutoff, &[]),
    name("Bpref", &[], Kind::Bpref, At::Nothing, &["rel"]),
    name("infAP", &[], Kind::InferredAp, At::Nothing, &["rel"]),
    name("IPrec", &[], Kind::InterpolatedPrecision { recall: 0.0 }, At::Recall, LEVEL_AND_JUDGED),
    name(
        "SetP",
        &["set_P"],
        Kind::SetPrecision { relative: false },
        At::Nothing,
        &["rel", "relative", "judged_only"],
    ),
    name(
        "SetRelP",
        &["set_relative_P"],
        Kind::SetPrecision { relative: true },
        At::Nothing,
        LEVEL_AND_JUDGED,
    ),
    name("SetR", &["set_recall"], Kind::SetRecall, At::Nothing, &["rel"]),
    name("SetF", &["set_F"], Kind::SetF { beta: 1.0 }, At::Nothing, &["rel", "beta", "judged_only"]),
    name("SetAP", &["set_map"], Kind::SetAp, At::Nothing, LEVEL_AND_JUDGED),
    name("NumQ", &["num_q"], Kind::NumQueries, At::Nothing, &[]),
    name("NumRet", &["num_ret"], Kind::NumRetrieved, At::Nothing, &["rel"]),
    name("NumRel", &["num_rel"], Kind::NumRelevant, At::Nothing, &["rel"]),
    name("NumRelRet", &["num_rel_ret"], Kind::NumRelevantRetrieved, At::Nothing, &["rel"]),
];

const LEVEL_AND_JUDGED: &[&str] = &["rel", "judged_only"];

/// A trec_eval name that takes its cutoffs behind `_` or `.`, and those it has when none are given.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) prefix: &'static str,
    /// The table row it stands for.
    pub(crate) canonical: &'static str,
    pub(crate) defaults: &'static [&'static str],
}

pub(crate) const FAMILIES: &[Family] = &[
    Family { prefix: "ndcg_cut", canonical: "nDCG", defaults: CUTOFFS },
    Family { prefix: "map_cut", canonical: "AP", defaults: CUTOFFS },
    Family { prefix: "recip_rank_cut", canonical: "RR", defaults: &["5", "10", "15", "20", "30", "100"] },
    Family { prefix: "P", canonical: "P", defaults: CUTOFFS },
    Family { prefix: "recall", canonical: "R", defaults: CUTOFFS },
    Family { prefix: "success", canonical: "Success", defaults: &["1", "5", "10"] },
    Family { prefix: "iprec_at_recall", canonical: "IPrec", defaults: RECALLS },
    Family { prefix: "set_F", canonical: "SetF", defaults: &["1.0"] },
    Family { prefix: "judged", canonical: "Judged", defaults: &["10"] },
];

const CUTOFFS: &[&str] = &["5", "10", "15", "20", "30", "100", "200", "500", "1000"];
const RECALLS: &[&str] = &["0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1.0"];

/// The row of a name or alias, in any case.
pub(crate) fn find(name: &str) -> Option<&'static Name> {
    NAMES.iter().find(|row| {
        row.canonical.eq_ignore_ascii_case(name)
            || row.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    })
}

/// How ir_measures writes a formula's name (two of its names are another's with a parameter).
pub(super) fn canonical(kind: Kind) -> &'static str {
    match kind {
        Kind::SetPrecision { .. } => "SetP",
        Kind::NumRelevantRetrieved => "NumRet",
        _ => NAMES
            .iter()
            .find(|row| std::mem::discriminant(&row.kind) == std::mem::discriminant(&kind))
            .map_or("?", |row| row.canonical),
    }
}

/// The set trec_eval calls official, in its order; the run id is not a measure.
pub(super) fn official() -> Vec<Measure> {
    let mut measures: Vec<Measure> = [
        Kind::NumQueries,
        Kind::NumRetrieved,
        Kind::NumRelevant,
        Kind::NumRelevantRetrieved,
        Kind::AveragePrecision,
        Kind::GeometricAveragePrecision,
        Kind::RPrecision,
        Kind::Bpref,
        Kind::ReciprocalRank,
    ]
    .map(Measure::new)
    .to_vec();
    let recalls = (0..=10).map(|tenth| f64::from(tenth) / 10.0);
    measures.extend(recalls.map(|recall| Measure::new(Kind::InterpolatedPrecision { recall })));
    let cutoffs = [5, 10, 15, 20, 30, 100, 200, 500, 1000];
    measures.extend(cutoffs.map(|cutoff| Measure::at(Kind::Precision, cutoff)));
    measures
}

/// All names in a line, for messages.
pub(super) fn known() -> String {
    let names: Vec<&str> = NAMES.iter().map(|row| row.canonical).collect();
    format!("{} and trec_eval's names", names.join(", "))
}

/// The names closest to a misspelt one.
pub(super) fn nearest(wrong: &str) -> Vec<String> {
    let candidates = NAMES
        .iter()
        .flat_map(|row| std::iter::once(&row.canonical).chain(row.aliases))
        .copied()
        .chain(FAMILIES.iter().map(|family| family.prefix));
    let distances: Vec<(usize, &str)> =
        candidates.map(|name| (edit_distance(&name.to_lowercase(), &wrong.to_lowercase()), name)).collect();
    let least = distances.iter().map(|&(distance, _)| distance).min().unwrap_or(0);
    let mut names: Vec<String> = distances
        .into_iter()
        .filter(|&(distance, _)| distance == least)
        .map(|(_, name)| name.to_owned())
        .collect();
    names.truncate(3);
    names
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().take(64).collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, distance) in [("ndcg", "ndgc", 1), ("", "ap", 2), ("map", "map", 0), ("bpref", "pref", 1)]
        {
            assert_eq!(edit_distance(a, b), distance, "{a} {b}");
            assert_eq!(edit_distance(b, a), distance, "{b} {a}");
        }
    }

    #[test]
    fn no_name_is_taken_twice() {
        let mut names: Vec<String> = NAMES
            .iter()
            .flat_map(|row| std::iter::once(&row.canonical).chain(row.aliases))
            .map(|name| name.to_lowercase())
            .collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
