//! Triples, scored pairs and scored lists.

use loxia_data::training::{Example, IdTriple, ScoredList, ScoredPair, TextTriple, parse};
use loxia_data::write::{candidates_json, write_line, write_tsv};
use loxia_data::{Limits, LineFormat, LineReader, ReadOptions, parse_candidates};

fn read<T: Example>(bytes: &[u8]) -> loxia_data::Result<Vec<T>> {
    parse(bytes, "t", &ReadOptions::default())?.collect()
}

fn error<T: Example + std::fmt::Debug>(bytes: &[u8]) -> String {
    read::<T>(bytes).unwrap_err().to_string()
}

#[test]
fn examples_of_each_kind() {
    let texts: Vec<TextTriple> = read(b"what is it\ta b\tc d\n").unwrap();
    assert_eq!((texts[0].query.as_str(), texts[0].negative.as_str()), ("what is it", "c d"));
    let ids: Vec<IdTriple> = read(b"1\t2\t3\n4 5 6\n").unwrap();
    assert_eq!((ids.len(), ids[1].positive.as_str()), (2, "5"));
    let pairs: Vec<ScoredPair> = read(b"10.5\t-3.25\tq\tp\tn\n").unwrap();
    assert_eq!(
        (pairs[0].positive_score, pairs[0].negative_score, pairs[0].query.as_str()),
        (10.5, -3.25, "q")
    );
    let lists: Vec<ScoredList> = read(b"[17, [3, 1.5], [\"x\", -2]]\n").unwrap();
    assert_eq!(lists[0].query.as_str(), "17");
    assert_eq!(lists[0].items, [("3".into(), 1.5), ("x".into(), -2.0)]);
}

#[test]
fn broken_examples_name_the_columns() {
    assert_eq!(
        error::<TextTriple>(b"a\tb\n"),
        "t:1: 2 columns, expected 3: query, positive text, negative text"
    );
    assert_eq!(error::<IdTriple>(b"\n1 2 3 4\n"), "t:2: 4 columns, expected 3: query, positive, negative");
    assert_eq!(error::<ScoredPair>(b"1\tinf\tq\tp\tn\n"), "t:1: score \"inf\" is not a finite number");
    assert!(error::<ScoredList>(b"[1, [2, 3]\n").starts_with("t:1: column 10: the JSON ends too early"));
    assert!(error::<ScoredList>(b"[1, [2]]\n").contains("expected [query, [item, score]"));
    assert!(error::<ScoredList>(b"[1]\n").starts_with("t:1: no items after the query"));
    assert!(error::<ScoredList>(b"[1, [2, 1e300]]\n").starts_with("t:1: "));
}

#[test]
fn nothing_follows_an_error() {
    let mut examples = parse::<IdTriple>(&b"1 2\n1 2 3\n"[..], "t", &ReadOptions::default()).unwrap();
    assert!(examples.next().unwrap().is_err());
    assert!(examples.next().is_none());
}

fn written(examples: &[impl Example]) -> loxia_data::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    examples.iter().try_for_each(|example| example.write(&mut bytes)).map(|()| bytes)
}

#[test]
fn what_is_written_reads_back() {
    let triple = |query: &str| TextTriple {
        query: query.into(),
        positive: " é, \u{a0}".into(),
        negative: "{\"c\"".into(),
    };
    let texts = vec![triple("what is it")];
    assert_eq!(read::<TextTriple>(&written(&texts).unwrap()).unwrap(), texts);
    let ids = vec![IdTriple { query: "1".into(), positive: "é".into(), negative: "3".into() }];
    assert_eq!(read::<IdTriple>(&written(&ids).unwrap()).unwrap(), ids);
    let pair = |score| ScoredPair {
        positive_score: score,
        negative_score: -3.25e-20,
        query: "q".into(),
        positive: "p".into(),
        negative: "n".into(),
    };
    let pairs = vec![pair(0.1), pair(f32::MAX)];
    assert_eq!(read::<ScoredPair>(&written(&pairs).unwrap()).unwrap(), pairs);
    let list = |items| ScoredList { query: "17 \n".into(), items };
    let lists = vec![list(vec![("x".into(), 0.1), ("y z".into(), f32::MIN)])];
    assert_eq!(read::<ScoredList>(&written(&lists).unwrap()).unwrap(), lists);

    for bad in ["", "a\tb", "a\nb", " "] {
        assert!(written(&[triple(bad)]).is_err(), "{bad:?}");
    }
    assert!(written(&[IdTriple { query: "a b".into(), ..ids[0].clone() }]).is_err());
    assert!(written(&[pair(f32::NAN)]).is_err());
    assert!(written(&[list(vec![])]).is_err());
    assert!(written(&[list(vec![("x".into(), f32::INFINITY)])]).is_err());
}

#[test]
fn collections_and_candidates_read_back() {
    let mut bytes = Vec::new();
    write_tsv(&mut bytes, "d 1", "a\tb ").unwrap();
    write_tsv(&mut bytes, "d2", "").unwrap();
    assert!(write_tsv(&mut bytes, "d\t3", "x").is_err() && write_tsv(&mut bytes, "d3", "x\ny").is_err());
    let lines = LineReader::new(&bytes[..], "collection.tsv", &Limits::default()).unwrap();
    let items: Vec<_> = LineFormat::Tsv.items(lines).map(|item| item.unwrap()).collect();
    let items: Vec<_> = items.iter().map(|item| (item.id.as_str(), item.text.as_str())).collect();
    assert_eq!(items, [("d 1", "a\tb "), ("d2", "")]);

    let mut bytes = Vec::new();
    let expected = ["d3".into(), "d \"1".into()];
    write_line(&mut bytes, &candidates_json(&"m1".into(), &expected)).unwrap();
    let found = parse_candidates(&bytes[..], "c", &ReadOptions::default()).unwrap();
    assert_eq!(found["m1"], expected);
}
