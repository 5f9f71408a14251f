//! Tests of loxia-eval against trec_eval, pytrec_eval, ir_measures and scipy.

mod fixture;
mod ir_measures;
mod properties;
mod pytrec_eval;
mod scipy;
mod speed;
mod trec_dl19;
mod trec_eval;
