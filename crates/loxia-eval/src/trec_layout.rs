//! trec_eval's output: a line for each measure and query, then one for each measure over all queries.
//!
//! `name` padded to 22 characters, a tab, the query or `all`, a tab, and the value with four decimals, or
//! as a whole number for counts. Measures come in trec_eval's order, not in that of the request.

use std::io::{self, Write};

use crate::{Evaluation, Measure};

/// Writes an evaluation as trec_eval prints it: with `per_query` a block for each query first (`-q`), with
/// `run_id` the run's tag at the head of the summary, as in trec_eval's official set.
///
/// ```
/// # use loxia_core::{Qrels, Run, RunEntry};
/// # use loxia_eval::{EvalOptions, evaluate, write_trec_eval};
/// # let mut qrels = Qrels::new();
/// # qrels.insert("q1".into(), "d1".into(), 1);
/// # let mut run = Run::new("bm25");
/// # run.push("q1".into(), RunEntry { item: "d1".into(), score: 1.0 });
/// let measures = ["AP".parse()?, "NumRet".parse()?];
/// let evaluation = evaluate(&run, &qrels, &measures, EvalOptions::default())?;
/// let mut text = Vec::new();
/// write_trec_eval(&evaluation, false, true, &mut text).unwrap();
/// assert_eq!(
///     String::from_utf8(text).unwrap(),
///     "runid                 \tall\tbm25\n\
///      num_ret               \tall\t1\n\
///      map                   \tall\t1.0000\n"
/// );
/// # Ok::<(), loxia_eval::Error>(())
/// ```
pub fn write_trec_eval(
    evaluation: &Evaluation,
    per_query: bool,
    run_id: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut order: Vec<(usize, Measure)> = evaluation.measures().iter().copied().enumerate().collect();
    order.sort_by(|(_, a), (_, b)| {
        let (a, b) = (a.trec_eval_place(), b.trec_eval_place());
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    if per_query {
        for (query, values) in evaluation.per_query() {
            for (column, measure) in order.iter().filter(|(_, measure)| measure.is_per_query()) {
                write_line(out, measure, query.as_str(), values[*column])?;
            }
        }
    }
    if run_id {
        writeln!(out, "{:<22}\tall\t{}", "runid", evaluation.run)?;
    }
    for (column, measure) in order {
        write_line(out, &measure, "all", evaluation.means()[column])?;
    }
    Ok(())
}

fn write_line(out: &mut impl Write, measure: &Measure, query: &str, value: f64) -> io::Result<()> {
    let name = measure.trec_eval_name();
    if measure.is_count() {
        writeln!(out, "{name:<22}\t{query}\t{value:.0}")
    } else {
        writeln!(out, "{name:<22}\t{query}\t{value:6.4}")
    }
}
