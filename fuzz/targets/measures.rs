//! Names of measures; what is read is printed and read again.

#![no_main]

use loxia_eval::Measure;

libfuzzer_sys::fuzz_target!(|text: &str| {
    for measure in Measure::parse_all(text).unwrap_or_default() {
        let printed = measure.to_string();
        // A level that is left out and one that says the same print alike.
        let again: Measure = printed.parse().unwrap_or_else(|error| panic!("{printed}: {error}"));
        assert_eq!(again.to_string(), printed);
        measure.trec_eval_name();
    }
});
