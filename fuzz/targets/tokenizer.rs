//! `tokenizer.json`, a NUL byte, and perhaps `tokenizer_config.json`; what opens must tokenise.
//!
//! The `tokenizers` crate panics on some files and texts. `loxia-model` turns that into errors, so here only
//! a panic that escapes it counts: the runtime's hook, which ends the process at the first, is replaced.

#![no_main]

use loxia_model::tokenizer::Tokenizer;

const TEXTS: [&str; 6] = [
    "",
    "Wood stoves, and 3 pipes",
    "a [SEP] </s> <mask>  \t b",
    "\u{65e5}\u{672c}\u{8a9e} e\u{301}\u{1f469}\u{200d}\u{1f680} \u{fb01}\u{130}",
    "\u{0}\u{7f}\u{ad}\u{200b}\u{feff} \r\n\u{2581}\u{120}x",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

libfuzzer_sys::fuzz_target!(
    init: std::panic::set_hook(Box::new(|_| ())),
    |bytes: &[u8]| {
        let mut parts = bytes.splitn(2, |&byte| byte == 0);
        let (json, config) = (parts.next().unwrap_or_default(), parts.next());
        let Ok(tokenizer) = Tokenizer::from_json(json, config) else { return };
        for text in TEXTS {
            let _ = tokenizer.encode(text);
            let _ = tokenizer.encode_prefix(text, 3);
            let _ = tokenizer.encode_suffix(text, 3);
        }
        let _ = tokenizer.check_vocabulary(100);
        let _ = tokenizer.token(5);
    }
);
