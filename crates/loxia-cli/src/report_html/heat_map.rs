//! A grid of values as colours, with the values written in.

use std::fmt::Write as _;

use super::markup::{escaped, px};

const CELL: (f64, f64) = (58.0, 34.0);
const LEFT: f64 = 66.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 42.0;

/// Values over two lists of settings, from 0 (pale) to 1 (full colour); `None` where there is none.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeatMap {
    pub(crate) title: String,
    pub(crate) row_label: String,
    pub(crate) rows: Vec<String>,
    pub(crate) col_label: String,
    pub(crate) cols: Vec<String>,
    /// Row after row.
    pub(crate) values: Vec<Option<f64>>,
}

impl HeatMap {
    /// The map as SVG; the first row is the lowest, as on an axis.
    pub(crate) fn render(&self) -> String {
        let (rows, cols) = (self.rows.len(), self.cols.len());
        let (width, height) = (LEFT + cols as f64 * CELL.0 + 8.0, TOP + rows as f64 * CELL.1 + BOTTOM);
        let mut out = format!(
            "<svg viewBox=\"0 0 {} {}\" style=\"max-width:{}px\" role=\"img\" aria-label=\"{}\">\n",
            px(width),
            px(height),
            px(width * 1.25),
            escaped(&self.title)
        );
        for (row, name) in self.rows.iter().enumerate() {
            let top = TOP + (rows - 1 - row) as f64 * CELL.1;
            let middle = px(top + 0.5 * CELL.1);
            let _ = writeln!(
                out,
                "<text class=\"tick\" x=\"{}\" y=\"{middle}\" dy=\".32em\" text-anchor=\"end\">{}</text>",
                px(LEFT - 7.0),
                escaped(name)
            );
            for (col, col_name) in self.cols.iter().enumerate() {
                let Some(&Some(value)) = self.values.get(row * cols + col) else { continue };
                let left = LEFT + col as f64 * CELL.0;
                let share = if value.is_finite() { value.clamp(0.0, 1.0) } else { 0.0 };
                let class = if share > 0.55 { "value strong" } else { "value" };
                let _ = writeln!(
                    out,
                    "<g><title>{} {}, {} {}: {value:.4}</title><rect class=\"cell\" style=\"--v:{share:.3}\" \
                     x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\"/><text class=\"{class}\" x=\"{}\" \
                     y=\"{middle}\" dy=\".34em\" text-anchor=\"middle\">{value:.2}</text></g>",
                    escaped(&self.row_label),
                    escaped(name),
                    escaped(&self.col_label),
                    escaped(col_name),
                    px(left + 1.0),
                    px(top + 1.0),
                    px(CELL.0 - 2.0),
                    px(CELL.1 - 2.0),
                    px(left + 0.5 * CELL.0),
                );
            }
        }
        let bottom = TOP + rows as f64 * CELL.1;
        for (col, name) in self.cols.iter().enumerate() {
            let _ = writeln!(
                out,
                "<text class=\"tick\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                px(LEFT + (col as f64 + 0.5) * CELL.0),
                px(bottom + 16.0),
                escaped(name)
            );
        }
        let middle = px(TOP + 0.5 * rows as f64 * CELL.1);
        let _ = writeln!(
            out,
            "<text class=\"name\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text class=\"name\" x=\"11\" y=\"{middle}\" text-anchor=\"middle\" transform=\"rotate(-90 11 {middle})\">{}</text>\n</svg>",
            px(LEFT + 0.5 * cols as f64 * CELL.0),
            px(height - 6.0),
            escaped(&self.col_label),
            escaped(&self.row_label)
        );
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_carry_their_value_and_gaps_stay_empty() {
        let map = HeatMap {
            title: "recall".into(),
            row_label: "anchor queries".into(),
            rows: vec!["50".into(), "100".into()],
            col_label: "anchor items".into(),
            cols: vec!["50".into(), "100".into()],
            values: vec![Some(0.25), None, Some(f64::NAN), Some(0.9)],
        };
        let svg = map.render();
        assert_eq!(svg.matches("<rect").count(), 3);
        assert!(svg.contains("anchor queries 50, anchor items 50: 0.2500"), "{svg}");
    }
}
