//! Lists of ids; what is read is written back byte for byte.

#![no_main]

use loxia_core::artefact::{digest_ids, read_id_list, write_id_list};
use loxia_fuzz::with_file;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    with_file(bytes, |path| {
        if let Ok((ids, digest)) = read_id_list(path) {
            let mut again = Vec::new();
            write_id_list(&ids, &mut again).expect("ids that were read can be written");
            assert_eq!(again, bytes);
            assert_eq!(digest_ids(&ids).expect("the same"), digest);
        }
    });
});
