//! The index artefact: the same answers from a directory, refusals, damage, items added later.

use std::fs;
use std::path::{Path, PathBuf};

use loxia_core::artefact::Existing;
use loxia_core::{Answer, Cancel, IdTable, NoProgress, Seed, Stop};
use loxia_search::linalg::Dense;
use loxia_search::*;
use serde_json::Value;

use crate::synthetic::{World, world};

fn ids(range: std::ops::Range<usize>) -> IdTable {
    let names: Vec<String> = range.map(|item| format!("d{item}")).collect();
    IdTable::try_from(names.as_slice()).unwrap()
}

fn built(anchors: &AnchorSet) -> Index {
    let options = IndexOptions { choose: false, ..IndexOptions::default() };
    Index::build(anchors, ids(0..anchors.items()), &options, &NoProgress, &Cancel::new()).unwrap().0
}

fn made_from() -> Provenance {
    Provenance::new("a test").digest("model", "12ab").digest("data", "34cd").seed(Seed(7))
}

/// A world, its index and the index's directory, which lives as long as the first part.
fn stored() -> (tempfile::TempDir, World, Index, PathBuf) {
    let world = world(60, 4, 120, 0.3);
    let index = built(&world.anchors).with_query_encoder("tfidf", b"words".to_vec());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    index.write(&path, Existing::Refuse, &made_from()).unwrap();
    (directory, world, index, path)
}

fn answers(world: &World, index: &Index) -> Vec<Answer> {
    (0..4).map(|query| world.search(index, query, 5, &Stop::at_budget(30))).collect()
}

fn refusal(result: Result<Index>) -> String {
    result.err().expect("a refusal").to_string()
}

#[test]
fn an_opened_index_gives_the_answers_of_the_one_that_was_written() {
    let (_directory, world, index, path) = stored();
    let opened = Index::open(&path, &[("model", "12ab"), ("data", "34cd")]).unwrap();
    assert_eq!(answers(&world, &index), answers(&world, &opened));
    assert!(answers(&world, &opened).iter().all(|answer| answer.recall_estimate.is_some()));
    assert_eq!(opened.item_ids().get(9), "d9");
    assert_eq!(opened.query_encoder(), Some(("tfidf", &b"words"[..])));
    let summary = opened.summary();
    assert_eq!((summary.items, summary.anchors, summary.seed), (120, 60, Some(7)));
    assert_eq!((summary.command.as_str(), summary.calibrated), ("a test", true));
    opened.check(&NoProgress, &Cancel::new()).unwrap();

    let plain = built(&world.without_vectors);
    plain.write(&path, Existing::Overwrite, &made_from()).unwrap();
    let opened = Index::open(&path, &[]).unwrap();
    assert_eq!(answers(&world, &plain), answers(&world, &opened));
    assert_eq!(opened.summary().vector_dimensions, None);
}

#[test]
fn threads_do_not_change_answers() {
    let (_directory, world, index, _) = stored();
    let alone = answers(&world, &index);
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..4).map(|_| scope.spawn(|| answers(&world, &index))).collect();
        running.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), alone));
    });
}

#[test]
fn another_model_other_data_and_other_kinds_are_refused_with_both_values() {
    let (directory, _, index, path) = stored();
    let message = refusal(Index::open(&path, &[("model", "56ef")]));
    assert!(message.contains("12ab") && message.contains("56ef") && message.contains("model"), "{message}");
    assert!(refusal(Index::open(&path, &[("layout", "x")])).contains("missing"));
    edit(&path, |manifest| manifest["kind"] = "score-matrix".into());
    assert!(refusal(Index::open(&path, &[])).contains("score-matrix"));
    edit(&path, |manifest| {
        manifest["kind"] = "index".into();
        manifest["format_version"] = 9.into();
    });
    assert!(refusal(Index::open(&path, &[])).contains("newer release"));
    edit(&path, |manifest| manifest["format_version"] = 1.into());
    let message = refusal(Index::open(&path, &[]));
    assert!(message.contains("format_version") && message.contains("make it again"), "{message}");
    assert!(index.write(&path, Existing::Refuse, &made_from()).is_err());
    assert!(Index::open(&directory.path().join("nothing"), &[]).is_err());
}

#[test]
fn damage_is_found() {
    let (_directory, _, _, path) = stored();
    let whole = fs::read(path.join("factors.f16")).unwrap();
    fs::write(path.join("factors.f16"), &whole[1..]).unwrap();
    let message = refusal(Index::open(&path, &[]));
    assert!(message.contains("factors.f16") && message.contains("expected"), "{message}");
    // One bit.
    let mut bytes = whole.clone();
    bytes[77] ^= 4;
    fs::write(path.join("factors.f16"), &bytes).unwrap();
    let error = Index::open(&path, &[]).unwrap().check(&NoProgress, &Cancel::new()).unwrap_err().to_string();
    assert!(error.contains("factors.f16: SHA-256"), "{error}");
    // A value that is not finite, its checksum made to fit.
    let mut bytes = whole.clone();
    bytes[20..22].copy_from_slice(&[0x00, 0x7c]);
    fs::write(path.join("factors.f16"), &bytes).unwrap();
    edit(&path, |manifest| {
        let planes = manifest["details"]["planes"].as_array_mut().unwrap();
        let record = planes.iter_mut().find(|record| record["name"] == "factors").unwrap();
        record["sha256"] = loxia_core::artefact::digest_bytes(&bytes).into();
    });
    let error = Index::open(&path, &[]).unwrap().check(&NoProgress, &Cancel::new()).unwrap_err().to_string();
    assert!(error.contains("not finite"), "{error}");
    fs::write(path.join("factors.f16"), &whole).unwrap();
    fs::write(path.join("items.ids"), "d0\nd1\n").unwrap();
    assert!(refusal(Index::open(&path, &[])).contains("items.ids"));
}

#[test]
fn manifests_that_lie_are_refused_before_anything_is_allocated() {
    let (_directory, _, _, path) = stored();
    let sound = fs::read_to_string(path.join("manifest.json")).unwrap();
    let lies: [fn(&mut Value); 14] = [
        |manifest| manifest["shape"] = serde_json::json!([120]),
        |manifest| manifest["shape"] = serde_json::json!([0, 60]),
        |manifest| manifest["shape"] = serde_json::json!([u64::MAX, 60]),
        |manifest| manifest["shape"] = serde_json::json!([120, 61]),
        |manifest| manifest["details"] = serde_json::json!({}),
        |manifest| manifest["details"]["planes"][0]["rows"] = u64::MAX.into(),
        |manifest| manifest["details"]["planes"][0]["name"] = "../../etc/passwd".into(),
        |manifest| manifest["details"]["planes"][1]["name"] = "column-means".into(),
        |manifest| manifest["details"]["planes"][2]["scale"] = 0.3.into(),
        |manifest| manifest["details"]["posterior"]["weights"] = serde_json::json!([1.0]),
        |manifest| manifest["details"]["posterior"]["settings"]["noise"] = serde_json::json!(-1.0),
        |manifest| manifest["details"]["added"] = 121.into(),
        |manifest| {
            manifest["details"]["posterior"]["calibration"]["tops"][0]["curve"]["weights"][1] = (-0.2).into()
        },
        |manifest| manifest["details"]["posterior"]["calibration"]["tops"][0]["largest_target"] = 1.5.into(),
    ];
    for (case, lie) in lies.into_iter().enumerate() {
        fs::write(path.join("manifest.json"), &sound).unwrap();
        edit(&path, lie);
        let error = Index::open(&path, &[]).err().unwrap_or_else(|| panic!("lie {case} was believed"));
        let Error::Core(loxia_core::Error::Corrupt { .. }) = error else { panic!("lie {case}: {error}") };
    }
}

#[test]
fn an_item_added_is_like_the_same_item_fitted() {
    let (_directory, world, index, path) = stored();
    let scores = &world.anchors.rows().scores;
    let vectors = world.anchors.item_vectors().unwrap();
    // The last ten items once more.
    let last: Vec<usize> = (110..120).collect();
    let (new_scores, new_vectors) = (scores.select_cols(&last), vectors.select_rows(&last));
    let grown = index.add(&ids(120..130), &new_scores, Some(&new_vectors)).unwrap();
    assert_eq!((grown.items(), grown.added(), grown.item_ids().get(125)), (130, 10, "d125"));
    let queries = world.test.vectors.as_ref().unwrap();
    let view = QueryView { id: "q", vector: Some(queries.row(0)), text: None };
    let (mean, variance) = grown.posterior().prior(&view).unwrap();
    for item in 110..120 {
        assert!((mean[item] - mean[item + 10]).abs() < 0.02 * mean[item].abs().max(1.0));
        assert!((variance[item] - variance[item + 10]).abs() < 0.05 * variance[item].max(0.1));
    }
    // It can be stored, opened, searched and grown again.
    grown.write(&path, Existing::Overwrite, &made_from()).unwrap();
    let opened = Index::open(&path, &[]).unwrap();
    assert_eq!(opened.added(), 10);
    let row = world.test.scores.row(0);
    let search = |method: &dyn Method| {
        search_with(method, &view, 5, &Stop::at_budget(20), &Cancel::new(), |items, out, _| {
            items.iter().zip(out).for_each(|(&item, score)| {
                *score = row[if item < 120 { item as usize } else { item as usize - 10 }];
            });
            Ok(loxia_core::Cost { pairs: items.len() as u64, ..Default::default() })
        })
        .unwrap()
    };
    assert_eq!(search(&grown), search(&opened));
    assert_eq!(opened.add(&ids(130..140), &new_scores, Some(&new_vectors)).unwrap().items(), 140);
}

#[test]
fn new_items_that_do_not_fit_are_refused() {
    let (_directory, world, index, _) = stored();
    let vectors = world.anchors.item_vectors().unwrap().select_rows(&[0]);
    let scores = world.anchors.rows().scores.select_cols(&[0]);
    let short = scores.select_rows(&[0, 1]);
    assert!(refusal(index.add(&ids(120..121), &short, Some(&vectors))).contains("60 rows"));
    assert!(refusal(index.add(&ids(120..122), &scores, Some(&vectors))).contains("2 columns"));
    assert!(refusal(index.add(&ids(120..121), &scores, None)).contains("vectors of the new items"));
    assert!(refusal(index.add(&ids(3..4), &scores, Some(&vectors))).contains("duplicate id"));
    let mut wrong = scores.clone();
    wrong[(5, 0)] = f32::NAN;
    assert!(refusal(index.add(&ids(120..121), &wrong, Some(&vectors))).contains("row 5"));
    let wide = Dense::zeros(1, 9);
    assert!(refusal(index.add(&ids(120..121), &scores, Some(&wide))).contains("1 x 9"));
}

#[test]
fn what_adding_costs_is_measured_on_held_out_anchors() {
    let (_directory, world, index, _) = stored();
    let cost = index.evaluate_addition(&world.anchors, 0.2, &Cancel::new()).unwrap().unwrap();
    assert!((cost.share - 0.2).abs() < 0.01);
    assert!(cost.added > cost.rebuilt - 0.1, "{cost:?}");
    assert!(index.evaluate_addition(&world.anchors, 0.0, &Cancel::new()).unwrap().is_none());
}

#[test]
fn a_build_tells_as_many_steps_as_it_said_and_can_be_stopped() {
    use std::sync::atomic::{AtomicU64, Ordering};
    struct Count(AtomicU64);
    impl loxia_core::Progress for Count {
        fn advance(&self, done: u64) {
            self.0.fetch_add(done, Ordering::Relaxed);
        }
    }
    let world = world(15, 1, 40, 0.3);
    for anchors in [&world.anchors, &world.without_vectors] {
        let (count, options) = (Count(AtomicU64::new(0)), IndexOptions::default());
        Index::build(anchors, ids(0..40), &options, &count, &Cancel::new()).unwrap();
        assert_eq!(count.0.load(Ordering::Relaxed), options.steps(anchors));
    }
    let cancel = Cancel::new();
    cancel.cancel();
    let stopped = Index::build(&world.anchors, ids(0..40), &IndexOptions::default(), &NoProgress, &cancel);
    assert!(matches!(stopped, Err(Error::Core(loxia_core::Error::Cancelled))));
    let wrong =
        Index::build(&world.anchors, ids(0..39), &IndexOptions::default(), &NoProgress, &Cancel::new());
    assert!(wrong.err().unwrap().to_string().contains("40 ids"));
}

fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let file = path.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    change(&mut manifest);
    fs::write(file, serde_json::to_vec(&manifest).unwrap()).unwrap();
}
