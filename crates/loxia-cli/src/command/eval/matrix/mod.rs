//! `loxia eval matrix`: what a score matrix is like, and how well few rows and columns approximate it.

mod output;
mod page;
mod study;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use loxia::search::CurLink;

pub(super) use page::sections;
pub(super) use study::{Plan, Study};

use crate::context::Context;
use crate::exit::{Outcome, usage};
use crate::flags::Positions;
use crate::matrix_source::read_scores;
use crate::output::Stdout;
use crate::text_output::{claim, write_text_to};
use crate::typed::Typed;

/// How rows and columns are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LinkName {
    /// The pseudo-inverse of the block where they meet
    Published,
    /// Centred columns and a ridge
    Ridge,
    /// The best link, made from the whole matrix: a bound, no method
    Oracle,
}

/// Study a score matrix: rank, distribution, and the error of CUR approximations.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loxia eval matrix --scores S.npy --anchor-queries 50,100,200,500 --anchor-items 50,100,200,500 --report matrix.html

For each seed anchor queries and anchor items are drawn from the whole matrix; recall is the share of the exact top \
k among the items retrieved by approximate score, over the queries that are no anchors. The rank is what \
numpy.linalg.matrix_rank counts in single precision.")]
pub(crate) struct MatrixFlags {
    #[command(flatten)]
    typed: Typed,
    /// Scores of queries (rows) against items: a matrix directory or an npy file
    #[arg(long, value_name = "MATRIX")]
    scores: PathBuf,
    /// Rows to look at [default: all]
    #[arg(long, value_name = "A..B")]
    rows: Option<Positions>,
    /// Numbers of anchor queries; those above the number of rows are left out
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = study::ANCHOR_QUERIES)]
    anchor_queries: Vec<usize>,
    /// Numbers of anchor items; those above the number of items are left out
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = study::ANCHOR_ITEMS)]
    anchor_items: Vec<usize>,
    /// How rows and columns are joined
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',', default_value = "published,ridge")]
    link: Vec<LinkName>,
    /// The ridge, in units of the mean squared norm of an item's column
    #[arg(long, value_name = "R", default_value_t = study::RIDGE, value_parser = ridge)]
    ridge: f64,
    /// Size of the top that is looked for
    #[arg(long, value_name = "K", default_value_t = study::K as u32, value_parser = clap::value_parser!(u32).range(1..))]
    k: u32,
    /// Items retrieved by approximate score
    #[arg(long, value_name = "N", default_value_t = study::RETRIEVED as u32, value_parser = clap::value_parser!(u32).range(1..))]
    retrieve: u32,
    /// Seeds of the draws
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = study::SEEDS)]
    seeds: Vec<u64>,
    /// Bins of the histogram of scores
    #[arg(long, value_name = "N", default_value_t = study::BINS as u32, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    bins: u32,
    /// Half the width of the histogram around the mean [default: as far as scores reach; published: 15]
    #[arg(long, value_name = "WIDTH", value_parser = ridge)]
    histogram_width: Option<f64>,
    /// Write an HTML report with the plots
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Replace an existing report
    #[arg(long)]
    overwrite: bool,
    /// Print tables in Markdown
    #[arg(long)]
    markdown: bool,
}

fn ridge(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0);
    value.ok_or_else(|| "it must be a number above 0".to_owned())
}

/// Reads, studies, prints.
pub(super) fn run(flags: MatrixFlags, context: &Context) -> Result<Outcome> {
    if context.json {
        flags.typed.refuse(&["markdown"], "--json prints an object")?;
    }
    if flags.report.is_none() {
        flags.typed.refuse(&["overwrite"], "it is for --report")?;
    }
    if !flags.link.contains(&LinkName::Ridge) {
        flags.typed.refuse(&["ridge"], "it is for --link ridge")?;
    }
    let report = match &flags.report {
        Some(path) => Some((path, claim(path, flags.overwrite)?)),
        None => None,
    };
    let mut scores = read_scores(&flags.scores, context)?;
    if let Some(rows) = &flags.rows {
        let rows = rows.within(scores.rows(), "rows")?;
        scores = scores.select_rows(&rows.collect::<Vec<_>>());
    }
    if scores.rows() == 0 || scores.cols() == 0 {
        return usage("the matrix has no scores");
    }
    let plan = plan(&flags, context, scores.rows(), scores.cols())?;
    let bar = context.bar(plan.work(), "approximations");
    let study = plan.run(&scores, &bar, &context.cancel);
    bar.finish();
    let study = study?;
    if let Some((path, existing)) = report {
        let html = page::render(&plan, &study);
        write_text_to(path, existing, |out| Ok(out.write_all(html.as_bytes())?))?;
    }
    let mut out = std::io::BufWriter::new(Stdout::lock());
    if context.json {
        output::write_json(&plan, &study, &mut out)?;
    } else {
        output::write_tables(&plan, &study, flags.markdown, &mut out)?;
    }
    out.flush()?;
    if let Some(path) = &flags.report {
        context.say(format!("report  {}", path.display()));
    }
    Ok(Outcome::Done)
}

fn plan(flags: &MatrixFlags, context: &Context, rows: usize, items: usize) -> Result<study::Plan> {
    let fitting = |counts: &[usize], most: usize, what: &str| -> Vec<usize> {
        let mut kept: Vec<usize> = Vec::new();
        for &count in counts {
            if count == 0 || count > most {
                context.say(format!("{count} anchor {what} left out: the matrix has {most}"));
            } else if !kept.contains(&count) {
                kept.push(count);
            }
        }
        kept
    };
    let anchor_queries = fitting(&flags.anchor_queries, rows, "queries");
    let anchor_items = fitting(&flags.anchor_items, items, "items");
    if flags.seeds.is_empty() {
        return usage("--seeds must name at least one seed");
    }
    let links = flags.link.iter().map(|name| match name {
        LinkName::Published => ("published", CurLink::Published),
        LinkName::Ridge => ("ridge", CurLink::Ridge(flags.ridge)),
        LinkName::Oracle => ("oracle", CurLink::Oracle),
    });
    Ok(study::Plan {
        anchor_queries,
        anchor_items,
        links: links.collect(),
        k: flags.k as usize,
        retrieve: flags.retrieve as usize,
        seeds: flags.seeds.clone(),
        bins: flags.bins as usize,
        histogram_width: flags.histogram_width,
    })
}
