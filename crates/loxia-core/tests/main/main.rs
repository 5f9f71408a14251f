//! Integration tests of loxia-core, in one binary to link once.

mod artefact;
mod conformance;
mod damage;
mod faults;
mod npy;
mod resume;
mod sample;
