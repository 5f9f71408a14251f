//! Tests of loxia-eval against trec_eval, pytrec_eval, ir_measures and scipy.

mod fixture;
mod ir_measures;
mod properties;
mod pytrec_eval;
mod scipy;
mod shared_data;
mod speed;
