//! Reading measures: ir_measures' grammar `Name(key=value,...)@cutoff` and trec_eval's names.

use std::str::FromStr;

use super::names::{self, At, FAMILIES, Family, Name};
use super::{Kind, Measure};
use crate::{Error, Result};

impl FromStr for Measure {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match Measure::parse_all(text)?.as_slice() {
            [measure] => Ok(*measure),
            several => Err(syntax(
                text,
                format!("it stands for {} measures; name one, such as {}", several.len(), several[0]),
            )),
        }
    }
}

impl Measure {
    /// Reads a name that may stand for several measures, as trec_eval's do: `P.5,10`, `ndcg_cut`,
    /// `official`.
    ///
    /// ```
    /// use loxia_eval::Measure;
    /// let names = |text: &str| -> Vec<String> {
    ///     Measure::parse_all(text).unwrap().iter().map(Measure::to_string).collect()
    /// };
    /// assert_eq!(names("ndcg_cut.5,10"), ["nDCG@5", "nDCG@10"]);
    /// assert_eq!(names("success"), ["Success@1", "Success@5", "Success@10"]);
    /// assert_eq!(names("SetF(beta=2.0)"), ["SetF(beta=2.0)"]);
    /// ```
    pub fn parse_all(text: &str) -> Result<Vec<Measure>> {
        let text = text.trim();
        if text.contains(['(', '@']) {
            return parse_named(text).map(|measure| vec![measure]);
        }
        if text.eq_ignore_ascii_case("official") {
            return Ok(Measure::official());
        }
        // A bare `P` or `Recall` is trec_eval's family: ir_measures' needs a cutoff.
        if let Some(family) = FAMILIES.iter().find(|family| family.prefix.eq_ignore_ascii_case(text))
            && names::find(text).is_none_or(|row| row.at == At::Cutoff)
        {
            return family.defaults.iter().map(|value| family_member(text, family, value)).collect();
        }
        if names::find(text).is_some() {
            return parse_named(text).map(|measure| vec![measure]);
        }
        for family in FAMILIES {
            if let Some(values) = family_values(text, family.prefix) {
                return values.split(',').map(|value| family_member(text, family, value)).collect();
            }
        }
        Err(unknown(text))
    }
}

/// What follows a family's name and `_` or `.`, if that begins with a digit or a point.
fn family_values<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, tail) = text.split_at_checked(prefix.len())?;
    let values = head.eq_ignore_ascii_case(prefix).then(|| tail.strip_prefix(['_', '.'])).flatten()?;
    values.starts_with(|c: char| c.is_ascii_digit() || c == '.').then_some(values)
}

fn family_member(text: &str, family: &Family, value: &str) -> Result<Measure> {
    let row = names::find(family.canonical).ok_or_else(|| unknown(text))?;
    if let Kind::SetF { .. } = row.kind {
        return Ok(Measure::new(Kind::SetF { beta: beta(text, value)? }));
    }
    set_at(text, row, Measure::new(row.kind), value)
}

fn parse_named(text: &str) -> Result<Measure> {
    let (head, at) = match text.rsplit_once('@') {
        Some((head, at)) => (head.trim(), Some(at.trim())),
        None => (text, None),
    };
    let (name, parameters) = match head.split_once('(') {
        None => (head, ""),
        Some((name, rest)) => {
            let inside = rest.trim_end().strip_suffix(')');
            let inside = inside.ok_or_else(|| syntax(text, "the parenthesis is not closed".to_owned()))?;
            (name.trim(), inside)
        }
    };
    let row = names::find(name).ok_or_else(|| unknown(name))?;
    let mut measure = Measure::new(row.kind);
    for parameter in parameters.split(',').map(str::trim).filter(|parameter| !parameter.is_empty()) {
        let (key, value) = parameter
            .split_once('=')
            .ok_or_else(|| syntax(text, format!("{parameter:?} is not of the form name=value")))?;
        set_parameter(text, row, &mut measure, key.trim(), value.trim())?;
    }
    match at {
        Some(at) => set_at(text, row, measure, at),
        None if matches!(row.at, At::Cutoff | At::Recall) => {
            let example = if row.at == At::Recall { "0.1" } else { "10" };
            Err(syntax(text, format!("it needs a cutoff, such as {}@{example}", row.canonical)))
        }
        None => Ok(measure),
    }
}

fn set_parameter(text: &str, row: &Name, measure: &mut Measure, key: &str, value: &str) -> Result<()> {
    if !row.parameters.contains(&key) {
        let allowed = match row.parameters {
            [] => "it takes none".to_owned(),
            parameters => format!("it takes {}", parameters.join(", ")),
        };
        return Err(syntax(text, format!("there is no parameter {key:?}; {allowed}")));
    }
    match key {
        "rel" => {
            let level = value.parse::<u32>().ok().filter(|&level| i32::try_from(level).is_ok());
            measure.rel = Some(level.ok_or_else(|| {
                syntax(text, format!("rel is {value}, expected a whole number from 0 to {}", i32::MAX))
            })?);
            if measure.kind == Kind::NumRetrieved {
                measure.kind = Kind::NumRelevantRetrieved;
            }
        }
        "judged_only" => measure.judged_only = boolean(text, key, value)?,
        "relative" => measure.kind = Kind::SetPrecision { relative: boolean(text, key, value)? },
        "beta" => measure.kind = Kind::SetF { beta: beta(text, value)? },
        _ => {
            let exponential = match value.trim_matches(['\'', '"']) {
                "log2" => false,
                "exp-log2" => true,
                _ => return Err(syntax(text, format!("dcg is {value}, expected 'log2' or 'exp-log2'"))),
            };
            measure.kind = Kind::Ndcg { exponential };
        }
    }
    Ok(())
}

fn set_at(text: &str, row: &Name, mut measure: Measure, at: &str) -> Result<Measure> {
    match row.at {
        At::Nothing => return Err(syntax(text, format!("{} takes no cutoff", row.canonical))),
        At::Recall => {
            let recall = at.parse().ok().filter(|recall| (0.0..=1.0).contains(recall));
            let recall = recall.ok_or_else(|| {
                syntax(text, format!("the recall is {at:?}, expected a number from 0 to 1"))
            })?;
            measure.kind = Kind::InterpolatedPrecision { recall };
        }
        At::Cutoff | At::OptionalCutoff => {
            let cutoff = at.parse::<u32>().ok().filter(|&cutoff| cutoff > 0);
            let cutoff = cutoff.ok_or_else(|| {
                syntax(text, format!("the cutoff is {at:?}, expected a whole number from 1 up"))
            })?;
            measure.cutoff = Some(cutoff as usize);
        }
    }
    Ok(measure)
}

fn boolean(text: &str, key: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(syntax(text, format!("{key} is {value}, expected True or False"))),
    }
}

fn beta(text: &str, value: &str) -> Result<f64> {
    value
        .parse()
        .ok()
        .filter(|beta: &f64| beta.is_finite() && *beta >= 0.0)
        .ok_or_else(|| syntax(text, format!("beta is {value}, expected a number from 0 up")))
}

fn syntax(measure: &str, problem: String) -> Error {
    Error::MeasureSyntax { measure: measure.to_owned(), problem }
}

fn unknown(name: &str) -> Error {
    Error::UnknownMeasure { name: name.to_owned(), nearest: names::nearest(name), known: names::known() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> String {
        match text.parse::<Measure>() {
            Ok(measure) => measure.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn names_print_as_ir_measures_prints_them() {
        let same = [
            "nDCG@10",
            "nDCG",
            "nDCG(dcg='exp-log2')@10",
            "RR",
            "RR@10",
            "RR(rel=2)@10",
            "AP",
            "AP(rel=2)@100",
            "P@5",
            "R(rel=2)@100",
            "Success@1",
            "Rprec",
            "Judged@10",
            "Judged",
            "Bpref",
            "Bpref(rel=2)",
            "SetP",
            "SetP(relative=True)",
            "SetR",
            "SetF",
            "SetF(beta=2.0)",
            "SetAP",
            "NumQ",
            "NumRet",
            "NumRet(rel=1)",
            "NumRet(rel=3)",
            "NumRel",
            "infAP",
            "IPrec@0.1",
            "IPrec@1.0",
            "P(rel=2,judged_only=True)@5",
            "AP(rel=0)",
            "gm_map",
        ];
        for name in same {
            assert_eq!(printed(name), name);
        }
    }

    #[test]
    fn other_names_for_the_same() {
        let pairs = [
            ("ndcg_cut_10", "nDCG@10"),
            ("ndcg_cut.10", "nDCG@10"),
            ("NDCG@10", "nDCG@10"),
            ("map", "AP"),
            ("map_cut_100", "AP@100"),
            ("recip_rank", "RR"),
            ("mrr@10", "RR@10"),
            ("P_10", "P@10"),
            ("p_10", "P@10"),
            ("recall_100", "R@100"),
            ("Recall@5", "R@5"),
            ("success_1", "Success@1"),
            ("set_P", "SetP"),
            ("set_recall", "SetR"),
            ("set_map", "SetAP"),
            ("set_F", "SetF"),
            ("set_F_2.0", "SetF(beta=2.0)"),
            ("set_relative_P", "SetP(relative=True)"),
            ("SetRelP", "SetP(relative=True)"),
            ("num_rel_ret", "NumRet(rel=1)"),
            ("NumRelRet", "NumRet(rel=1)"),
            ("iprec_at_recall_0.10", "IPrec@0.1"),
            ("iprec_at_recall_.1", "IPrec@0.1"),
            (" AP( rel = 2 ) @ 10 ", "AP(rel=2)@10"),
            ("bpref", "Bpref"),
            ("nDCG(dcg=\"log2\")@3", "nDCG@3"),
            ("infap", "infAP"),
            ("num_q", "NumQ"),
        ];
        for (alias, name) in pairs {
            assert_eq!(printed(alias), name, "{alias}");
        }
    }

    #[test]
    fn a_level_of_one_is_the_same_written_or_not() {
        let measure = |text: &str| text.parse::<Measure>().unwrap();
        for (plain, written) in [("AP", "AP(rel=1)"), ("num_rel_ret", "NumRet(rel=1)"), ("P@5", "P(rel=1)@5")]
        {
            assert_eq!(measure(plain), measure(written));
        }
        assert_ne!(measure("AP"), measure("AP(rel=2)"));
        assert_ne!(measure("AP").with_level(2), measure("AP(rel=1)").with_level(2));
    }

    #[test]
    fn families_and_nicknames_stand_for_several() {
        assert_eq!(Measure::parse_all("P").unwrap().len(), 9);
        assert_eq!(Measure::parse_all("recall").unwrap().len(), 9);
        assert_eq!(Measure::parse_all("iprec_at_recall").unwrap().len(), 11);
        assert_eq!(Measure::parse_all("official").unwrap(), Measure::official());
        assert_eq!(printed("P"), "measure \"P\": it stands for 9 measures; name one, such as P@5");
    }

    #[test]
    fn what_does_not_fit_is_explained() {
        let cases = [
            ("nDCG@0", "expected a whole number from 1 up"),
            ("nDCG@99999999999", "expected a whole number from 1 up"),
            ("P(rel=2)", "it needs a cutoff, such as P@10"),
            ("IPrec@1.5", "expected a number from 0 to 1"),
            ("IPrec@nan", "expected a number from 0 to 1"),
            ("Rprec@10", "Rprec takes no cutoff"),
            ("nDCG(rel=2)@10", "there is no parameter \"rel\"; it takes dcg, judged_only"),
            ("NumQ(rel=2)", "it takes none"),
            ("AP(rel=-1)", "rel is -1, expected a whole number from 0"),
            ("AP(rel)", "not of the form name=value"),
            ("AP(rel=2", "the parenthesis is not closed"),
            ("SetF(beta=inf)", "beta is inf"),
            ("nDCG(dcg='exp')@5", "expected 'log2' or 'exp-log2'"),
            ("nDGC@10", "unknown measure \"nDGC\"; did you mean nDCG? known: nDCG, RR"),
            ("", "unknown measure \"\""),
            ("ndcg_cut_x", "unknown measure"),
            ("é", "unknown measure"),
        ];
        for (text, message) in cases {
            assert!(printed(text).contains(message), "{text}: {}", printed(text));
        }
    }
}
