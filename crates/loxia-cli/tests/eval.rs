//! `loxia eval run` and `loxia eval fuse`.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::program;

const QRELS: &str = "q1 0 d1 2\nq1 0 d2 0\nq1 0 d3 1\nq2 0 d1 1\nq3 0 d9 1\n";
const BM25: &str = "q1 Q0 d2 1 3.0 bm25\nq1 Q0 d1 2 2.0 bm25\nq2 Q0 d5 1 1.0 bm25\nq2 Q0 d1 2 0.5 bm25\n\
                    q8 Q0 d1 1 1.0 bm25\n";
const BETTER: &str = "q1 Q0 d1 1 3.0 ce\nq1 Q0 d3 2 2.0 ce\nq2 Q0 d1 1 1.0 ce\nq3 Q0 d9 1 1.0 ce\n";

/// A directory with `qrels`, `bm25.run` and `better.run`.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [("qrels", QRELS), ("bm25.run", BM25), ("better.run", BETTER)] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

/// Runs `loxia` in a directory, with arguments separated by white space.
fn loxia(directory: &Path, arguments: &str) -> (i32, String, String) {
    let mut command = program::loxia();
    let output = command.current_dir(directory).args(arguments.split_whitespace()).output();
    let said = program::Said::of(output.expect("the program starts"));
    (said.code, said.stdout, said.stderr)
}

#[test]
fn a_table_of_runs_with_tests_and_a_footer() {
    let directory = directory();
    let arguments = "eval run --qrels qrels --run bm25.run --run better.run -m RR -m num_ret --test t";
    let (code, out, err) = loxia(directory.path(), arguments);
    assert_eq!(code, 0, "{err}");
    let expected = "\
run             RR         p  NumRet  p
---------------------------------------
bm25.run    0.5000                 4
better.run  1.0000  <0.0001*       4

p: paired t-test against bm25.run, two-sided; * differs (p < 0.0500)
better.run: tested on the 2 queries that both runs have
bm25.run: 1 query judged but not in the run (left out of the means; --complete counts them): q3
bm25.run: 1 query in the run but not judged (ignored): q8
";
    assert_eq!(out, expected);
    assert!(err.contains("not judged (ignored): q8"), "{err}");
}

#[test]
fn json_holds_run_measure_and_value() {
    let directory = directory();
    let arguments = "eval run --qrels qrels --run bm25.run --measure nDCG@10 --measure RR --json --complete";
    let (code, out, _) = loxia(directory.path(), arguments);
    assert_eq!(code, 0);
    let objects: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(objects.as_array().unwrap().len(), 2);
    assert_eq!(objects[1]["run"], "bm25.run");
    assert_eq!(objects[1]["measure"], "RR");
    assert!((objects[1]["value"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-12);
    assert!(objects[1].get("query").is_none());

    let (_, out, _) = loxia(directory.path(), &format!("{arguments} -q --bootstrap 2000"));
    let objects: Value = serde_json::from_str(&out).unwrap();
    let queries: Vec<&str> =
        objects.as_array().unwrap().iter().map(|object| object["query"].as_str().unwrap()).collect();
    assert_eq!(queries, ["q1", "q1", "q2", "q2", "q3", "q3", "all", "all"]);
    assert_eq!(objects[7]["low"], 0.0);
    assert_eq!(objects[7]["high"], 0.5);
}

#[test]
fn trec_evals_layout() {
    let directory = directory();
    let arguments = "eval run --qrels qrels --run bm25.run --format trec_eval";
    let (code, out, _) = loxia(directory.path(), arguments);
    assert_eq!(code, 0);
    assert!(out.starts_with("runid                 \tall\tbm25\nnum_q                 \tall\t2\n"), "{out}");
    assert_eq!(out.lines().count(), 30);
    let (_, out, _) = loxia(directory.path(), &format!("{arguments} -m P.1,2 -m map -q -l 2"));
    let expected = "map                   \tq1\t0.5000\nP_1                   \tq1\t0.0000\n\
                    P_2                   \tq1\t0.5000\nmap                   \tq2\t0.0000\n\
                    P_1                   \tq2\t0.0000\nP_2                   \tq2\t0.0000\n\
                    map                   \tall\t0.2500\nP_1                   \tall\t0.0000\n\
                    P_2                   \tall\t0.2500\n";
    assert_eq!(out, expected);
}

#[test]
fn csv_and_markdown() {
    let directory = directory();
    let arguments = "eval run --qrels qrels --run better.run -m RR(rel=2)@10 -m AP(rel=2,judged_only=True)";
    let (_, out, _) = loxia(directory.path(), &format!("{arguments} --format csv"));
    assert!(out.starts_with("run,RR(rel=2)@10,\"AP(rel=2,judged_only=True)\"\nbetter.run,0.33333"), "{out}");
    let (_, out, _) = loxia(directory.path(), &format!("{arguments} --format markdown"));
    assert!(out.contains("| better.run |       0.3333 |"), "{out}");
}

#[test]
fn mistakes_are_explained() {
    let directory = directory();
    std::fs::write(directory.path().join("twice.run"), "q1 Q0 d1 1 2 x\nq1 Q0 d1 2 1 x\n").unwrap();
    std::fs::write(directory.path().join("other.run"), "x1 Q0 d1 1 2 x\n").unwrap();
    let cases = [
        ("eval run --qrels qrels --run bm25.run -m nDGC@10", 2, "did you mean nDCG"),
        ("eval run --qrels qrels --run bm25.run --test t", 2, "give --run at least twice"),
        (
            "eval run --qrels qrels --run bm25.run --run better.run --baseline x.run",
            2,
            "--baseline x.run is none of the runs: bm25.run, better.run",
        ),
        ("eval run --qrels qrels --run twice.run", 1, "query q1: item d1 occurs more than once"),
        ("eval run --qrels qrels --run other.run", 1, "have no query in common"),
        ("eval run --qrels qrels --run missing.run", 1, "missing.run"),
        ("eval run --qrels missing --run bm25.run --bootstrap 10", 2, "at least 2000"),
        ("eval run --qrels missing --run bm25.run --test tost --delta -0.1", 2, "a number above 0"),
        ("eval run --qrels missing --run bm25.run --delta 0.1", 2, "--delta has no effect here"),
        ("eval run --qrels missing --run bm25.run --seed 7", 2, "--seed has no effect here"),
        ("eval run --qrels missing --run bm25.run --format csv --json", 2, "give one of them"),
        (
            "eval run --qrels missing --run bm25.run --run better.run --format trec_eval --test t",
            2,
            "--test has no effect here: trec_eval's layout",
        ),
        (
            "eval run --qrels missing --run bm25.run --format trec_eval --bootstrap 2000",
            2,
            "--bootstrap has no effect here",
        ),
        ("eval fuse --run missing --run better.run --output - --rrf-k -1", 2, "a number from 0 up"),
        (
            "eval fuse --run missing --run better.run --output - --method combsum --rrf-k 60",
            2,
            "--rrf-k has no effect here",
        ),
        (
            "eval fuse --run missing --run better.run --output - --normalise minmax",
            2,
            "--normalise has no effect here",
        ),
        ("eval fuse --run missing --run better.run --output x.jsonl --tag x", 2, "--tag has no effect here"),
        ("eval run --qrels qrels --run - --run -", 2, "only once"),
        ("eval fuse --run bm25.run --output out.run", 2, "at least two runs"),
    ];
    for (arguments, expected, message) in cases {
        let (code, _, err) = loxia(directory.path(), arguments);
        assert!(code == expected && err.contains(message), "{arguments}: {code}, {err}");
    }
}

#[test]
fn fused_runs() {
    let directory = directory();
    let arguments = "eval fuse --run bm25.run --run better.run --output fused.run";
    let (code, _, err) = loxia(directory.path(), arguments);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("queries"), "{err}");
    let read = || std::fs::read_to_string(directory.path().join("fused.run")).unwrap();
    let items: Vec<String> = read().lines().map(|line| line.split(' ').nth(2).unwrap().to_owned()).collect();
    assert_eq!(items, ["d1", "d2", "d3", "d1", "d5", "d1", "d9"]);
    assert!(read().lines().all(|line| line.ends_with(" rrf")));

    let (code, _, err) = loxia(directory.path(), arguments);
    assert!(code == 1 && err.contains("give --overwrite"), "{err}");
    let again = format!("{arguments} --overwrite --method combsum --depth 1 --tag both");
    let (code, _, err) = loxia(directory.path(), &again);
    assert_eq!(code, 0, "{err}");
    assert_eq!(read().lines().count(), 4);
    assert!(read().starts_with("q1 Q0 d2 1 1 both\n"), "{}", read());
    let (_, out, _) = loxia(directory.path(), &arguments.replace("fused.run", "-"));
    assert_eq!(out.lines().count(), 7);
}

#[test]
fn fused_runs_as_json_lines() {
    let directory = directory();
    let arguments = "eval fuse --run bm25.run --run better.run --output fused.jsonl";
    let (code, _, err) = loxia(directory.path(), arguments);
    assert_eq!(code, 0, "{err}");
    let text = std::fs::read_to_string(directory.path().join("fused.jsonl")).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&first["qid"], &first["docno"], &first["rank"]), (&"q1".into(), &"d1".into(), &1.into()));
    assert_eq!(text.lines().count(), 7);
}

#[test]
fn defaults_without_effect_are_no_mistake() {
    let directory = directory();
    let config = "seed = 7\nrrf-k = 5\n['eval run']\nbootstrap = 2000\ntest = 't'\n";
    std::fs::write(directory.path().join("c.toml"), config).unwrap();
    let arguments = "--config c.toml eval run --qrels qrels --run bm25.run --run better.run -m RR";
    let (code, out, err) = loxia(directory.path(), &format!("{arguments} --format trec_eval"));
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("recip_rank") && err.contains("tests and intervals are left out"), "{out}{err}");
    // The value in the file counts as given.
    let (code, out, err) = loxia(directory.path(), &format!("{arguments} --seed 8"));
    assert!(code == 0 && out.contains("95 %"), "{out}{err}");
    let fuse = "--config c.toml eval fuse --run bm25.run --run better.run --method combsum --output -";
    assert_eq!(loxia(directory.path(), fuse).0, 0);

    std::fs::write(directory.path().join("c.toml"), "json = true\n").unwrap();
    let (_, out, _) = loxia(directory.path(), &format!("{arguments} --format csv"));
    assert!(out.starts_with("run,RR\n"), "{out}");
}

#[test]
fn repeated_judgements_and_measures_are_counted_once() {
    let directory = directory();
    std::fs::write(directory.path().join("twice"), format!("{QRELS}q1 0 d1 2\nq2 0 d1 1\n")).unwrap();
    let arguments = "eval run --qrels twice --run better.run -m AP -m AP(rel=1) -m map --format csv";
    let (code, out, err) = loxia(directory.path(), arguments);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("twice: 2 lines repeat a judgement"), "{err}");
    assert!(out.starts_with("run,AP\n"), "{out}");
    let (_, out, _) = loxia(directory.path(), &format!("{arguments} -l 2"));
    assert!(out.starts_with("run,AP(rel=2),AP\n"), "{out}");
}
