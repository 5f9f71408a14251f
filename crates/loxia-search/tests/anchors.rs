//! The anchor queries that an index keeps.

use loxia_core::artefact::Existing;
use loxia_core::{Cancel, IdTable, NoProgress, Query, QueryText};
use loxia_search::{Index, IndexOptions, Provenance};

use crate::synthetic::world;

fn queries(count: usize) -> Vec<Query> {
    let text = |n: usize| match n % 2 {
        0 => QueryText::Plain(format!("line\n\"{n}\"")),
        _ => QueryText::Mention { left: "a".into(), mention: n.to_string(), right: String::new() },
    };
    (0..count).map(|n| Query { id: format!("q{n}").into(), text: text(n) }).collect()
}

#[test]
fn anchor_queries_and_rows_come_back() {
    let world = world(12, 1, 30, 0.1);
    let ids: Vec<String> = (0..30).map(|item| format!("d{item}")).collect();
    let ids = IdTable::try_from(ids.as_slice()).unwrap();
    let options = IndexOptions { choose: false, calibrate: false, ..IndexOptions::default() };
    let (index, _) = Index::build(&world.anchors, ids, &options, &NoProgress, &Cancel::new()).unwrap();
    assert!(index.anchor_queries().unwrap().is_none());
    assert!(index.clone().with_anchor_queries(&queries(11)).is_err());

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let index = index.with_anchor_queries(&queries(12)).unwrap();
    index.write(&path, Existing::Refuse, &Provenance::new("a test")).unwrap();
    let opened = Index::open(&path, &[]).unwrap();
    assert_eq!(opened.anchor_queries().unwrap().unwrap(), queries(12));
    opened.check(&NoProgress, &Cancel::new()).unwrap();

    let scores = world.anchors.rows().scores.clone();
    let again = opened.anchor_set(scores.clone()).unwrap();
    assert_eq!(again.rows().vectors.as_ref().unwrap().rows(), 12);
    let (stored, given) = (again.item_vectors().unwrap(), world.anchors.item_vectors().unwrap());
    let close = |(a, b): (&f32, &f32)| (a - b).abs() < 2e-3 * (1.0 + b.abs());
    assert!(stored.values().iter().zip(given.values()).all(close));
    let fewer = scores.select_cols(&[0, 1, 2]);
    assert_eq!(opened.anchor_set(fewer.into()).unwrap().items(), 3);
    assert!(opened.anchor_set(scores.select_rows(&[0, 1]).into()).is_err());

    std::fs::write(path.join("anchors.jsonl"), "{}\n").unwrap();
    assert!(Index::open(&path, &[]).is_err(), "another size is refused");
}
