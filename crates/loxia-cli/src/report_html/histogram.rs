//! Counts over equal bins.

use std::fmt::Write as _;

use super::markup::{escaped, px, short};
use super::scale::{Scale, round_ticks};

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 20.0;
const BOTTOM: f64 = 42.0;

/// Counts over equal bins from `low` to `high`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    pub(crate) title: String,
    pub(crate) label: String,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) counts: Vec<u64>,
}

impl Histogram {
    /// The histogram as SVG; heights are shares of the largest count.
    pub(crate) fn render(&self) -> String {
        let (bottom, end) = (HEIGHT - BOTTOM, WIDTH - 16.0);
        let x = Scale::new((self.low, self.high), (LEFT, end), false);
        let largest = self.counts.iter().copied().max().unwrap_or(0).max(1);
        let y = Scale::new((0.0, largest as f64), (bottom, 10.0), false);
        let total = self.counts.iter().sum::<u64>().max(1) as f64;
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n<g class=\"bars\">\n",
            escaped(&self.title)
        );
        let edge =
            |bin: usize| self.low + (self.high - self.low) * bin as f64 / self.counts.len().max(1) as f64;
        for (bin, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (left, right, top) = (x.at(edge(bin)), x.at(edge(bin + 1)), y.at(count as f64));
            let _ = writeln!(
                out,
                "<rect x=\"{}\" y=\"{}\" width=\"{:.2}\" height=\"{}\"><title>{} to {}: {} ({:.2} %)</title></rect>",
                px(left),
                px(top),
                (right - left).max(0.3),
                px(bottom - top),
                short(edge(bin)),
                short(edge(bin + 1)),
                crate::report::grouped(count),
                100.0 * count as f64 / total
            );
        }
        out.push_str("</g>\n");
        for tick in round_ticks(self.low, self.high, 7) {
            let at = px(x.at(tick));
            let _ = writeln!(
                out,
                "<line class=\"mark\" x1=\"{at}\" x2=\"{at}\" y1=\"{}\" y2=\"{}\"/><text class=\"tick\" x=\"{at}\" \
                 y=\"{}\" text-anchor=\"middle\">{}</text>",
                px(bottom),
                px(bottom + 4.0),
                px(bottom + 17.0),
                short(tick)
            );
        }
        let _ = writeln!(
            out,
            "<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{b}\" y2=\"{b}\"/>\
             <text class=\"name\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n</svg>",
            px(LEFT),
            px(end),
            px(0.5 * (LEFT + end)),
            px(HEIGHT - 6.0),
            escaped(&self.label),
            b = px(bottom),
        );
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_bins_are_left_out() {
        let histogram = Histogram {
            title: "scores".into(),
            label: "score less mean".into(),
            low: -2.0,
            high: 2.0,
            counts: vec![1, 0, 3, 0],
        };
        let svg = histogram.render();
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(svg.contains("0 to 1: 3 (75.00 %)"), "{svg}");
    }
}
