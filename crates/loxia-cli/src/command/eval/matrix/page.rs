//! The HTML report of `loxia eval matrix`.

use super::study::{Cell, Plan, Study};
use crate::matrix_target::command_line;
use crate::report::grouped;
use crate::report_html::{Axis, HeatMap, Histogram, LineChart, Page, Point, Section, Series};

/// Points of a long spectrum that are drawn.
const DRAWN: usize = 120;

/// The whole page.
pub(super) fn render(plan: &Plan, study: &Study) -> String {
    let mut page = Page::new(
        "A score matrix",
        "Its distribution and spectrum, and how well a few rows and columns approximate the rest.",
    );
    page.fact("queries", grouped(study.rows as u64))
        .fact("items", grouped(study.items as u64))
        .fact("rank (single precision)", grouped(study.rank as u64))
        .fact("centred values holding 99 %", grouped(study.values_holding(0.99) as u64))
        .fact("mean score", format!("{:.2}", study.mean))
        .fact("deviation", format!("{:.2}", study.deviation));
    for section in sections(plan, study) {
        page.section(section);
    }
    page.made_by(command_line());
    page.render()
}

/// What the page shows, for a page of more.
pub(in crate::command::eval) fn sections(plan: &Plan, study: &Study) -> Vec<Section> {
    let links = plan.links.iter().zip(&study.cells).filter(|(_, cells)| !cells.is_empty());
    let approximations = links.map(|((name, _), cells)| approximation(plan, name, cells));
    std::iter::once(distribution(study)).chain(approximations).collect()
}

fn distribution(study: &Study) -> Section {
    let mut section = Section::new("Scores", "");
    let histogram = Histogram {
        title: "Scores less their mean".into(),
        label: "score less mean".into(),
        low: -study.histogram.width,
        high: study.histogram.width,
        counts: study.histogram.counts.clone(),
    };
    let outside = match study.histogram.outside {
        0 => String::new(),
        count => format!("; {} scores lie outside", grouped(count)),
    };
    section.figure(format!("All scores, less their mean{outside}"), histogram.render());
    let tolerance = study.rows.max(study.items) as f64 * f64::from(f32::EPSILON);
    let (raw, centred) = (shares(&study.singular_values), shares(&study.centred_values));
    let floor = raw.iter().chain(&centred).map(|point| point.y).fold(tolerance, f64::min);
    let ticks: Vec<f64> = (-7..=0).map(|power| 10f64.powi(power)).filter(|tick| *tick >= floor).collect();
    let count = study.singular_values.len();
    let edge = |x: f64| Point { x, y: tolerance, interval: None };
    let spectrum = LineChart {
        title: "Singular values".into(),
        x: Axis { label: "singular value".into(), log: true, ticks: powers(count), range: None },
        y: Axis { label: "share of the largest".into(), log: true, ticks, range: Some((floor, 1.0)) },
        series: vec![
            Series { name: "raw".into(), points: raw, accent: true, ..Series::default() },
            Series { name: "centred".into(), points: centred, colour: 1, ..Series::default() },
            Series {
                name: "tolerance".into(),
                points: vec![edge(1.0), edge(count as f64)],
                dashed: true,
                ..Series::default()
            },
        ],
        diagonal: false,
    };
    section.figure(
        "Singular values; raw ones above the dashed line count for the rank. Centred: without column means",
        spectrum.render(),
    );
    section
}

/// Singular values as shares of the largest; tiny ones are rounding errors.
fn shares(values: &[f64]) -> Vec<Point> {
    let largest = values.first().copied().unwrap_or(0.0);
    let point = |at: usize| Point { x: (at + 1) as f64, y: values[at] / largest, interval: None };
    spaced(values.len()).into_iter().map(point).filter(|point| point.y > 1e-7).collect()
}

fn powers(count: usize) -> Vec<f64> {
    (0..).map(|power| 10f64.powi(power)).take_while(|&tick| tick <= count as f64).collect()
}

/// Positions that lie about evenly on a logarithmic axis.
fn spaced(count: usize) -> Vec<usize> {
    let step = (count.max(1) as f64).powf(1.0 / DRAWN as f64);
    let mut out: Vec<usize> = (0..=DRAWN).map(|at| step.powi(at as i32).round() as usize - 1).collect();
    out.dedup();
    out.retain(|&at| at < count);
    out
}

fn approximation(plan: &Plan, name: &str, cells: &[Cell]) -> Section {
    let text = match name {
        "published" => {
            "The link is the pseudo-inverse of the block where rows and columns meet, as published: it \
                        collapses where there are as many anchor queries as anchor items."
        }
        "ridge" => "Column means are taken off first, and the block is regularised.",
        _ => {
            "The best link there is, made from the whole matrix: what these rows and columns could do at most."
        }
    };
    let mut section = Section::new(format!("CUR approximation: {name}"), text);
    let map = |title: &str, value: &dyn Fn(&Cell) -> f64| HeatMap {
        title: title.to_owned(),
        row_label: "anchor queries".into(),
        rows: plan.anchor_queries.iter().map(usize::to_string).collect(),
        col_label: "anchor items".into(),
        cols: plan.anchor_items.iter().map(usize::to_string).collect(),
        values: cells.iter().map(|cell| Some(value(cell))).collect(),
    };
    let seeds = plan.seeds.len();
    section.figure(
        format!(
            "Recall of the top {} among {} items by approximate score, queries that are no anchors, mean of {seeds} \
             draws",
            plan.k, plan.retrieve
        ),
        map("recall", &|cell| cell.quality.recall).render(),
    );
    section.figure(
        "Error of the scores of those queries, in units of their spread (above 1 is drawn as 1)",
        map("error", &|cell| cell.quality.error_of_spread).render(),
    );
    section
}
