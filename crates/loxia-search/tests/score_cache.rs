//! Scores kept on disk: free the second time, whatever happened to the files in between.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use loxia_core::conformance::check_pair_scorer;
use loxia_core::{
    Cancel, Cost, Error, FnScorer, Item, NoProgress, PairScorer, Progress, Query, QueryText, Result,
    ScorerInfo,
};
use loxia_search::{CacheFound, CachedScorer};
use proptest::prelude::*;
use tempfile::{TempDir, tempdir};

/// The bytes of a record.
const RECORD: usize = 24;

fn scorer(name: &str) -> impl PairScorer + use<> {
    FnScorer::new(name, |query: &Query, item: &Item| {
        (query.text.joined().len() * 100 + item.title_and_text().len()) as f32
    })
}

fn open(directory: &Path) -> CachedScorer<impl PairScorer + use<>> {
    CachedScorer::open(scorer("lengths"), directory).unwrap()
}

fn queries() -> Vec<Query> {
    ["a", "bb", "ccc"].map(|text| Query::plain(text, text)).to_vec()
}

fn items(count: usize) -> Vec<Item> {
    (0..count).map(|n| Item::plain(n.to_string(), "x".repeat(n))).collect()
}

/// Scores some pairs and checks the values; gives (paid, cached).
#[track_caller]
fn score(scorer: &dyn PairScorer, pairs: &[(u32, u32)]) -> (u64, u64) {
    let (queries, items) = (queries(), items(20));
    let mut scores = vec![f32::NAN; pairs.len()];
    let cost = scorer.score(&queries, &items, pairs, &mut scores, &NoProgress, &Cancel::new()).unwrap();
    for (&(query, item), &score) in pairs.iter().zip(&scores) {
        assert_eq!(score, ((query + 1) * 100 + item) as f32);
    }
    (cost.pairs, cost.cached)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// A directory with the scores of ten pairs, and its one file.
fn filled() -> (TempDir, PathBuf) {
    let directory = tempdir().unwrap();
    let pairs: Vec<(u32, u32)> = (0..10).map(|item| (1, item)).collect();
    assert_eq!(score(&open(directory.path()), &pairs), (10, 0));
    let file = files(directory.path()).remove(0);
    (directory, file)
}

const TEN: [(u32, u32); 10] =
    [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (1, 7), (1, 8), (1, 9)];

#[test]
fn it_keeps_the_promises_of_a_scorer() {
    let directory = tempdir().unwrap();
    check_pair_scorer(&open(directory.path()), &queries(), &items(20));
}

#[test]
fn kept_scores_are_free_and_equal_texts_are_scored_once() {
    let (directory, _) = filled();
    let again = open(directory.path());
    assert_eq!(again.found(), CacheFound { scores: 10, ..CacheFound::default() });
    assert_eq!(score(&again, &TEN), (0, 10));
    assert_eq!(score(&again, &[(1, 3), (2, 3), (2, 3)]), (1, 2));
    let twins = [Item::plain("one", "same"), Item::plain("two", "same")];
    let mut scores = [0.0; 2];
    let pairs = [(0, 0), (0, 1)];
    let cost = again.score(&queries(), &twins, &pairs, &mut scores, &NoProgress, &Cancel::new()).unwrap();
    assert_eq!((cost.pairs, cost.cached), (1, 1));
    assert_eq!(scores, [104.0; 2]);
}

#[test]
fn another_scorer_and_other_texts_find_nothing() {
    let (directory, _) = filled();
    let other = CachedScorer::open(scorer("other lengths"), directory.path()).unwrap();
    assert_eq!(score(&other, &TEN), (10, 0));
    // The same characters in other places are another pair.
    let scorer = open(directory.path());
    let mention = |left: &str, mention: &str| Query {
        id: "q".into(),
        text: QueryText::Mention { left: left.into(), mention: mention.into(), right: "".into() },
    };
    let queries = [mention("ab", "c"), mention("a", "bc"), Query::plain("q", "ab c")];
    let titled = Item { id: "t".into(), title: Some("x".into()), text: "y".into() };
    let items = [titled, Item::plain("p", "x y")];
    let pairs: Vec<(u32, u32)> = (0..3).flat_map(|query| [(query, 0), (query, 1)]).collect();
    let mut scores = [0.0; 6];
    let cost = scorer.score(&queries, &items, &pairs, &mut scores, &NoProgress, &Cancel::new()).unwrap();
    assert_eq!((cost.pairs, cost.cached), (6, 0));
}

#[test]
fn a_torn_record_is_cut_off_and_told() {
    for torn in [1, RECORD - 1] {
        let (directory, file) = filled();
        let bytes = fs::read(&file).unwrap();
        fs::write(&file, &bytes[..bytes.len() - torn]).unwrap();
        let again = open(directory.path());
        let torn_bytes = (RECORD - torn) as u64;
        assert_eq!(again.found(), CacheFound { scores: 9, torn_bytes, ..CacheFound::default() });
        assert_eq!(score(&again, &TEN), (1, 9));
        drop(again);
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }
}

#[test]
fn a_damaged_record_costs_only_itself() {
    let (directory, file) = filled();
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.len() - 5 * RECORD + 17;
    bytes[at] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let again = open(directory.path());
    assert_eq!(again.found(), CacheFound { scores: 9, damaged: 1, ..CacheFound::default() });
    assert_eq!(score(&again, &TEN), (1, 9));
    drop(again);
    assert_eq!(score(&open(directory.path()), &TEN), (0, 10));
}

#[test]
fn a_damaged_header_refuses_the_file_and_leaves_it() {
    let (directory, file) = filled();
    let mut bytes = fs::read(&file).unwrap();
    bytes[3] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let again = open(directory.path());
    assert_eq!(again.found(), CacheFound { refused_files: 1, ..CacheFound::default() });
    assert_eq!(score(&again, &TEN), (10, 0));
    assert_eq!(fs::read(&file).unwrap(), bytes);
    assert_eq!(files(directory.path()).len(), 2);
}

#[test]
fn a_header_torn_by_a_crash_is_written_again() {
    let (directory, file) = filled();
    for length in [0, 5] {
        let bytes = fs::read(&file).unwrap();
        fs::write(&file, &bytes[..length]).unwrap();
        let again = open(directory.path());
        assert_eq!(again.found().torn_bytes, length as u64);
        assert_eq!(score(&again, &TEN), (10, 0));
        drop(again);
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }
}

#[test]
fn two_writers_have_a_file_each_and_read_both() {
    let directory = tempdir().unwrap();
    let (first, second) = (open(directory.path()), open(directory.path()));
    score(&first, &[(0, 1)]);
    score(&second, &[(0, 2)]);
    let third = open(directory.path());
    assert_eq!(score(&third, &[(0, 1), (0, 2), (0, 3)]), (1, 2));
    assert_eq!(files(directory.path()).len(), 3);
    drop((first, second, third));
    assert_eq!(score(&open(directory.path()), &[(0, 1), (0, 2), (0, 3)]), (0, 3));
    assert_eq!(files(directory.path()).len(), 3);
}

#[test]
fn what_a_live_writer_has_half_written_is_no_damage() {
    let (directory, file) = filled();
    let live = open(directory.path());
    let mut bytes = fs::read(&file).unwrap();
    bytes.extend([7; 5]);
    fs::write(&file, &bytes).unwrap();
    let reader = open(directory.path());
    assert_eq!(reader.found(), CacheFound { scores: 10, ..CacheFound::default() });
    assert_eq!(fs::read(&file).unwrap(), bytes);
    drop(live);
}

/// Fails after some pairs, as a cancelled or broken scorer does.
struct Failing(AtomicUsize);

impl PairScorer for Failing {
    fn score(
        &self,
        _queries: &[Query],
        _items: &[Item],
        pairs: &[(u32, u32)],
        scores: &mut [f32],
        _progress: &dyn Progress,
        _cancel: &Cancel,
    ) -> Result<Cost> {
        let left = self.0.load(Ordering::Relaxed).checked_sub(pairs.len()).ok_or(Error::Cancelled)?;
        self.0.store(left, Ordering::Relaxed);
        scores.fill(1.0);
        Ok(Cost { pairs: pairs.len() as u64, ..Cost::default() })
    }

    fn info(&self) -> ScorerInfo {
        ScorerInfo { name: "failing".into(), digest: "failing".into() }
    }
}

#[test]
fn a_stop_loses_only_the_piece_at_hand() {
    let directory = tempdir().unwrap();
    let (queries, items) = ([Query::plain("q", "q")], items(10_000));
    let pairs: Vec<(u32, u32)> = (0..10_000).map(|item| (0, item)).collect();
    let run = |pairs_before_failure: usize| {
        let scorer = CachedScorer::open(Failing(pairs_before_failure.into()), directory.path()).unwrap();
        let mut scores = vec![0.0; pairs.len()];
        scorer.score(&queries, &items, &pairs, &mut scores, &NoProgress, &Cancel::new())
    };
    assert!(matches!(run(9_000), Err(Error::Cancelled)));
    let cost = run(10_000).unwrap();
    assert_eq!((cost.pairs, cost.cached), (10_000 - 8192, 8192));
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let error = CachedScorer::open(scorer("lengths"), &file.join("cache")).err().unwrap().to_string();
    assert!(error.contains("cache"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any sequence of calls and reopenings gives the right scores and pays for each pair once.
    #[test]
    fn every_pair_is_paid_once(calls in prop::collection::vec(
        (prop::collection::vec((0u32..3, 0u32..20), 0..12), any::<bool>()), 1..8,
    )) {
        let directory = tempdir().unwrap();
        let mut scorer = open(directory.path());
        let mut seen = std::collections::HashSet::new();
        for (pairs, reopen) in calls {
            let new = pairs.iter().filter(|&&pair| seen.insert(pair)).count() as u64;
            prop_assert_eq!(score(&scorer, &pairs), (new, pairs.len() as u64 - new));
            if reopen {
                drop(scorer);
                scorer = open(directory.path());
                prop_assert_eq!(scorer.found().scores, seen.len() as u64);
            }
        }
    }

    /// Damage anywhere never gives a wrong score, and what is kept afterwards is found again.
    #[test]
    fn damage_is_never_believed(
        cut in prop::option::of(0usize..400),
        changes in prop::collection::vec((0usize..400, 1u8..), 0..5),
        appended in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let (directory, file) = filled();
        let mut bytes = fs::read(&file).unwrap();
        for (at, change) in changes {
            let at = at % bytes.len();
            bytes[at] ^= change;
        }
        bytes.truncate(cut.unwrap_or(bytes.len()));
        bytes.extend(appended);
        fs::write(&file, &bytes).unwrap();
        let found = {
            let again = open(directory.path());
            let (paid, cached) = score(&again, &TEN);
            prop_assert_eq!((paid, cached), (10 - again.found().scores, again.found().scores));
            again.found()
        };
        prop_assert!(found.scores <= 10);
        let again = open(directory.path());
        prop_assert_eq!(score(&again, &TEN), (0, 10));
        prop_assert_eq!(again.found().torn_bytes, 0);
    }
}
