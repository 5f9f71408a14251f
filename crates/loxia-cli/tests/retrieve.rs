//! `loxia retrieve` and `loxia eval run` on what it found.

use crate::program::{asset, beir, dual, run, succeed};

#[test]
fn stored_vectors_give_the_same_run_as_fresh_ones() {
    let scratch = tempfile::tempdir().unwrap();
    let vectors = scratch.path().join("vectors").display().to_string();
    let data = ["--data", &asset("worlds"), "--split", "test", "--world", "verb.motion"].map(String::from);
    let dual = dual();
    let mut embed = vec!["embed", "--model", &dual, "--side", "item", "--output", &vectors, "--quiet"];
    embed.extend(data.iter().map(String::as_str));
    succeed(&embed);
    let mut retrieve = vec!["retrieve", "--dual", &dual, "--k", "10", "--rows", "0..5", "--quiet"];
    retrieve.extend(data.iter().map(String::as_str));
    let fresh = succeed(&retrieve).stdout;
    assert_eq!(fresh.lines().count(), 50);
    retrieve.extend(["--vectors", &vectors]);
    assert_eq!(succeed(&retrieve).stdout, fresh);

    let other = beir(scratch.path(), 5).display().to_string();
    run(&["retrieve", "--dual", &dual, "--data", &other, "--vectors", &vectors])
        .fails_with(4, &["texts", "expected"]);
}
