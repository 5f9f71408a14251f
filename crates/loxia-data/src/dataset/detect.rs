//! Recognising layouts by the files that are there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::linking::Linking;
use super::mention::MentionRecord;
use super::retrieval::Retrieval;
use super::{DataFormat, DataOptions, Layout};
use crate::{Error, Limits, LineFormat, LineReader, Result};

/// Finds the layout of a directory or file, or follows the format given.
pub(super) fn recognise(path: &Path, options: &DataOptions) -> Result<(DataFormat, Layout)> {
    let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, "open", e))?;
    if !metadata.is_dir() {
        return recognise_file(path, options);
    }
    let limits = &options.read.limits;
    if matches!(options.format, None | Some(DataFormat::Beir))
        && let Some(corpus) = existing(path, "corpus.jsonl")
    {
        return Ok((DataFormat::Beir, Layout::Retrieval(Retrieval::beir(path, corpus)?)));
    }
    if matches!(options.format, None | Some(DataFormat::MsMarco))
        && let Some(collection) = existing(path, "collection.tsv")
    {
        return Ok((DataFormat::MsMarco, Layout::Retrieval(Retrieval::msmarco(path, collection)?)));
    }
    if let Some(found) = recognise_linking(path, options.format, limits)? {
        return Ok(found);
    }
    let looked_for = match options.format {
        Some(format) => LAYOUTS.iter().filter(|(layout, _)| *layout == format).collect::<Vec<_>>(),
        None => LAYOUTS.iter().collect(),
    };
    let looked_for = looked_for.into_iter().map(|(format, files)| format!("{}: {files}", format.name()));
    let mut looked_for: Vec<String> = looked_for.collect();
    if looked_for.is_empty() {
        looked_for.push("a file: this format is one file of items or queries, not a directory".to_owned());
    }
    Err(Error::NotRecognised { path: path.to_owned(), looked_for })
}

const LAYOUTS: [(DataFormat, &str); 6] = [
    (DataFormat::Zeshel, "documents/<world>.json and mentions/<split>.json with start_index"),
    (DataFormat::Worlds, "documents/<world>.jsonl and mentions/<split>.jsonl (each also .json, .gz)"),
    (DataFormat::Blink, "documents/<world>.json and blink_format/<split>.jsonl or <split>.jsonl"),
    (DataFormat::Anncur, "documents/<world>.json and processed/<split>.jsonl"),
    (DataFormat::Beir, "corpus.jsonl, queries.jsonl and qrels/<split>.tsv (each also .gz)"),
    (DataFormat::MsMarco, "collection.tsv, queries.<split>.tsv and qrels.<split>.tsv (each also .gz)"),
];

fn recognise_file(path: &Path, options: &DataOptions) -> Result<(DataFormat, Layout)> {
    let wants_mentions = match options.format {
        None => is_mention_file(path, &options.read.limits)?,
        Some(format) => is_linking(format),
    };
    if wants_mentions {
        let name = path.file_name().map_or_else(|| "-".into(), |name| name.to_string_lossy());
        let split = split_extension(&name, &["jsonl", "json"]).unwrap_or(&name).to_owned();
        let linking = Linking { mentions: BTreeMap::from([(split, path.to_owned())]), ..Linking::default() };
        let format = linking.kind(&options.read.limits)?.unwrap_or(DataFormat::Blink);
        return Ok((format, Layout::Linking(linking)));
    }
    let format = match (file_format(options.format), options.format) {
        (Some(format), _) => format,
        (None, Some(format)) => {
            let what = format!("is a file, but {} is a directory; give the directory", format.name());
            return Err(Error::missing(path, what));
        }
        (None, None) => LineFormat::detect(&mut LineReader::open(path, &options.read.limits)?)?,
    };
    Ok((data_format(format), Layout::File(format)))
}

/// Whether the path can be read only once.
pub(super) fn is_stream(path: &Path) -> bool {
    let is_pipe = |metadata: std::fs::Metadata| !metadata.is_file() && !metadata.is_dir();
    path == Path::new("-") || std::fs::metadata(path).is_ok_and(is_pipe)
}

/// Opens a stream; telling the format and reading are one opening.
pub(super) fn open_stream(path: &Path, options: &DataOptions) -> Result<(LineReader<'static>, LineFormat)> {
    let mut lines = LineReader::open(path, &options.read.limits)?;
    let format = match (file_format(options.format), options.format) {
        (Some(format), _) => format,
        (None, None) => LineFormat::detect(&mut lines)?,
        (None, Some(format)) => {
            let what = format!(
                "is a stream, which can hold items or queries only, not {}; give a path",
                format.name()
            );
            return Err(Error::missing(path, what));
        }
    };
    Ok((lines, format))
}

/// How the lines of a one-file format are read.
fn file_format(format: Option<DataFormat>) -> Option<LineFormat> {
    match format? {
        DataFormat::Jsonl => Some(LineFormat::Json),
        DataFormat::Tsv => Some(LineFormat::Tsv),
        DataFormat::Text => Some(LineFormat::Text),
        _ => None,
    }
}

pub(super) fn data_format(format: LineFormat) -> DataFormat {
    match format {
        LineFormat::Json => DataFormat::Jsonl,
        LineFormat::Tsv => DataFormat::Tsv,
        LineFormat::Text => DataFormat::Text,
    }
}

fn is_linking(format: DataFormat) -> bool {
    matches!(format, DataFormat::Zeshel | DataFormat::Worlds | DataFormat::Blink | DataFormat::Anncur)
}

fn is_mention_file(path: &Path, limits: &Limits) -> Result<bool> {
    let mut lines = LineReader::open(path, limits)?;
    if lines.peek_byte()? != Some(b'{') {
        return Ok(false);
    }
    Ok(lines.next_filled()?.is_some_and(|line| super::is_mention(&line)))
}

/// Where mentions are looked for, in this order.
const MENTION_FOLDERS: [(&str, &[DataFormat]); 4] = [
    ("mentions", &[DataFormat::Zeshel, DataFormat::Worlds, DataFormat::Blink, DataFormat::Anncur]),
    ("blink_format", &[DataFormat::Blink]),
    ("processed", &[DataFormat::Anncur]),
    ("", &[DataFormat::Blink, DataFormat::Anncur]),
];

fn recognise_linking(
    path: &Path,
    asked: Option<DataFormat>,
    limits: &Limits,
) -> Result<Option<(DataFormat, Layout)>> {
    if asked.is_some_and(|format| !is_linking(format)) {
        return Ok(None);
    }
    let documents = files_in(&path.join("documents"), &["jsonl", "json"])?;
    let candidates = files_in(&path.join("tfidf_candidates"), &["jsonl", "json"])?;
    for (folder, formats) in MENTION_FOLDERS {
        if asked.is_some_and(|format| !formats.contains(&format)) {
            continue;
        }
        let mentions = files_in(&path.join(folder), &["jsonl", "json"])?;
        let linking = Linking { documents: documents.clone(), mentions, candidates: candidates.clone() };
        let Some(kind) = linking.kind(limits)? else { continue };
        if asked.is_none_or(|format| format == kind) && !documents.is_empty() {
            return Ok(Some((kind, Layout::Linking(linking))));
        }
    }
    if documents.is_empty() {
        return Ok(None);
    }
    let linking = Linking { documents, mentions: BTreeMap::new(), candidates };
    Ok(Some((asked.unwrap_or(DataFormat::Worlds), Layout::Linking(linking))))
}

impl Linking {
    /// Which of the layouts this is, by the first mention; `None` without mentions.
    fn kind(&self, limits: &Limits) -> Result<Option<DataFormat>> {
        for file in self.mentions.values() {
            let mut lines = LineReader::open(file, limits)?;
            if lines.peek_byte()?.is_some_and(|byte| byte != b'{') {
                continue;
            }
            if let Some(line) = lines.next_filled()?
                && super::is_mention(&line)
            {
                return Ok(Some(MentionRecord::parse(&line)?.kind()));
            }
        }
        Ok(None)
    }
}

/// `name` in a directory, plain or with `.gz`; the plain one if both are there.
pub(super) fn existing(directory: &Path, name: &str) -> Option<PathBuf> {
    [name.to_owned(), format!("{name}.gz")].into_iter().map(|name| directory.join(name)).find(|p| p.is_file())
}

/// The files of a directory with one of the extensions, plain or `.gz` (the plain one if both are
/// there), by name without extension. A directory that is not there holds none.
pub(crate) fn files_in(directory: &Path, extensions: &[&str]) -> Result<BTreeMap<String, PathBuf>> {
    let mut files = BTreeMap::new();
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(files),
        Err(e) => return Err(Error::io(directory, "list", e)),
    };
    for entry in entries {
        let path = entry.map_err(|e| Error::io(directory, "list", e))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(stem) = split_extension(name, extensions) else { continue };
        if stem.is_empty() || stem.starts_with('.') || !path.is_file() {
            continue;
        }
        let keep = !name.ends_with(".gz") || !files.contains_key(stem);
        if keep {
            files.insert(stem.to_owned(), path.clone());
        }
    }
    Ok(files)
}

fn split_extension<'a>(name: &'a str, extensions: &[&str]) -> Option<&'a str> {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let (stem, extension) = name.rsplit_once('.')?;
    extensions.contains(&extension).then_some(stem)
}
