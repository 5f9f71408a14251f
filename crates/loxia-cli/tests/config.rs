//! Where flags come from, and what the program says about itself.

use crate::program::{Said, asset, loxia, model, run, succeed};

#[test]
fn flags_win_over_the_environment_and_the_environment_over_the_file() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("loxia.toml");
    let output = scratch.path().join("scores");
    std::fs::write(
        &file,
        format!(
            "model = {:?}\nquiet = true\n[score]\ndata = {:?}\nsplit = 'test'\nworld = 'verb.motion'\nrows = '0..9'\nitems = '0..7'\noutput = {:?}\n",
            model(),
            asset("worlds"),
            output.display().to_string()
        ),
    )
    .unwrap();
    let mut command = loxia();
    command.args(["score", "--rows", "0..2", "--json", "--config"]).arg(&file).env("LOXIA_ITEMS", "0..5");
    let said = Said::of(command.output().unwrap());
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!((said.json()["queries"].as_u64(), said.json()["items"].as_u64()), (Some(2), Some(5)));
}

#[test]
fn a_wrong_key_in_the_file_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("loxia.toml");
    std::fs::write(&file, "modle = 'x'\n").unwrap();
    run(&["doctor", "--config", &file.display().to_string()])
        .fails_with(2, &["loxia.toml", "modle is no flag"]);
}

#[test]
fn usage_errors_are_two_and_help_is_zero() {
    assert_eq!(run(&["score"]).code, 2);
    assert_eq!(run(&["no-such-command"]).code, 2);
    assert_eq!(run(&["score", "--model", "x", "--data", "y", "--output", "z", "--rows", "9..1"]).code, 2);
    let help = succeed(&["rerank", "--help"]).stdout;
    assert!(help.contains("--depth") && help.contains("Examples:"), "{help}");
}

#[test]
fn completions_and_manual_pages_are_written() {
    assert!(succeed(&["completions", "bash"]).stdout.contains("loxia"));
    let scratch = tempfile::tempdir().unwrap();
    succeed(&["man", "--output", &scratch.path().display().to_string()]);
    assert!(scratch.path().join("loxia-rerank.1").exists());
}

#[test]
fn the_doctor_finds_right_scores_with_every_kernel() {
    let said = succeed(&["doctor"]);
    assert!(said.stdout.contains("portable f32: ok"), "{}", said.stdout);
    assert!(said.stdout.contains("portable int8: ok") && !said.stdout.contains("WRONG"), "{}", said.stdout);
    let mut command = loxia();
    command.arg("doctor").env("LOXIA_KERNEL", "abacus");
    Said::of(command.output().unwrap()).fails_with(2, &["abacus", "portable"]);
}

#[test]
fn ctrl_c_ends_with_130_whatever_is_going_on() {
    use std::process::Stdio;
    let mut command = loxia();
    command.args(["rerank", "--model", &model(), "--query", "x", "--data", "-"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // Kept open: its end would be another reason to stop.
    let _stdin = child.stdin.take();
    // Not before it listens: bit 1 of the caught signals is SIGINT's.
    let listens = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("2");
        u64::from_str_radix(caught.trim(), 16).is_ok_and(|mask| mask & 2 != 0)
    };
    while !listens() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn flags_that_would_do_nothing_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let data = crate::program::beir(scratch.path(), 3).display().to_string();
    let output = scratch.path().join("out").display().to_string();
    run(&["score", "--model", &model(), "--data", &data, "--output", &output, "--pooling", "mean"])
        .fails_with(2, &["--pooling"]);
    run(&["score", "--model", &model(), "--data", &data, "--output", &output, "--label", "1"])
        .fails_with(2, &["--label"]);
    run(&[
        "embed",
        "--model",
        &crate::program::dual(),
        "--data",
        &data,
        "--side",
        "item",
        "--output",
        &output,
        "--activation",
        "sigmoid",
    ])
    .fails_with(2, &["--activation"]);
}

#[test]
fn a_closed_pipe_is_success() {
    use std::process::Stdio;
    let mut command = loxia();
    command.args(["retrieve", "--quiet", "--dual", &crate::program::dual(), "--data", &asset("worlds")]);
    command.args(["--split", "test", "--world", "verb.motion"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
