//! Layouts against an independent implementation.
