//! NumPy's `.npy` files: vectors and matrices in and out.
//!
//! Reading takes format versions 1.0, 2.0 and 3.0 with little-endian `f2`, `f4`, `f8` and `u2` numbers in C
//! order, and gives `f32`; what a conversion rounds is counted. Everything else (big-endian numbers,
//! Fortran order, structures) is refused with a word on how to rewrite it. The length of the file must be
//! exactly what its header says, and is checked before anything is allocated.
//!
//! Writing streams row by row and gives byte for byte what `numpy.save` writes.

mod header;
mod read;
mod write;

pub use header::{NpyDtype, NpyHeader};
pub use read::{NpyMatrix, NpyReader, read_npy_matrix};
pub use write::{NpyElement, NpyWriter};
