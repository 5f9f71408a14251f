//! The HTML report of `loxia eval knn`.

use loxia::search::MethodName;

use super::estimates::EstimateCell;
use super::grid::{MethodResult, Plan};
use super::input::Rows;
use super::output::target_cells;
use crate::command::eval::matrix;
use crate::matrix_target::command_line;
use crate::report::grouped;
use crate::report_html::{Axis, DataTable, LineChart, Page, Point, Section, Series};

/// Groups of queries, by estimate, in a plot of the calibration.
const GROUPS: usize = 10;

/// The whole page.
pub(super) fn render(
    plan: &Plan,
    rows: &Rows,
    results: &[MethodResult],
    study: Option<&(matrix::Plan, matrix::Study)>,
) -> String {
    let mut page = Page::new(
        "Recall against cost",
        "How much of the cross-encoder's own top k each method finds, for a given number of scored pairs. \
         Constants were chosen on anchor rows; test queries were only searched.",
    );
    page.fact("items", grouped(rows.scores.cols() as u64))
        .fact(
            "anchor queries",
            plan.anchor_counts.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
        )
        .fact("test queries", grouped(rows.test.len() as u64))
        .fact("rounds", plan.rounds.to_string());
    for &anchors in &plan.anchor_counts {
        let group: Vec<&MethodResult> = results
            .iter()
            .filter(|result| result.anchors == anchors && result.method != MethodName::Exact)
            .collect();
        if group.is_empty() {
            continue;
        }
        let suffix =
            if plan.anchor_counts.len() > 1 { format!(", {anchors} anchors") } else { String::new() };
        page.section(curves(plan, &group, &suffix));
        page.section(table(plan, &group, &suffix));
    }
    if plan.anchor_counts.len() > 1 {
        page.section(by_anchors(plan, results));
    }
    for result in results.iter().filter(|result| !result.estimates.is_empty()) {
        page.section(calibration(plan, result));
    }
    for result in results.iter().filter(|result| !result.targets.is_empty()) {
        page.section(targets(result));
    }
    if let Some((plan, study)) = study {
        for section in matrix::sections(plan, study) {
            page.section(section);
        }
    }
    page.made_by(command_line());
    page.render()
}

fn curves(plan: &Plan, results: &[&MethodResult], suffix: &str) -> Section {
    let mut section = Section::new(
        format!("Recall against cost{suffix}"),
        "The band is the 95 % bootstrap interval over queries; that of other methods is shown on hover.",
    );
    for (column, &k) in plan.ks.iter().enumerate() {
        let series: Vec<Series> = results
            .iter()
            .map(|result| Series {
                name: result.method.to_string(),
                points: result
                    .cells
                    .iter()
                    .map(|row| Point {
                        x: row[column].cost as f64,
                        y: row[column].recall,
                        interval: Some((row[column].interval.low, row[column].interval.high)),
                    })
                    .collect(),
                colour: colour(result.method),
                dashed: result.method.to_string().ends_with('+'),
                accent: result.method == MethodName::Posterior,
            })
            .collect();
        let lowest = series.iter().flat_map(|series| &series.points).map(|point| point.y).fold(1.0, f64::min);
        let chart = LineChart {
            title: format!("Recall of the top {k} against cost"),
            x: Axis {
                label: "scored pairs".into(),
                log: true,
                ticks: plan.costs.iter().map(|&cost| cost as f64).collect(),
                range: None,
            },
            y: Axis {
                label: format!("recall at {k}"),
                range: Some((floor_of(lowest), 1.0)),
                ..Axis::default()
            },
            series,
            diagonal: false,
        };
        section.figure(format!("k = {k}"), chart.render());
    }
    section
}

/// One colour for a family of methods, so that a variant is found beside what it varies.
fn colour(method: MethodName) -> usize {
    match method {
        MethodName::Rerank => 0,
        MethodName::Anncur | MethodName::AnncurPlus => 1,
        MethodName::Adacur | MethodName::AdacurPlus => 2,
        MethodName::Axn | MethodName::AxnPlus => 3,
        other => 4 + MethodName::all().position(|method| method == other).unwrap_or(0),
    }
}

/// A round number below, so that crowded lines have room.
fn floor_of(lowest: f64) -> f64 {
    if lowest > 0.98 { 0.95 } else { ((lowest - 0.02) * 10.0).floor().max(0.0) / 10.0 }
}

fn table(plan: &Plan, results: &[&MethodResult], suffix: &str) -> Section {
    let with_mean = results.iter().any(|result| result.mean12.is_some());
    let mut groups = vec![(String::new(), 1)];
    let mut header = vec!["method".to_owned()];
    for cost in &plan.costs {
        groups.push((format!("cost {cost}"), plan.ks.len()));
        header.extend(plan.ks.iter().map(|k| format!("k={k}")));
    }
    if with_mean {
        groups.push((String::new(), 1));
        header.push("mean12".to_owned());
    }
    let values = |result: &MethodResult| -> Vec<f64> {
        let cells = result.cells.iter().flatten().map(|cell| cell.recall);
        cells.chain(result.mean12.map(|mean| mean.recall)).collect()
    };
    let all: Vec<Vec<f64>> = results.iter().map(|result| values(result)).collect();
    let mut best = Vec::new();
    for col in 0..header.len() - 1 {
        let highest = all.iter().filter_map(|row| row.get(col)).fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        // Equal to what is printed counts as equal.
        let near = |row: &Vec<f64>| row.get(col).is_some_and(|value| highest - value < 5e-5);
        best.extend(all.iter().enumerate().filter(|(_, row)| near(row)).map(|(row, _)| (row, col + 1)));
    }
    let cells = plan.costs.len() * plan.ks.len();
    let text =
        |(col, value): (usize, &f64)| if col < cells { format!("{value:.3}") } else { format!("{value:.4}") };
    let rows = results.iter().zip(&all).map(|(result, row)| {
        std::iter::once(result.method.to_string()).chain(row.iter().enumerate().map(text)).collect()
    });
    let accent =
        |(row, result): (usize, &&MethodResult)| (result.method == MethodName::Posterior).then_some(row);
    let table = DataTable {
        groups,
        header,
        rows: rows.collect(),
        left: 1,
        accent: results.iter().enumerate().filter_map(accent).collect(),
        best,
    };
    let notes: Vec<String> = results
        .iter()
        .filter(|result| !result.chosen.is_empty())
        .map(|result| format!("{}: {}", result.method, result.chosen.join("; ")))
        .collect();
    let mean =
        if with_mean { "mean12 is the mean over k = 10, 50, 100 and cost 50, 100, 200, 500. " } else { "" };
    let mut section =
        Section::new(format!("All numbers{suffix}"), format!("{mean}The best of each column is bold."));
    section.wide_figure(format!("Settings chosen on anchor rows: {}.", notes.join(" · ")), table.render());
    section
}

/// How methods fare with fewer anchor rows.
fn by_anchors(plan: &Plan, results: &[MethodResult]) -> Section {
    let series = plan.methods.iter().map(|&method| Series {
        name: method.to_string(),
        points: results
            .iter()
            .filter(|result| result.method == method)
            .filter_map(|result| {
                let mean = result.mean12?;
                let interval = Some((mean.interval.low, mean.interval.high));
                Some(Point { x: result.anchors as f64, y: mean.recall, interval })
            })
            .collect(),
        colour: colour(method),
        dashed: method.to_string().ends_with('+'),
        accent: method == MethodName::Posterior,
    });
    let mut counts: Vec<f64> = plan.anchor_counts.iter().map(|&count| count as f64).collect();
    counts.sort_by(f64::total_cmp);
    let mut series: Vec<Series> = series.filter(|series| !series.points.is_empty()).collect();
    for line in &mut series {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    let chart = LineChart {
        title: "Mean recall against the number of anchor queries".into(),
        x: Axis { label: "anchor queries".into(), log: true, ticks: counts, range: None },
        y: Axis { label: "mean12".into(), ..Axis::default() },
        series,
        diagonal: false,
    };
    let mut section =
        Section::new("Fewer anchor queries", "Each anchor query costs one score for every item, once.");
    section.figure("Mean over the twelve cells", chart.render());
    section
}

fn calibration(plan: &Plan, result: &MethodResult) -> Section {
    let mut section = Section::new(
        format!("How far the estimate of {} can be trusted", result.method),
        "Queries in groups of equal size by estimated recall, against the recall they really had: on the dashed \
         line the estimate is right on average.",
    );
    for &k in &plan.ks {
        let cells: Vec<&EstimateCell> =
            result.estimates.iter().filter(|cell| cell.k == k && 2 * cell.cost >= k as u64).collect();
        let series = cells.iter().enumerate().map(|(colour, cell)| Series {
            name: format!("cost {}", cell.cost),
            points: grouped_means(&cell.pairs),
            colour,
            ..Series::default()
        });
        let whole = Axis { label: "estimated recall".into(), range: Some((0.0, 1.0)), ..Axis::default() };
        let chart = LineChart {
            title: format!("Estimated against actual recall at {k}"),
            x: whole.clone(),
            y: Axis { label: "actual recall".into(), ..whole },
            series: series.collect(),
            diagonal: true,
        };
        section.figure(format!("k = {k}"), chart.render());
    }
    let header =
        ["k", "cost", "recall", "estimate", "error a query", "best constant", "in the 90 % interval"];
    let rows = result.estimates.iter().map(|cell| {
        vec![
            cell.k.to_string(),
            cell.cost.to_string(),
            format!("{:.3}", cell.recall),
            format!("{:.3}", cell.estimate),
            format!("{:.3}", cell.error),
            format!("{:.3}", cell.constant_error),
            format!("{:.0} %", 100.0 * cell.covered),
        ]
    });
    let table = DataTable {
        header: header.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        left: 0,
        ..DataTable::default()
    };
    section.wide_figure(
        "Error a query: mean absolute difference of estimate and truth; best constant: the same for the median of \
         the truths in the estimate's place.",
        table.render(),
    );
    section
}

fn targets(result: &MethodResult) -> Section {
    let mut section = Section::new(
        format!("Stopping at a recall target with {}", result.method),
        "Each query stops when its estimate reaches the target, so that easy ones pay less than hard ones.",
    );
    let (header, rows) = target_cells(result);
    let table = DataTable { header, rows, left: 0, ..DataTable::default() };
    section.wide_figure(
        "Beside it: the recall of a budget of the mean cost for every query, and the least such budget with the same \
         recall.",
        table.render(),
    );
    section
}

/// Means of groups of equal size, ascending in the estimate.
fn grouped_means(pairs: &[(f64, f64)]) -> Vec<Point> {
    let mut sorted = pairs.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let size = sorted.len().div_ceil(GROUPS).max(1);
    let mean = |group: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
        group.iter().map(of).sum::<f64>() / group.len().max(1) as f64
    };
    sorted
        .chunks(size)
        .map(|group| Point { x: mean(group, |p| p.0), y: mean(group, |p| p.1), interval: None })
        .collect()
}
