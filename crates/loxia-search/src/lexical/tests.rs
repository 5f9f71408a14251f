//! Against scikit-learn (`tools/golden/search_tfidf.py`), and what must hold for any texts.

use std::path::Path;

use loxia_core::{Cancel, Item, Query, QueryText, Seed};
use proptest::prelude::*;
use serde::Deserialize;

use super::vocabulary::Vocabulary;
use super::{TfidfScan, TfidfSettings, TfidfVectors};
use crate::linalg::{Dense, product_nt};
use crate::{FirstStage, QueryEncoder, QueryView};

#[derive(Deserialize)]
struct Golden {
    items: Vec<String>,
    queries: Vec<String>,
    words: Terms,
    characters: Terms,
    query_rows: Vec<(Vec<u32>, Vec<f64>)>,
    item_rows: Vec<(Vec<u32>, Vec<f64>)>,
    item_rows_start: usize,
    singular_values: Vec<f64>,
    item_dots: Vec<Vec<f64>>,
    query_dots: Vec<Vec<f64>>,
    word_cosines: Vec<Vec<f64>>,
}

#[derive(Deserialize)]
struct Terms {
    terms: Vec<String>,
    idf: Vec<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../tests/fixtures/tfidf.json")).unwrap()
}

fn items(texts: &[String]) -> Vec<Item> {
    (0..).zip(texts).map(|(n, text): (usize, _)| Item::plain(n.to_string(), text.as_str())).collect()
}

fn fit(texts: &[String], settings: TfidfSettings) -> (TfidfVectors, Dense) {
    TfidfVectors::fit(&items(texts), &settings, &Cancel::new()).unwrap()
}

fn settings(dims: usize) -> TfidfSettings {
    TfidfSettings { dims, ..TfidfSettings::default() }
}

#[track_caller]
fn assert_close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} where scikit-learn has {expected}");
}

#[test]
fn terms_and_idf_are_those_of_scikit_learn() {
    let golden = golden();
    let (tfidf, _) = fit(&golden.items, settings(8));
    for (part, expected) in tfidf.parts.iter().zip([&golden.words, &golden.characters]) {
        let terms: Vec<&str> = (0..part.len() as u32).map(|term| part.terms().get(term)).collect();
        assert_eq!(terms, expected.terms);
        part.idf().iter().zip(&expected.idf).for_each(|(&found, &idf)| assert_close(found, idf, 1e-12));
    }
}

#[test]
fn weights_are_those_of_scikit_learn() {
    let golden = golden();
    let (tfidf, _) = fit(&golden.items, settings(8));
    let queries = golden.queries.iter().zip(&golden.query_rows);
    for (text, (terms, weights)) in
        queries.chain(golden.items[golden.item_rows_start..].iter().zip(&golden.item_rows))
    {
        let row = tfidf.row(text);
        assert_eq!(row.iter().map(|entry| entry.0).collect::<Vec<_>>(), *terms, "{text:?}");
        row.iter().zip(weights).for_each(|(entry, &weight)| assert_close(entry.1.into(), weight, 1e-6));
    }
}

#[test]
fn the_decomposition_spans_the_leading_subspace() {
    let golden = golden();
    let (tfidf, vectors) = fit(&golden.items, settings(8));
    assert_eq!(tfidf.dims(), 8);
    for (&found, &expected) in tfidf.singular_values().iter().zip(&golden.singular_values) {
        assert_close(found.into(), expected, 1e-5);
    }
    // Dot products do not see signs and rotations.
    let dots = product_nt(&vectors, &vectors);
    for (row, expected) in golden.item_dots.iter().enumerate() {
        dots.row(row).iter().zip(expected).for_each(|(&dot, &value)| assert_close(dot.into(), value, 2e-5));
    }
    for (query, expected) in golden.queries.iter().zip(&golden.query_dots) {
        let query = tfidf.encode(&Query::plain("q", query.as_str())).unwrap();
        let query = Dense::new(1, query.len(), query).unwrap();
        let dots = product_nt(&query, &vectors);
        dots.row(0).iter().zip(expected).for_each(|(&dot, &value)| assert_close(dot.into(), value, 2e-5));
    }
}

#[test]
fn the_basis_is_orthonormal_and_no_wider_than_the_texts() {
    let golden = golden();
    let (tfidf, vectors) = fit(&golden.items, settings(300));
    // 48 texts, two of them without terms, some of them equal.
    assert!(tfidf.dims() < golden.items.len() && tfidf.dims() > 30, "{}", tfidf.dims());
    assert_eq!(vectors.cols(), tfidf.dims());
    let gram = crate::linalg::product_tn(&tfidf.basis, &tfidf.basis);
    for row in 0..gram.rows() {
        for col in 0..gram.cols() {
            assert_close(gram[(row, col)].into(), f64::from(u8::from(row == col)), 1e-3);
        }
    }
}

#[test]
fn vectors_do_not_depend_on_threads() {
    let golden = golden();
    let made = [1, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| fit(&golden.items, settings(20)))
    });
    assert_eq!(made[0].1, made[1].1);
    assert_eq!(made[0].0.basis, made[1].0.basis);
}

#[test]
fn a_part_of_the_items_can_make_the_space_for_all() {
    let golden = golden();
    let (tfidf, vectors) = fit(&golden.items, TfidfSettings { max_entries: 1500, ..settings(10) });
    assert_eq!((vectors.rows(), tfidf.items()), (golden.items.len(), golden.items.len() as u64));
    let again = tfidf.encode_items(&items(&golden.items), &Cancel::new()).unwrap();
    assert_eq!(again, vectors);
    let (other, _) = fit(&golden.items, TfidfSettings { max_entries: 1500, seed: Seed(1), ..settings(10) });
    assert_ne!(other.basis, tfidf.basis);
}

#[test]
fn terms_in_the_fewest_items_go_first() {
    let texts = ["red bird", "red fish", "old bird red"].map(String::from);
    let (tfidf, _) = fit(&texts, TfidfSettings { max_terms: 2, ..settings(2) });
    let words: &Vocabulary = &tfidf.parts[0];
    assert_eq!((words.terms().get(0), words.terms().get(1), words.len()), ("bird", "red", 2));
}

#[test]
fn mentions_weigh_three_times_and_texts_without_terms_are_zero() {
    let golden = golden();
    let (tfidf, _) = fit(&golden.items, settings(8));
    let mention = QueryText::Mention { left: "the".into(), mention: "siskin".into(), right: "calls".into() };
    let mention = tfidf.encode(&Query { id: "q".into(), text: mention }).unwrap();
    assert_eq!(mention, tfidf.encode_text("siskin siskin siskin the calls"));
    assert!(tfidf.encode_text("?").iter().all(|&value| value == 0.0));
}

#[test]
fn texts_without_any_term_are_refused() {
    let texts: Vec<Item> = vec![Item::plain("a", "?"), Item::plain("b", "")];
    let error = TfidfVectors::fit(&texts, &settings(8), &Cancel::new()).unwrap_err();
    assert!(error.to_string().contains("two letters"), "{error}");
    assert!(TfidfVectors::fit(&Vec::<Item>::new(), &settings(8), &Cancel::new()).is_err());
    assert!(TfidfVectors::fit(&texts, &settings(0), &Cancel::new()).is_err());
}

#[test]
fn retrieval_gives_the_cosines_of_scikit_learn() {
    let golden = golden();
    let scan = TfidfScan::new(&items(&golden.items), &Cancel::new()).unwrap();
    assert_eq!(scan.items(), golden.items.len());
    for (query, cosines) in golden.queries.iter().zip(&golden.word_cosines) {
        let text = QueryText::Plain(query.clone());
        let found = scan.search(&text, usize::MAX);
        assert_eq!(found.len(), cosines.iter().filter(|&&cosine| cosine > 0.0).count(), "{query:?}");
        for scored in found.as_slice() {
            assert_close(scored.score.into(), cosines[scored.item as usize], 1e-6);
        }
        let view = QueryView { id: "q", vector: None, text: Some(&text) };
        assert_eq!(scan.best(&view, 3).unwrap(), found.items().take(3).collect::<Vec<_>>());
    }
    let without_text = QueryView { id: "q", vector: None, text: None };
    assert!(scan.best(&without_text, 1).unwrap_err().to_string().contains("text"));
}

fn stored() -> Vec<u8> {
    let texts = ["red bird", "red fish", "old bird red"].map(String::from);
    let mut bytes = Vec::new();
    fit(&texts, settings(2)).0.write_to(&mut bytes).unwrap();
    bytes
}

#[test]
fn stored_vectors_come_back_and_write_the_same_bytes() {
    let bytes = stored();
    let read = TfidfVectors::parse(Path::new("v"), &bytes).unwrap();
    let mut again = Vec::new();
    read.write_to(&mut again).unwrap();
    assert_eq!(bytes, again);
}

#[test]
fn damaged_vectors_are_refused() {
    let bytes = stored();
    let refused = |bytes: &[u8]| TfidfVectors::parse(Path::new("v.bin"), bytes).unwrap_err().to_string();
    for length in 0..bytes.len() {
        assert!(refused(&bytes[..length]).contains("v.bin"));
    }
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 4;
        refused(&bytes);
    }
    let mut longer = bytes.clone();
    longer.push(0);
    refused(&longer);
}

proptest! {
    /// Behind a checksum that fits, any content is an error or sound vectors; never a panic.
    #[test]
    fn forged_vectors_do_no_harm(changes in prop::collection::vec((0usize..400, any::<u8>()), 1..6)) {
        let mut bytes = stored();
        let content = bytes.len() - 4;
        for (at, value) in changes {
            bytes[at % content] = value;
        }
        let crc = crc32fast::hash(&bytes[..content]);
        bytes[content..].copy_from_slice(&crc.to_le_bytes());
        if let Ok(vectors) = TfidfVectors::parse(Path::new("v"), &bytes) {
            prop_assert_eq!(vectors.encode_text("red bird").len(), vectors.dims());
        }
    }
}
