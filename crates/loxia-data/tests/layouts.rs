//! Each layout is recognised and read; what does not fit is named with file and line.

use std::path::Path;

use loxia_core::QueryText;
use loxia_data::*;

use crate::reading::{file, gzip};

pub(crate) fn zeshel(dir: &tempfile::TempDir) {
    let doc = |id: &str, title: &str, text: &str| {
        format!("{{\"document_id\": \"{id}\", \"title\": \"{title}\", \"text\": \"{text}\"}}\n")
    };
    let lego =
        [doc("L1", "Brick", "Brick  A brick is\\u00a0a toy"), doc("L2", "Set", "Set many bricks")].concat();
    file(dir, "documents/lego.json", lego);
    file(dir, "documents/muppets.json", doc("M1", "Kermit", "Kermit the frog"));
    let mention = |id: &str, world: &str, doc: &str, start: usize, end: usize, text: &str, label: &str| {
        format!(
            "{{\"mention_id\": \"{id}\", \"context_document_id\": \"{doc}\", \"corpus\": \"{world}\", \
             \"start_index\": {start}, \"end_index\": {end}, \"text\": \"{text}\", \
             \"label_document_id\": \"{label}\", \"category\": \"LOW_OVERLAP\"}}\n"
        )
    };
    let val = [
        mention("m1", "muppets", "M1", 1, 2, "the frog", "M1"),
        mention("m2", "lego", "L1", 1, 2, "A brick", "L1"),
        mention("m3", "lego", "L2", 2, 2, "bricks", "L1"),
    ];
    file(dir, "mentions/val.json", val.concat());
    file(dir, "mentions/test.json", mention("t1", "lego", "L2", 0, 0, "Set", "L2"));
    let candidates = ["m1", "m2", "m3"]
        .map(|id| format!("{{\"mention_id\": \"{id}\", \"tfidf_candidates\": [\"L1\", \"L2\"]}}\n"));
    file(dir, "tfidf_candidates/val.json", candidates.concat());
}

pub(crate) fn options(world: Option<&str>, split: Option<&str>) -> DataOptions {
    DataOptions { world: world.map(str::to_owned), split: split.map(str::to_owned), ..DataOptions::default() }
}

fn open(path: &Path, world: Option<&str>, split: Option<&str>) -> Result<DataSet> {
    DataSet::open(path, &options(world, split))
}

fn parts(query: &loxia_core::Query) -> (&str, &str, &str) {
    match &query.text {
        QueryText::Mention { left, mention, right } => (left, mention, right),
        QueryText::Plain(_) => panic!("not a mention"),
    }
}

#[test]
fn zeshel_mentions_are_cut_from_their_documents() {
    let dir = tempfile::tempdir().unwrap();
    zeshel(&dir);
    let data = open(dir.path(), Some("lego"), Some("valid")).unwrap();
    assert_eq!((data.format(), data.split()), (DataFormat::Zeshel, Some("val")));
    assert_eq!(data.worlds(), ["lego", "muppets"]);
    assert_eq!(data.splits(), ["test", "val"]);
    let queries = data.queries().unwrap();
    assert_eq!(queries.ids().iter().collect::<Vec<_>>(), ["m2", "m3"]);
    assert_eq!(parts(&queries.get(0).unwrap()), ("Brick", "A brick", "is a toy"));
    assert_eq!(parts(&queries.get(1).unwrap()), ("Set many", "bricks", ""));
    let golds = data.golds().unwrap();
    assert_eq!((golds[1].query.as_str(), golds[1].item.as_str(), &*golds[1].world), ("m3", "L1", "lego"));
    assert_eq!(data.qrels().unwrap().get("m2").unwrap()["L1"], 1);
    assert_eq!(data.candidates().unwrap().keys().map(|id| id.as_str()).collect::<Vec<_>>(), ["m2", "m3"]);
    // Without a world: all mentions of the split, and the worlds they are from.
    let all = open(dir.path(), None, Some("val")).unwrap();
    assert_eq!((all.queries().unwrap().len(), all.items().unwrap().len()), (3, 3));
    assert_eq!(open(dir.path(), None, Some("test")).unwrap().items().unwrap().len(), 2);
}

#[test]
fn unknown_names_list_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    zeshel(&dir);
    let root = dir.path().display();
    let error = open(dir.path(), Some("yugioh"), None).unwrap_err().to_string();
    assert_eq!(error, format!("{root}: no world \"yugioh\"; there is lego, muppets"));
    let error = open(dir.path(), None, Some("dev")).unwrap_err().to_string();
    assert_eq!(error, format!("{root}: no split \"dev\"; there is test, val"));
    let error = open(dir.path(), None, None).unwrap().queries().unwrap_err().to_string();
    assert_eq!(error, format!("{root}: which queries? There are several splits; give --split test|val"));
    let error = open(dir.path(), None, Some("test")).unwrap().candidates().unwrap_err().to_string();
    assert!(error.contains("has no tfidf_candidates/test.json"), "{error}");
    assert!("beer".parse::<DataFormat>().unwrap_err().to_string().contains("zeshel, worlds, blink"));
}

#[test]
fn bad_mentions_name_file_and_line() {
    let error = |line: &str| {
        let dir = tempfile::tempdir().unwrap();
        zeshel(&dir);
        let good = std::fs::read_to_string(dir.path().join("mentions/test.json")).unwrap();
        let path = file(&dir, "mentions/test.json", format!("{good}{line}"));
        let data = open(dir.path(), None, Some("test")).unwrap();
        data.queries().unwrap_err().to_string().replace(path.to_str().unwrap(), "test.json")
    };
    let mention = |world: &str, doc: &str, start: &str, text: &str| {
        format!(
            "{{\"mention_id\": \"x\", \"corpus\": \"{world}\", \"context_document_id\": \"{doc}\", \
             \"start_index\": {start}, \"end_index\": 2, \"text\": \"{text}\", \"label_document_id\": \"L1\"}}"
        )
    };
    assert_eq!(
        error(&mention("lego", "L2", "1", "few bricks")),
        "test.json:2: words 1 to 2 of document \"L2\" are \"many bricks\", the mention says \"few bricks\""
    );
    assert_eq!(
        error(&mention("lego", "L2", "3", "x")),
        "test.json:2: words 3 to 2 of document \"L2\", which has 3"
    );
    assert!(error(&mention("lego", "L9", "1", "x")).starts_with("test.json:2: document \"L9\" is not among"));
    assert!(
        error(&mention("narnia", "L2", "1", "x")).starts_with("test.json:2: world \"narnia\" has no file")
    );
    assert!(error(&mention("lego", "L2", "-1", "x")).starts_with("test.json:2: column "));
    assert!(error("{\"mention_id\": ").starts_with("test.json:2: column 15: the JSON ends too early"));
}

#[test]
fn blink_labels_are_lines_of_the_world() {
    let dir = tempfile::tempdir().unwrap();
    zeshel(&dir);
    std::fs::remove_dir_all(dir.path().join("mentions")).unwrap();
    let line = |label: usize| {
        format!(
            "{{\"context_left\": \"a\", \"mention\": \"b\", \"context_right\": \"c\", \"label\": \"t\", \
             \"label_title\": \"T\", \"label_id\": {label}, \"world\": \"lego\"}}\n"
        )
    };
    file(&dir, "blink_format/train.jsonl", gzip([line(1), line(0)].concat().as_bytes()));
    let data = open(dir.path(), None, None).unwrap();
    assert_eq!(data.format(), DataFormat::Blink);
    let golds = data.golds().unwrap();
    assert_eq!((golds[0].query.as_str(), golds[0].item.as_str()), ("train:1", "L2"));
    assert_eq!((golds[1].query.as_str(), golds[1].item.as_str()), ("train:2", "L1"));
    assert_eq!(parts(&data.queries().unwrap().get(1).unwrap()), ("a", "b", "c"));

    let path = file(&dir, "blink_format/train.jsonl", [line(0), line(2)].concat());
    let error = open(dir.path(), None, None).unwrap().golds().unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("{}:2: label_id 2, but world \"lego\" has 2 documents", path.display()))
    );
    // The file alone: queries, but no items.
    let alone = DataSet::open(&path, &DataOptions::default()).unwrap();
    assert_eq!((alone.format(), alone.queries().unwrap().len()), (DataFormat::Blink, 2));
    assert!(alone.items().unwrap_err().to_string().contains("give the directory with documents/"));
}

#[test]
fn anncur_processed_files() {
    let dir = tempfile::tempdir().unwrap();
    zeshel(&dir);
    let line = "{\"mention\": \"b\", \"mention_id\": \"m9\", \"context_left\": \"a\", \"context_right\": \"\", \
                \"context_doc_id\": \"L1\", \"type\": \"lego\", \"label_id\": \"L2\", \"label\": \"t\", \
                \"label_title\": \"T\"}\n";
    file(&dir, "processed/valid.jsonl", line);
    // Raw mentions are there too and come first unless the format is given.
    assert_eq!(open(dir.path(), None, None).unwrap().format(), DataFormat::Zeshel);
    let options = DataOptions { format: Some(DataFormat::Anncur), ..options(Some("lego"), Some("val")) };
    let data = DataSet::open(dir.path(), &options).unwrap();
    assert_eq!((data.format(), data.split()), (DataFormat::Anncur, Some("valid")));
    assert_eq!(data.golds().unwrap()[0].item.as_str(), "L2");
}

#[test]
fn beir_directories() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = "{\"_id\": \"d1\", \"title\": \"\", \"text\": \"one\"}\n{\"_id\": \"d2\", \"title\": \"T\", \"text\": \"two\"}";
    file(&dir, "corpus.jsonl.gz", gzip(corpus.as_bytes()));
    file(&dir, "queries.jsonl", "{\"_id\": \"q1\", \"text\": \"a\"}\n{\"_id\": \"q2\", \"text\": \"b\"}\n");
    file(&dir, "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq2\td1\t1\n");
    let data = open(dir.path(), None, Some("test")).unwrap();
    assert_eq!((data.format(), data.items().unwrap().len()), (DataFormat::Beir, 2));
    assert_eq!(data.items().unwrap().get(0).unwrap().title, None);
    assert_eq!(data.queries().unwrap().ids().iter().collect::<Vec<_>>(), ["q2"]);
    assert_eq!(open(dir.path(), None, None).unwrap().queries().unwrap().len(), 2);
    assert_eq!(open(dir.path(), None, None).unwrap().qrels().unwrap().len(), 1);
    assert!(data.golds().unwrap_err().to_string().ends_with("is beir and has judgements, not gold entities"));
}

#[test]
fn ms_marco_directories() {
    let dir = tempfile::tempdir().unwrap();
    file(&dir, "collection.tsv", "0\tfirst\twith a tab\n1\tsecond\n");
    file(&dir, "queries.dev.small.tsv", "9\tnine\n");
    file(&dir, "queries.dev.tsv", "9\tnine\n8\teight\n");
    file(&dir, "qrels.dev.small.tsv", "9\t0\t1\t1\n");
    let data = open(dir.path(), None, Some("dev.small")).unwrap();
    assert_eq!(
        (data.format(), data.items().unwrap().get(0).unwrap().text),
        (DataFormat::MsMarco, "first\twith a tab".into())
    );
    assert_eq!((data.queries().unwrap().len(), data.qrels().unwrap().len()), (1, 1));
    let error = open(dir.path(), None, Some("dev")).unwrap().qrels().unwrap_err().to_string();
    assert!(error.ends_with("has no judgements for split dev"), "{error}");
    let bad = file(&dir, "collection.tsv", "0 first\n");
    let error = open(dir.path(), None, None).unwrap().items().unwrap_err().to_string();
    assert_eq!(error, format!("{}:1: no tab; expected `id`, a tab and the text", bad.display()));
}

#[test]
fn single_files() {
    let dir = tempfile::tempdir().unwrap();
    let text = DataSet::open(file(&dir, "a.txt", "one\ttab\n\nthree\n"), &DataOptions::default()).unwrap();
    assert_eq!(text.format(), DataFormat::Text);
    assert_eq!(text.items().unwrap().ids().iter().collect::<Vec<_>>(), ["1", "3"]);
    let tsv = DataSet::open(file(&dir, "a.tsv.gz", gzip(b"x\tone\n")), &DataOptions::default()).unwrap();
    assert_eq!((tsv.format(), tsv.items().unwrap().position("x")), (DataFormat::Tsv, Some(0)));
    let json = file(&dir, "a.json", "{\"docno\": \"x\", \"text\": \"one\"}");
    assert_eq!(DataSet::open(&json, &DataOptions::default()).unwrap().format(), DataFormat::Jsonl);
    assert!(text.qrels().unwrap_err().to_string().contains("has no judgements"));
    let options = DataOptions { format: Some(DataFormat::Beir), ..DataOptions::default() };
    let error = DataSet::open(&json, &options).unwrap_err().to_string();
    assert!(error.ends_with("is a file, but beir is a directory; give the directory"), "{error}");
}

#[test]
fn a_directory_that_is_nothing_lists_what_was_looked_for() {
    let dir = tempfile::tempdir().unwrap();
    file(&dir, "readme.md", "hello");
    let error = open(dir.path(), None, None).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: no data set recognised; looked for\n", dir.path().display())));
    for layout in ["zeshel: documents/<world>.json", "beir: corpus.jsonl", "msmarco: collection.tsv"] {
        assert!(error.contains(layout), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_once_as_items_or_as_queries() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    if !std::process::Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()) {
        println!("skipped: no mkfifo");
        return;
    }
    let write = |id: &'static str| {
        let pipe = pipe.clone();
        let lines: String =
            (0..5000).map(|i| format!("{{\"{id}\": {i}, \"text\": \"text {i}\"}}\n")).collect();
        std::thread::spawn(move || std::fs::write(pipe, lines))
    };
    let writer = write("id");
    let data = DataSet::open(&pipe, &DataOptions::default()).unwrap();
    assert_eq!((data.format(), data.items().unwrap().len()), (DataFormat::Jsonl, 5000));
    assert_eq!(data.items().unwrap().get(4999).unwrap().text, "text 4999");
    writer.join().unwrap().unwrap();
    let error = data.queries().unwrap_err().to_string();
    assert!(error.contains("is a stream and was read already"), "{error}");

    let writer = write("qid");
    let data = DataSet::open(&pipe, &DataOptions::default()).unwrap();
    assert_eq!(data.queries().unwrap().get(4999).unwrap().id.as_str(), "4999");
    writer.join().unwrap().unwrap();
}

#[test]
fn a_plain_file_is_read_as_queries() {
    let dir = tempfile::tempdir().unwrap();
    let cases = [
        ("beir.jsonl", "{\"_id\": \"a\", \"text\": \"red\"}\n", ("a", "red")),
        ("run-like.jsonl", "{\"qid\": 7, \"query\": \"red\"}\n", ("7", "red")),
        ("id.jsonl", "{\"id\": \"a\", \"text\": \"red\", \"title\": \"no\"}\n", ("a", "red")),
        ("queries.tsv", "a\tred\tblue\n", ("a", "red\tblue")),
        ("queries.txt", "red\n", ("1", "red")),
        (
            "mentions.jsonl",
            "{\"qid\": \"a\", \"context_left\": \"the\", \"mention\": \"red\", \"context_right\": \"\"}\n",
            ("a", "the red"),
        ),
    ];
    for (name, text, expected) in cases {
        let path = file(&dir, name, text);
        let data = open(Path::new(&path), None, None).unwrap();
        let query = data.queries().unwrap().get(0).unwrap();
        assert_eq!((query.id.as_str(), query.text.joined().as_str()), expected, "{name}");
        assert_eq!(data.format().is_plain_file(), name != "mentions.jsonl", "{name}");
    }
    let both = open(&dir.path().join("beir.jsonl"), None, None).unwrap();
    assert_eq!((both.items().unwrap().len(), both.queries().unwrap().len()), (1, 1));
    let run = file(&dir, "run.jsonl", "{\"qid\": 7, \"query\": \"red\", \"docno\": 1, \"text\": \"blue\"}\n");
    let error = open(Path::new(&run), None, None).unwrap().queries().unwrap_err().to_string();
    assert!(
        error.ends_with(
            "run.jsonl:1: `qid` and `docno`: this is a line of a run, not a query; give it as a run"
        ),
        "{error}"
    );
}

#[test]
fn an_unknown_format_lists_the_known() {
    let error = "bier".parse::<DataFormat>().unwrap_err().to_string();
    assert!(error.starts_with("no data format \"bier\"; there is zeshel, worlds, blink"), "{error}");
}
