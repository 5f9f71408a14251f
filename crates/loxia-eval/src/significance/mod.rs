//! Is a difference more than chance? Paired tests over the queries two systems share, and intervals.

mod bootstrap;
mod paired;
mod student_t;

pub use bootstrap::{DEFAULT_RESAMPLES, Interval, LEAST_RESAMPLES, bootstrap_mean};
pub use paired::{PairedTest, bonferroni, equivalence_test, paired_t_test};
pub use student_t::student_t_cdf;
