//! What can go wrong between weights, batches and kernels.

/// Result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the engine: it names the tensor or token, what was found, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tensor whose size does not fit the shape of the encoder.
    #[error(
        "tensor {name}: found {found}, expected {expected}; the weights do not belong to this configuration"
    )]
    Tensor {
        /// Field path, as `layers[3].query.weight`.
        name: String,
        /// Elements or dimensions given.
        found: String,
        /// Elements or dimensions the shape asks for.
        expected: String,
    },
    /// Numbers of a shape that contradict each other.
    #[error("encoder shape: {0}")]
    Shape(String),
    /// A kernel that is unknown or that this machine cannot run.
    #[error("kernel {requested:?} is {problem}; this machine has {available}")]
    Kernel {
        /// What was asked for.
        requested: String,
        /// `unknown` or `not supported here`.
        problem: &'static str,
        /// Names of the kernels that would run.
        available: String,
    },
    /// A sequence that cannot be packed.
    #[error("sequence {sequence}: {what}")]
    Sequence {
        /// Its index in the batch.
        sequence: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A token with an id, type or position beyond the embedding table.
    #[error(
        "token {token} of sequence {sequence}: {kind} {value} is out of range, the table has {limit} rows"
    )]
    OutOfTable {
        /// Its sequence in the batch.
        sequence: usize,
        /// Its place in the sequence.
        token: usize,
        /// `token id`, `type` or `position`.
        kind: &'static str,
        /// The value found.
        value: u32,
        /// Rows of the table.
        limit: usize,
    },
    /// A wanted row beyond the batch.
    #[error("row {row} is wanted, but the batch has {tokens} tokens")]
    Row {
        /// The row.
        row: u32,
        /// Tokens in the batch.
        tokens: usize,
    },
    /// A buffer of the wrong length.
    #[error("{what}: length {found}, expected {expected}")]
    Length {
        /// Which buffer.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length it must have.
        expected: usize,
    },
}
