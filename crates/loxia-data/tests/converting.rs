//! Conversions, and what `inspect` tells.

use loxia_core::artefact::Existing;
use loxia_data::convert::{MentionText, to_beir, to_blink};
use loxia_data::inspect::inspect;
use loxia_data::*;

use crate::layouts::{options, zeshel};
use crate::reading::file;

#[test]
fn zeshel_to_blink_and_on_to_beir() {
    let dir = tempfile::tempdir().unwrap();
    zeshel(&dir);
    let data = DataSet::open(dir.path(), &DataOptions::default()).unwrap();
    let blink_path = dir.path().join("as-blink");
    let done = to_blink(&data, &blink_path, Existing::Refuse).unwrap();
    assert_eq!((done.items, done.queries, done.without_gold.count), (3, 4, 0));
    let error = to_blink(&data, &blink_path, Existing::Refuse).unwrap_err().to_string();
    assert!(error.contains("exists; give --overwrite"), "{error}");
    to_blink(&data, &blink_path, Existing::Overwrite).unwrap();

    let blink = DataSet::open(&blink_path, &options(None, Some("valid"))).unwrap();
    assert_eq!(blink.format(), DataFormat::Blink);
    let raw = DataSet::open(dir.path(), &options(None, Some("val"))).unwrap();
    assert_eq!(blink.queries().unwrap().digest(), raw.queries().unwrap().digest());
    assert_eq!(blink.items().unwrap().digest(), raw.items().unwrap().digest());
    assert_eq!(blink.golds().unwrap(), raw.golds().unwrap());
    let first = std::fs::read_to_string(blink_path.join("blink_format/test.jsonl")).unwrap();
    assert!(first.contains("\"label_title\":\"Set\",\"label_id\":1,"), "{first}");

    let blink = DataSet::open(&blink_path, &DataOptions::default()).unwrap();
    let beir_path = dir.path().join("as-beir");
    let done = to_beir(&blink, MentionText::Marked, &beir_path, Existing::Refuse).unwrap();
    assert_eq!((done.items, done.queries, done.judgements, done.repeated_queries), (3, 4, 4, 0));
    let beir = DataSet::open(&beir_path, &options(None, Some("valid"))).unwrap();
    assert_eq!(beir.format(), DataFormat::Beir);
    assert_eq!(
        beir.queries().unwrap().get(1).unwrap().text.joined(),
        "Brick [unused0] A brick [unused1] is a toy"
    );
    assert_eq!(beir.qrels().unwrap(), raw.qrels().unwrap());
}

#[test]
fn ms_marco_to_beir_writes_a_query_of_two_splits_once() {
    let dir = tempfile::tempdir().unwrap();
    file(&dir, "m/collection.tsv", "0\tfirst\n1\tsecond\n");
    file(&dir, "m/queries.dev.small.tsv", "9\tnine\n");
    file(&dir, "m/queries.dev.tsv", "9\tnine\n8\teight\n");
    file(&dir, "m/qrels.dev.small.tsv", "9\t0\t1\t1\n");
    let data = DataSet::open(dir.path().join("m"), &DataOptions::default()).unwrap();
    let output = dir.path().join("b");
    let done = to_beir(&data, MentionText::Joined, &output, Existing::Refuse).unwrap();
    assert_eq!((done.items, done.queries, done.judgements, done.repeated_queries), (2, 2, 1, 1));
    assert_eq!(DataSet::open(&output, &DataOptions::default()).unwrap().splits(), ["dev.small"]);
    let error = to_blink(&data, &dir.path().join("c"), Existing::Refuse).unwrap_err().to_string();
    assert!(error.ends_with("as BLINK: it has no worlds of entities"), "{error}");
    assert!(!dir.path().join("c").exists());
}

/// A BEIR directory of which `test` judges q1 (one line twice), `dev` q2, and nothing q3.
fn beir_with_an_unjudged_query(dir: &tempfile::TempDir) -> DataSet {
    file(dir, "in/corpus.jsonl", "{\"_id\": \"d\", \"text\": \"a\"}\n");
    let query = |id: &str| format!("{{\"_id\": \"{id}\", \"text\": \"text of {id}\"}}\n");
    file(dir, "in/queries.jsonl", [query("q3"), query("q1"), query("q2")].concat());
    file(dir, "in/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td\t1\nq1\td\t1\n");
    file(dir, "in/qrels/dev.tsv", "query-id\tcorpus-id\tscore\nq2\td\t1\n");
    DataSet::open(dir.path().join("in"), &DataOptions::default()).unwrap()
}

#[test]
fn beir_to_beir_keeps_queries_that_no_split_judges() {
    let dir = tempfile::tempdir().unwrap();
    let data = beir_with_an_unjudged_query(&dir);
    let output = dir.path().join("out");
    let done = to_beir(&data, MentionText::Joined, &output, Existing::Refuse).unwrap();
    assert_eq!((done.queries, done.judgements, done.repeated_judgements), (3, 2, 1));
    let copy = DataSet::open(&output, &DataOptions::default()).unwrap();
    assert_eq!(copy.queries().unwrap().digest(), data.queries().unwrap().digest());

    let test = DataSet::open(dir.path().join("in"), &options(None, Some("test"))).unwrap();
    let output = dir.path().join("test");
    assert_eq!(to_beir(&test, MentionText::Joined, &output, Existing::Refuse).unwrap().queries, 1);
}

#[test]
fn inspection_counts_unjudged_queries_and_repeated_judgements() {
    let dir = tempfile::tempdir().unwrap();
    let data = beir_with_an_unjudged_query(&dir);
    let found = inspect(&data).unwrap();
    let shared = found.shared_queries.unwrap();
    assert_eq!((shared.queries.count, shared.unjudged), (3, 1));
    let [dev, test] = &found.splits[..] else { panic!("{:?}", found.splits) };
    assert_eq!((dev.name.as_str(), test.name.as_str()), ("dev", "test"));
    assert_eq!(test.queries.as_ref().unwrap().count, 1);
    let coverage = test.judgements.as_ref().unwrap();
    assert_eq!((coverage.judgements, coverage.repeated), (1, 1));
    let judgements = DataSet::open(data.path(), &options(None, Some("test"))).unwrap().judgements().unwrap();
    assert_eq!((judgements.qrels.len(), judgements.repeated), (1, 1));
}

#[test]
fn mentions_without_their_gold_entity_are_named() {
    let dir = tempfile::tempdir().unwrap();
    file(&dir, "documents/lego.jsonl", "{\"document_id\": \"L1\", \"text\": \"a\"}\n");
    let mention = |id: usize| {
        format!(
            "{{\"mention_id\": \"m{id}\", \"world\": \"lego\", \"context_left\": \"\", \"mention\": \"x\", \
             \"context_right\": \"\", \"label_document_id\": \"L{id}\"}}\n"
        )
    };
    file(&dir, "mentions/test.jsonl", (1..=13).map(mention).collect::<String>());
    let data = DataSet::open(dir.path(), &DataOptions::default()).unwrap();
    let done = to_blink(&data, &dir.path().join("out"), Existing::Refuse).unwrap();
    assert_eq!((done.queries, done.without_gold.count), (1, 12));
    assert_eq!(done.without_gold.first.len(), 10);
    assert_eq!(done.without_gold.first[0], ("m2".into(), "L2".into()));
}

#[test]
fn inspection_counts() {
    let dir = tempfile::tempdir().unwrap();
    zeshel(&dir);
    let found = inspect(&DataSet::open(dir.path(), &DataOptions::default()).unwrap()).unwrap();
    assert_eq!(
        (found.format, found.worlds.as_slice()),
        ("zeshel", &[("lego".into(), 2), ("muppets".into(), 1)][..])
    );
    let items = found.items.unwrap();
    assert_eq!((items.count, items.median_words, items.max_words, items.examples.len()), (3, 4, 7, 3));
    assert_eq!(found.splits.len(), 2);
    let val = &found.splits[1];
    assert_eq!((val.name.as_str(), val.queries.as_ref().unwrap().count), ("val", 3));
    assert_eq!(val.worlds, [("lego".to_owned(), 2), ("muppets".to_owned(), 1)]);
    let coverage = val.judgements.as_ref().unwrap();
    assert_eq!((coverage.judgements, coverage.judged_queries, coverage.unknown_items), (3, 3, 0));

    file(&dir, "b/corpus.jsonl", "{\"_id\": 1, \"text\": \"a b\"}\n{\"_id\": 2, \"text\": \"a b\"}\n");
    file(&dir, "b/queries.jsonl", "{\"_id\": \"q\", \"text\": \"\"}\n");
    file(&dir, "b/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\t3\t1\nr\t1\t0\n");
    let found = inspect(&DataSet::open(dir.path().join("b"), &DataOptions::default()).unwrap()).unwrap();
    assert_eq!(found.repeated_items, 1);
    let coverage = found.splits[0].judgements.as_ref().unwrap();
    assert_eq!((coverage.unknown_items, coverage.unknown_queries, coverage.relevant), (1, 1, 1));
    assert_eq!(found.splits[0].queries.as_ref().unwrap().blank, 1);
}
