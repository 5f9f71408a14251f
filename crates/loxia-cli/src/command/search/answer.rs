//! Answers as they leave: for people with what they cost, as JSON, or as a TREC run.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use loxia::core::artefact::Existing;
use loxia::core::{Answer, Query, RecallTarget, RunEntry, StoppedBy};
use loxia::data::write::TrecRunWriter;
use loxia::search::EstimateReach;

use crate::command::index::items::OrderedItems;
use crate::context::Context;
use crate::exit::usage;
use crate::flags::shortest;
use crate::ranked_output::shown;
use crate::report::grouped;
use crate::text_output::{claim, write_text_to};

/// A query and what was found for it.
pub(super) struct Found<'a> {
    pub(super) query: &'a Query,
    pub(super) answer: &'a Answer,
    pub(super) items: &'a OrderedItems<'a>,
    pub(super) target: Option<RecallTarget>,
    pub(super) reach: Option<EstimateReach>,
    pub(super) k: usize,
}

/// Receives the answers one after the other.
pub(super) type Sink<'a> = dyn FnMut(&Found<'_>) -> Result<()> + 'a;

/// Where answers go, and in which form.
pub(super) struct AnswerOutput {
    path: PathBuf,
    existing: Existing,
    tag: String,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Trec,
    JsonLines,
    People,
}

impl AnswerOutput {
    /// Decides on the form; an existing file is refused before any work is done.
    pub(super) fn new(
        path: &Path,
        overwrite: bool,
        tag: &str,
        batch: bool,
        context: &Context,
    ) -> Result<Self> {
        let stdout = path.as_os_str() == "-";
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let form = match extension {
            "gz" | "json" => {
                return usage(format!("{}: answers are written as a TREC run or as .jsonl", path.display()));
            }
            "jsonl" => Form::JsonLines,
            _ if stdout && context.json => Form::JsonLines,
            _ if stdout && (!batch || std::io::stdout().is_terminal()) => Form::People,
            _ => Form::Trec,
        };
        Ok(AnswerOutput {
            path: path.to_owned(),
            existing: claim(path, overwrite)?,
            tag: tag.to_owned(),
            form,
        })
    }

    /// Whether answers go to stdout.
    pub(super) fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// Whether a person reads them.
    pub(super) fn is_for_people(&self) -> bool {
        self.form == Form::People
    }

    /// Writes what `fill` sends to its sink; a file appears whole or not at all.
    pub(super) fn write(&self, fill: impl FnOnce(&mut Sink<'_>) -> Result<()>) -> Result<()> {
        write_text_to(&self.path, self.existing, |output| match self.form {
            Form::Trec => {
                let mut writer = TrecRunWriter::new(output, &self.tag, ' ')?;
                fill(&mut |found| Ok(writer.write(&found.query.id, &found.entries()?)?))
            }
            Form::JsonLines => fill(&mut |found| {
                writeln!(output, "{}", found.json()?)?;
                Ok(output.flush()?)
            }),
            Form::People => fill(&mut |found| {
                found.show(output)?;
                Ok(output.flush()?)
            }),
        })
    }
}

/// Whether the recall that was asked for is there: by estimate, or because everything was scored.
pub(super) fn target_reached(answer: &Answer) -> bool {
    matches!(answer.stopped_by, StoppedBy::Recall | StoppedBy::Exhausted)
}

impl Found<'_> {
    fn entries(&self) -> Result<Vec<RunEntry>> {
        let entry = |scored: &loxia::core::Scored| {
            let item = self.items.get(scored.item)?.id;
            Ok(RunEntry { item, score: shortest(scored.score) })
        };
        self.answer.ranking.as_slice().iter().map(entry).collect()
    }

    fn json(&self) -> Result<serde_json::Value> {
        let mut items = Vec::new();
        for (rank, scored) in (1..).zip(self.answer.ranking.as_slice()) {
            let item = self.items.get(scored.item)?;
            items.push(serde_json::json!({
                "rank": rank, "id": item.id.as_str(), "score": shortest(scored.score), "title": item.title,
                "text": item.text,
            }));
        }
        let answer = self.answer;
        Ok(serde_json::json!({
            "query_id": self.query.id.as_str(),
            "query": self.query.text.joined(),
            "k": self.k,
            "items": items,
            "paid": answer.cost.pairs,
            "cached": answer.cost.cached,
            "tokens": answer.cost.tokens,
            "truncated": answer.cost.truncated,
            "rounds": answer.rounds,
            "stopped_by": answer.stopped_by,
            "recall_target": self.target.map(RecallTarget::get),
            "target_reached": self.target.map(|_| target_reached(answer)),
            "target_certifiable": self.certifiable(),
            "largest_target": self.reach.map(|reach| reach.largest_target),
            "estimated_recall": answer.recall_estimate,
            "estimate_calibrated": self.reach.map(|reach| reach.calibrated),
        }))
    }

    /// Whether the estimate could have told that the target is reached; it is unknown where none is made.
    fn certifiable(&self) -> Option<bool> {
        Some(self.reach?.certifies(self.target?))
    }

    fn show(&self, output: &mut dyn Write) -> Result<()> {
        writeln!(output, "{}", self.query.text.joined())?;
        let ranking = self.answer.ranking.as_slice();
        let texts: Vec<_> =
            ranking.iter().map(|scored| self.items.get(scored.item)).collect::<Result<_, _>>()?;
        let width = texts.iter().map(|item| item.id.as_str().chars().count()).max().unwrap_or(0).min(24);
        for (rank, (scored, item)) in (1..).zip(ranking.iter().zip(&texts)) {
            let text = shown(item, 80);
            writeln!(output, "{rank:>5}  {:>9.4}  {:<width$}  {text}", scored.score, item.id)?;
        }
        Ok(writeln!(output, "       {}\n", self.facts())?)
    }

    /// Cost, rounds, why it ended and what it is worth, in one line.
    fn facts(&self) -> String {
        let answer = self.answer;
        let plural = |count: u64, what: &str| {
            format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
        };
        let mut facts = vec![format!("{} paid", plural(answer.cost.pairs, "pair"))];
        if answer.cost.cached > 0 {
            facts.push(format!("{} scored before", grouped(answer.cost.cached)));
        }
        facts.push(plural(u64::from(answer.rounds), "round"));
        facts.push(match answer.stopped_by {
            StoppedBy::Exhausted => "everything was scored: exact".to_owned(),
            StoppedBy::Budget => "stopped by the budget".to_owned(),
            StoppedBy::Recall => "stopped by the recall target".to_owned(),
            StoppedBy::Deadline => "stopped by the deadline".to_owned(),
            StoppedBy::Candidates => "no more candidates".to_owned(),
        });
        if let Some(estimate) = answer.recall_estimate.filter(|_| answer.stopped_by != StoppedBy::Exhausted) {
            let (mean, low, high) = (estimate.mean, estimate.low, estimate.high);
            let uncalibrated = match self.reach {
                Some(reach) if !reach.calibrated => format!(", not calibrated for k above {}", reach.nearest),
                _ => String::new(),
            };
            facts.push(format!(
                "estimated recall {mean:.2} (90 % interval {low:.2} to {high:.2}{uncalibrated})"
            ));
        }
        if let Some(target) = self.target {
            let below = answer.recall_estimate.is_some_and(|estimate| estimate.mean < target.get());
            let reached = match (target_reached(answer), self.certifiable()) {
                // Where a target ends searches is set for their mean.
                (true, _) if below => "reached on average by searches that end here",
                (true, _) => "reached",
                (false, Some(false)) => "not reached, and beyond what the estimate can certify",
                (false, _) => "not reached",
            };
            facts.push(format!("target {} {reached}", target.get()));
        }
        facts.join("; ")
    }
}
