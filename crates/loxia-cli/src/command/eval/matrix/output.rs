//! Results of `loxia eval matrix` as tables and JSON.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

use super::study::{Cell, Plan, Study};
use crate::command::eval::table::Table;
use crate::report::grouped;

/// Singular values in JSON; the rest are only counted.
const MOST_VALUES: usize = 2000;

/// One object with everything.
pub(super) fn write_json(plan: &Plan, study: &Study, out: &mut impl Write) -> Result<()> {
    let cells: Vec<Value> = plan
        .links
        .iter()
        .zip(&study.cells)
        .flat_map(|((name, _), cells)| cells.iter().map(move |cell| record(plan, name, cell)))
        .collect();
    let values = &study.singular_values[..study.singular_values.len().min(MOST_VALUES)];
    let whole = json!({
        "rows": study.rows,
        "items": study.items,
        "rank": study.rank,
        "values_holding_90_percent": study.values_holding(0.9),
        "values_holding_99_percent": study.values_holding(0.99),
        "mean": study.mean,
        "deviation": study.deviation,
        "lowest": study.lowest,
        "highest": study.highest,
        "singular_values": values,
        "centred_singular_values": &study.centred_values[..study.centred_values.len().min(MOST_VALUES)],
        "histogram": {
            "low": study.mean - study.histogram.width,
            "high": study.mean + study.histogram.width,
            "counts": study.histogram.counts,
            "outside": study.histogram.outside,
        },
        "cells": cells,
    });
    serde_json::to_writer_pretty(&mut *out, &whole)?;
    writeln!(out)?;
    Ok(())
}

fn record(plan: &Plan, link: &str, cell: &Cell) -> Value {
    json!({
        "link": link,
        "anchor_queries": cell.anchor_queries,
        "anchor_items": cell.anchor_items,
        "k": plan.k,
        "retrieved": plan.retrieve,
        "recall": cell.quality.recall,
        "recall_deviation": cell.recall_deviation,
        "recall_of_anchors": cell.quality.recall_of_anchors,
        "relative_error": cell.quality.relative_error,
        "relative_error_elsewhere": cell.quality.relative_error_elsewhere,
        "error_of_spread": cell.quality.error_of_spread,
        "seeds": plan.seeds.len(),
    })
}

/// Facts, then a table of recall and one of the error for each link.
pub(super) fn write_tables(plan: &Plan, study: &Study, markdown: bool, out: &mut impl Write) -> Result<()> {
    let bullet = if markdown { "- " } else { "" };
    let values = study.singular_values.len();
    for (name, text) in [
        ("scores", format!("{} queries x {} items", grouped(study.rows as u64), grouped(study.items as u64))),
        (
            "values",
            format!(
                "mean {:.3}, deviation {:.3}, from {:.3} to {:.3}",
                study.mean, study.deviation, study.lowest, study.highest
            ),
        ),
        ("rank", format!("{} of {values} as numpy counts it in single precision", study.rank)),
        (
            "energy",
            format!(
                "without column means {} singular values hold 90 %, {} hold 99 % of the squared norm",
                study.values_holding(0.9),
                study.values_holding(0.99)
            ),
        ),
    ] {
        writeln!(out, "{bullet}{name:<7} {text}")?;
    }
    for ((name, _), cells) in plan.links.iter().zip(&study.cells) {
        if cells.is_empty() {
            continue;
        }
        let (k, retrieve) = (plan.k, plan.retrieve);
        writeln!(out, "\n{name}: recall of the top {k} among {retrieve} by approximate score\n")?;
        write_table(&table(plan, cells, |cell| cell.quality.recall), markdown, out)?;
        writeln!(out, "\n{name}: relative error |approximation - M| / |M|\n")?;
        write_table(&table(plan, cells, |cell| cell.quality.relative_error_elsewhere), markdown, out)?;
        writeln!(out, "\n{name}: the same error in units of the scores' spread, |M - mean|\n")?;
        write_table(&table(plan, cells, |cell| cell.quality.error_of_spread), markdown, out)?;
    }
    Ok(())
}

fn table(plan: &Plan, cells: &[Cell], value: impl Fn(&Cell) -> f64) -> Table {
    let mut header = vec!["anchor queries".to_owned()];
    let columns = plan.anchor_items.iter().enumerate();
    header.extend(
        columns.map(|(at, count)| if at == 0 { format!("{count} items") } else { count.to_string() }),
    );
    let rows = cells.chunks(plan.anchor_items.len().max(1)).map(|row| {
        let numbers = row.iter().map(|cell| format!("{:.3}", value(cell)));
        std::iter::once(row[0].anchor_queries.to_string()).chain(numbers).collect()
    });
    Table { header, rows: rows.collect(), left: 0 }
}

fn write_table(table: &Table, markdown: bool, out: &mut impl Write) -> Result<()> {
    if markdown {
        table.write_markdown(out)?
    } else {
        table.write_aligned(out)?
    }
    Ok(())
}
