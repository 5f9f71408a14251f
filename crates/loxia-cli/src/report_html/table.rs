//! Tables of numbers in HTML.

use std::fmt::Write as _;

use super::markup::escaped;

/// Rows under a header; the first `left` columns are names.
#[derive(Debug, Clone, Default)]
pub(crate) struct DataTable {
    /// Names over groups of columns, with their widths; none for a table with one header line.
    pub(crate) groups: Vec<(String, usize)>,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) left: usize,
    /// Rows that stand out.
    pub(crate) accent: Vec<usize>,
    /// Cells that stand out, as (row, column).
    pub(crate) best: Vec<(usize, usize)>,
}

impl DataTable {
    /// The table as HTML, in a box that scrolls sideways where it is too wide.
    pub(crate) fn render(&self) -> String {
        let mut out = String::from("<div class=\"scroll\"><table>\n<thead>\n");
        if !self.groups.is_empty() {
            out.push_str("<tr>");
            for (name, width) in &self.groups {
                let _ = write!(out, "<th class=\"group\" colspan=\"{width}\">{}</th>", escaped(name));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("<tr>");
        for (col, name) in self.header.iter().enumerate() {
            let class = if col < self.left { " class=\"left\"" } else { "" };
            let _ = write!(out, "<th{class}>{}</th>", escaped(name));
        }
        out.push_str("</tr>\n</thead>\n<tbody>\n");
        for (index, row) in self.rows.iter().enumerate() {
            out.push_str(if self.accent.contains(&index) { "<tr class=\"accent\">" } else { "<tr>" });
            for (col, cell) in row.iter().enumerate() {
                let class = match (col < self.left, self.best.contains(&(index, col))) {
                    (true, _) => " class=\"left\"",
                    (false, true) => " class=\"best\"",
                    (false, false) => "",
                };
                let _ = write!(out, "<td{class}>{}</td>", escaped(cell));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n</table></div>\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_numbers_and_marks() {
        let table = DataTable {
            groups: vec![(String::new(), 1), ("cost 50".into(), 1)],
            header: vec!["method".into(), "k=1".into()],
            rows: vec![vec!["a".into(), "0.5".into()], vec!["b<".into(), "0.7".into()]],
            left: 1,
            accent: vec![1],
            best: vec![(1, 1)],
        };
        let html = table.render();
        assert!(
            html.contains(
                "<tr class=\"accent\"><td class=\"left\">b&lt;</td><td class=\"best\">0.7</td></tr>"
            )
        );
    }
}
