//! Directories and files that are whole or not there.

use std::fs;
use std::path::Path;

use loxia_core::artefact::*;
use loxia_core::{Error, IdTable};

const KIND: ArtefactKind = ArtefactKind { name: "vectors", version: 2 };

fn write(path: &Path, content: &[u8], existing: Existing) -> Result<(), Error> {
    let mut writer = ArtefactWriter::create(path, existing)?;
    writer.add_file("data", |file| file.write_bytes(content))?;
    writer.add_manifest(&Manifest::new(KIND))?;
    writer.commit()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_directory_is_refused_or_replaced_and_nothing_else_is_left() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("vectors");
    write(&path, b"old", Existing::Refuse).unwrap();
    let error = write(&path, b"new", Existing::Refuse).unwrap_err();
    assert!(error.to_string().contains("--overwrite"), "{error}");
    assert_eq!(fs::read(path.join("data")).unwrap(), b"old");
    write(&path, b"new", Existing::Overwrite).unwrap();
    assert_eq!(fs::read(path.join("data")).unwrap(), b"new");
    assert_eq!(names(parent.path()), ["vectors"]);
}

#[test]
fn a_dropped_writer_leaves_nothing_and_the_old_in_place() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("vectors");
    write(&path, b"old", Existing::Refuse).unwrap();
    let mut writer = ArtefactWriter::create(&path, Existing::Overwrite).unwrap();
    writer.add_file("data", |file| file.write_bytes(b"half")).unwrap();
    assert_eq!(names(parent.path()).len(), 2);
    drop(writer);
    assert_eq!(names(parent.path()), ["vectors"]);
    assert_eq!(fs::read(path.join("data")).unwrap(), b"old");
}

#[cfg(unix)]
#[test]
fn what_a_killed_writer_moved_aside_comes_back_or_goes() {
    let parent = tempfile::tempdir().unwrap();
    let (path, aside) = (parent.path().join("vectors"), parent.path().join("vectors.replaced-1-0"));
    write(&aside, b"old", Existing::Refuse).unwrap();
    let error = ArtefactWriter::create(&path, Existing::Refuse).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error}");
    assert_eq!(fs::read(path.join("data")).unwrap(), b"old");

    write(&aside, b"older", Existing::Refuse).unwrap();
    write(&path, b"new", Existing::Overwrite).unwrap();
    assert_eq!(fs::read(path.join("data")).unwrap(), b"new");
    assert_eq!(names(parent.path()), ["vectors"]);
}

#[cfg(unix)]
#[test]
fn an_old_directory_that_cannot_be_removed_is_no_failure() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("vectors");
    write(&path, b"old", Existing::Refuse).unwrap();
    let inner = path.join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("stays"), "").unwrap();
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(inner.join("probe"), "").is_ok() {
        println!("skipped: this user may write anywhere");
        return;
    }
    write(&path, b"new", Existing::Overwrite).unwrap();
    assert_eq!(fs::read(path.join("data")).unwrap(), b"new");
    // For the clean-up of the test itself.
    for name in names(parent.path()).into_iter().filter(|name| name != "vectors") {
        let inner = parent.path().join(name).join("inner");
        fs::set_permissions(inner, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_directory_that_is_no_artefact_is_never_replaced() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("photographs");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("grandmother.jpg"), b"dear").unwrap();
    let error = write(&path, b"new", Existing::Overwrite).unwrap_err();
    assert!(error.to_string().contains("manifest.json"), "{error}");
    assert_eq!(names(&path), ["grandmother.jpg"]);
}

#[test]
fn a_file_whose_writing_fails_is_not_there() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("run.txt");
    let result = write_file_atomically(&path, Existing::Refuse, |file| {
        file.write_bytes(b"half a li")?;
        Err(Error::Cancelled)
    });
    assert!(matches!(result, Err(Error::Cancelled)));
    assert!(names(parent.path()).is_empty());

    fs::write(&path, "old").unwrap();
    write_file_atomically(&path, Existing::Overwrite, |file| file.write_bytes(b"new")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(names(parent.path()), ["run.txt"]);

    let error = write_file_atomically(parent.path(), Existing::Overwrite, |file| file.write_bytes(b"new"));
    assert!(error.unwrap_err().to_string().contains("not a regular file"));
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let parent = tempfile::tempdir().unwrap();
    let (file, link) = (parent.path().join("file"), parent.path().join("link"));
    fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    write_file_atomically(&link, Existing::Overwrite, |file| file.write_bytes(b"new")).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&file).unwrap(), b"new");
}

#[test]
fn manifests_of_other_kinds_versions_and_digests_are_refused_with_both_values() {
    let parent = tempfile::tempdir().unwrap();
    let read = |text: &str| {
        fs::write(parent.path().join("manifest.json"), text).unwrap();
        Manifest::read(parent.path(), KIND).map_err(|error| error.to_string())
    };
    let error = read(r#"{"kind": "index", "format_version": 2}"#).unwrap_err();
    assert!(error.contains("kind is index, expected vectors"), "{error}");
    let error = read(r#"{"kind": "vectors", "format_version": 3, "shape": "new"}"#).unwrap_err();
    assert!(error.contains("format_version is 3, expected 2") && error.contains("newer"), "{error}");
    assert!(read(r#"{"kind": "vectors", "format_ver"#).unwrap_err().contains("not a manifest"));
    assert!(read(r#"{"kind": "vectors", "format_version": 2, "shape": [-1]}"#).is_err());
    assert!(read(&"[".repeat(100_000)).is_err());
    assert!(read(&" ".repeat((16 << 20) + 1)).unwrap_err().contains("16 MiB"));

    let manifest = read(r#"{"kind": "vectors", "format_version": 2, "digests": {"model": "aa"}}"#).unwrap();
    manifest.check_digest(parent.path(), "model", "aa").unwrap();
    let error = manifest.check_digest(parent.path(), "model", "bb").unwrap_err().to_string();
    assert!(error.contains("digest of model is aa, expected bb"), "{error}");
    assert!(manifest.check_digest(parent.path(), "data", "bb").is_err());
}

#[test]
fn id_lists_come_back_and_damage_names_its_line() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("ids");
    let ids = IdTable::try_from(&["a", "", "Zürich 東京"][..]).unwrap();
    let mut text = Vec::new();
    write_id_list(&ids, &mut text).unwrap();
    fs::write(&path, &text).unwrap();
    let (again, digest) = read_id_list(&path).unwrap();
    assert!(again.iter().eq(ids.iter()));
    assert_eq!(digest, digest_ids(&ids).unwrap());

    for (text, expected) in [
        (&b"a\nb"[..], "line 2: no line break"),
        (b"a\nb\na\n", "line 3: duplicate"),
        (b"a\n\xff\n", "line 2: invalid utf-8"),
        (b"a\r\nb\r\n", "line 1: a carriage return"),
    ] {
        fs::write(&path, text).unwrap();
        let error = read_id_list(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let broken = IdTable::try_from(&["a\nb"][..]).unwrap();
    assert!(digest_ids(&broken).unwrap_err().to_string().contains("line break"));

    // The longest id that is written is read, a longer one neither.
    let longest = "x".repeat(1 << 16);
    let ids = IdTable::try_from(&["a", &longest][..]).unwrap();
    fs::write(&path, format!("a\n{longest}\n")).unwrap();
    assert_eq!(read_id_list(&path).unwrap().1, digest_ids(&ids).unwrap());
    fs::write(&path, format!("a\n{longest}")).unwrap();
    assert!(read_id_list(&path).unwrap_err().to_string().contains("line 2: no line break"));
    fs::write(&path, format!("a\n{longest}y\n")).unwrap();
    assert!(read_id_list(&path).unwrap_err().to_string().contains("line 2: more than 65536 bytes"));
    let longer = IdTable::try_from(&[longest + "y"][..]).unwrap();
    assert!(digest_ids(&longer).unwrap_err().to_string().contains("65537 bytes"));
}
