//! `manifest.json` of an artefact; what is read is written and read again.

#![no_main]

use std::path::Path;

use loxia_core::artefact::Manifest;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("manifest.json");
    if let Ok(mut manifest) = Manifest::parse(path, bytes) {
        let _ = manifest.check_digest(path, "model", "12ab");
        // Of the details only the names: a fraction may come back one unit in the last place away.
        manifest.details.values_mut().for_each(|value| drop(value.take()));
        let again = Manifest::parse(path, manifest.to_json().as_bytes()).expect("it was written by us");
        assert_eq!(again, manifest);
    }
});
