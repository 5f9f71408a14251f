//! What is written reads back the same, whatever the text.

use loxia_core::{Item, Qrels, Query, Run, RunEntry};
use loxia_data::convert::{TextSources, write_qrels, write_run};
use loxia_data::write::{item_json, query_json, write_line};
use loxia_data::*;
use proptest::prelude::*;

use crate::reading::{file, gzip};

fn id() -> impl Strategy<Value = String> {
    any::<String>().prop_filter("ids of columns", |id| {
        let json = id.starts_with(['[', '{']) || id.contains('"');
        !id.is_empty() && !json && !id.contains(char::is_whitespace) && !id.starts_with('\u{feff}')
    })
}

fn run() -> impl Strategy<Value = Run> {
    let entries = prop::collection::btree_map(id(), -1e30f32..1e30, 1..5);
    prop::collection::btree_map(id(), entries, 1..4).prop_map(|queries| {
        let mut run = Run::new("tag");
        for (query, entries) in queries {
            let mut entries: Vec<RunEntry> = entries
                .into_iter()
                .map(|(item, score)| RunEntry { item: item.into(), score: f64::from(score) })
                .collect();
            entries.sort_by(|a, b| b.score.total_cmp(&a.score));
            run.insert(query.into(), entries);
        }
        run
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn items_and_queries(texts in prop::collection::vec(any::<(String, String)>(), 1..8), packed: bool) {
        let mut items = Vec::new();
        let mut lines = Vec::new();
        for (index, (title, text)) in texts.into_iter().enumerate() {
            let title = Some(title).filter(|title| !title.is_empty());
            let item = Item { id: format!("é {index}").into(), title, text };
            write_line(&mut lines, &item_json(&item)).unwrap();
            items.push(item);
        }
        let dir = tempfile::tempdir().unwrap();
        let path = file(&dir, "corpus.jsonl", if packed { gzip(&lines) } else { lines });
        let store = ItemStore::open(path, None, &ReadOptions::default()).unwrap();
        prop_assert_eq!(store.read(0..store.len()).unwrap(), items);
    }

    #[test]
    fn queries(text: String) {
        let query = Query::plain("q", text.clone());
        let mut line = Vec::new();
        write_line(&mut line, &query_json(&query, &text)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let store = QueryStore::open(file(&dir, "q", line), None, &ReadOptions::default()).unwrap();
        prop_assert_eq!(store.get(0).unwrap(), query);
    }

    #[test]
    fn runs(run in run(), texts: [String; 2]) {
        let queries = run.iter().map(|(id, _)| Query::plain(id.clone(), texts[0].clone()));
        let queries = QueryStore::from_records(queries.collect()).unwrap();
        let items: indexmap::IndexSet<_> =
            run.iter().flat_map(|(_, list)| list).map(|entry| entry.item.clone()).collect();
        let items = items.into_iter().map(|id| Item::plain(id, texts[1].clone()));
        let items = ItemStore::from_records(items.collect()).unwrap();
        let sources = TextSources { queries: &[&queries], items: &[&items] };
        for format in [RunFormat::Trec, RunFormat::JsonLines, RunFormat::JsonArray] {
            let mut bytes = Vec::new();
            prop_assert_eq!(write_run(&mut bytes, &run, format, sources).unwrap(), 0);
            let file = parse_run(&bytes[..], "r", &ReadOptions::default()).unwrap();
            prop_assert_eq!(file.format, format);
            prop_assert_eq!(file.run.iter().collect::<Vec<_>>(), run.iter().collect::<Vec<_>>());
            if format != RunFormat::Trec {
                prop_assert_eq!(file.texts.queries.as_ref().unwrap().digest(), queries.digest());
                prop_assert_eq!(file.texts.items.as_ref().unwrap().digest(), items.digest());
            }
        }
    }

    #[test]
    fn judgements(judged in prop::collection::btree_map((id(), id()), any::<i32>(), 1..8)) {
        let mut qrels = Qrels::new();
        for ((query, item), level) in judged {
            qrels.insert(query.into(), item.into(), level);
        }
        for format in [QrelsFormat::Trec, QrelsFormat::Beir] {
            let mut bytes = Vec::new();
            write_qrels(&mut bytes, &qrels, format).unwrap();
            let file = parse_qrels(&bytes[..], "q", &ReadOptions::default()).unwrap();
            prop_assert_eq!(file.format, format);
            prop_assert_eq!(&file.qrels, &qrels);
        }
    }

    #[test]
    fn parsers_take_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), start in "[\\[{ ]?") {
        let bytes = [start.into_bytes(), bytes].concat();
        let options = ReadOptions::default();
        let _ = parse_run(&bytes[..], "r", &options);
        let _ = parse_qrels(&bytes[..], "q", &options);
        let _ = parse_candidates(&bytes[..], "c", &options);
        let _ = parse_mentions(&bytes[..], "m", &options).map(Iterator::count);
    }
}

#[test]
fn scores_read_back_as_the_same_number() {
    let mut run = Run::new("t");
    for (index, score) in [0.1f32, 1e-40, f32::MAX, -16777217.0, 0.3].into_iter().enumerate() {
        run.push("q".into(), RunEntry { item: index.to_string().into(), score: f64::from(score) });
    }
    let mut bytes = Vec::new();
    write_run(&mut bytes, &run, RunFormat::Trec, TextSources::default()).unwrap();
    let back = parse_run(&bytes[..], "r", &ReadOptions::default()).unwrap().run;
    for entry in run.get("q").unwrap() {
        let same = back.get("q").unwrap().iter().find(|other| other.item == entry.item).unwrap();
        assert_eq!(same.score.to_bits(), entry.score.to_bits());
    }
}

#[test]
fn what_columns_cannot_hold_is_refused() {
    let mut run = Run::new("t");
    run.push("q 1".into(), RunEntry { item: "d".into(), score: 1.0 });
    let error = write_run(Vec::new(), &run, RunFormat::Trec, TextSources::default()).unwrap_err().to_string();
    assert!(error.starts_with("cannot write the query id \"q 1\" in a file of columns"), "{error}");
    let mut run = Run::new("t");
    run.push("[q]".into(), RunEntry { item: "d".into(), score: 1.0 });
    let mut bytes = Vec::new();
    write_run(&mut bytes, &run, RunFormat::Trec, TextSources::default()).unwrap();
    assert_eq!(parse_run(&bytes[..], "r", &ReadOptions::default()).unwrap().run, run);
    run.push("[q]".into(), RunEntry { item: "\"d\"".into(), score: 2.0 });
    let error = write_run(Vec::new(), &run, RunFormat::Trec, TextSources::default()).unwrap_err().to_string();
    assert!(error.ends_with("it would read as JSON"), "{error}");
    let mut run = Run::new("t");
    run.push("q".into(), RunEntry { item: "d".into(), score: f64::NAN });
    let error = write_run(Vec::new(), &run, RunFormat::JsonLines, TextSources::default()).unwrap_err();
    assert_eq!(error.to_string(), "cannot write the score NaN of item \"d\"");
}
