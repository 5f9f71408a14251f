//! The loxia command.
fn main() {}
