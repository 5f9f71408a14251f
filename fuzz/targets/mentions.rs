//! Mentions with their contexts, in the layouts of BLINK, ANNCUR and worlds.

#![no_main]

use loxia_data::parse_mentions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(mentions) = parse_mentions(bytes, "input", &Default::default()) {
        mentions.for_each(drop);
    }
});
