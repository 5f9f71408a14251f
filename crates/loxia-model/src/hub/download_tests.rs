//! Downloads from a server in this process.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use loxia_core::NoProgress;
use loxia_core::artefact::digest_bytes;

use super::*;

/// First byte of files whose announced digest is wrong.
const LIAR: u8 = 0xee;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// Serves `files` of one model as a hub does; large ones behind a redirect, the first of them cut once.
struct Server {
    endpoint: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(files: Vec<(&'static str, Vec<u8>)>, cut: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = requests.clone();
        std::thread::spawn(move || {
            let files: HashMap<&str, Vec<u8>> = files.into_iter().collect();
            let mut cut = cut;
            for stream in listener.incoming() {
                serve(stream.unwrap(), &files, &mut cut, &log);
            }
        });
        Server { endpoint, requests }
    }

    fn count(&self, part: &str) -> usize {
        self.requests.lock().unwrap().iter().filter(|line| line.contains(part)).count()
    }
}

fn serve(
    mut stream: TcpStream,
    files: &HashMap<&str, Vec<u8>>,
    cut: &mut Option<&str>,
    log: &Mutex<Vec<String>>,
) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(std::io::Result::ok);
    let Some(first) = lines.next() else { return };
    let mut from = 0;
    for line in lines.take_while(|line| !line.is_empty()) {
        if let Some(range) = line.to_lowercase().strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().unwrap();
        }
    }
    log.lock().unwrap().push(format!("{first} from {from}"));
    let path = first.split(' ').nth(1).unwrap();
    let answer = |status: &str, extra: &str, body: &[u8], length: usize| {
        let head =
            format!("HTTP/1.1 {status}\r\n{extra}content-length: {length}\r\nconnection: close\r\n\r\n");
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    };
    let mut answer = answer;
    if path.starts_with("/api/models/owner/name/revision/") {
        let names: Vec<_> = files.keys().map(|name| serde_json::json!({ "rfilename": name })).collect();
        let body = serde_json::json!({ "sha": COMMIT, "siblings": names }).to_string();
        return answer("200 OK", "", body.as_bytes(), body.len());
    }
    let (name, behind) = match path.strip_prefix(&format!("/owner/name/resolve/{COMMIT}/")) {
        Some(name) => (name, false),
        None => (path.strip_prefix("/cdn/").unwrap_or("none"), true),
    };
    let Some(content) = files.get(name) else { return answer("404 Not Found", "", b"", 0) };
    let etag = format!("etag: \"{:08x}\"\r\n", content.len());
    if name.ends_with(".safetensors") && !behind {
        let digest = if content.first() == Some(&LIAR) { "f".repeat(64) } else { digest_bytes(content) };
        let extra = format!("x-linked-etag: \"{digest}\"\r\nlocation: /cdn/{name}\r\n");
        return answer("302 Found", &extra, b"", 0);
    }
    if from > content.len() {
        return answer("416 Range Not Satisfiable", "", b"", 0);
    }
    let status = if from > 0 { "206 Partial Content" } else { "200 OK" };
    let rest = &content[from..];
    if *cut == Some(name) {
        *cut = None;
        return answer(status, &etag, &rest[..rest.len() / 2], rest.len());
    }
    answer(status, &etag, rest, rest.len());
}

fn model() -> HubModel {
    "owner/name".parse().unwrap()
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("config.json", b"{}".to_vec()),
        ("1_Pooling/config.json", b"{ }".to_vec()),
        ("model.safetensors", (0..200_000_u32).map(|n| n as u8).collect()),
        ("pytorch_model.bin", vec![1; 99]),
        ("onnx/model.onnx", vec![1; 98]),
        ("../evil.json", vec![1; 97]),
    ]
}

#[test]
fn a_model_is_fetched_once_and_found_in_the_cache() {
    let server = Server::start(files(), None);
    let cache = tempfile::tempdir().unwrap();
    let hub = Hub::new(&server.endpoint);
    let got = hub.download(&model(), cache.path(), &NoProgress, &Cancel::new()).unwrap();
    assert_eq!((got.files, got.commit.as_str()), (3, COMMIT));
    let found = model().cached_in(cache.path()).unwrap();
    assert_eq!(found, got.directory);
    assert_eq!(fs::read(found.join("model.safetensors")).unwrap().len(), 200_000);
    assert_eq!(fs::read(found.join("1_Pooling/config.json")).unwrap(), b"{ }");
    assert!(!found.join("pytorch_model.bin").exists());
    let again = hub.download(&model(), cache.path(), &NoProgress, &Cancel::new()).unwrap();
    assert_eq!(again.bytes, 0);
    assert_eq!(server.count("/cdn/model.safetensors"), 1);
    assert_eq!(server.count("evil"), 0);
}

#[test]
fn a_broken_download_is_no_model_and_goes_on() {
    let server = Server::start(files(), Some("model.safetensors"));
    let cache = tempfile::tempdir().unwrap();
    let hub = Hub::new(&server.endpoint);
    assert!(hub.download(&model(), cache.path(), &NoProgress, &Cancel::new()).is_err());
    assert!(model().cached_in(cache.path()).is_err());
    let got = hub.download(&model(), cache.path(), &NoProgress, &Cancel::new()).unwrap();
    let expected: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
    assert_eq!(fs::read(got.directory.join("model.safetensors")).unwrap(), expected);
    assert_eq!(server.count("from 100000"), 1);
}

#[test]
fn unknown_models_are_named() {
    let server = Server::start(files(), None);
    let cache = tempfile::tempdir().unwrap();
    let other: HubModel = "owner/other".parse().unwrap();
    let error =
        Hub::new(&server.endpoint).download(&other, cache.path(), &NoProgress, &Cancel::new()).unwrap_err();
    assert!(error.to_string().contains("no such model or revision"), "{error}");
}

/// Where the weights of [`files`] go before they are whole.
fn partial(cache: &Path) -> PathBuf {
    let content = &files()[2].1;
    let blobs = model().cache_directory(cache).join("blobs");
    fs::create_dir_all(&blobs).unwrap();
    blobs.join(digest_bytes(content)).with_extension("incomplete")
}

#[test]
fn a_leftover_longer_than_the_file_is_thrown_away() {
    let server = Server::start(files(), None);
    let cache = tempfile::tempdir().unwrap();
    fs::write(partial(cache.path()), vec![9; 300_000]).unwrap();
    let got =
        Hub::new(&server.endpoint).download(&model(), cache.path(), &NoProgress, &Cancel::new()).unwrap();
    assert_eq!(fs::read(got.directory.join("model.safetensors")).unwrap(), files()[2].1);
}

#[test]
fn damage_on_the_way_is_found_and_the_next_try_starts_over() {
    let server = Server::start(files(), None);
    let cache = tempfile::tempdir().unwrap();
    fs::write(partial(cache.path()), vec![9; 1000]).unwrap();
    let hub = Hub::new(&server.endpoint);
    let error = hub.download(&model(), cache.path(), &NoProgress, &Cancel::new()).unwrap_err();
    assert!(error.to_string().contains("what came has SHA-256"), "{error}");
    hub.download(&model(), cache.path(), &NoProgress, &Cancel::new()).unwrap();
    let lying = Server::start(vec![("model.safetensors", vec![LIAR; 10])], None);
    let error =
        Hub::new(&lying.endpoint).download(&model(), cache.path(), &NoProgress, &Cancel::new()).unwrap_err();
    assert!(error.to_string().contains("the server announced ffff"), "{error}");
}

#[test]
fn two_downloads_do_not_mix() {
    let server = Server::start(files(), None);
    let cache = tempfile::tempdir().unwrap();
    let other = File::create(partial(cache.path())).unwrap();
    other.lock().unwrap();
    let hub = Hub::new(&server.endpoint);
    let error = hub.download(&model(), cache.path(), &NoProgress, &Cancel::new()).unwrap_err();
    assert!(error.to_string().contains("another download of this file is under way"), "{error}");
    drop(other);
    hub.download(&model(), cache.path(), &NoProgress, &Cancel::new()).unwrap();
}
