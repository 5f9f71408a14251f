//! `loxia search`, on the index of `index.rs`.

use std::fs;

use crate::demo::small_world;
use crate::index::Indexed;
use crate::program::{Said, beir, model, run, run_with_input, succeed};

fn search(more: &[&str]) -> Said {
    let indexed = Indexed::get();
    let (index, data, model) = (indexed.index(), indexed.data(), model());
    let base = ["search", "--index", &index, "--data", &data, "--model", &model];
    run(&[&base[..], more].concat())
}

#[test]
fn an_answer_carries_its_cost_and_estimate() {
    let found = search(&["--query", "run across the road", "--k", "5", "--budget", "30", "--json"]).json();
    assert_eq!((&found["paid"], &found["cached"], &found["rounds"]), (&30.into(), &0.into(), &10.into()));
    assert_eq!(
        (&found["stopped_by"], &found["target_reached"]),
        (&"budget".into(), &serde_json::Value::Null)
    );
    let estimate = |name: &str| found["estimated_recall"][name].as_f64().unwrap();
    assert!(estimate("low") <= estimate("mean") && estimate("mean") <= estimate("high"));
    let scores: Vec<f64> =
        found["items"].as_array().unwrap().iter().map(|item| item["score"].as_f64().unwrap()).collect();
    assert!(scores.len() == 5 && scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    let rounds = search(&["--query", "run", "--budget", "30", "--rounds", "3", "--json"]).json();
    assert_eq!(rounds["rounds"], 3);

    let shown = search(&["--query", "run across the road", "--k", "5", "--budget", "30"]).stdout;
    for part in ["30 pairs paid", "10 rounds", "stopped by the budget", "estimated recall", "90 % interval"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // A title that the text begins with stands once.
    assert!(shown.contains(" or ") && !shown.contains("run run"), "{shown}");
}

#[test]
fn a_budget_for_everything_is_exact() {
    let ask = |more: &[&str]| {
        search(&[&["--query", "carry [[it]] over water", "--json"], more].concat()).json()["items"].clone()
    };
    assert_eq!(ask(&["--budget", "60"]), ask(&["--method", "exact"]));
    // The default budget is above the number of items.
    assert_eq!(ask(&[]), ask(&["--method", "exact"]));
}

#[test]
fn the_first_limit_ends_a_search() {
    let easy = search(&["--query", "bend", "--recall", "0.1", "--k", "3", "--json"]).json();
    assert_eq!((&easy["stopped_by"], &easy["target_reached"]), (&"recall".into(), &true.into()));
    assert!(easy["paid"].as_u64().unwrap() < 60);
    let cut = search(&["--query", "bend", "--recall", "1", "--budget", "12", "--k", "10", "--json"]).json();
    assert_eq!((&cut["paid"], &cut["target_reached"]), (&12.into(), &false.into()));
    let late = search(&["--query", "bend", "--deadline", "600000", "--budget", "7", "--json"]).json();
    assert_eq!((&late["paid"], &late["stopped_by"]), (&7.into(), &"budget".into()));
    let shown = search(&["--query", "bend", "--recall", "1", "--budget", "12"]).stdout;
    assert!(shown.contains("target 1 not reached"), "{shown}");
}

#[test]
fn a_target_that_cannot_be_certified_is_told_before_the_search() {
    let said = search(&["--query", "bend", "--recall", "1", "--k", "3", "--json"]);
    let found = said.json();
    for part in
        ["--recall 1 cannot be certified", "the largest target", "until all items are scored (60 pairs)"]
    {
        assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
    assert_eq!((&found["target_certifiable"], &found["paid"]), (&false.into(), &60.into()));
    let largest = found["largest_target"].as_f64().unwrap();
    assert!(largest > 0.0 && largest < 1.0, "{largest}");
    let said =
        search(&["--query", "bend", "--recall", "1", "--k", "3", "--budget", "12", "--deadline", "600000"]);
    assert!(said.stderr.contains("goes on to the budget of 12 pairs or to the deadline"), "{}", said.stderr);
    assert!(said.stdout.contains("not reached, and beyond what the estimate can certify"), "{}", said.stdout);
    let said = search(&["--query", "bend", "--recall", "0.1", "--k", "3", "--json"]);
    assert_eq!(said.json()["target_certifiable"], true);
    assert!(!said.stderr.contains("certified"), "{}", said.stderr);
}

#[test]
fn an_estimate_for_more_than_it_was_calibrated_for_says_so() {
    let said = search(&["--query", "bend", "--k", "55", "--budget", "57", "--json"]);
    assert_eq!(said.json()["estimate_calibrated"], false);
    assert!(said.stderr.contains("calibrated for k up to 50"), "{}", said.stderr);
    let shown = search(&["--query", "bend", "--k", "55", "--budget", "57"]).stdout;
    assert!(shown.contains("not calibrated for k above 50"), "{shown}");
    let usual = search(&["--query", "bend", "--k", "5", "--budget", "30", "--json"]).json();
    assert_eq!(usual["estimate_calibrated"], true);
}

#[test]
fn many_queries_become_a_run_and_kept_scores_are_free() {
    let scratch = tempfile::tempdir().unwrap();
    let kept = scratch.path().join("kept").display().to_string();
    let output = scratch.path().join("run.trec").display().to_string();
    let ask = || {
        let flags =
            ["--budget", "20", "--k", "4", "--keep-scores", &kept, "--output", &output, "--overwrite"];
        let said = search(&[&flags[..], &["--json"]].concat());
        assert_eq!(said.code, 0, "{}", said.stderr);
        (said.json(), fs::read_to_string(&output).unwrap())
    };
    let (first, run) = ask();
    assert_eq!((&first["queries"], &first["pairs_paid"]), (&3.into(), &60.into()));
    assert_eq!(run.lines().count(), 12);
    assert!(run.lines().all(|line| line.ends_with("loxia-search")), "{run}");
    assert_eq!(first["stopped_by_the_deadline"], serde_json::Value::Null);
    // Free pairs leave the budget for more.
    let (second, _) = ask();
    assert_eq!(second["pairs_paid"], 60);
    assert!(second["pairs_scored_before"].as_u64().unwrap() >= 60);

    let queries = scratch.path().join("queries.jsonl").display().to_string();
    fs::write(&queries, "{\"_id\":\"a\",\"text\":\"run\"}\n{\"_id\":\"b\",\"text\":\" \"}\n").unwrap();
    let lines = scratch.path().join("answers.jsonl").display().to_string();
    let said = search(&["--queries", &queries, "--budget", "9", "--output", &lines]);
    said.fails_with(3, &["query \"b\""]);
    let answer: serde_json::Value = serde_json::from_str(&fs::read_to_string(&lines).unwrap()).unwrap();
    let in_time = search(&["--deadline", "600000", "--budget", "9", "--output", &output, "--overwrite"]);
    assert!(in_time.stderr.contains("stopped by the deadline  0 of 3 queries"), "{}", in_time.stderr);
    assert_eq!((&answer["query_id"], &answer["paid"]), (&"a".into(), &9.into()));
    search(&["--queries", &queries, "--output", &lines]).fails_with(1, &["exists"]);
}

#[test]
fn queries_are_answered_line_by_line() {
    let indexed = Indexed::get();
    let (index, data, model) = (indexed.index(), indexed.data(), model());
    let arguments =
        ["search", "--index", &index, "--data", &data, "--model", &model, "-i", "--budget", "8", "--json"];
    let input = "run home\n\n{\"nothing\": 1}\n{\"id\": \"m\", \"left\": \"to\", \"mention\": \"fall\"}\n";
    let said = run_with_input(&arguments, input);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let answers: Vec<serde_json::Value> =
        said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 2, "{}", said.stdout);
    assert_eq!((&answers[0]["query"], &answers[1]["query_id"]), (&"run home".into(), &"m".into()));
    assert!(said.stderr.contains("nothing"), "{}", said.stderr);
}

#[test]
fn another_model_or_other_data_are_refused_with_both_digests() {
    search(&["--query", "run", "--max-item", "20"]).fails_with(4, &["digest of model is", "expected"]);
    let scratch = tempfile::tempdir().unwrap();
    let other = beir(scratch.path(), 61).display().to_string();
    let (index, model) = (Indexed::get().index(), model());
    run(&["search", "--index", &index, "--data", &other, "--model", &model, "--query", "run"])
        .fails_with(4, &["digest of data is", "expected"]);
}

#[test]
fn limits_beyond_the_collection_are_told() {
    let said = search(&["--query", "run", "--k", "100", "--json"]);
    assert_eq!(said.json()["items"].as_array().unwrap().len(), 60);
    assert!(said.stderr.contains("above the number of items"), "{}", said.stderr);
    let said = search(&["--query", "run", "--k", "9", "--budget", "4", "--json"]);
    assert_eq!(said.json()["items"].as_array().unwrap().len(), 4);
    assert!(said.stderr.contains("--budget 4 is below --k 9"), "{}", said.stderr);
    for (flags, part) in [
        (&["--query", "run", "--k", "0"][..], "--k"),
        (&["--query", "run", "--recall", "95"], "--recall"),
        (&["--query", "run", "--budget", "0"], "--budget"),
        (&["--query", " "], "empty"),
        (&["--query", "run", "--rows", "0..1"], "--rows"),
        (&["--query", "run", "--recall", "0.9", "--method", "adacur"], "--recall"),
        (&["--query", "run", "--recall", "0.9", "--rounds", "3"], "--rounds"),
        (&["--query", "run", "--dual", "x"], "--dual"),
        (&["--query", "run", "--first-stage", "bm25"], "--first-stage"),
        (&["--query", "run", "--method", "rerank", "--first-stage", "bm52"], "bm25"),
        (&["--query", "run", "--method", "rerank", "--first-stage", "bm25", "--rounds", "3"], "--rounds"),
        (&["--query", "run", "--deadline", "50", "--rounds", "3"], "--rounds"),
        (&["--query", "run", "--axn-shortlist", "3"], "--axn-shortlist"),
    ] {
        search(flags).fails_with(2, &[part]);
    }
}

#[test]
fn an_index_of_few_anchors_has_no_estimate() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 20).display().to_string();
    let index = scratch.path().join("index").display().to_string();
    let model = model();
    let built =
        run(&["index", "build", "--model", &model, "--data", &data, "--output", &index, "--json"]).json();
    assert_eq!((&built["anchors"], &built["recall_estimate"]), (&3.into(), &false.into()));
    let base = ["search", "--index", &index, "--model", &model, "--data", &data, "--query", "run", "--json"];
    run(&[&base[..], &["--recall", "0.9"]].concat()).fails_with(2, &["--recall", "too few anchors"]);
    let found = run(&[&base[..], &["--budget", "5"]].concat()).json();
    assert_eq!((&found["paid"], &found["estimated_recall"]), (&5.into(), &serde_json::Value::Null));
}

#[test]
fn an_index_knows_where_its_items_are() {
    let (index, model) = (Indexed::get().index(), model());
    let base = ["search", "--index", &index, "--model", &model, "--query", "run", "--budget", "9", "--json"];
    assert_eq!(run(&base).json(), search(&["--query", "run", "--budget", "9", "--json"]).json());
    run(&[&base[..], &["--split", "test"]].concat()).fails_with(2, &["--split", "--data"]);

    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 20);
    let other = scratch.path().join("index").display().to_string();
    let path = data.display().to_string();
    run(&["index", "build", "--model", &model, "--data", &path, "--output", &other, "--json"]).json();
    fs::rename(&data, scratch.path().join("moved")).unwrap();
    let moved = ["search", "--index", &other, "--model", &model, "--query", "run", "--json"];
    run(&moved).fails_with(1, &["beir", "--data"]);
    let scores = crate::index::write_npy(&scratch.path().join("s.npy"), &[vec![1.0, 2.0], vec![0.5, 0.1]]);
    run(&["index", "build", "--scores", &scores, "--output", &other, "--overwrite", "--quiet"]);
    run(&moved).fails_with(2, &["does not say where its items are", "--data"]);
}

#[test]
fn a_world_and_a_split_are_those_of_the_queries_where_items_are_a_file() {
    let scratch = tempfile::tempdir().unwrap();
    let world = small_world(scratch.path());
    let mentions = scratch.path().join("world/mentions");
    fs::copy(mentions.join("test.jsonl.gz"), mentions.join("train.jsonl.gz")).unwrap();
    let items = beir(scratch.path(), 20).join("corpus.jsonl").display().to_string();
    let (index, model) = (scratch.path().join("index").display().to_string(), model());
    let of_world = ["--queries", &world, "--world", "verb.motion", "--split", "test"];
    let build = ["index", "build", "--model", &model, "--data", &items, "--anchors", "9", "--output", &index];
    succeed(&[&build[..], &of_world].concat());
    let base = ["search", "--index", &index, "--model", &model, "--rows", "0..3", "--budget", "5", "--json"];
    let output = scratch.path().join("run.trec").display().to_string();
    let search = |more: &[&str]| run(&[&base[..], &["--output", &output, "--overwrite"], more].concat());
    let paid = |more: &[&str]| search(more).json()["pairs_paid"].clone();
    assert_eq!(paid(&of_world), 15);
    assert_eq!(paid(&[&of_world[..], &["--data", &items]].concat()), 15);
    search(&["--queries", &world]).fails_with(1, &["several splits", "--split"]);
    search(&["--data", &items, "--split", "test"]).fails_with(1, &["split \"test\""]);
    let retrieve = ["retrieve", "--method", "tfidf", "--data", &items, "--rows", "0..3", "--output", &output];
    succeed(&[&retrieve[..], &of_world, &["--overwrite"]].concat());
    let scores = scratch.path().join("scores").display().to_string();
    let score = ["score", "--model", &model, "--data", &items, "--rows", "0..3", "--output", &scores];
    succeed(&[&score[..], &of_world].concat());
}

#[test]
fn reranking_takes_candidates_from_words_or_from_a_run() {
    let rerank = |stage: &str| {
        let flags = ["--query", "carry it over water", "--method", "rerank", "--first-stage", stage];
        search(&[&flags[..], &["--budget", "12", "--json"]].concat())
    };
    for stage in ["bm25", "tfidf"] {
        let found = rerank(stage).json();
        assert_eq!((&found["paid"], &found["rounds"]), (&12.into(), &1.into()), "{stage}");
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("first.trec").display().to_string();
    fs::write(&path, "query Q0 d4 1 3.0 x\nquery Q0 d13 2 2.0 x\nquery Q0 nothing 3 1.0 x\n").unwrap();
    let found = rerank(&path).json();
    assert_eq!((&found["paid"], &found["stopped_by"]), (&2.into(), &"candidates".into()));
    // With the anchor scores of the build, adaptive methods begin there too.
    let adacur = ["--query", "carry it over water", "--method", "adacur", "--first-stage", "bm25"];
    assert_eq!(search(&[&adacur[..], &["--budget", "12", "--json"]].concat()).json()["paid"], 12);
}
