//! Npy files written row by row.

use std::io::{self, Write};
use std::marker::PhantomData;

use half::f16;

use super::{NpyDtype, NpyHeader};

/// A number type that npy files can be written with.
pub trait NpyElement: bytemuck::Pod + sealed::Sealed {
    /// Its name in the header.
    const DTYPE: NpyDtype;
}

impl NpyElement for f32 {
    const DTYPE: NpyDtype = NpyDtype::F32;
}

impl NpyElement for f16 {
    const DTYPE: NpyDtype = NpyDtype::F16;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for half::f16 {}
}

/// Writes an array of one or more extents in C order, byte for byte as `numpy.save` does.
///
/// Not atomic by itself: give it the file of
/// [`write_file_atomically`](crate::artefact::write_file_atomically) or
/// [`ArtefactWriter::add_file`](crate::artefact::ArtefactWriter::add_file).
///
/// ```
/// use loxia_core::npy::NpyWriter;
/// let mut bytes = Vec::new();
/// let mut writer = NpyWriter::<f32, _>::new(&mut bytes, &[2, 3]).unwrap();
/// writer.write_row(&[1.0, 2.0, 3.0]).unwrap();
/// writer.write_row(&[4.0, 5.0, 6.0]).unwrap();
/// writer.finish().unwrap();
/// assert_eq!(bytes.len(), 128 + 24);
/// ```
#[derive(Debug)]
pub struct NpyWriter<T, W> {
    writer: W,
    missing: u64,
    element: PhantomData<T>,
}

impl<T: NpyElement, W: Write> NpyWriter<T, W> {
    /// Writes the header.
    pub fn new(mut writer: W, shape: &[u64]) -> io::Result<Self> {
        let header = NpyHeader { dtype: T::DTYPE, fortran_order: false, shape: shape.to_vec() };
        let bytes =
            header.data_length().ok_or_else(|| invalid(format!("shape {shape:?} is beyond any file")))?;
        writer.write_all(&header.to_bytes())?;
        Ok(NpyWriter { writer, missing: bytes / T::DTYPE.size() as u64, element: PhantomData })
    }

    /// Writes the next numbers: a row, several rows, or a part of one.
    pub fn write_row(&mut self, row: &[T]) -> io::Result<()> {
        self.missing = self.missing.checked_sub(row.len() as u64).ok_or_else(|| {
            invalid(format!("{} numbers more than the shape has", row.len() as u64 - self.missing))
        })?;
        // Little endian like the machine; the crate does not build on others.
        self.writer.write_all(bytemuck::cast_slice(row))
    }

    /// Checks that everything the shape announced was written, and gives the writer back.
    pub fn finish(mut self) -> io::Result<W> {
        if self.missing > 0 {
            return Err(invalid(format!("{} numbers fewer than the shape has", self.missing)));
        }
        self.writer.flush()?;
        Ok(self.writer)
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
