//! Results of `loxia eval run` in each format.

use std::io::Write;

use anyhow::Result;
use loxia::eval::{Evaluation, Measure, PairedTest, write_trec_eval};
use serde_json::{Map, Value, json};

use super::comparison::{Extras, Test};
use super::measure_runs::Format;
use super::table::Table;

/// Queries that are named in a message; the rest are counted.
const NAMED_QUERIES: usize = 5;

/// One system.
#[derive(Debug)]
pub(super) struct SystemReport {
    pub(super) name: String,
    pub(super) evaluation: Evaluation,
}

/// Everything there is to print.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) systems: Vec<SystemReport>,
    pub(super) extras: Extras,
    pub(super) per_query: bool,
    pub(super) complete: bool,
    /// No measure was named.
    pub(super) official: bool,
}

/// Writes a report.
pub(super) fn write(report: &Report, format: Format, out: &mut impl Write) -> Result<()> {
    match format {
        Format::Table => {
            report.table(false).write_aligned(out)?;
            report.write_footer(out, "")?;
        }
        Format::Markdown => {
            report.table(false).write_markdown(out)?;
            report.write_footer(out, "- ")?;
        }
        Format::Csv => report.table(true).write_csv(out)?,
        Format::TrecEval => {
            for system in &report.systems {
                // With several runs the run's name tells where the next one begins to be summed up.
                let run_id = report.official || report.systems.len() > 1;
                write_trec_eval(&system.evaluation, report.per_query, run_id, out)?;
            }
        }
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &report.json())?;
            writeln!(out)?;
        }
    }
    Ok(())
}

impl Report {
    /// A line for each difference between the queries of a run and the judged ones.
    pub(super) fn differences(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for system in &self.systems {
            let differences = &system.evaluation.differences;
            let describe = |queries: &[loxia::core::QueryId], what: &str| {
                let names: Vec<&str> =
                    queries.iter().take(NAMED_QUERIES).map(|query| query.as_str()).collect();
                let more = queries.len() - names.len();
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let noun = if queries.len() == 1 { "query" } else { "queries" };
                format!("{}: {} {noun} {what}: {}{more}", system.name, queries.len(), names.join(", "))
            };
            if !differences.missing.is_empty() {
                let what = if self.complete {
                    "judged but not in the run (counted as empty rankings)"
                } else {
                    "judged but not in the run (left out of the means; --complete counts them)"
                };
                lines.push(describe(&differences.missing, what));
            }
            if !differences.unjudged.is_empty() {
                lines.push(describe(&differences.unjudged, "in the run but not judged (ignored)"));
            }
        }
        lines
    }

    fn measures(&self) -> &[Measure] {
        self.systems.first().map_or(&[], |system| system.evaluation.measures())
    }

    /// Runs (and queries) as rows, measures as columns; all digits or as many as people read.
    fn table(&self, exact: bool) -> Table {
        let mut header = vec!["run".to_owned()];
        if self.per_query {
            header.push("query".to_owned());
        }
        let left = header.len();
        for measure in self.measures() {
            header.push(measure.to_string());
            if self.extras.with_intervals {
                if exact {
                    header.extend([format!("low {measure}"), format!("high {measure}")]);
                } else {
                    header.push("95 %".to_owned());
                }
            }
            if self.extras.comparison.is_some() {
                header.push(if exact { format!("p {measure}") } else { "p".to_owned() });
            }
        }
        let mut rows = Vec::new();
        for (position, system) in self.systems.iter().enumerate() {
            if self.per_query {
                for (query, values) in system.evaluation.per_query() {
                    let mut row = vec![system.name.clone(), query.to_string()];
                    for (measure, &value) in self.measures().iter().zip(values) {
                        let text = if measure.is_per_query() {
                            number(*measure, value, exact)
                        } else {
                            String::new()
                        };
                        row.push(text);
                        // Intervals and tests belong to means only.
                        row.resize(row.len() + self.extra_columns(exact), String::new());
                    }
                    rows.push(row);
                }
            }
            let mut row = vec![system.name.clone()];
            if self.per_query {
                row.push("all".to_owned());
            }
            for (column, (measure, &mean)) in
                self.measures().iter().zip(system.evaluation.means()).enumerate()
            {
                row.push(number(*measure, mean, exact));
                self.push_extras(&mut row, position, column, exact);
            }
            rows.push(row);
        }
        Table { header, rows, left }
    }

    fn extra_columns(&self, exact: bool) -> usize {
        let intervals = if exact { 2 } else { 1 };
        usize::from(self.extras.with_intervals) * intervals + usize::from(self.extras.comparison.is_some())
    }

    fn push_extras(&self, row: &mut Vec<String>, system: usize, column: usize, exact: bool) {
        if self.extras.with_intervals {
            match (self.extras.interval(system, column), exact) {
                (Some(interval), true) => row.extend([interval.low.to_string(), interval.high.to_string()]),
                (Some(interval), false) => row.push(format!("[{:.4}, {:.4}]", interval.low, interval.high)),
                (None, true) => row.extend([String::new(), String::new()]),
                (None, false) => row.push(String::new()),
            }
        }
        if let Some(comparison) = self.extras.comparison {
            row.push(match self.extras.test(system, column) {
                None => String::new(),
                Some(test) if exact => test.p.to_string(),
                Some(test) => p_value(test, comparison.level()),
            });
        }
    }

    /// What one must know to read the table.
    fn write_footer(&self, out: &mut impl Write, bullet: &str) -> Result<()> {
        let mut lines = Vec::new();
        if let Some(comparison) = self.extras.comparison {
            let baseline = &self.systems[comparison.baseline];
            let (test, mark) = match comparison.test {
                Test::Difference => {
                    (format!("paired t-test against {}, two-sided", baseline.name), "differs")
                }
                Test::Equivalence { delta } => {
                    (format!("equivalence to {} within {delta} (TOST)", baseline.name), "equivalent")
                }
            };
            let shared = match comparison.systems - 1 {
                1 => String::new(),
                tests => format!(": 0.05 shared by {tests} tests"),
            };
            lines.push(format!("p: {test}; * {mark} (p < {:.4}{shared})", comparison.level()));
            for (position, system) in self.systems.iter().enumerate() {
                let paired = (0..self.measures().len()).find_map(|i| self.extras.test(position, i));
                let all = system.evaluation.queries().len().max(baseline.evaluation.queries().len());
                if let Some(test) = paired.filter(|test| test.queries < all) {
                    lines.push(format!(
                        "{}: tested on the {} queries that both runs have",
                        system.name, test.queries
                    ));
                }
            }
        }
        lines.extend(self.differences());
        if !lines.is_empty() {
            writeln!(out)?;
        }
        lines.iter().try_for_each(|line| writeln!(out, "{bullet}{line}"))?;
        Ok(())
    }

    fn json(&self) -> Value {
        let mut objects = Vec::new();
        for (position, system) in self.systems.iter().enumerate() {
            let object = |query: &str, measure: Measure, value: f64| {
                let mut object = Map::new();
                object.insert("run".into(), json!(system.name));
                if self.per_query {
                    object.insert("query".into(), json!(query));
                }
                object.insert("measure".into(), json!(measure.to_string()));
                object.insert(
                    "value".into(),
                    if measure.is_count() { json!(value as u64) } else { json!(value) },
                );
                object
            };
            if self.per_query {
                for (query, values) in system.evaluation.per_query() {
                    let pairs =
                        self.measures().iter().zip(values).filter(|(measure, _)| measure.is_per_query());
                    objects.extend(pairs.map(|(measure, &value)| object(query.as_str(), *measure, value)));
                }
            }
            for (column, (measure, &mean)) in
                self.measures().iter().zip(system.evaluation.means()).enumerate()
            {
                let mut object = object("all", *measure, mean);
                if let Some(interval) = self.extras.interval(position, column) {
                    object.insert("low".into(), json!(interval.low));
                    object.insert("high".into(), json!(interval.high));
                }
                if let Some(test) = self.extras.test(position, column) {
                    object.insert("difference".into(), json!(test.difference));
                    object.insert("p".into(), json!(test.p));
                }
                objects.push(object);
            }
        }
        json!(objects)
    }
}

fn number(measure: Measure, value: f64, exact: bool) -> String {
    match (measure.is_count(), exact) {
        (true, _) => format!("{value:.0}"),
        (false, true) => value.to_string(),
        (false, false) => format!("{value:.4}"),
    }
}

fn p_value(test: PairedTest, level: f64) -> String {
    let mark = if test.p < level { "*" } else { " " };
    if test.p < 0.0001 { format!("<0.0001{mark}") } else { format!("{:.4}{mark}", test.p) }
}
