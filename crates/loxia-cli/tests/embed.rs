//! `loxia embed`.

use crate::program::{asset, content, dual, succeed};

#[test]
fn npy_and_artefact_hold_the_same_vectors_and_ids() {
    let scratch = tempfile::tempdir().unwrap();
    let embed = |output: &std::path::Path, side: &str| {
        succeed(&[
            "embed",
            "--model",
            &dual(),
            "--data",
            &asset("worlds"),
            "--split",
            "test",
            "--world",
            "verb.motion",
            "--side",
            side,
            "--output",
            &output.display().to_string(),
            "--json",
        ])
    };
    let directory = scratch.path().join("items");
    let said = embed(&directory, "item");
    assert_eq!((said.json()["items"].as_u64(), said.json()["dimensions"].as_u64()), (Some(1408), Some(128)));
    let npy = scratch.path().join("items.npy");
    embed(&npy, "item");
    let numbers = std::fs::read(directory.join("scores.f32")).unwrap();
    assert!(std::fs::read(&npy).unwrap().ends_with(&numbers));
    let ids = std::fs::read_to_string(scratch.path().join("items.npy.ids")).unwrap();
    assert_eq!(ids.lines().count(), 1408);
    assert_eq!(ids.lines().next(), Some("v01831549"));
    assert!(content(&directory).iter().any(|(name, bytes)| name == "rows.ids" && *bytes == ids.as_bytes()));

    let queries = scratch.path().join("queries");
    assert_eq!(embed(&queries, "query").json()["queries"], 200);
}
