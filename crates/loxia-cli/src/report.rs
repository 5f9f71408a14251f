//! The summary at the end of a command: a block for people on stderr, or one JSON object.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Map, Value};

use crate::context::Context;
use crate::output::{print_line, tell};

/// Facts in the order they are told.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Name, text for people, value for machines.
    facts: Vec<(&'static str, String, Option<Value>)>,
    skipped: Vec<String>,
    skipped_count: u64,
}

/// How many skipped inputs are named; the rest are only counted.
const NAMED: usize = 10;

impl Summary {
    /// Adds a fact with the same text for people and machines.
    pub(crate) fn fact(&mut self, name: &'static str, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        let text = match &value {
            Value::String(text) => text.clone(),
            Value::Number(number) => match number.as_u64() {
                Some(count) => grouped(count),
                None => number.to_string(),
            },
            other => other.to_string(),
        };
        self.facts.push((name, text, Some(value)));
        self
    }

    /// Adds a fact that people read otherwise than machines.
    pub(crate) fn fact_as(
        &mut self,
        name: &'static str,
        text: impl Into<String>,
        value: impl Into<Value>,
    ) -> &mut Self {
        self.facts.push((name, text.into(), Some(value.into())));
        self
    }

    /// Adds a line for people only: machines are told its parts by themselves.
    pub(crate) fn line(&mut self, name: &'static str, text: impl Into<String>) -> &mut Self {
        self.facts.push((name, text.into(), None));
        self
    }

    /// Adds a count only when it is not zero for people; machines always see it.
    pub(crate) fn count(&mut self, name: &'static str, count: u64) -> &mut Self {
        let text = if count == 0 { String::new() } else { grouped(count) };
        self.fact_as(name, text, count)
    }

    /// Adds how long it took and the rate.
    pub(crate) fn rate(&mut self, unit: &'static str, done: u64, took: Duration) -> &mut Self {
        let seconds = took.as_secs_f64();
        let rate = if seconds > 0.0 { done as f64 / seconds } else { 0.0 };
        self.fact_as("time", format!("{} ({} {unit}/s)", duration(took), three_digits(rate)), seconds)
    }

    /// The number told under a name.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.facts.iter().find(|fact| fact.0 == name).and_then(|fact| fact.2.as_ref()?.as_f64())
    }

    /// Counts an input that was left out, and names the first few.
    pub(crate) fn skip(&mut self, what: impl Into<String>) {
        self.skipped_count += 1;
        if self.skipped.len() < NAMED {
            self.skipped.push(what.into());
        }
    }

    /// The first few inputs that were left out, and why.
    pub(crate) fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// Whether inputs were left out.
    pub(crate) fn outcome(&self) -> crate::exit::Outcome {
        if self.skipped_count > 0 { crate::exit::Outcome::Skipped } else { crate::exit::Outcome::Done }
    }

    /// Tells everything. JSON goes to stdout, or to stderr when stdout holds the results.
    pub(crate) fn print(&self, context: &Context, stdout_taken: bool) -> Result<()> {
        if context.json {
            let json = Value::Object(self.json());
            if stdout_taken {
                tell(json);
                return Ok(());
            }
            return print_line(json);
        }
        if self.skipped_count > 0 {
            tell(format_args!("skipped {} inputs:", grouped(self.skipped_count)));
            for what in &self.skipped {
                tell(format_args!("  {what}"));
            }
            if self.skipped_count as usize > self.skipped.len() {
                let more = self.skipped_count - self.skipped.len() as u64;
                tell(format_args!("  and {} more", grouped(more)));
            }
        }
        if !context.quiet {
            self.lines().for_each(tell);
        }
        Ok(())
    }

    /// Tells everything on stdout: for commands whose result is the summary.
    pub(crate) fn print_to_stdout(&self, context: &Context) -> Result<()> {
        if context.json {
            return print_line(Value::Object(self.json()));
        }
        self.lines().try_for_each(print_line)
    }

    /// The facts as aligned lines; those without a text are for machines only.
    fn lines(&self) -> impl Iterator<Item = String> {
        let told = || self.facts.iter().filter(|fact| !fact.1.is_empty());
        let width = told().map(|fact| fact.0.len()).max().unwrap_or(0);
        told().map(move |(name, text, _)| format!("{name:<width$}  {text}"))
    }

    fn json(&self) -> Map<String, Value> {
        let valued = self.facts.iter().filter_map(|(name, _, value)| Some((name, value.clone()?)));
        let mut map: Map<String, Value> =
            valued.map(|(name, value)| (name.replace(' ', "_"), value)).collect();
        map.insert("skipped".into(), self.skipped_count.into());
        if self.skipped_count > 0 {
            map.insert("skipped_inputs".into(), self.skipped.clone().into());
        }
        map
    }
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three significant digits, grouped when large.
pub(crate) fn three_digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => grouped(value.round().max(0.0) as u64),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// `1 h 02 min`, `3 min 20 s`, `4.21 s`, `12 ms`.
pub(crate) fn duration(took: Duration) -> String {
    let seconds = took.as_secs();
    match seconds {
        3600.. => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
        60.. => format!("{} min {:02} s", seconds / 60, seconds % 60),
        1.. => format!("{} s", three_digits(took.as_secs_f64())),
        _ => format!("{} ms", took.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(12), "12");
        assert_eq!(three_digits(12_345.6), "12,346");
        assert_eq!(three_digits(0.1234), "0.12");
        assert_eq!(duration(Duration::from_secs(3720)), "1 h 02 min");
        assert_eq!(duration(Duration::from_millis(4213)), "4.21 s");
    }

    #[test]
    fn people_read_one_line_and_machines_its_parts() {
        let mut summary = Summary::default();
        summary.line("computed in", "int8, amx kernel").fact_as("kernel", "", "amx");
        assert_eq!(summary.lines().collect::<Vec<_>>(), ["computed in  int8, amx kernel"]);
        let keys: Vec<String> = summary.json().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["kernel", "skipped"]);
    }
}
