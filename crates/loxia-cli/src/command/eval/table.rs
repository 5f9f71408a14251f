//! A table of texts, as aligned columns, Markdown or comma-separated values.

use std::io::{self, Write};

/// Rows of texts under a header; the first `left` columns are names and stand to the left.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) left: usize,
}

impl Table {
    /// Columns padded to one width, two spaces apart, a rule under the header.
    pub(super) fn write_aligned(&self, out: &mut impl Write) -> io::Result<()> {
        let widths = self.widths();
        self.write_row(&self.header, &widths, out)?;
        let rule: usize = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        writeln!(out, "{}", "-".repeat(rule))?;
        self.rows.iter().try_for_each(|row| self.write_row(row, &widths, out))
    }

    /// A table in Markdown; aligned too, so that it reads well as plain text.
    pub(super) fn write_markdown(&self, out: &mut impl Write) -> io::Result<()> {
        let escape = |row: &Vec<String>| row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let escaped = Table {
            header: escape(&self.header),
            rows: self.rows.iter().map(escape).collect(),
            left: self.left,
        };
        let widths: Vec<usize> = escaped.widths().into_iter().map(|width| width.max(3)).collect();
        let line = |row: &[String]| -> String {
            let cells = row.iter().zip(&widths).enumerate();
            cells.map(|(i, (cell, &width))| format!("| {} ", escaped.pad(i, cell, width))).collect()
        };
        writeln!(out, "{}|", line(&escaped.header))?;
        for (i, &width) in widths.iter().enumerate() {
            let dashes = "-".repeat(width - 1);
            if i < self.left { write!(out, "| :{dashes} ")? } else { write!(out, "| {dashes}: ")? }
        }
        writeln!(out, "|")?;
        escaped.rows.iter().try_for_each(|row| writeln!(out, "{}|", line(row)))
    }

    /// Comma-separated values (RFC 4180).
    pub(super) fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        for row in std::iter::once(&self.header).chain(&self.rows) {
            let cells: Vec<String> = row.iter().map(|cell| csv_cell(cell)).collect();
            writeln!(out, "{}", cells.join(","))?;
        }
        Ok(())
    }

    fn widths(&self) -> Vec<usize> {
        let width = |i: usize| {
            let cells = std::iter::once(&self.header).chain(&self.rows).filter_map(|row| row.get(i));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        (0..self.header.len()).map(width).collect()
    }

    fn write_row(&self, row: &[String], widths: &[usize], out: &mut impl Write) -> io::Result<()> {
        let cells: Vec<String> =
            row.iter().zip(widths).enumerate().map(|(i, (cell, &width))| self.pad(i, cell, width)).collect();
        writeln!(out, "{}", cells.join("  ").trim_end())
    }

    fn pad(&self, column: usize, cell: &str, width: usize) -> String {
        if column < self.left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    }
}

fn csv_cell(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let texts = |row: [&str; 2]| row.map(str::to_owned).to_vec();
        Table {
            header: texts(["run", "nDCG@10"]),
            rows: vec![texts(["a|b", "0.5"]), texts(["\"long\", é", "12"])],
            left: 1,
        }
    }

    fn written(write: impl Fn(&Table, &mut Vec<u8>) -> io::Result<()>) -> String {
        let mut text = Vec::new();
        write(&table(), &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn three_layouts() {
        assert_eq!(
            written(|table, out| table.write_aligned(out)),
            "run        nDCG@10\n------------------\na|b            0.5\n\"long\", é       12\n"
        );
        assert_eq!(
            written(|table, out| table.write_markdown(out)),
            "| run       | nDCG@10 |\n| :-------- | ------: |\n| a\\|b      |     0.5 |\n| \"long\", é |      12 |\n"
        );
        assert_eq!(
            written(|table, out| table.write_csv(out)),
            "run,nDCG@10\na|b,0.5\n\"\"\"long\"\", é\",12\n"
        );
    }
}
