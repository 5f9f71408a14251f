//! Results of `loxia eval knn` as tables and JSON.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

use super::comparison::leads;
use super::grid::{Cell, MethodResult, Plan};
use crate::command::eval::table::Table;
use loxia::search::MethodName;

/// An array of objects, one for each method, number of anchors, cost and k.
pub(super) fn write_json(plan: &Plan, results: &[MethodResult], out: &mut impl Write) -> Result<()> {
    let mut objects = Vec::new();
    for result in results {
        for cell in result.cells.iter().flatten() {
            objects.push(record(plan, result, cell));
        }
        for cell in &result.targets {
            objects.push(json!({
                "method": result.method.to_string(),
                "target": cell.target,
                "cost": cell.pairs,
                "k": cell.k,
                "recall": cell.recall,
                "recall_at_even_cost": cell.even_recall,
                "even_budget": cell.even_budget,
                "certifiable": cell.is_certifiable(),
                "largest_target": cell.reach.largest_target,
                "anchors": result.anchors,
            }));
        }
    }
    serde_json::to_writer_pretty(&mut *out, &objects)?;
    writeln!(out)?;
    Ok(())
}

fn record(plan: &Plan, result: &MethodResult, cell: &Cell) -> Value {
    let mut record = json!({
        "method": result.method.to_string(),
        "cost": cell.cost,
        "k": cell.k,
        "recall": cell.recall,
        "deviation": cell.deviation,
        "low": cell.interval.low,
        "high": cell.interval.high,
        "rounds": plan.rounds,
        "anchors": result.anchors,
        "seeds": result.seeds,
        "seed_deviation": cell.seed_deviation,
        "mean_pairs": cell.pairs,
        "mean_batches": cell.rounds,
    });
    let estimate =
        result.estimates.iter().find(|estimate| (estimate.cost, estimate.k) == (cell.cost, cell.k));
    if let Some(estimate) = estimate {
        record["estimate"] = json!(estimate.estimate);
        record["estimate_error"] = json!(estimate.error);
        record["constant_error"] = json!(estimate.constant_error);
        record["covered"] = json!(estimate.covered);
        record["estimate_calibrated"] = json!(estimate.calibrated);
    }
    record
}

/// Recalls of all methods, then what was chosen, the comparison and the estimate.
pub(super) fn write_tables(
    plan: &Plan,
    results: &[MethodResult],
    markdown: bool,
    out: &mut impl Write,
) -> Result<()> {
    write_table(&recall_table(plan, results), markdown, out)?;
    let bullet = if markdown { "- " } else { "" };
    let mut notes = Vec::new();
    for result in results {
        if result.method == MethodName::Exact {
            let items = crate::report::grouped(result.cells[0][0].cost);
            notes.push(format!("exact: {items} pairs a query, recall 1 by definition"));
        }
        if !result.chosen.is_empty() {
            let anchors = anchors_note(plan, result);
            notes.push(format!("{}{anchors}: {}", result.method, result.chosen.join("; ")));
        }
    }
    for lead in leads(results) {
        let anchors =
            if plan.anchor_counts.len() > 1 { format!(" ({} anchors)", lead.anchors) } else { String::new() };
        notes.push(format!("{}{anchors}", lead.sentence()));
    }
    if !notes.is_empty() {
        writeln!(out)?;
        notes.iter().try_for_each(|note| writeln!(out, "{bullet}{note}"))?;
    }
    for result in results.iter().filter(|result| !result.estimates.is_empty()) {
        let anchors = anchors_note(plan, result);
        writeln!(out, "\n{bullet}recall as {}{anchors} estimates it\n", result.method)?;
        write_table(&estimate_table(result), markdown, out)?;
        if let Some(cell) = result.estimates.iter().find(|cell| !cell.calibrated) {
            writeln!(
                out,
                "\n{bullet}not calibrated for k = {} and above: the estimate goes by a smaller k",
                cell.k
            )?;
        }
    }
    for result in results.iter().filter(|result| !result.targets.is_empty()) {
        let anchors = anchors_note(plan, result);
        writeln!(out, "\n{bullet}{}{anchors}, stopping at a recall target\n", result.method)?;
        write_table(&target_table(result), markdown, out)?;
        for cell in result.targets.iter().filter(|cell| !cell.is_certifiable()) {
            let (target, k, largest) = (cell.target, cell.k, cell.reach.largest_target);
            writeln!(
                out,
                "\n{bullet}target {target} for k = {k} cannot be certified (the largest that can is {largest}): everything \
                 is scored"
            )?;
        }
    }
    Ok(())
}

fn anchors_note(plan: &Plan, result: &MethodResult) -> String {
    if plan.anchor_counts.len() > 1 { format!(", {} anchors", result.anchors) } else { String::new() }
}

fn write_table(table: &Table, markdown: bool, out: &mut impl Write) -> Result<()> {
    if markdown {
        table.write_markdown(out)?
    } else {
        table.write_aligned(out)?
    }
    Ok(())
}

/// A row a method, a column for each cost and k.
fn recall_table(plan: &Plan, results: &[MethodResult]) -> Table {
    let several = plan.anchor_counts.len() > 1;
    let with_mean = results.iter().any(|result| result.mean12.is_some());
    let drawn = results.iter().any(|result| result.seeds > 1);
    let mut header = vec!["method".to_owned()];
    if several {
        header.push("anchors".to_owned());
    }
    let left = header.len();
    for cost in &plan.costs {
        for (at, k) in plan.ks.iter().enumerate() {
            header.push(if at == 0 { format!("cost {cost}: k={k}") } else { format!("k={k}") });
        }
    }
    if with_mean {
        header.extend(["mean12".to_owned(), "95 %".to_owned()]);
        if drawn {
            header.push("draws +-".to_owned());
        }
    }
    let row = |result: &MethodResult| {
        let mut row = vec![result.method.to_string()];
        if several {
            row.push(result.anchors.to_string());
        }
        row.extend(result.cells.iter().flatten().map(|cell| format!("{:.3}", cell.recall)));
        if let Some(mean) = result.mean12 {
            row.push(format!("{:.4}", mean.recall));
            row.push(format!("[{:.3}, {:.3}]", mean.interval.low, mean.interval.high));
            if drawn {
                let draws =
                    if result.seeds > 1 { format!("{:.4}", mean.seed_deviation) } else { String::new() };
                row.push(draws);
            }
        }
        row
    };
    let rows = results.iter().filter(|result| result.method != MethodName::Exact).map(row).collect();
    Table { header, rows, left }
}

fn target_table(result: &MethodResult) -> Table {
    let (header, rows) = target_cells(result);
    Table { header, rows, left: 0 }
}

/// Header and rows of what stopping at targets gave.
pub(super) fn target_cells(result: &MethodResult) -> (Vec<String>, Vec<Vec<String>>) {
    let header =
        ["k", "target", "recall", "mean cost", "recall of that as a budget", "budget for that recall"];
    let rows = result.targets.iter().map(|cell| {
        vec![
            cell.k.to_string(),
            cell.target.to_string(),
            format!("{:.3}", cell.recall),
            format!("{:.1}", cell.pairs),
            format!("{:.3}", cell.even_recall),
            cell.even_budget.to_string(),
        ]
    });
    (header.map(str::to_owned).to_vec(), rows.collect())
}

fn estimate_table(result: &MethodResult) -> Table {
    let header =
        ["k", "cost", "recall", "estimate", "difference", "error a query", "best constant", "in 90 %"];
    let rows = result.estimates.iter().map(|cell| {
        vec![
            cell.k.to_string(),
            cell.cost.to_string(),
            format!("{:.3}", cell.recall),
            format!("{:.3}", cell.estimate),
            format!("{:+.3}", cell.estimate - cell.recall),
            format!("{:.3}", cell.error),
            format!("{:.3}", cell.constant_error),
            format!("{:.3}", cell.covered),
        ]
    });
    Table { header: header.map(str::to_owned).to_vec(), rows: rows.collect(), left: 0 }
}
