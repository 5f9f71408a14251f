//! Lines over a common axis, each labelled where it ends.

use std::fmt::Write as _;

use super::markup::{escaped, px, short};
use super::scale::{Scale, round_ticks, spread};

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 300.0;
/// Room left of the marks on the y axis.
const LEFT: f64 = 26.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 42.0;
/// Height of a label at the end of a line, and width of a letter of it.
const LABEL: f64 = 14.0;
const LETTER: f64 = 6.6;
/// Lines of more points than this have small dots.
const FEW: usize = 30;
/// Colours in the style sheet.
const COLOURS: usize = 8;

/// One axis.
#[derive(Debug, Clone, Default)]
pub(crate) struct Axis {
    /// What it shows.
    pub(crate) label: String,
    /// Whether equal factors are equally far apart.
    pub(crate) log: bool,
    /// Values to mark; round numbers without any.
    pub(crate) ticks: Vec<f64>,
    /// From and to; the values' own range without it.
    pub(crate) range: Option<(f64, f64)>,
}

/// One value with its interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// Interval of `y`.
    pub(crate) interval: Option<(f64, f64)>,
}

/// One line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<Point>,
    /// Which colour of the style sheet.
    pub(crate) colour: usize,
    /// Whether the line is dashed, for a variant of another.
    pub(crate) dashed: bool,
    /// The line the chart is about: in the accent colour, with its interval as a band.
    pub(crate) accent: bool,
}

/// Lines over a common axis.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineChart {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    /// Whether the line x = y is drawn, for calibration.
    pub(crate) diagonal: bool,
}

impl LineChart {
    /// The chart as SVG.
    pub(crate) fn render(&self) -> String {
        let longest = self.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0);
        let right = 16.0 + longest as f64 * LETTER;
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x_range = self.x.range.unwrap_or_else(|| bounds(points().map(|point| point.x)));
        let y_range = self.y.range.unwrap_or_else(|| bounds(points().map(|point| point.y)));
        let y_ticks = self.y.ticks_in(y_range, 5);
        let widest = y_ticks.iter().map(|&tick| short(tick).chars().count()).max().unwrap_or(0);
        let left = LEFT + widest as f64 * LETTER;
        let (bottom, end) = (HEIGHT - BOTTOM, WIDTH - right);
        let x = Scale::new(x_range, (left, end), self.x.log);
        let y = Scale::new(y_range, (bottom, TOP), self.y.log);

        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escaped(&self.title)
        );
        for &tick in &y_ticks {
            let at = px(y.at(tick));
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{at}\" y2=\"{at}\"/>\
                 <text class=\"tick\" x=\"{}\" y=\"{at}\" dy=\".32em\" text-anchor=\"end\">{}</text>",
                px(left),
                px(end),
                px(left - 7.0),
                short(tick)
            );
        }
        for &tick in &self.x.ticks_in(x_range, 6) {
            let at = px(x.at(tick));
            let _ = writeln!(
                out,
                "<line class=\"mark\" x1=\"{at}\" x2=\"{at}\" y1=\"{}\" y2=\"{}\"/>\
                 <text class=\"tick\" x=\"{at}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                px(bottom),
                px(bottom + 4.0),
                px(bottom + 17.0),
                short(tick)
            );
        }
        let _ = writeln!(
            out,
            "<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{b}\" y2=\"{b}\"/>\
             <text class=\"name\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text class=\"name\" x=\"11\" y=\"{m}\" text-anchor=\"middle\" transform=\"rotate(-90 11 {m})\">{}</text>",
            px(left),
            px(end),
            px(0.5 * (left + end)),
            px(HEIGHT - 6.0),
            escaped(&self.x.label),
            escaped(&self.y.label),
            b = px(bottom),
            m = px(0.5 * (TOP + bottom)),
        );
        if self.diagonal {
            let (low, high) = (x_range.0.max(y_range.0), x_range.1.min(y_range.1));
            let _ = writeln!(
                out,
                "<line class=\"diagonal\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
                px(x.at(low)),
                px(y.at(low)),
                px(x.at(high)),
                px(y.at(high))
            );
        }
        // The line the chart is about is drawn last, above the others.
        let order = |accent: bool| self.series.iter().filter(move |series| series.accent == accent);
        for series in order(false).chain(order(true)) {
            self.draw_series(&mut out, series, &x, &y);
        }
        self.draw_labels(&mut out, &x, &y, bottom);
        out.push_str("</svg>\n");
        out
    }

    fn draw_series(&self, out: &mut String, series: &Series, x: &Scale, y: &Scale) {
        let _ = writeln!(out, "<g class=\"{}\">", series.class());
        let place = |at: f64, value: f64| format!("{},{}", px(x.at(at)), px(y.at(value)));
        if series.accent && series.points.iter().all(|point| point.interval.is_some()) {
            let high = series.points.iter().filter_map(|p| Some(place(p.x, p.interval?.1)));
            let low = series.points.iter().rev().filter_map(|p| Some(place(p.x, p.interval?.0)));
            let outline: Vec<String> = high.chain(low).collect();
            let _ = writeln!(out, "<polygon class=\"band\" points=\"{}\"/>", outline.join(" "));
        }
        let line: Vec<String> = series.points.iter().map(|point| place(point.x, point.y)).collect();
        let _ = writeln!(out, "<polyline points=\"{}\"/>", line.join(" "));
        let radius = if series.points.len() > FEW { 1.6 } else { 3.2 };
        for point in &series.points {
            let interval = point
                .interval
                .map_or(String::new(), |(low, high)| format!(" (95 %: {} to {})", short(low), short(high)));
            let _ = writeln!(
                out,
                "<circle cx=\"{}\" cy=\"{}\" r=\"{radius}\"><title>{}: {} {}, {} {}{interval}</title></circle>",
                px(x.at(point.x)),
                px(y.at(point.y)),
                escaped(&series.name),
                escaped(&self.x.label),
                short(point.x),
                escaped(&self.y.label),
                short(point.y),
            );
        }
        out.push_str("</g>\n");
    }

    fn draw_labels(&self, out: &mut String, x: &Scale, y: &Scale, bottom: f64) {
        let ends: Vec<(&Series, Point)> =
            self.series.iter().filter_map(|series| Some((series, *series.points.last()?))).collect();
        let places: Vec<f64> = ends.iter().map(|(_, point)| y.at(point.y)).collect();
        for ((series, point), place) in ends.iter().zip(spread(&places, LABEL, bottom)) {
            let (from, at) = (x.at(point.x), y.at(point.y));
            if (place - at).abs() > 3.0 {
                let _ = writeln!(
                    out,
                    "<line class=\"leader\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
                    px(from + 4.0),
                    px(at),
                    px(from + 10.0),
                    px(place)
                );
            }
            let _ = writeln!(
                out,
                "<text class=\"label {}\" x=\"{}\" y=\"{}\" dy=\".32em\">{}</text>",
                series.class(),
                px(from + 12.0),
                px(place),
                escaped(&series.name)
            );
        }
    }
}

impl Axis {
    fn ticks_in(&self, range: (f64, f64), wanted: usize) -> Vec<f64> {
        if self.ticks.is_empty() { round_ticks(range.0, range.1, wanted) } else { self.ticks.clone() }
    }
}

impl Series {
    fn class(&self) -> String {
        let dashed = if self.dashed { " dashed" } else { "" };
        if self.accent {
            format!("series accent{dashed}")
        } else {
            format!("series s{}{dashed}", self.colour % COLOURS)
        }
    }
}

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low > high { (0.0, 1.0) } else { (low, high) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_points_its_label_and_titles() {
        let point = |x: f64, y: f64| Point { x, y, interval: Some((y - 0.1, y + 0.1)) };
        let chart = LineChart {
            title: "k = 10".into(),
            x: Axis { label: "cost".into(), log: true, ticks: vec![50.0, 500.0], range: None },
            y: Axis { label: "recall".into(), range: Some((0.0, 1.0)), ..Axis::default() },
            series: vec![
                Series {
                    name: "a&b".into(),
                    points: vec![point(50.0, 0.2), point(500.0, 0.7)],
                    ..Series::default()
                },
                Series {
                    name: "posterior".into(),
                    points: vec![point(50.0, 0.4)],
                    accent: true,
                    ..Series::default()
                },
                Series { name: "nothing".into(), ..Series::default() },
            ],
            diagonal: false,
        };
        let svg = chart.render();
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("a&amp;b: cost 50, recall 0.2 (95 %: 0.1 to 0.3)"), "{svg}");
        assert_eq!(svg.matches("class=\"band\"").count(), 1);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
