//! [`TfidfVectors`] as bytes, for artefacts that hold them.
