//! TREC measures, significance tests and run fusion.
//!
//! The numbers are trec_eval's, to the digit: the same order of ties, the same treatment of what was not
//! judged, the same averages. The names are those of ir_measures. It works in five steps, each usable
//! alone:
//!
//! 1. **Measures**: [`Measure`] is parsed from `nDCG@10`, `RR(rel=2)@10` or trec_eval's `ndcg_cut_10`.
//! 2. **Evaluation**: [`evaluate`] gives an [`Evaluation`]: values per query, means, and the queries that
//!    only the run or only the judgements have.
//! 3. **Output**: [`write_trec_eval`] prints it as trec_eval does, byte for byte.
//! 4. **Significance**: [`paired_t_test`], [`equivalence_test`] and [`bootstrap_mean`].
//! 5. **Fusion**: [`fuse`] joins runs by reciprocal rank or by scores.
//!
//! Runs and judgements are [`loxia_core::Run`] and [`loxia_core::Qrels`]; reading them from files is not
//! done here. Queries are evaluated in parallel; results do not depend on the number of threads. The cost is
//! a sort for each query and a pass over its ranking for each measure: a thousand queries of a thousand
//! items take a fraction of a second.
//!
//! What it does not do: diversity and preference measures, trec_eval's utility and relative precisions,
//! and judgements by several assessors.
//!
//! ```
//! use loxia_core::{Qrels, Run, RunEntry};
//! use loxia_eval::{EvalOptions, Measure, evaluate};
//!
//! let mut qrels = Qrels::new();
//! qrels.insert("q1".into(), "d1".into(), 0);
//! qrels.insert("q1".into(), "d2".into(), 1);
//! let mut run = Run::new("bm25");
//! run.push("q1".into(), RunEntry { item: "d1".into(), score: 2.0 });
//! run.push("q1".into(), RunEntry { item: "d2".into(), score: 1.0 });
//!
//! let measures: Vec<Measure> = vec!["RR@10".parse()?, "P@1".parse()?];
//! let evaluation = evaluate(&run, &qrels, &measures, EvalOptions::default())?;
//! assert_eq!(evaluation.means(), [0.5, 0.0]);
//! # Ok::<(), loxia_eval::Error>(())
//! ```

mod correlation;
mod error;
mod evaluation;
mod fusion;
mod judged;
mod measure;
mod significance;
mod trec_layout;

pub use correlation::spearman;
pub use error::{Error, Result};
pub use evaluation::{EvalOptions, Evaluation, QueryDifferences, evaluate};
pub use fusion::{Fusion, Normalisation, fuse};
pub use measure::{Aggregation, Measure};
pub use significance::{
    DEFAULT_RESAMPLES, Interval, LEAST_RESAMPLES, PairedTest, bonferroni, bootstrap_mean, equivalence_test,
    paired_t_test, student_t_cdf,
};
pub use trec_layout::write_trec_eval;
