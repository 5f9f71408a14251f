//! Triples, scored pairs and scored lists.

use loxia_data::ReadOptions;
use loxia_data::training::{Example, IdTriple, ScoredList, ScoredPair, TextTriple, parse};

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
