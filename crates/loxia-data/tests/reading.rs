//! Lines, stores, runs and judgements: what is read and what is said when it cannot be.

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::{Compression, write::GzEncoder};
use loxia_core::{Item, Query, QueryText};
use loxia_data::*;

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn file(dir: &tempfile::TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path
}

fn lines_of(bytes: &[u8], limits: &Limits) -> Result<Vec<(u64, String)>> {
    let mut reader = LineReader::new(bytes, "x.txt", limits)?;
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line()? {
        lines.push((line.number(), line.text().to_owned()));
    }
    Ok(lines)
}

#[test]
fn lines_come_with_their_numbers() {
    let expected = [(1, "one".to_owned()), (2, String::new()), (3, "dréi".to_owned())];
    let text = "\u{feff}one\r\n\ndréi".as_bytes();
    assert_eq!(lines_of(text, &Limits::default()).unwrap(), expected);
    assert_eq!(lines_of(&gzip(text), &Limits::default()).unwrap(), expected);
    let members = [gzip("\u{feff}one\r\n\ndr".as_bytes()), gzip("éi\n".as_bytes())].concat();
    assert_eq!(lines_of(&members, &Limits::default()).unwrap(), expected);
    assert!(lines_of(b"", &Limits::default()).unwrap().is_empty());
    assert_eq!(lines_of(b"\x1f", &Limits::default()).unwrap()[0].1, "\x1f");
}

#[test]
fn bad_bytes_say_where_they_are() {
    let error = lines_of(b"ab\ncd\xffe\n", &Limits::default()).unwrap_err().to_string();
    assert!(
        error.starts_with("x.txt:2: invalid UTF-8 at byte 3 of the line (byte 5 of the text)"),
        "{error}"
    );

    let limits = Limits { line_bytes: 3, ..Limits::default() };
    assert_eq!(lines_of(b"abc\r\nabc", &limits).unwrap().len(), 2);
    let error = lines_of(b"abc\nabcd", &limits).unwrap_err().to_string();
    assert!(error.starts_with("x.txt:2: the line is longer than 3 bytes"), "{error}");

    let mut cut = gzip("line of text\n".repeat(1000).as_bytes());
    cut.truncate(cut.len() - 12);
    let error = lines_of(&cut, &Limits::default()).unwrap_err().to_string();
    assert!(error.starts_with("x.txt:") && error.contains("damaged gzip data"), "{error}");
    let error = lines_of(b"\x1f\x8bnot gzip at all, really", &Limits::default()).unwrap_err().to_string();
    assert!(error.starts_with("x.txt:0: damaged gzip data"), "{error}");
}

#[test]
fn a_gzip_bomb_is_stopped() {
    let bomb = gzip(&b"0\n".repeat(1 << 20));
    let limits = Limits { inflated_bytes: 1 << 18, ..Limits::default() };
    let error = lines_of(&bomb, &limits).unwrap_err();
    assert!(matches!(error, Error::Inflated { .. }));
    assert!(error.to_string().contains("decompress the file first (gunzip)"), "{error}");
    assert_eq!(lines_of(&bomb, &Limits::default()).unwrap().len(), 1 << 20);
    // Through the JSON array path, which does not read lines.
    let bomb = gzip(format!("[{}", " ".repeat(2 << 20)).as_bytes());
    let options = ReadOptions { limits, ..ReadOptions::default() };
    assert!(matches!(parse_run(&bomb[..], "b.json", &options), Err(Error::Inflated { .. })));
}

#[test]
fn stores_read_any_record_from_plain_and_compressed_files() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (0..1000)
        .map(|i| format!("{{\"_id\": {i}, \"title\": \"t{i}\", \"text\": \"text \\u00e9 {i}\"}}\n\n"))
        .collect();
    let plain = ItemStore::open(file(&dir, "a.jsonl", &text), None, &ReadOptions::default()).unwrap();
    let packed =
        ItemStore::open(file(&dir, "b", gzip(text.as_bytes())), None, &ReadOptions::default()).unwrap();
    for store in [&plain, &packed] {
        assert_eq!(store.len(), 1000);
        let item = store.get(777).unwrap();
        assert_eq!(
            (item.id.as_str(), item.title.as_deref(), &*item.text),
            ("777", Some("t777"), "text é 777")
        );
        assert_eq!(store.read(10..500).unwrap().len(), 490);
        assert_eq!(store.position("999"), Some(999));
        assert!(store.iter().enumerate().all(|(i, item)| item.unwrap().id.as_str() == i.to_string()));
    }
    assert_eq!(plain.digest(), packed.digest());
    let memory = ItemStore::from_records(plain.read(0..1000).unwrap()).unwrap();
    assert_eq!(memory.digest(), plain.digest());
    let mut other = plain.read(0..1000).unwrap();
    other[3].title = None;
    assert_ne!(ItemStore::from_records(other).unwrap().digest(), plain.digest());
}

#[test]
fn the_digest_keeps_field_borders() {
    let digest = |id: &str, text: &str| {
        ItemStore::from_records(vec![Item::plain(id, text)]).unwrap().digest().to_owned()
    };
    assert_ne!(digest("ab", "c"), digest("a", "bc"));
    // SHA-256 of the lengths as 8 bytes each, the strings, and a 0 for no title; computed apart.
    assert_eq!(digest("a", "b"), "7f57afec19abbd4d8b345878eddce9e42d4876602e995c81b664548a418e6570");
}

#[test]
fn duplicates_name_both_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "d.tsv", "a\tone\n\nb\ttwo\na\tthree\n");
    let error = ItemStore::open(&path, None, &ReadOptions::default()).unwrap_err().to_string();
    let at = path.display();
    assert_eq!(error, format!("{at}:4: duplicate id \"a\", first at {at}:1; ids must be unique"));
}

#[test]
fn a_file_that_changes_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "c.tsv", "a\tone\nb\ttwo\n");
    let store = ItemStore::open(&path, None, &ReadOptions::default()).unwrap();
    std::fs::write(&path, "a\tone\nc\ttwo\n").unwrap();
    assert!(store.get(0).is_ok());
    let error = store.get(1).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}:2: the file changed", path.display())), "{error}");
    std::fs::write(&path, "a").unwrap();
    assert!(store.get(1).unwrap_err().to_string().contains("it is shorter"));
}

fn item_error(content: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "i.jsonl", content);
    let error = ItemStore::open(&path, None, &ReadOptions::default()).unwrap_err().to_string();
    error.replace(&format!("{}/", dir.path().display()), "")
}

#[test]
fn broken_items_say_what_was_expected() {
    let error = item_error("{\"id\": 1, \"text\": \"a\"}\n{\"id\": 2, \"te");
    assert!(error.starts_with("i.jsonl:2: column 13: the JSON ends too early"), "{error}");
    assert!(error.contains("expected an object with an id (`_id`, `id`"), "{error}");
    let error = item_error("{\"id\": 1}");
    assert!(error.starts_with("i.jsonl:1: no `text`; expected"), "{error}");
    let error = item_error("{\"text\": \"a\"}");
    assert!(error.starts_with("i.jsonl:1: no id; expected"), "{error}");
    let error = item_error("{\"id\": \"\", \"text\": \"a\"}");
    assert_eq!(error, "i.jsonl:1: the id is empty");
    let error = item_error("{\"id\": [1], \"text\": \"a\"}");
    assert!(error.contains("i.jsonl:1: column 8: invalid type: sequence, expected an id"), "{error}");
    let error = item_error("{\"qid\": 1, \"docno\": 2, \"text\": \"a\"}");
    assert!(error.contains("this is a line of a run, not an item"), "{error}");
}

#[test]
fn queries_may_be_mentions() {
    let dir = tempfile::tempdir().unwrap();
    let read = |name: &str, content: &str| -> Result<Vec<Query>> {
        let path = file(&dir, name, content);
        let data = DataSet::open(&path, &DataOptions::default())?;
        let store = data.queries()?;
        (0..store.len() as u32).map(|at| store.get(at)).collect()
    };
    let mention = |id: &str, left: &str, mention: &str, right: &str| Query {
        id: id.into(),
        text: QueryText::Mention { left: left.into(), mention: mention.into(), right: right.into() },
    };
    let typed = read("t.txt", "he [[ran]] home\nhe ran home\n").unwrap();
    assert_eq!(typed, [mention("1", "he", "ran", "home"), Query::plain("2", "he ran home")]);
    let lines = "{\"id\": 1, \"mention\": \"ran\"}\n\
                 {\"id\": 2, \"left\": \"he\", \"mention\": \"ran\", \"right\": \"home\"}\n\
                 {\"qid\": 3, \"context_left\": \"he\", \"mention\": \"ran\", \"context_right\": \"\"}\n\
                 {\"id\": 4, \"text\": \"he [[ran]] home\"}\n";
    let found = read("m.jsonl", lines).unwrap();
    let third = mention("3", "he", "ran", "");
    assert_eq!(found[..3], [mention("1", "", "ran", ""), mention("2", "he", "ran", "home"), third]);
    // Files of programs are taken at their word: brackets are brackets.
    assert_eq!(found[3], Query::plain("4", "he [[ran]] home"));
    let error = read("e.jsonl", "{\"id\": 1, \"mention\": \"ran\", \"left\": \"he\", \"text\": \"a\"}\n")
        .unwrap_err()
        .to_string();
    assert!(error.contains("a text and a mention"), "{error}");
    let plain = read("p.jsonl", "{\"id\": \"1\", \"mention\": \"@bob\", \"text\": \"a\"}\n").unwrap();
    assert_eq!(plain, [Query::plain("1", "a")]);
    let error = read("l.jsonl", "{\"id\": 1, \"mention\": \"ran\", \"left\": 3}\n").unwrap_err().to_string();
    assert!(error.contains("`left` is no string"), "{error}");
}

#[test]
fn fields_of_mentions_mean_nothing_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let others = "\"left\": 3, \"context_left\": \"a\", \"right\": [1], \"mention\": {\"start\": 0}";
    let path = file(&dir, "x.jsonl", format!("{{\"id\": 1, \"text\": \"ran\", {others}}}\n"));
    let data = DataSet::open(&path, &DataOptions::default()).unwrap();
    assert_eq!(data.queries().unwrap().get(0).unwrap(), Query::plain("1", "ran"));
    assert_eq!(data.items().unwrap().get(0).unwrap(), Item::plain("1", "ran"));
}

fn run(bytes: &[u8]) -> Result<RunFile> {
    parse_run(bytes, "r", &ReadOptions::default())
}

#[test]
fn trec_runs() {
    let file = run(b"q1 Q0 d1 1 2.5 tag\r\nq2\t0\td1\t1\t-1e-3\tother\nq1 Q0 d2 2 2 tag\nq1 Q0 d1 3 9 tag\n")
        .unwrap();
    assert_eq!((file.run.tag.as_str(), file.run.len(), file.format), ("tag", 2, RunFormat::Trec));
    let scores: Vec<f64> = file.run.get("q1").unwrap().iter().map(|entry| entry.score).collect();
    assert_eq!(scores, [2.5, 2.0]);
    assert_eq!(file.duplicates.count, 1);
    assert_eq!(file.duplicates.first, [("q1".into(), "d1".into())]);

    let error = |bytes: &[u8]| run(bytes).unwrap_err().to_string();
    let columns = "query Q0 item rank score tag";
    assert_eq!(error(b"q Q0 d 1 2.5\n"), format!("r:1: 5 columns, a TREC run has 6: {columns}"));
    assert_eq!(error(b"\nq Q0 d 1 2.5 t x\n"), format!("r:2: 7 columns, a TREC run has 6: {columns}"));
    assert!(error(b"q Q0 d 1 nan t\n").starts_with("r:1: score \"nan\" is not a finite number"));
}

#[test]
fn json_runs_with_and_without_texts() {
    let lines = br#"{"qid": 1, "query": "birds", "docno": "d1", "text": "Crossbills", "rank": 1, "score": 3.5, "original_query": {}}
{"qid": 1, "query": "birds", "docno": 7, "text": "Owls", "title": "O", "rank": 2, "score": 1}
{"qid": "2", "query": "fish", "docno": "d1", "text": "Crossbills", "rank": 1, "score": 0.5}
"#;
    let array = format!("\u{feff} [{}]", String::from_utf8_lossy(lines).trim().replace('\n', ",\n"));
    for (bytes, format) in [
        (lines.to_vec(), RunFormat::JsonLines),
        (array.clone().into_bytes(), RunFormat::JsonArray),
        (gzip(array.as_bytes()), RunFormat::JsonArray),
    ] {
        let file = run(&bytes).unwrap();
        assert_eq!((file.format, file.run.len()), (format, 2));
        assert_eq!(file.run.get("1").unwrap()[1].item.as_str(), "7");
        let items = file.texts.items.unwrap();
        assert_eq!(items.len(), 2);
        assert_eq!(
            items.get(1).unwrap(),
            Item { id: "7".into(), title: Some("O".into()), text: "Owls".into() }
        );
        assert_eq!(file.texts.queries.unwrap().get(1).unwrap().text.joined(), "fish");
    }
    let ranked =
        run(b"{\"qid\": 1, \"docno\": 1, \"rank\": 2}\n{\"qid\": 1, \"docno\": 2, \"rank\": 1}").unwrap();
    assert_eq!(ranked.run.get("1").unwrap().iter().map(|e| e.score).collect::<Vec<_>>(), [-2.0, -1.0]);
    assert!(ranked.texts.items.is_none() && ranked.texts.queries.is_none());
    let bare =
        run(b"[{\"qid\": 1, \"docno\": 1}, {\"qid\": 2, \"docno\": 1}, {\"qid\": 1, \"docno\": 2}]").unwrap();
    assert_eq!(bare.run.get("1").unwrap().iter().map(|e| e.score).collect::<Vec<_>>(), [-1.0, -2.0]);
}

#[test]
fn broken_json_runs_say_where() {
    let error = |bytes: &[u8]| run(bytes).unwrap_err().to_string();
    let half = error(b"{\"qid\": 1, \"docno\": 1}\n{\"qid\": 1, \"do");
    assert!(half.starts_with("r:2: column 14: the JSON ends too early"), "{half}");
    let half = error(b"[{\"qid\": 1, \"docno\": 1},\n{\"qid\": 1, \"do");
    assert!(half.starts_with("r:2: column 14: the JSON ends too early"), "{half}");
    let missing = error(b"[{\"qid\": 1}]");
    assert!(
        missing.starts_with("r:1: column 11: missing field `docno`; expected an object with"),
        "{missing}"
    );
    let mixed = error(b"[{\"qid\": 1, \"docno\": 1, \"score\": 1},\n\n{\"qid\": 1, \"docno\": 2}]");
    assert!(mixed.starts_with("r:3: `score` and `rank` must be on all objects"), "{mixed}");
    let text = error(b"{\"qid\":1,\"docno\":1,\"text\":\"a\"}\n{\"qid\":2,\"docno\":1,\"text\":\"b\"}");
    assert!(text.starts_with("r:2: docno \"1\" has another title or text than before"), "{text}");
    let query = error(b"{\"qid\":1,\"docno\":1,\"query\":\"a\"}\n{\"qid\":1,\"docno\":2,\"query\":\"b\"}");
    assert!(query.starts_with("r:2: query \"1\" is \"b\" here and \"a\" before"), "{query}");
    let trailing = error(b"[{\"qid\": 1, \"docno\": 1}]\n[]");
    assert!(trailing.starts_with("r:2: column 1: trailing characters"), "{trailing}");
}

#[test]
fn judgements_of_both_kinds() {
    let read = |bytes: &[u8]| parse_qrels(bytes, "q", &ReadOptions::default());
    let trec = read(b"q1 0 d1 1\nq1 Q0 d2 -1\nq1 0 d1 1\n").unwrap();
    assert_eq!((trec.format, trec.repeated, trec.qrels.len()), (QrelsFormat::Trec, 1, 1));
    assert_eq!(trec.qrels.get("q1").unwrap()["d2"], -1);
    let beir = read(b"query-id\tcorpus-id\tscore\r\nq 1\td1\t2\r\n").unwrap();
    assert_eq!((beir.format, beir.qrels.get("q 1").unwrap()["d1"]), (QrelsFormat::Beir, 2));

    let error = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(error(b"q1 d1 1\n").starts_with("q:1: 3 columns, TREC judgements have 4: query 0 item level"));
    assert_eq!(error(b"q 0 d 1.5\n"), "q:1: relevance \"1.5\" is not an integer of 32 bits");
    assert_eq!(error(b"q 0 d 1\nq 0 d 2\n"), "q:2: query \"q\", item \"d\" is judged 2 here and 1 before");
    assert!(error(b"query-id\tcorpus-id\tscore\nq d 1\n").starts_with("q:2: expected three columns"));
}

#[test]
fn what_is_not_there_is_named() {
    let error = read_run(Path::new("/nonexistent/run.txt"), &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.starts_with("/nonexistent/run.txt: cannot open: "), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let error = read_qrels(dir.path(), &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.ends_with("is a directory, expected a file"), "{error}");
}
