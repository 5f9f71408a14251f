//! `loxia score`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::program::{asset, beir, content, model, npy, run, succeed};

fn world_arguments(output: &Path) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["score", "--split", "test", "--world", "verb.motion", "--json"].map(String::from).to_vec();
    arguments.extend(["--model".into(), model(), "--data".into(), asset("worlds")]);
    arguments.extend(["--output".into(), output.display().to_string()]);
    arguments
}

#[test]
fn scores_are_those_of_pytorch() {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("scores.npy");
    let mut arguments = world_arguments(&output);
    arguments.extend(["--rows", "0..2"].map(String::from));
    let said = succeed(&arguments);
    assert_eq!(said.json()["pairs"], 2816);
    let (header, scores) = npy(&output);
    assert!(header.contains("'descr': '<f4'") && header.contains("(2, 1408)"), "{header}");
    // tiny-models/golden.json, made by PyTorch.
    let golden = [
        [97.39591, 97.91379, 97.7229, 97.65594, 97.14915],
        [93.63654, 88.19748, 93.57121, 87.85202, 83.28072],
    ];
    for (row, expected) in golden.iter().enumerate() {
        for (step, expected) in expected.iter().enumerate() {
            let found = scores[row * 1408 + step * 140];
            assert!((found - expected).abs() < 1e-3, "row {row}, item {}: {found} {expected}", step * 140);
        }
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing but the npy stays");
}

#[test]
fn rows_items_threads_and_budgets_do_not_change_a_bit() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 40);
    let score = |name: &str, more: &[&str]| {
        let output = scratch.path().join(name);
        let mut arguments = vec!["score", "--quiet", "--threads", "1"];
        let (model, data) = (model(), data.display().to_string());
        let shown = output.display().to_string();
        arguments.extend(["--model", &model, "--data", &data, "--output", &shown]);
        if let Some(threads) = more.iter().position(|flag| *flag == "--threads") {
            arguments[3] = more[threads + 1];
            arguments.extend(&more[threads + 2..]);
        } else {
            arguments.extend(more);
        }
        succeed(&arguments);
        npy(&output).1
    };
    let whole = score("whole.npy", &[]);
    assert_eq!(whole.len(), 3 * 40);
    assert_eq!(score("threads.npy", &["--threads", "2"]), whole);
    assert_eq!(score("budget.npy", &["--token-budget", "40"]), whole);
    let part = score("part.npy", &["--rows", "1..3", "--items", "5..12"]);
    for row in 0..2 {
        assert_eq!(part[row * 7..][..7], whole[(row + 1) * 40 + 5..][..7]);
    }
    let list = scratch.path().join("ids");
    std::fs::write(&list, "d30\nd2\n").unwrap();
    let listed = score("listed.npy", &["--items", &list.display().to_string(), "--rows", "0..1"]);
    assert_eq!(listed, [whole[30], whole[2]]);
}

#[test]
fn an_existing_output_is_refused_until_asked() {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("scores");
    let mut arguments = world_arguments(&output);
    arguments.extend(["--rows", "0..1", "--items", "0..20"].map(String::from));
    succeed(&arguments);
    let first = content(&output);
    run(&arguments).fails_with(1, &["scores exists", "--overwrite"]);
    assert_eq!(content(&output), first);
    arguments.push("--overwrite".into());
    succeed(&arguments);
    arguments.pop();
    arguments.push("--resume".into());
    let resumed = succeed(&arguments);
    assert_eq!(resumed.json()["tiles_computed"], 0);
    let data =
        |files: &[(String, Vec<u8>)]| files.iter().find(|(name, _)| name == "scores.f32").unwrap().1.clone();
    assert_eq!(data(&content(&output)), data(&first));
    // A finished matrix of other settings is not what was asked for.
    arguments.extend(["--max-item", "16"].map(String::from));
    run(&arguments).fails_with(4, &["model", "expected"]);
}

/// Cuts a finished matrix back to its first tile, as a crash would have left it.
fn interrupt(matrix: &Path, partial: &Path) {
    std::fs::rename(matrix, partial).unwrap();
    let log = std::fs::OpenOptions::new().write(true).open(partial.join("tiles.log")).unwrap();
    log.set_len(32).unwrap();
}

#[test]
fn an_interrupted_overwrite_is_resumed_and_replaces_the_old_matrix() {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("scores");
    let mut arguments = world_arguments(&output);
    arguments.extend(["--items", "0..20", "--tile-pairs", "20", "--rows", "0..2"].map(String::from));
    succeed(&arguments);
    let wanted = content(&output);
    interrupt(&output, &scratch.path().join("scores.partial"));
    *arguments.last_mut().unwrap() = "0..1".into();
    arguments.push("--overwrite".into());
    let old = scratch.path().join("old");
    let place = arguments.iter().position(|argument| *argument == output.display().to_string()).unwrap();
    arguments[place] = old.display().to_string();
    succeed(&arguments);
    std::fs::rename(&old, &output).unwrap();
    arguments[place] = output.display().to_string();
    let length = arguments.len();
    arguments[length - 2] = "0..2".into();
    arguments[length - 1] = "--resume".into();
    assert_eq!(succeed(&arguments).json()["tiles_computed"], 1);
    for ((name, wanted), (_, found)) in wanted.iter().zip(content(&output)) {
        assert!(*wanted == found || name == "manifest.json", "{name} differs");
    }
}

#[test]
fn an_interrupted_npy_is_resumed() {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("scores.npy");
    let mut arguments = world_arguments(&output);
    arguments.extend(["--items", "0..20", "--tile-pairs", "20", "--rows", "0..2"].map(String::from));
    succeed(&arguments);
    let whole = std::fs::read(&output).unwrap();
    std::fs::remove_file(&output).unwrap();
    // The same work as a directory, cut back, under the name an npy grows under.
    let directory = scratch.path().join("directory");
    let mut as_directory = arguments.clone();
    let place = as_directory.iter().position(|argument| *argument == output.display().to_string()).unwrap();
    as_directory[place] = directory.display().to_string();
    succeed(&as_directory);
    interrupt(&directory, &scratch.path().join("scores.npy.matrix.partial"));
    run(&arguments).fails_with(1, &["exists", "--resume"]);
    arguments.push("--resume".into());
    assert_eq!(succeed(&arguments).json()["tiles_computed"], 1);
    assert_eq!(std::fs::read(&output).unwrap(), whole);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing but the npy stays");
}

#[test]
fn unfinished_work_of_another_model_or_range_is_refused_with_both_values() {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("scores");
    let mut arguments = world_arguments(&output);
    arguments.extend(["--rows", "0..1", "--items", "0..20"].map(String::from));
    succeed(&arguments);
    std::fs::rename(&output, scratch.path().join("scores.partial")).unwrap();
    run(&arguments).fails_with(1, &["scores.partial exists", "--resume"]);
    arguments.extend(["--resume", "--max-item", "32"].map(String::from));
    run(&arguments).fails_with(4, &["model", "expected", "--overwrite"]);
    // The same model in another precision is another one; the message says so.
    arguments.truncate(arguments.len() - 2);
    arguments.extend(["--precision", "int8"].map(String::from));
    run(&arguments).fails_with(4, &["another model, or with another --precision or kernel", "--overwrite"]);
    // Other digests have nothing to do with it.
    arguments.truncate(arguments.len() - 2);
    arguments.extend(["--items-as-queries", "text"].map(String::from));
    let said = run(&arguments);
    said.fails_with(4, &["--overwrite"]);
    assert!(!said.stderr.contains("--precision or kernel"), "{}", said.stderr);
}

#[test]
fn ranges_beyond_the_data_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let mut arguments = world_arguments(&scratch.path().join("scores"));
    arguments.extend(["--rows", "150..201"].map(String::from));
    run(&arguments).fails_with(2, &["150..201", "there are 200 queries"]);
}

#[test]
fn queries_come_from_a_file_of_their_own() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 6);
    let path = |name: &str| data.join(name).display().to_string();
    let output = |name: &str| scratch.path().join(name).display().to_string();
    let (whole, apart) = (output("whole.npy"), output("apart.npy"));
    succeed(&[
        "score",
        "--quiet",
        "--model",
        &model(),
        "--data",
        &data.display().to_string(),
        "--output",
        &whole,
    ]);
    let items = path("corpus.jsonl");
    let arguments = ["score", "--quiet", "--model", &model(), "--data", &items, "--output", &apart];
    run(&arguments).fails_with(2, &["--queries", "corpus.jsonl is a file of items"]);
    succeed(&[arguments.as_slice(), &["--queries", &path("queries.jsonl")]].concat());
    assert_eq!(std::fs::read(whole).unwrap(), std::fs::read(apart).unwrap());
}

#[test]
fn items_take_the_place_of_mentions() {
    let scratch = tempfile::tempdir().unwrap();
    let output = |name: &str| scratch.path().join(name);
    let ask = |slot: &str, extra: &[&str]| {
        let path = output(&format!("{slot}.npy"));
        let mut arguments = world_arguments(&path);
        arguments.extend(["--items-as-queries", slot, "--rows", "0..3", "--items", "0..5"].map(String::from));
        arguments.extend(extra.iter().map(|&text| text.to_owned()));
        succeed(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        npy(&path).1
    };
    let (by_text, by_title) = (ask("text", &[]), ask("title", &[]));
    assert_eq!((by_text.len(), by_title.len()), (15, 15));
    assert_ne!(by_text, by_title);

    // The same items as mentions of a file score the same.
    let world = File::open(Path::new(&asset("worlds")).join("documents/verb.motion.jsonl.gz")).unwrap();
    let mentions: String = BufReader::new(flate2::read::GzDecoder::new(world))
        .lines()
        .take(3)
        .map(|line| {
            let item: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            let mention = serde_json::json!({
                "mention_id": item["document_id"], "world": "verb.motion", "label_document_id": item["document_id"],
                "context_left": "", "mention": item["title"], "context_right": item["text"],
            });
            format!("{mention}\n")
        })
        .collect();
    let queries = output("mentions.jsonl");
    std::fs::write(&queries, mentions).unwrap();
    let path = output("mentions.npy");
    let mut arguments = world_arguments(&path);
    arguments.extend(["--queries".into(), queries.display().to_string()]);
    arguments.extend(["--items", "0..5"].map(String::from));
    succeed(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(npy(&path).1, by_text);
}
