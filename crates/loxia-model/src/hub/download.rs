//! Downloading a model into the hub's cache, in the layout every Hugging Face tool reads.
//!
//! Files go to `blobs` under their etag, first with the ending `.incomplete` (a broken download goes on where
//! it stopped, two at once do not mix), compared with the SHA-256 the hub gives large files, then renamed; `snapshots/COMMIT` links to them; `refs/REVISION` is written last, so a model is
//! either found whole or not at all.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use loxia_core::artefact::digest_file;
use loxia_core::{Cancel, Progress};
use serde::Deserialize;
use ureq::http::Response;

use super::cache::{HubModel, cache_root, is_offline};
use crate::error::{Error, Result};

/// What a download brought.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Downloaded {
    /// The snapshot's directory.
    pub directory: PathBuf,
    /// The commit it is.
    pub commit: String,
    /// Files of the snapshot.
    pub files: usize,
    /// Bytes that were fetched; files that were in the cache cost nothing.
    pub bytes: u64,
}

#[derive(Deserialize)]
struct ModelInfo {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

/// Fetches a model into the user's cache; `HF_ENDPOINT`, `HF_TOKEN` and `HF_HUB_OFFLINE` are honoured.
pub fn download(model: &HubModel, progress: &dyn Progress, cancel: &Cancel) -> Result<Downloaded> {
    if is_offline() {
        return Err(Error::Download { url: format!("hf:{model}"), what: "HF_HUB_OFFLINE is set".into() });
    }
    let endpoint = std::env::var("HF_ENDPOINT").unwrap_or_else(|_| "https://huggingface.co".into());
    Hub::new(endpoint.trim_end_matches('/')).download(model, &cache_root()?, progress, cancel)
}

/// A hub at an address.
struct Hub {
    endpoint: String,
    token: Option<String>,
}

impl Hub {
    fn new(endpoint: &str) -> Self {
        let token = std::env::var("HF_TOKEN").ok().filter(|token| !token.is_empty());
        Hub { endpoint: endpoint.to_owned(), token }
    }

    fn download(
        &self,
        model: &HubModel,
        cache: &Path,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Downloaded> {
        let info = self.info(model)?;
        let directory = model.cache_directory(cache);
        let snapshot = directory.join("snapshots").join(&info.sha);
        create(&directory.join("blobs"))?;
        let files = wanted(info.siblings.into_iter().map(|sibling| sibling.rfilename));
        let mut bytes = 0;
        for name in &files {
            cancel.check()?;
            bytes += self.fetch(model, &info.sha, name, &directory, &snapshot, progress, cancel)?;
        }
        let reference = directory.join("refs").join(model.revision());
        create(reference.parent().unwrap_or(&directory))?;
        let partial = reference.with_extension("partial");
        fs::write(&partial, &info.sha).map_err(|e| Error::io(&partial, "write", e))?;
        fs::rename(&partial, &reference).map_err(|e| Error::io(&reference, "rename to", e))?;
        Ok(Downloaded { directory: snapshot, commit: info.sha, files: files.len(), bytes })
    }

    fn info(&self, model: &HubModel) -> Result<ModelInfo> {
        let revision = model.revision().replace('/', "%2F");
        let url = format!("{}/api/models/{}/revision/{revision}", self.endpoint, model.name());
        let mut response = self.get(&url, None)?;
        let text = response.body_mut().with_config().limit(16 << 20).read_to_string();
        let text = text.map_err(|e| failed(&url, &e.to_string()))?;
        let info: ModelInfo =
            serde_json::from_str(&text).map_err(|e| failed(&url, &format!("unexpected answer: {e}")))?;
        let sound = info.sha.len() >= 7 && info.sha.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if sound { Ok(info) } else { Err(failed(&url, &format!("{:?} is no commit", info.sha))) }
    }

    /// Fetches one file unless its blob is there; returns how many bytes came over the wire.
    #[allow(clippy::too_many_arguments)]
    fn fetch(
        &self,
        model: &HubModel,
        commit: &str,
        name: &str,
        directory: &Path,
        snapshot: &Path,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<u64> {
        let url = format!("{}/{}/resolve/{commit}/{name}", self.endpoint, model.name());
        let first = self.request(&url, None, true)?;
        let etag = header(&first, "x-linked-etag").or_else(|| header(&first, "etag")).unwrap_or_default();
        let etag = etag.trim_start_matches("W/").trim_matches('"').to_owned();
        if etag.is_empty() || !etag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        {
            return Err(failed(&url, &format!("the server's etag {etag:?} is not one to name a file by")));
        }
        let blob = directory.join("blobs").join(&etag);
        let mut bytes = 0;
        if !blob.is_file() {
            bytes = self.fetch_blob(&url, first, &blob, progress, cancel)?;
        }
        link(&blob, &snapshot.join(name), name)?;
        Ok(bytes)
    }

    fn fetch_blob(
        &self,
        url: &str,
        first: Response<ureq::Body>,
        blob: &Path,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<u64> {
        let partial = blob.with_extension("incomplete");
        let mut file = lock_partial(&partial)?;
        // Whoever held the lock before may have finished it.
        if blob.is_file() {
            return Ok(0);
        }
        let have = file.metadata().map_err(|e| Error::io(&partial, "look up", e))?.len();
        let mut response =
            if have == 0 && first.status() == 200 { first } else { self.follow(url, Some(first), have)? };
        if response.status() == 416 {
            // More is here than there: a leftover of something else.
            response = self.follow(url, None, 0)?;
        }
        let resumed = response.status() == 206;
        if response.status() != 200 && !resumed {
            return Err(failed(url, &format!("status {}", response.status())));
        }
        if !resumed {
            file.set_len(0).map_err(|e| Error::io(&partial, "empty", e))?;
        }
        let expected = header(&response, "content-length").and_then(|length| length.parse::<u64>().ok());
        let mut reader = response.body_mut().as_reader();
        let bytes = copy(&mut reader, &mut file, url, &partial, progress, cancel)?;
        if expected.is_some_and(|expected| expected != bytes) {
            return Err(failed(
                url,
                &format!("{bytes} of {} bytes came; run it again to go on", expected.unwrap_or(0)),
            ));
        }
        check_digest(url, &partial, blob)?;
        file.sync_all().map_err(|e| Error::io(&partial, "sync", e))?;
        fs::rename(&partial, blob).map_err(|e| Error::io(blob, "rename to", e))?;
        Ok(bytes)
    }

    /// The file's own answer, behind at most five redirects.
    fn follow(
        &self,
        url: &str,
        first: Option<Response<ureq::Body>>,
        from: u64,
    ) -> Result<Response<ureq::Body>> {
        let range = (from > 0).then(|| format!("bytes={from}-"));
        let mut place = url.to_owned();
        let mut response = match first {
            Some(first) if first.status().is_redirection() => first,
            _ => self.request(url, range.as_deref(), true)?,
        };
        for _ in 0..5 {
            if !response.status().is_redirection() {
                return Ok(response);
            }
            let location =
                header(&response, "location").ok_or_else(|| failed(&place, "a redirect to nowhere"))?;
            place =
                if location.starts_with('/') { format!("{}{location}", origin(&place)) } else { location };
            let same_host = origin(&place) == origin(url);
            response = self.request(&place, range.as_deref(), same_host)?;
        }
        Err(failed(url, "too many redirects"))
    }

    fn get(&self, url: &str, range: Option<&str>) -> Result<Response<ureq::Body>> {
        let response = self.request(url, range, true)?;
        match response.status().as_u16() {
            200 | 206 => Ok(response),
            401 | 403 => Err(failed(url, "access is refused; set HF_TOKEN if the model is private or gated")),
            404 => Err(failed(url, "no such model or revision")),
            status => Err(failed(url, &format!("status {status}"))),
        }
    }

    fn request(&self, url: &str, range: Option<&str>, with_token: bool) -> Result<Response<ureq::Body>> {
        // Redirects are followed by hand: the first answer carries the etag, the second the file, and the
        // token must not travel to another host.
        let mut request = ureq::get(url)
            .config()
            .max_redirects(0)
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(30)))
            .timeout_recv_response(Some(Duration::from_secs(60)))
            .build();
        if let Some(token) = self.token.as_ref().filter(|_| with_token) {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(range) = range {
            request = request.header("range", range);
        }
        request.call().map_err(|e| failed(url, &e.to_string()))
    }
}

/// Opens the beginning of a file and keeps others from writing to it.
fn lock_partial(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let file = file.map_err(|e| Error::io(path, "open", e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::NotAModel {
            path: path.to_owned(),
            what: "another download of this file is under way; wait for it and run this again".into(),
        }),
        Err(TryLockError::Error(e)) => Err(Error::io(path, "lock", e)),
    }
}

/// Large files are named by their SHA-256; what came must have it, or the next try starts over.
fn check_digest(url: &str, partial: &Path, blob: &Path) -> Result<()> {
    let name = blob.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if name.len() != 64 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(());
    }
    let found = digest_file(partial)?;
    if found == name {
        return Ok(());
    }
    fs::remove_file(partial).map_err(|e| Error::io(partial, "remove", e))?;
    Err(failed(url, &format!("what came has SHA-256 {found}, the server announced {name}; run it again")))
}

fn copy(
    reader: &mut impl Read,
    file: &mut File,
    url: &str,
    path: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<u64> {
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        cancel.check()?;
        let count =
            reader.read(&mut buffer).map_err(|e| failed(url, &format!("{e}; run it again to go on")))?;
        if count == 0 {
            return Ok(bytes);
        }
        file.write_all(&buffer[..count]).map_err(|e| Error::io(path, "write", e))?;
        bytes += count as u64;
        progress.advance(count as u64);
    }
}

/// The files a text model needs: configuration, tokenizer, modules, and one format of weights.
fn wanted(names: impl Iterator<Item = String>) -> Vec<String> {
    let names: Vec<String> = names.filter(|name| is_plain(name)).collect();
    let weights = |end: &str| {
        names.iter().any(|name| !name.contains('/') && name.starts_with("model") && name.ends_with(end))
    };
    let safetensors = weights(".safetensors") || weights(".safetensors.index.json");
    let useful = |name: &&String| {
        let file = name.rsplit('/').next().unwrap_or(name);
        let module =
            name.split('/').next().is_some_and(|first| first.starts_with(|c: char| c.is_ascii_digit()));
        let at_root = !name.contains('/');
        // Weights in other languages' formats (onnx/, openvino/) live in directories without a number.
        (at_root || module || name.starts_with("query_") || name.starts_with("document_"))
            && (file.ends_with(".json") && !file.starts_with("pytorch_model") && file != "data_config.json"
                || matches!(file, "vocab.txt" | "merges.txt")
                || file.starts_with("model") && file.ends_with(".safetensors")
                || file.starts_with("pytorch_model")
                    && (!safetensors || !at_root)
                    && (file.ends_with(".bin") || file.ends_with(".json")))
    };
    names.iter().filter(useful).cloned().collect()
}

/// A relative path without tricks.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['\\', ':', '?', '#', '%'])
        && name.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

fn link(blob: &Path, place: &Path, name: &str) -> Result<()> {
    create(place.parent().unwrap_or(place))?;
    if place.exists() {
        return Ok(());
    }
    #[cfg(unix)]
    {
        let depth = name.matches('/').count() + 2;
        let target: PathBuf = std::iter::repeat_n("..", depth).collect();
        let target = target.join("blobs").join(blob.file_name().unwrap_or_default());
        std::os::unix::fs::symlink(target, place).map_err(|e| Error::io(place, "link", e))
    }
    #[cfg(not(unix))]
    {
        let _ = name;
        fs::copy(blob, place).map(drop).map_err(|e| Error::io(place, "copy to", e))
    }
}

fn create(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).map_err(|e| Error::io(directory, "create", e))
}

fn header(response: &Response<ureq::Body>, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or(url, |end| &url[..host + end])
}

fn failed(url: &str, what: &str) -> Error {
    Error::Download { url: url.to_owned(), what: what.to_owned() }
}

#[cfg(test)]
#[path = "download_tests.rs"]
mod tests;
