//! Running `loxia`, and small data for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program, with an environment of its own.
pub(crate) fn loxia() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loxia"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LOXIA_") && name != "LOXIA_KERNEL" {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// What a finished program said.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    pub(crate) fn of(output: Output) -> Self {
        Said {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }

    /// The summary of `--json`.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {:?}\n{}", self.stdout, self.stderr))
    }

    /// Asserts the exit code and that stderr holds all of `parts`.
    #[track_caller]
    pub(crate) fn fails_with(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in {:?}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }
}

/// Runs with arguments.
pub(crate) fn run<A: AsRef<std::ffi::OsStr>>(arguments: &[A]) -> Said {
    Said::of(loxia().args(arguments).output().expect("the program starts"))
}

/// Runs with arguments and expects success.
#[track_caller]
pub(crate) fn succeed<A: AsRef<std::ffi::OsStr>>(arguments: &[A]) -> Said {
    let said = run(arguments);
    assert_eq!(said.code, 0, "{}", said.stderr);
    said
}

/// Runs with text on stdin.
pub(crate) fn run_with_input(arguments: &[&str], input: &str) -> Said {
    use std::io::Write;
    let mut child = loxia()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // It may end before it has read everything.
    let _ = child.stdin.take().expect("stdin is piped").write_all(input.as_bytes());
    Said::of(child.wait_with_output().expect("the program ends"))
}

pub(crate) fn assets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets")
}

pub(crate) fn asset(name: &str) -> String {
    assets().join(name).display().to_string()
}

/// The embedded cross-encoder.
pub(crate) fn model() -> String {
    asset("tiny-models/emb-cross-encoder")
}

/// The embedded dual encoder.
pub(crate) fn dual() -> String {
    format!("{},{}", asset("tiny-models/dual-query"), asset("tiny-models/dual-item"))
}

/// A BEIR directory with a few documents, three queries and judgements.
pub(crate) fn beir(directory: &Path, documents: usize) -> PathBuf {
    let data = directory.join("beir");
    std::fs::create_dir_all(data.join("qrels")).unwrap();
    let verbs = ["run", "walk", "fall", "turn", "carry", "fly", "spread", "bend", "follow"];
    let corpus: String = (0..documents)
        .map(|n| {
            let (verb, other) = (verbs[n % 9], verbs[(n / 9 + 4) % 9]);
            let tail = "to move about on the water ".repeat(n % 5);
            format!(r#"{{"_id":"d{n}","title":"{verb}","text":"{verb} or {other} {n} times {tail}"}}"#) + "\n"
        })
        .collect();
    std::fs::write(data.join("corpus.jsonl"), corpus).unwrap();
    let queries = [("q1", "run across the road"), ("q2", "carry it over water"), ("q3", "bend and fall")]
        .map(|(id, text)| format!(r#"{{"_id":"{id}","text":"{text}"}}"#) + "\n")
        .concat();
    std::fs::write(data.join("queries.jsonl"), queries).unwrap();
    std::fs::write(
        data.join("qrels/test.tsv"),
        "query-id\tcorpus-id\tscore\nq1\td0\t1\nq2\td4\t1\nq3\td7\t2\nq3\td2\t1\n",
    )
    .unwrap();
    data
}

/// Every file of a directory with its bytes, for comparison.
pub(crate) fn content(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// The numbers of a float32 npy file with a version 1 header.
pub(crate) fn npy(path: &Path) -> (String, Vec<f32>) {
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let length = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let header = String::from_utf8(bytes[10..10 + length].to_vec()).unwrap();
    let numbers = bytes[10 + length..].chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
    (header, numbers.collect())
}
