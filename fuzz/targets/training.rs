//! Training examples; the first byte chooses the kind.

#![no_main]

use loxia_data::training::{Example, IdTriple, ScoredList, ScoredPair, TextTriple, parse};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((kind, bytes)) = input.split_first() else { return };
    match kind % 4 {
        0 => read::<TextTriple>(bytes),
        1 => read::<IdTriple>(bytes),
        2 => read::<ScoredPair>(bytes),
        _ => read::<ScoredList>(bytes),
    }
});

fn read<T: Example>(bytes: &[u8]) {
    if let Ok(examples) = parse::<T>(bytes, "input", &Default::default()) {
        examples.for_each(drop);
    }
}
