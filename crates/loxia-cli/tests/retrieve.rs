//! `loxia retrieve` and `loxia eval run` on what it found.

use crate::program::{asset, beir, dual, run, succeed};

#[test]
fn stored_vectors_give_the_same_run_as_fresh_ones() {
    let scratch = tempfile::tempdir().unwrap();
    let vectors = scratch.path().join("vectors").display().to_string();
    let data = ["--data", &asset("worlds"), "--split", "test", "--world", "verb.motion"].map(String::from);
    let dual = dual();
    let mut embed = vec!["embed", "--model", &dual, "--side", "item", "--output", &vectors, "--quiet"];
    embed.extend(data.iter().map(String::as_str));
    succeed(&embed);
    let mut retrieve = vec!["retrieve", "--dual", &dual, "--k", "10", "--rows", "0..5", "--quiet"];
    retrieve.extend(data.iter().map(String::as_str));
    let fresh = succeed(&retrieve).stdout;
    assert_eq!(fresh.lines().count(), 50);
    retrieve.extend(["--vectors", &vectors]);
    assert_eq!(succeed(&retrieve).stdout, fresh);

    let other = beir(scratch.path(), 5).display().to_string();
    run(&["retrieve", "--dual", &dual, "--data", &other, "--vectors", &vectors])
        .fails_with(4, &["texts", "expected"]);
}

/// Lines of a TREC run as (query, item, tag).
fn lines(run: &str) -> Vec<(&str, &str, &str)> {
    let fields = |line| {
        let fields: Vec<&str> = str::split(line, ' ').collect();
        (fields[0], fields[2], fields[5])
    };
    run.lines().map(fields).collect()
}

#[test]
fn words_find_the_items_that_hold_them() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 40).display().to_string();
    for method in ["bm25", "tfidf"] {
        let said = succeed(&["retrieve", "--method", method, "--data", &data, "--k", "5", "--quiet"]);
        let lines = lines(&said.stdout);
        assert_eq!(lines.len(), 15, "{}", said.stdout);
        assert!(lines.iter().all(|line| line.2 == format!("loxia-{method}")));
        // d7 and d2 are titled with the verbs of "bend and fall".
        let third: Vec<&str> = lines.iter().filter(|line| line.0 == "q3").map(|line| line.1).collect();
        let number = |id: &str| id[1..].parse::<usize>().unwrap();
        assert!(third.iter().all(|id| matches!(number(id) % 9, 2 | 7)), "{method}: {third:?}");
    }
}

#[test]
fn bm25_is_the_default_and_stems_unless_told_otherwise() {
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("documents.txt").display().to_string();
    let queries = scratch.path().join("queries.tsv").display().to_string();
    std::fs::write(&data, "birds were running\nthe stones lie\nrun of the mill\n").unwrap();
    std::fs::write(&queries, "q1\truns\nq2\tthe\n").unwrap();
    let arguments = ["retrieve", "--data", &data, "--queries", &queries, "--quiet"];
    let found = succeed(&arguments).stdout;
    assert_eq!(lines(&found).len(), 2, "{found}");
    assert!(lines(&found).iter().all(|line| line.0 == "q1" && line.2 == "loxia-bm25"));
    let plain = succeed(&[&arguments[..], &["--stemming", "none"]].concat()).stdout;
    assert!(lines(&plain).iter().all(|line| line.0 == "q2") && lines(&plain).len() == 2, "{plain}");
}

#[test]
fn a_query_without_a_match_is_counted_and_a_blank_one_skipped() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 9).display().to_string();
    let queries = scratch.path().join("queries.jsonl").display().to_string();
    let text = "{\"_id\":\"a\",\"text\":\"run\"}\n{\"_id\":\"b\",\"text\":\"zebra\"}\n{\"_id\":\"c\",\"text\":\" \"}\n";
    std::fs::write(&queries, text).unwrap();
    let output = scratch.path().join("run.trec").display().to_string();
    for method in ["bm25", "tfidf"] {
        let arguments =
            ["--data", &data, "--queries", &queries, "--output", &output, "--overwrite", "--json"];
        let said = run(&[&["retrieve", "--method", method], &arguments[..]].concat());
        assert_eq!(said.code, 3, "{}", said.stderr);
        let summary = said.json();
        assert_eq!((&summary["queries_without_a_match"], &summary["queries"]), (&1.into(), &2.into()));
        assert_eq!((&summary["skipped"], &summary["method"]), (&1.into(), &method.into()));
        let written = std::fs::read_to_string(&output).unwrap();
        assert!(!written.is_empty() && lines(&written).iter().all(|line| line.0 == "a"), "{written}");
    }
}

#[test]
fn mentions_of_a_world_are_found_by_their_names() {
    let world = ["--data", &asset("worlds"), "--split", "test", "--world", "verb.motion"].map(String::from);
    let world: Vec<&str> = world.iter().map(String::as_str).collect();
    for method in ["bm25", "tfidf"] {
        let said =
            succeed(&[&["retrieve", "--method", method, "--k", "3", "--rows", "0..20"], &world[..]].concat());
        let queries: std::collections::BTreeSet<&str> =
            lines(&said.stdout).iter().map(|line| line.0).collect();
        assert_eq!(queries.len(), 20, "{method}");
        assert!(said.stderr.contains("1,408"), "{}", said.stderr);
    }
}

#[test]
fn threads_do_not_change_a_run() {
    let world = ["--data", &asset("worlds"), "--split", "test", "--world", "verb.motion"].map(String::from);
    let world: Vec<&str> = world.iter().map(String::as_str).collect();
    for method in ["bm25", "tfidf"] {
        let run = |threads: &str| {
            let flags = ["retrieve", "--method", method, "--k", "20", "--quiet", "--threads", threads];
            succeed(&[&flags[..], &world[..]].concat()).stdout
        };
        assert!(run("1") == run("3"), "{method}");
    }
}

#[test]
fn flags_of_another_method_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 5).display().to_string();
    let refused = |flags: &[&str], parts: &[&str]| {
        run(&[&["retrieve", "--data", &data], flags].concat()).fails_with(2, parts);
    };
    refused(&["--method", "bm25", "--dual", &dual()], &["--dual", "bm25"]);
    refused(&["--method", "tfidf", "--max-query", "5"], &["--max-query", "tfidf"]);
    refused(&["--method", "tfidf", "--stemming", "none"], &["--stemming", "bm25"]);
    refused(&["--method", "dual"], &["--dual DIR"]);
    refused(&["--method", "bm25", "--k", "0"], &["--k"]);
}
