//! `loxia index`: building, looking at, checking and extending.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use loxia::core::npy::NpyWriter;
use tempfile::TempDir;

use crate::program::{Said, asset, beir, content, dual, loxia, model, run, succeed};

/// Items of the small collection.
const ITEMS: usize = 60;
/// Anchors of its index: enough to calibrate on.
const ANCHORS: &str = "45";

/// A collection and an index of it with TF-IDF vectors, made once for all tests.
pub(crate) struct Indexed {
    directory: TempDir,
    pub(crate) built: serde_json::Value,
}

impl Indexed {
    pub(crate) fn get() -> &'static Indexed {
        static MADE: OnceLock<Indexed> = OnceLock::new();
        MADE.get_or_init(|| {
            let directory = tempfile::tempdir().unwrap();
            beir(directory.path(), ITEMS);
            let mut indexed = Indexed { directory, built: serde_json::Value::Null };
            let output = indexed.index();
            let arguments =
                ["--anchors-from", "sentences", "--anchors", ANCHORS, "--output", &output, "--json"];
            indexed.built = build(&indexed.data(), &arguments).json();
            indexed
        })
    }

    pub(crate) fn data(&self) -> String {
        self.directory.path().join("beir").display().to_string()
    }

    pub(crate) fn index(&self) -> String {
        self.directory.path().join("index").display().to_string()
    }
}

/// `index build` with the embedded model.
#[track_caller]
fn build(data: &str, arguments: &[&str]) -> Said {
    let model = model();
    succeed(&[&["index", "build", "--model", &model, "--data", data][..], arguments].concat())
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

pub(crate) fn write_npy(path: &Path, rows: &[Vec<f32>]) -> String {
    let shape = [rows.len() as u64, rows.first().map_or(3, Vec::len) as u64];
    let mut writer = NpyWriter::<f32, _>::new(fs::File::create(path).unwrap(), &shape).unwrap();
    rows.iter().for_each(|row| writer.write_row(row).unwrap());
    writer.finish().unwrap();
    path.display().to_string()
}

#[test]
fn a_dry_run_says_how_much_there_is_to_score_and_makes_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 20).display().to_string();
    let output = scratch.path().join("index");
    let path = output.display().to_string();
    let said = build(&data, &["--dry-run", "--output", &path, "--json"]);
    let json = said.json();
    assert_eq!((&json["pairs"], &json["anchors"], &json["items"]), (&60.into(), &3.into(), &20.into()));
    assert!(json["expected_time"].as_f64().unwrap() > 0.0);
    assert!(said.stderr.contains("60 pairs (3 anchors x 20 items): about"), "{}", said.stderr);
    assert!(!output.exists() && !scratch.path().join("index.anchors.partial").exists());
}

#[test]
fn a_model_and_items_without_queries_make_an_index() {
    let indexed = Indexed::get();
    let built = &indexed.built;
    assert_eq!((&built["anchors"], &built["items"]), (&45.into(), &(ITEMS as u64).into()));
    assert_eq!(built["anchors_made_of"], "sentences of items");
    assert_eq!(built["recall_estimate"], true);
    for part in ["score", "choose", "fit", "calibrate"] {
        assert!(built[part].is_number(), "{part}");
    }
    let inspected = succeed(&["index", "inspect", &indexed.index(), "--json"]).json();
    assert_eq!((&inspected["items"], &inspected["query_encoder"]), (&(ITEMS as u64).into(), &"tfidf".into()));
    for name in ["model", "layout", "data", "queries"] {
        assert!(inspected["digests"][name].is_string(), "{name}");
    }
    let shown = succeed(&["index", "inspect", &indexed.index()]).stdout;
    assert!(shown.contains("tfidf, ") && shown.contains("digest of model"), "{shown}");
    assert!(shown.contains("prior trust"), "{shown}");
    assert_eq!(succeed(&["index", "check", &indexed.index(), "--json"]).json()["state"], "sound");
    run(&["index", "build", "--model", &model(), "--data", &indexed.data(), "--output", &indexed.index()])
        .fails_with(1, &["exists", "--overwrite"]);
}

#[test]
fn damage_is_found_and_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let copy = scratch.path().join("copy");
    copy_directory(Path::new(&Indexed::get().index()), &copy);
    let path = copy.display().to_string();
    let file = copy.join("factors.f16");
    let sound = fs::read(&file).unwrap();
    let mut bytes = sound.clone();
    bytes[7] ^= 1;
    fs::write(&file, &bytes).unwrap();
    run(&["index", "check", &path]).fails_with(4, &["factors.f16", "SHA-256"]);
    fs::write(&file, &sound[..9]).unwrap();
    run(&["index", "inspect", &path]).fails_with(4, &["factors.f16", "9 bytes"]);
    fs::write(&file, &sound).unwrap();
    let anchors = copy.join("anchors.jsonl");
    let text = fs::read_to_string(&anchors).unwrap();
    fs::write(&anchors, text.replacen("text", "test", 1)).unwrap();
    run(&["index", "check", &path]).fails_with(4, &["anchors.jsonl"]);
    run(&["index", "check", &Indexed::get().data()]).fails_with(1, &["manifest.json"]);
}

#[test]
fn lost_files_and_bad_numbers_are_damage_that_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let (copy, anchors) = (scratch.path().join("copy"), scratch.path().join("copy.anchors"));
    let index = Indexed::get().index();
    copy_directory(Path::new(&index), &copy);
    let path = copy.display().to_string();
    let search =
        || run(&["search", "--index", &path, "--model", &model(), "--query", "run", "--budget", "9"]);
    assert_eq!(search().code, 0);
    for name in ["noise.f32", "items.ids", "anchors.jsonl"] {
        let file = copy.join(name);
        let sound = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        run(&["index", "check", &path]).fails_with(4, &[name, "missing"]);
        search().fails_with(4, &[name, "missing"]);
        fs::write(&file, sound).unwrap();
    }
    let noise = copy.join("noise.f32");
    let sound = fs::read(&noise).unwrap();
    fs::write(&noise, f32::NAN.to_le_bytes().repeat(sound.len() / 4)).unwrap();
    search().fails_with(4, &["noise.f32"]);
    fs::write(&noise, sound).unwrap();

    let check = || run(&["index", "check", &path, "--json"]);
    assert_eq!(check().json()["anchor_scores"], false);
    copy_directory(Path::new(&format!("{index}.anchors")), &anchors);
    assert_eq!(check().json()["anchor_scores"], true);
    let scores = anchors.join("scores.f32");
    let mut bytes = fs::read(&scores).unwrap();
    bytes[9] ^= 1;
    fs::write(&scores, &bytes).unwrap();
    check().fails_with(4, &["scores.f32", "CRC-32"]);
    for name in ["scores.f32", "manifest.json"] {
        fs::remove_file(anchors.join(name)).unwrap();
        check().fails_with(4, &["copy.anchors", "score it again with"]);
    }
}

#[test]
fn an_unfinished_build_is_told_from_a_wrong_path() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("late").display().to_string();
    let search = || run(&["search", "--index", &path, "--model", &model(), "--query", "run"]);
    let said = search();
    said.fails_with(1, &["late/manifest.json"]);
    assert!(!said.stderr.contains("--resume"), "{}", said.stderr);
    fs::create_dir(format!("{path}.anchors.partial")).unwrap();
    search().fails_with(1, &["late.anchors.partial", "`loxia index add --resume`", "late/manifest.json"]);
    let manifest = r#"{"format_version": 1, "kind": "score-matrix", "digests": {"items": "5a"}}"#;
    fs::write(format!("{path}.anchors.partial/manifest.json"), manifest).unwrap();
    search().fails_with(1, &["late.anchors.partial", "`loxia index build --resume`", "late/manifest.json"]);
}

#[test]
fn scoring_that_was_killed_goes_on() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 40).display().to_string();
    let arguments = |output: &str| {
        let all = ["index", "build", "--model", &model(), "--data", &data, "--tile-pairs", "8", "--json"];
        let rest = ["--vectors", "none", "--threads", "1", "--output", output];
        all.iter().chain(&rest).map(|part| (*part).to_owned()).collect::<Vec<_>>()
    };
    let output = scratch.path().join("killed");
    let path = output.display().to_string();
    let mut child = loxia()
        .args(arguments(&path))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let log = scratch.path().join("killed.anchors.partial/tiles.log");
    while fs::metadata(&log).map_or(0, |file| file.len()) < 64 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    child.kill().unwrap();
    let finished = child.wait().unwrap().success();
    if !finished && !scratch.path().join("killed.anchors").exists() {
        run(&arguments(&path)).fails_with(1, &["--resume"]);
    }
    let mut again = arguments(&path);
    again.push("--resume".into());
    succeed(&again);
    let unbroken = scratch.path().join("unbroken");
    succeed(&arguments(&unbroken.display().to_string()));
    for name in ["factors.f16", "column-means.f32", "items.ids", "anchors.jsonl"] {
        assert_eq!(fs::read(output.join(name)).unwrap(), fs::read(unbroken.join(name)).unwrap(), "{name}");
    }
    let said = succeed(&again);
    assert!(said.stderr.contains("complete; nothing to do"), "{}", said.stderr);
    // What is there is compared with what is asked for.
    let mut other = again.clone();
    let at = other.iter().position(|part| part == "none").unwrap();
    other[at] = "tfidf".into();
    run(&other).fails_with(4, &["vectors is none", "expected tfidf"]);
    other.drain(at - 1..=at);
    run(&other).fails_with(4, &["vectors is none", "expected tfidf"]);
    other.extend(["--dual".into(), dual()]);
    run(&other).fails_with(4, &["vectors is none", "dual encoder"]);
    again.extend(["--max-item".into(), "20".into()]);
    run(&again).fails_with(4, &["digest of model is", "expected"]);
}

#[test]
fn scores_and_vectors_from_files_make_an_index() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    let matrix = |rows: usize, cols: usize, step: usize| -> Vec<Vec<f32>> {
        let value = |row: usize, col: usize| ((row + 2) * (col + step) % 13) as f32;
        (0..rows).map(|row| (0..cols).map(|col| value(row, col)).collect()).collect()
    };
    let scores = write_npy(&at("s.npy"), &matrix(20, 30, 1));
    let queries = write_npy(&at("q.npy"), &matrix(20, 4, 2));
    let items = write_npy(&at("e.npy"), &matrix(30, 4, 3));
    let output = at("index").display().to_string();
    let base = ["index", "build", "--scores", &scores, "--output", &output, "--overwrite", "--json"];
    let build = |more: &[&str]| run(&[&base[..], more].concat());
    let files = ["--query-vectors", &queries, "--item-vectors", &items];
    let built = build(&[&files[..], &["--anchors", "5..20"]].concat()).json();
    assert_eq!((&built["anchors"], &built["items"]), (&15.into(), &30.into()));
    assert_eq!(built["vectors"], "4 dimensions, from files");
    assert_eq!(build(&[]).json()["vectors"], "none");
    build(&["--vectors", "tfidf"]).fails_with(2, &["--data"]);
    build(&["--item-vectors", &items]).fails_with(2, &["belong together"]);
    build(&["--anchors", "15..25"]).fails_with(2, &["15..25", "20 rows"]);
    build(&["--anchors", "3..3"]).fails_with(2, &["no anchors"]);
    build(&["--model", &model()]).fails_with(2, &["--model"]);
    build(&["--dry-run"]).fails_with(2, &["--dry-run"]);
}

#[test]
fn stored_rows_may_be_those_of_the_first_queries() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 8).display().to_string();
    let output = scratch.path().join("index").display().to_string();
    let build = |rows: usize| {
        let matrix: Vec<Vec<f32>> =
            (0..rows).map(|row| (0..8).map(|col| ((row + 2) * col % 5) as f32).collect()).collect();
        let scores = write_npy(&scratch.path().join("s.npy"), &matrix);
        run(&["index", "build", "--scores", &scores, "--data", &data, "--output", &output, "--overwrite"])
    };
    let said = build(2);
    assert!(said.code == 0 && said.stderr.contains("the last 1 are not used"), "{}", said.stderr);
    assert_eq!(build(3).code, 0);
    build(4).fails_with(2, &["4 rows, but there are 3 queries"]);
}

#[test]
fn degenerate_rows_have_answers_and_bad_ones_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("index").display().to_string();
    let build = |name: &str, rows: &[Vec<f32>]| {
        let scores = write_npy(&scratch.path().join(name), rows);
        run(&["index", "build", "--scores", &scores, "--output", &output, "--overwrite", "--quiet"])
    };
    let rows = |value: fn(usize, usize) -> f32| -> Vec<Vec<f32>> {
        (0..12).map(|row| (0..9).map(|col| value(row, col)).collect()).collect()
    };
    let degenerate: [(&str, Vec<Vec<f32>>); 4] = [
        ("constant.npy", rows(|_, _| 2.5)),
        ("duplicate.npy", rows(|row, col| (row * (col / 3)) as f32)),
        ("deficient.npy", rows(|_, col| col as f32)),
        ("one.npy", vec![vec![1.0, 2.0, 0.5]]),
    ];
    for (name, rows) in &degenerate {
        assert_eq!(build(name, rows).code, 0, "{name}");
        succeed(&["index", "check", &output, "--json"]);
    }
    let nan = rows(|row, col| if (row, col) == (3, 4) { f32::NAN } else { 1.0 });
    build("nan.npy", &nan).fails_with(1, &["nan.npy", "row 3, column 4"]);
    build("none.npy", &[]).fails_with(2, &["none.npy", "anchors"]);
}

#[test]
fn items_are_added_and_searched() {
    let scratch = tempfile::tempdir().unwrap();
    let all = beir(scratch.path(), 50).join("corpus.jsonl");
    let text = fs::read_to_string(&all).unwrap();
    let part = |name: &str, lines: std::ops::Range<usize>| -> PathBuf {
        let path = scratch.path().join(name);
        let lines: Vec<&str> = text.lines().collect::<Vec<_>>()[lines].to_vec();
        fs::write(&path, lines.join("\n")).unwrap();
        path
    };
    let (old, new) = (part("old.jsonl", 0..40), part("new.jsonl", 40..50));
    let (old, new, all) = (old.display().to_string(), new.display().to_string(), all.display().to_string());
    let index = scratch.path().join("index").display().to_string();
    build(&old, &["--anchors", "30", "--output", &index, "--quiet"]);
    let model = model();
    let add = |data: &str| {
        succeed(&["index", "add", "--index", &index, "--model", &model, "--data", data, "--json"])
    };
    let added = add(&new).json();
    assert_eq!((&added["new_items"], &added["items"]), (&10.into(), &50.into()));
    assert!(added["recall"]["added"].is_number() && added["recall"]["rebuilt"].is_number(), "{added}");
    assert_eq!(add(&all).json()["items_already_there"], 50);
    assert_eq!(succeed(&["index", "inspect", &index, "--json"]).json()["added"], 10);

    let search = |data: &[&str], more: &[&str]| {
        let mut arguments =
            vec!["search", "--index", &index, "--model", &model, "--query", "run home", "--json"];
        data.iter().for_each(|path| arguments.extend(["--data", path]));
        run(&[&arguments[..], more].concat())
    };
    let found = search(&[&old, &new], &["--budget", "25"]).json();
    assert_eq!((&found["paid"], found["items"].as_array().unwrap().len()), (&25.into(), 10));
    assert_eq!(search(&[&all], &["--budget", "25"]).json(), found);
    let exact = search(&[&all], &["--method", "exact"]).json();
    assert_eq!((&exact["paid"], &exact["stopped_by"]), (&50.into(), &"exhausted".into()));
    search(&[&old], &[]).fails_with(4, &["item list", "d40"]);
    assert_eq!(search(&[], &["--budget", "25"]).json(), found);
    // Another data set of the same names, given first, does not stand in for the one that was indexed.
    let changed = scratch.path().join("changed.jsonl");
    fs::write(&changed, text.replace("times", "days")).unwrap();
    let changed = changed.display().to_string();
    assert_eq!(search(&[&changed, &old, &new], &["--budget", "25"]).json(), found);
    search(&[&changed], &[]).fails_with(4, &["digest of data", "expected"]);
    // The same names with other texts.
    fs::write(&new, text.replace("times", "days").lines().collect::<Vec<_>>()[40..].join("\n")).unwrap();
    search(&[&old, &new], &[]).fails_with(4, &["digest of data 40..50 is", "expected"]);
}

#[test]
fn anchor_scores_grow_with_the_index() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let text = fs::read_to_string(beir(scratch.path(), 50).join("corpus.jsonl")).unwrap();
    let part = |count: usize| {
        let path = at(&format!("{count}.jsonl"));
        fs::write(&path, text.lines().take(count).collect::<Vec<_>>().join("\n")).unwrap();
        path
    };
    let (model, all) = (model(), part(50));
    build(&part(40), &["--anchors", "30", "--output", &at("index"), "--quiet"]);
    let add = |index: &str, data: &str, more: &[&str]| {
        let index = at(index);
        let base = ["index", "add", "--index", &index, "--model", &model, "--data", data, "--json"];
        succeed(&[&base[..], more].concat()).json()
    };
    let once = add("index", &all, &["--output", &at("once")]);
    assert_eq!(once["anchor_scores"], at("once.anchors"));
    add("index", &part(45), &["--output", &at("twice")]);
    let twice = add("twice", &all, &[]);
    assert_eq!(twice["anchor_scores"], at("twice.anchors"));
    assert!(twice["recall"]["added"].is_number(), "{twice}");
    let left_over = |name: &str| fs::exists(at(name)).unwrap();
    assert!(
        !left_over("index.anchors-40")
            && !left_over("twice.anchors-45")
            && !left_over("twice.anchors.partial")
    );
    let scores = |name: &str| {
        let files = content(&scratch.path().join(name)).into_iter();
        files.filter(|(name, _)| name != "manifest.json").collect::<Vec<_>>()
    };
    assert_eq!(scores("once.anchors"), scores("twice.anchors"));
    let search = |index: &str, more: &[&str]| {
        let index = at(index);
        let base = ["search", "--index", &index, "--model", &model, "--query", "run home", "--json"];
        run(&[&base[..], &["--budget", "25", "--method", "adacur"], more].concat())
    };
    assert_eq!(search("once", &["--data", &all]).json()["paid"], 25);
    assert_eq!(succeed(&["index", "check", &at("once"), "--json"]).json()["anchor_scores"], true);
    // What was killed between scores and index: more scores than items.
    let before = search("index", &[]).json();
    fs::remove_dir_all(at("index.anchors")).unwrap();
    copy_directory(Path::new(&at("once.anchors")), Path::new(&at("index.anchors")));
    assert_eq!(search("index", &[]).json(), before);
    add("index", &all, &[]);
    assert_eq!(scores("index.anchors"), scores("once.anchors"));
    // Scores of too few items are not gone on with.
    build(&part(40), &["--anchors", "30", "--output", &at("few"), "--quiet"]);
    copy_directory(Path::new(&at("few.anchors")), Path::new(&at("older")));
    add("few", &part(45), &[]);
    fs::remove_dir_all(at("few.anchors")).unwrap();
    fs::rename(at("older"), at("few.anchors")).unwrap();
    search("few", &["--data", &all])
        .fails_with(2, &["lacks those of items added later", "build the index again"]);
    let said = add("few", &all, &[]);
    assert!(said["anchor_scores"].is_null() && said["recall"]["added"].is_number(), "{said}");
    // Scores of other anchors beside an index are not its own.
    build(&part(40), &["--anchors", "30", "--seed", "1", "--output", &at("other"), "--quiet"]);
    fs::remove_dir_all(at("other.anchors")).unwrap();
    copy_directory(Path::new(&at("few.anchors")), Path::new(&at("other.anchors")));
    search("other", &["--data", &part(40)]).fails_with(4, &["digest of queries", "other.anchors"]);
    // Nor are those of a build that has not come to its end replaced.
    fs::remove_dir_all(at("other")).unwrap();
    let index = at("few");
    let base = ["index", "add", "--index", &index, "--model", &model, "--data", &all, "--resume", "--output"];
    let text = text.replace("times", "days");
    fs::write(at("50.jsonl"), text.lines().map(|line| line.replace("\"d", "\"e") + "\n").collect::<String>())
        .unwrap();
    let other = at("other");
    run(&[&base[..], &[&other]].concat()).fails_with(1, &["other.anchors exists"]);
    succeed(&[&base[..], &[&other, "--overwrite"]].concat());
}

#[test]
fn a_dual_encoder_gives_vectors_and_is_needed_again() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 30).display().to_string();
    let index = scratch.path().join("index").display().to_string();
    let (model, dual) = (model(), dual());
    build(&data, &["--dual", &dual, "--output", &index, "--quiet"]);
    let search = |more: &[&str]| {
        let base =
            ["search", "--index", &index, "--model", &model, "--data", &data, "--query", "run", "--json"];
        run(&[&base[..], more].concat())
    };
    assert_eq!(search(&["--dual", &dual, "--budget", "12"]).json()["paid"], 12);
    search(&[]).fails_with(2, &["--dual"]);
    let other = format!("{0},{0}", asset("tiny-models/dual-item"));
    search(&["--dual", &other]).fails_with(4, &["digest of dual is", "expected"]);
    // Methods that need no vectors do not mind the flag.
    for without in [&["--method", "exact"][..], &["--method", "rerank", "--first-stage", "bm25"]] {
        let found = search(&[&["--dual", &dual, "--budget", "12"], without].concat());
        assert!(found.code == 0 && found.stderr.contains("--dual is not used"), "{}", found.stderr);
    }
    for method in ["rerank", "anncur", "adacur+", "axn"] {
        let found = search(&["--dual", &dual, "--budget", "12", "--method", method]).json();
        assert_eq!(found["paid"], 12, "{method}");
    }
    // The index holds the vectors: reranking by them needs nothing beside it.
    let rerank = ["--dual", &dual, "--budget", "12", "--method", "rerank", "--first-stage", "vectors"];
    let with_anchors = search(&rerank).json();
    fs::remove_dir_all(scratch.path().join("index.anchors")).unwrap();
    assert_eq!(search(&rerank).json(), with_anchors);
    search(&["--dual", &dual, "--method", "adacur"])
        .fails_with(2, &["index.anchors", "is not there", "rerank"]);
    let plain = scratch.path().join("plain").display().to_string();
    build(&data, &["--vectors", "none", "--output", &plain, "--quiet"]);
    run(&["search", "--index", &plain, "--model", &model, "--query", "run", "--method", "rerank"])
        .fails_with(2, &["no vectors", "--first-stage"]);
}

#[test]
fn flags_that_do_not_fit_together_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 9).display().to_string();
    let output = scratch.path().join("index").display().to_string();
    let (model, dual) = (model(), dual());
    let refused = |flags: &[&str], parts: &[&str]| {
        run(&[&["index", "build", "--output", &output], flags].concat()).fails_with(2, parts);
    };
    refused(&[], &["--scores", "--model"]);
    refused(&["--model", &model], &["--data"]);
    refused(
        &["--model", &model, "--data", &data, "--dual", &dual, "--vectors", "none"],
        &["exclude each other"],
    );
    refused(&["--model", &model, "--data", &data, "--anchors", "4"], &["there are 3 queries"]);
    refused(&["--model", &model, "--data", &data, "--resume", "--overwrite"], &["--resume"]);
    let file = scratch.path().join("beir/corpus.jsonl").display().to_string();
    refused(&["--model", &model, "--data", &file, "--anchors-from", "queries"], &["--queries"]);
}

#[test]
fn a_build_that_was_to_replace_an_index_goes_on() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let data = beir(scratch.path(), 40).display().to_string();
    let corpus = scratch.path().join("beir/corpus.jsonl");
    let text = fs::read_to_string(&corpus).unwrap();
    let base = ["--anchors-from", "sentences", "--anchors", "30", "--vectors", "none"];
    let make =
        |output: &str, more: &[&str]| build(&data, &[&base[..], &["--output", &at(output)], more].concat());
    let again = |output: &str, more: &[&str]| {
        let (model, output) = (model(), at(output));
        let first = ["index", "build", "--model", &model, "--data", &data, "--output", &output];
        run(&[&first[..], &base, more].concat())
    };
    make("index", &[]);
    copy_directory(Path::new(&at("index")), Path::new(&at("kept")));
    // The same ids, other texts.
    fs::write(&corpus, text.replace("times", "days")).unwrap();
    make("wanted", &[]);
    let files = |name: &str| {
        let files = content(&scratch.path().join(name)).into_iter();
        files.filter(|(name, _)| name != "manifest.json").collect::<Vec<_>>()
    };
    assert_ne!(files("index"), files("wanted"));

    // Killed during the fit: the scores are of what is there now, the index is not.
    fs::remove_dir_all(at("index.anchors")).unwrap();
    copy_directory(Path::new(&at("wanted.anchors")), Path::new(&at("index.anchors")));
    let index = at("index");
    run(&["index", "check", &index]).fails_with(4, &["index.anchors", "digest of items", "--resume"]);
    let model = model();
    let search = ["search", "--index", &index, "--model", &model, "--query", "run", "--budget", "9"];
    fs::write(&corpus, &text).unwrap();
    assert_eq!(run(&search).code, 0);
    run(&[&search[..], &["--method", "adacur"]].concat())
        .fails_with(4, &["digest of items", "index.anchors"]);
    fs::write(scratch.path().join("new.jsonl"), "{\"_id\": \"new\", \"text\": \"a new one\"}\n").unwrap();
    let add = ["index", "add", "--index", &index, "--model", &model, "--data", &at("new.jsonl")];
    run(&add).fails_with(4, &["digest of items", "index.anchors"]);
    assert!(!fs::exists(at("index.anchors-40")).unwrap(), "refused before anything is scored");
    fs::write(&corpus, text.replace("times", "days")).unwrap();
    let said = again("index", &["--resume"]);
    assert!(said.code == 0 && said.stderr.contains("is replaced"), "{}", said.stderr);
    assert_eq!(files("index"), files("wanted"));
    succeed(&["index", "check", &index, "--json"]);

    // Killed while it was scored.
    fs::remove_dir_all(&index).unwrap();
    fs::remove_dir_all(at("index.anchors")).unwrap();
    fs::rename(at("kept"), &index).unwrap();
    fs::rename(at("wanted.anchors"), at("index.anchors.partial")).unwrap();
    again("index", &[]).fails_with(1, &["index exists", "--resume"]);
    again("index", &["--resume"]);
    assert_eq!(files("index"), files("wanted"));
    assert!(!fs::exists(at("index.anchors.partial")).unwrap());
    let said = again("index", &["--resume"]);
    assert!(said.code == 0 && said.stderr.contains("complete; nothing to do"), "{}", said.stderr);

    // What was scored of an index that never came to be is not thrown away unasked.
    fs::remove_dir_all(&index).unwrap();
    again("index", &[]).fails_with(1, &["index.anchors exists", "--resume"]);
}

#[test]
fn a_dual_encoder_that_does_not_say_what_it_is_is_told_with_flags() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 30).display().to_string();
    let bare = |name: &str| {
        let to = scratch.path().join(name);
        copy_directory(Path::new(&asset(&format!("tiny-models/{name}"))), &to);
        fs::remove_file(to.join("loxia.json")).unwrap();
        to.display().to_string()
    };
    let dual = format!("{},{}", bare("dual-query"), bare("dual-item"));
    let (output, model) = (scratch.path().join("index").display().to_string(), bare("emb-cross-encoder"));
    let layout = ["--variant", "emb", "--layout", "anncur", "--max-query", "64", "--max-item", "64"];
    let build = |more: &[&str]| {
        let base = ["index", "build", "--model", &model, "--data", &data, "--output", &output, "--json"];
        run(&[&base[..], &["--dual", &dual], &layout, more].concat())
    };
    // Before anything is scored, and in a dry run too.
    for more in [&[][..], &["--dry-run"]] {
        build(more).fails_with(1, &["--dual", "--pooling"]);
    }
    assert!(!fs::exists(scratch.path().join("index.anchors")).unwrap());
    let told = ["--pooling", "cls", "--similarity", "dot"];
    build(&told).json();
    let search = |model: &str, dual: &str, more: &[&str]| {
        let base = ["search", "--index", &output, "--model", model, "--query", "he [[ran]] home", "--json"];
        run(&[&base[..], &["--budget", "12", "--dual", dual], more].concat())
    };
    let found = search(&model, &dual, &[&layout[..], &told].concat()).json();
    // The same models as those that say it themselves.
    assert_eq!(search(&crate::program::model(), &crate::program::dual(), &[]).json(), found);
    let base = ["search", "--index", &output, "--model", &model, "--query", "run", "--pooling", "cls"];
    run(&[&base[..], &layout].concat()).fails_with(2, &["--pooling", "dual encoders"]);
}

#[test]
fn an_index_keeps_the_precision_of_its_vectors() {
    let scratch = tempfile::tempdir().unwrap();
    let data = beir(scratch.path(), 30).display().to_string();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let (model, dual) = (model(), dual());
    let score =
        ["score", "--model", &model, "--data", &data, "--precision", "int8", "--output", &at("scores")];
    succeed(&score);
    let build = ["index", "build", "--scores", &at("scores"), "--data", &data, "--dual", &dual];
    succeed(&[&build[..], &["--output", &at("index")]].concat());
    let base = ["search", "--index", &at("index"), "--model", &model, "--dual", &dual, "--query", "run"];
    let said = run(&[&base[..], &["--budget", "12", "--precision", "int8"]].concat());
    assert!(said.code == 0 && said.stderr.contains("--dual computes in f32"), "{}", said.stderr);
    run(&[&base[..], &["--budget", "12"]].concat()).fails_with(4, &["digest of model"]);
}
