//! Reports as one HTML file: inline SVG, no scripts, nothing fetched, light and dark by the reader's choice.
//!
//! A [`Page`] holds sections, a section holds figures, and each kind of figure renders itself:
//! [`LineChart`], [`HeatMap`], [`Histogram`] and [`DataTable`]. Exact values are in the titles of marks,
//! which browsers show on hover.

mod heat_map;
mod histogram;
mod line_chart;
mod markup;
mod scale;
mod table;

use std::fmt::Write as _;

pub(crate) use heat_map::HeatMap;
pub(crate) use histogram::Histogram;
pub(crate) use line_chart::{Axis, LineChart, Point, Series};
use markup::escaped;
pub(crate) use table::DataTable;

const STYLE: &str = include_str!("style.css");

/// A whole report.
#[derive(Debug, Default)]
pub(crate) struct Page {
    title: String,
    lead: String,
    facts: Vec<(String, String)>,
    sections: Vec<Section>,
    command: String,
}

/// A heading with a paragraph and figures.
#[derive(Debug, Default)]
pub(crate) struct Section {
    title: String,
    text: String,
    figures: Vec<Figure>,
}

/// A picture or table with what it shows.
#[derive(Debug)]
struct Figure {
    caption: String,
    body: String,
    wide: bool,
}

impl Page {
    /// A page with a title and one sentence under it.
    pub(crate) fn new(title: impl Into<String>, lead: impl Into<String>) -> Self {
        Page { title: title.into(), lead: lead.into(), ..Page::default() }
    }

    /// Adds a number with its name to the row of facts at the top.
    pub(crate) fn fact(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.facts.push((name.into(), value.into()));
        self
    }

    /// Adds a section.
    pub(crate) fn section(&mut self, section: Section) -> &mut Self {
        self.sections.push(section);
        self
    }

    /// The command that made the report, for the foot of the page.
    pub(crate) fn made_by(&mut self, command: impl Into<String>) -> &mut Self {
        self.command = command.into();
        self
    }

    /// The page as HTML.
    pub(crate) fn render(&self) -> String {
        let mut out = String::new();
        let title = escaped(&self.title);
        let _ = writeln!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>{title}</h1>\n<p class=\"lead\">{}</p>",
            escaped(&self.lead)
        );
        if !self.facts.is_empty() {
            out.push_str("<dl class=\"facts\">\n");
            for (name, value) in &self.facts {
                let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escaped(name), escaped(value));
            }
            out.push_str("</dl>\n");
        }
        out.push_str("</header>\n");
        self.sections.iter().for_each(|section| section.render(&mut out));
        if !self.command.is_empty() {
            let _ = writeln!(out, "<footer><p>Made by</p><pre>{}</pre></footer>", escaped(&self.command));
        }
        out.push_str("</main>\n</body>\n</html>\n");
        out
    }
}

impl Section {
    /// A heading and the paragraph under it.
    pub(crate) fn new(title: impl Into<String>, text: impl Into<String>) -> Self {
        Section { title: title.into(), text: text.into(), figures: Vec::new() }
    }

    /// Adds a figure that shares its row with others where there is room.
    pub(crate) fn figure(&mut self, caption: impl Into<String>, body: String) -> &mut Self {
        self.figures.push(Figure { caption: caption.into(), body, wide: false });
        self
    }

    /// Adds a figure that takes the whole width.
    pub(crate) fn wide_figure(&mut self, caption: impl Into<String>, body: String) -> &mut Self {
        self.figures.push(Figure { caption: caption.into(), body, wide: true });
        self
    }

    fn render(&self, out: &mut String) {
        let _ = writeln!(out, "<section>\n<h2>{}</h2>", escaped(&self.title));
        if !self.text.is_empty() {
            let _ = writeln!(out, "<p>{}</p>", escaped(&self.text));
        }
        out.push_str("<div class=\"figures\">\n");
        for figure in &self.figures {
            let class = if figure.wide { " class=\"wide\"" } else { "" };
            let _ = writeln!(out, "<figure{class}>");
            if !figure.caption.is_empty() {
                let _ = writeln!(out, "<figcaption>{}</figcaption>", escaped(&figure.caption));
            }
            let _ = writeln!(out, "{}</figure>", figure.body);
        }
        out.push_str("</div>\n</section>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_whole_escaped_and_fetches_nothing() {
        let mut section = Section::new("Recall & cost", "a < b");
        section.figure("caption", "<svg></svg>\n".into());
        let mut page = Page::new("<Title>", "lead");
        page.fact("items", "1,408").section(section).made_by("loxia eval knn --scores 'a&b'");
        let html = page.render();
        assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
        assert!(
            html.contains("&lt;Title&gt;") && html.contains("Recall &amp; cost") && html.contains("a&amp;b")
        );
        assert!(!html.contains("http") && !html.contains("<script"), "nothing from elsewhere");
        assert!(html.contains("prefers-color-scheme: dark"));
    }
}
