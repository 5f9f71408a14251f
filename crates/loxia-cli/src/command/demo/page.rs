//! The HTML report of the demo.

use loxia::search::MethodName;

use super::ROUNDS;
use super::comparison::Comparison;
use super::material::Material;
use super::shown::{Judged, Shown};
use super::stopping::Stopping;
use crate::report::grouped;
use crate::report_html::{Axis, DataTable, LineChart, Page, Point, Section, Series};

/// The whole page. It says nothing of time or place, so that it is the same from run to run.
pub(super) fn render(
    material: &Material,
    comparison: &Comparison,
    shown: &Shown,
    stopping: &Stopping,
) -> String {
    let mut page = Page::new(
        "Search under a cross-encoder",
        "How much of the cross-encoder's own top k is found for a given number of scored pairs. Constants were chosen \
         on anchor queries; the others were only searched.",
    );
    page.fact("items", grouped(material.items.len() as u64))
        .fact("anchor queries", material.anchors.to_string())
        .fact("searched queries", material.searched().len().to_string())
        .fact("rounds", ROUNDS.to_string());
    page.section(curves(comparison)).section(table(comparison));
    page.section(searches(material, shown));
    if let Some(section) = target(stopping) {
        page.section(section);
    }
    page.render()
}

fn curves(comparison: &Comparison) -> Section {
    let mut section = Section::new(
        "Recall against cost",
        "The band is the 95 % bootstrap interval over queries; that of other methods is shown on hover.",
    );
    for (column, k) in comparison.ks.iter().enumerate() {
        section.figure(format!("k = {k}"), chart(comparison, column).render());
    }
    section
}

fn chart(comparison: &Comparison, column: usize) -> LineChart {
    let k = comparison.ks[column];
    let series = comparison.methods.iter().enumerate().map(|(colour, method)| Series {
        name: method.name.to_string(),
        points: comparison
            .costs
            .iter()
            .zip(&method.cells)
            .map(|(&cost, cells)| Point {
                x: cost as f64,
                y: cells[column].recall,
                interval: Some((cells[column].interval.low, cells[column].interval.high)),
            })
            .collect(),
        colour,
        dashed: false,
        accent: method.name == MethodName::Posterior,
    });
    let cost_axis = Axis {
        label: "scored pairs".into(),
        log: true,
        ticks: comparison.costs.iter().map(|&cost| cost as f64).collect(),
        range: None,
    };
    LineChart {
        title: format!("Recall of the top {k} against cost"),
        x: cost_axis,
        y: Axis { label: format!("recall at {k}"), range: Some((0.0, 1.0)), ..Axis::default() },
        series: series.collect(),
        diagonal: false,
    }
}

fn table(comparison: &Comparison) -> Section {
    let mut groups = vec![(String::new(), 1)];
    let mut header = vec!["method".to_owned()];
    for cost in &comparison.costs {
        groups.push((format!("{cost} pairs"), comparison.ks.len()));
        header.extend(comparison.ks.iter().map(|k| format!("k={k}")));
    }
    groups.push((String::new(), 1));
    header.push("mean".to_owned());
    let rows: Vec<Vec<String>> = comparison
        .methods
        .iter()
        .map(|method| {
            let recalls = method.cells.iter().flatten().map(|cell| cell.recall).chain([method.mean]);
            std::iter::once(method.name.to_string())
                .chain(recalls.map(|recall| format!("{recall:.3}")))
                .collect()
        })
        .collect();
    let mut best = Vec::new();
    for col in 1..header.len() {
        // Texts of equal length: the greatest text is the greatest number.
        let highest = rows.iter().map(|row| &row[col]).max();
        best.extend((0..rows.len()).filter(|&row| Some(&rows[row][col]) == highest).map(|row| (row, col)));
    }
    let table = DataTable { groups, header, left: 1, accent: vec![rows.len() - 1], best, rows };
    let mut section = Section::new("All numbers", "The best of each column is bold.");
    section.wide_figure("", table.render());
    section
}

fn searches(material: &Material, shown: &Shown) -> Section {
    let mut section = Section::new(
        "What reranking misses",
        format!(
            "Three searches with much to see: the cross-encoder's best items, and which of them reranking {} order \
             and posterior paid for, 100 pairs each.",
            material.first_stage
        ),
    );
    for search in &shown.searches {
        section.wide_figure(material.asked(search.query), judged(material, search).render());
    }
    section
}

fn judged(material: &Material, search: &Judged) -> DataTable {
    let said = |found: bool| if found { "found" } else { "missed" }.to_owned();
    let rows = (1..).zip(&search.top).map(|(rank, top): (usize, _)| {
        let meant = if material.golds[search.query] == Some(top.item) { " (meant)" } else { "" };
        vec![
            format!(
                "{rank}. {}{meant}",
                crate::ranked_output::head(&material.items[top.item as usize].text, 110)
            ),
            format!("{:.2}", top.score),
            said(top.reranked),
            said(top.found),
        ]
    });
    DataTable {
        header: ["item", "score", "rerank", "posterior"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
        left: 1,
        accent: (0..search.top.len())
            .filter(|&at| !search.top[at].reranked && search.top[at].found)
            .collect(),
        ..DataTable::default()
    }
}

/// Estimated and true recall of the searches that stopped by themselves, against what they cost.
fn target(stopping: &Stopping) -> Option<Section> {
    let searches = stopping.searches.as_ref()?;
    let (target, k) = stopping.goal();
    let (recall, pairs) = searches.means();
    let mut order: Vec<_> = searches.all.iter().collect();
    order.sort_by_key(|ended| ended.pairs);
    let line = |name: &str, colour: usize, value: &dyn Fn(&super::stopping::Ended) -> f64| Series {
        name: name.to_owned(),
        points: groups(&order, value),
        colour,
        accent: colour == 0,
        ..Series::default()
    };
    let chart = LineChart {
        title: "Recall of searches that stopped by themselves".into(),
        x: Axis { label: "scored pairs (mean of a group of queries)".into(), ..Axis::default() },
        y: Axis { label: format!("recall at {k}"), range: Some((0.0, 1.0)), ..Axis::default() },
        series: vec![line("true", 0, &|ended| ended.recall), line("estimated", 1, &|ended| ended.estimate)],
        diagonal: false,
    };
    let mut section = Section::new(
        "Stopping at a recall target",
        format!(
            "Searches ended where those like them find {target:.2} of the top {k} on average. Mean recall {recall:.3}, \
             {pairs:.0} pairs a query on average. Easy queries end early, hard ones late."
        ),
    );
    section.figure("Queries in groups of equal size, by what they cost", chart.render());
    Some(section)
}

/// Means of a value over groups of queries of equal size.
fn groups(order: &[&super::stopping::Ended], value: &dyn Fn(&super::stopping::Ended) -> f64) -> Vec<Point> {
    let size = order.len().div_ceil(6).max(1);
    order
        .chunks(size)
        .map(|group| {
            let mean = |of: &dyn Fn(&super::stopping::Ended) -> f64| {
                group.iter().map(|ended| of(ended)).sum::<f64>() / group.len() as f64
            };
            Point { x: mean(&|ended| ended.pairs as f64), y: mean(value), interval: None }
        })
        .collect()
}
