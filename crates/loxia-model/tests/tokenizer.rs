//! Tokenizers against what transformers gives (`tools/golden/tokens.py`).

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::Crc;
use flate2::read::GzDecoder;
use loxia_model::tokenizer::{TemplateToken, Tokenizer, TokenizerError};
use proptest::prelude::*;
use rayon::prelude::*;

const NAMES: [&str; 8] = [
    "wordpiece",
    "wordpiece-cased",
    "wordpiece-overruled",
    "vocab-txt",
    "mpnet",
    "roberta",
    "vocab-merges",
    "xlm-roberta",
];

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

pub(crate) fn gunzip(path: &Path) -> String {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

pub(crate) fn open(name: &str) -> Tokenizer {
    Tokenizer::open(&fixtures().join("tokenizers").join(name)).unwrap()
}

fn lines() -> Vec<String> {
    gunzip(&fixtures().join("tokenizers/lines.jsonl.gz"))
        .split_terminator('\n')
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A directory with copies of a fixture's files, to be spoilt.
fn copy_of(name: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixtures().join("tokenizers").join(name)).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, directory.path().join(path.file_name().unwrap())).unwrap();
    }
    directory
}

#[test]
fn ids_are_those_of_transformers() {
    let lines = lines();
    assert_eq!(lines.len(), 10_000);
    NAMES.par_iter().for_each(|name| {
        let tokenizer = open(name);
        let golden = fs::read(fixtures().join(format!("tokenizers/{name}.crc"))).unwrap();
        let (total, each) = golden.split_at(4);
        let mut all = Crc::new();
        for (number, (line, expected)) in lines.iter().zip(each.chunks_exact(2)).enumerate() {
            let ids: Vec<u8> =
                tokenizer.encode(line).unwrap().iter().flat_map(|id| id.to_le_bytes()).collect();
            let mut crc = Crc::new();
            crc.update(&ids);
            all.update(&ids);
            let folded = (crc.sum() >> 16) as u16 ^ crc.sum() as u16;
            let excerpt: String = line.chars().take(200).collect();
            assert_eq!(folded.to_le_bytes(), expected, "{name}, line {}: {excerpt:?}", number + 1);
        }
        assert_eq!(all.sum().to_le_bytes(), total, "{name}");
    });
}

#[test]
fn prefixes_and_suffixes_are_those_of_the_whole() {
    let lines = lines();
    NAMES.par_iter().for_each(|name| {
        let tokenizer = open(name);
        // All long lines, and a sample of the others.
        for (at, line) in lines.iter().enumerate() {
            let counts: &[usize] = match (line.len() > 10_000, at % 40) {
                (true, _) => &[509],
                (false, 0) => &[0, 1, 2, 7, 62],
                _ => continue,
            };
            let ids = tokenizer.encode(line).unwrap();
            for &count in counts {
                let kept = count.min(ids.len());
                let prefix = tokenizer.encode_prefix(line, count).unwrap();
                assert_eq!(prefix.ids, ids[..kept], "{name}");
                assert_eq!(prefix.cut, kept < ids.len());
                let suffix = tokenizer.encode_suffix(line, count).unwrap();
                assert_eq!(suffix.ids, ids[ids.len() - kept..], "{name}");
                assert_eq!(suffix.cut, kept < ids.len());
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_text_can_be_read_in_parts(
        words in prop::collection::vec("[a-zé漢 ]{0,6}|<mask>|\\[SEP\\]|'s|\\PC{0,3}", 0..60),
        count in 0usize..20,
    ) {
        let text = words.join(" ");
        for name in ["wordpiece", "roberta", "xlm-roberta", "mpnet"] {
            let tokenizer = open(name);
            let ids = tokenizer.encode(&text).unwrap();
            let kept = count.min(ids.len());
            prop_assert_eq!(&tokenizer.encode_prefix(&text, count).unwrap().ids, &ids[..kept]);
            prop_assert_eq!(&tokenizer.encode_suffix(&text, count).unwrap().ids, &ids[ids.len() - kept..]);
        }
    }
}

#[test]
fn a_megabyte_is_read_only_as_far_as_needed() {
    let text = "the quick brown fox ".repeat(50_000);
    for name in ["wordpiece", "roberta", "xlm-roberta"] {
        let tokenizer = open(name);
        let start = std::time::Instant::now();
        for _ in 0..100 {
            let prefix = tokenizer.encode_prefix(&text, 128).unwrap();
            let suffix = tokenizer.encode_suffix(&text, 128).unwrap();
            assert!(prefix.cut && suffix.cut && prefix.ids.len() == 128 && suffix.ids.len() == 128);
        }
        // Reading everything would take a hundred times as long; the bound is loose for slow machines.
        assert!(start.elapsed().as_secs_f64() < 10.0, "{name}: {:?}", start.elapsed());
    }
}

#[test]
fn templates_are_those_of_transformers() {
    let golden: serde_json::Value =
        serde_json::from_slice(&fs::read(fixtures().join("tokenizers/templates.json")).unwrap()).unwrap();
    let numbers = |value: &serde_json::Value| -> Vec<u32> { serde_json::from_value(value.clone()).unwrap() };
    for name in NAMES {
        let tokenizer = open(name);
        let (first, second) = (tokenizer.encode("seed plant").unwrap(), tokenizer.encode("to walk").unwrap());
        let text =
            |ids: &[u32], type_id| ids.iter().map(|&id| TemplateToken { id, type_id }).collect::<Vec<_>>();
        let check = |tokens: Vec<TemplateToken>, golden: &serde_json::Value| {
            assert_eq!(
                tokens.iter().map(|token| token.id).collect::<Vec<_>>(),
                numbers(&golden[0]),
                "{name}"
            );
            assert_eq!(
                tokens.iter().map(|token| token.type_id).collect::<Vec<_>>(),
                numbers(&golden[1]),
                "{name}"
            );
        };
        let single = tokenizer.single_template();
        let tokens = [single.prefix.clone(), text(&first, single.text_type), single.suffix.clone()].concat();
        check(tokens, &golden[name]["single"]);
        let pair = tokenizer.pair_template();
        let tokens = [
            pair.prefix.clone(),
            text(&first, pair.first_type),
            pair.middle.clone(),
            text(&second, pair.second_type),
            pair.suffix.clone(),
        ]
        .concat();
        check(tokens, &golden[name]["pair"]);
    }
}

#[test]
fn a_vocabulary_larger_than_the_model_is_named() {
    let tokenizer = open("wordpiece");
    tokenizer.check_vocabulary(8192).unwrap();
    let error = tokenizer.check_vocabulary(8000).unwrap_err().to_string();
    for part in ["tokenizer and vocabulary disagree", "8191", "8000", "8192"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn stored_truncation_and_padding_are_off() {
    let path = fixtures().join("tokenizers/wordpiece/tokenizer.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    json["truncation"] = serde_json::json!(
        {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0});
    json["padding"] = serde_json::json!(
        {"strategy": {"Fixed": 16}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
         "pad_type_id": 0, "pad_token": "[PAD]"});
    let stored = Tokenizer::from_json(json.to_string().as_bytes(), None).unwrap();
    let text = "a stove that burns wood for heat";
    assert_eq!(stored.encode(text).unwrap(), open("wordpiece").encode(text).unwrap());
}

#[test]
fn without_a_post_processor_the_special_tokens_decide() {
    for (name, added) in [("wordpiece-cased", 3), ("roberta", 4)] {
        let directory = copy_of(name);
        let path = directory.path().join("tokenizer.json");
        let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        json["post_processor"] = serde_json::Value::Null;
        fs::write(&path, json.to_string()).unwrap();
        let bare = Tokenizer::open(directory.path()).unwrap();
        assert_eq!(bare.pair_template(), open(name).pair_template());
        assert_eq!(bare.single_template(), open(name).single_template());
        assert_eq!(bare.pair_template().added(), added);
    }
}

#[test]
fn unreadable_directories_say_what_to_do() {
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(Tokenizer::open(empty.path()), Err(TokenizerError::Missing { .. })));
    fs::write(empty.path().join("sentencepiece.bpe.model"), b"x").unwrap();
    let error = Tokenizer::open(empty.path()).unwrap_err().to_string();
    assert!(error.contains("save_pretrained"), "{error}");

    let spoilt = copy_of("wordpiece");
    for (file, content, part) in [
        ("tokenizer.json", "{", "not a tokenizer"),
        ("tokenizer_config.json", "{\"model_max_length\": 0}", "model_max_length is 0"),
    ] {
        let path = spoilt.path().join(file);
        let sound = fs::read(&path).unwrap();
        fs::write(&path, content).unwrap();
        let error = Tokenizer::open(spoilt.path()).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(file), "{error}");
        fs::write(&path, sound).unwrap();
    }
    Tokenizer::open(spoilt.path()).unwrap();

    let spoilt = copy_of("vocab-merges");
    fs::write(spoilt.path().join("merges.txt"), "#version: 0.2\na b c\n").unwrap();
    let error = Tokenizer::open(spoilt.path()).unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
}

#[test]
fn a_file_on_which_the_library_panics_is_refused() {
    let with_decoder = |decoder: &str| {
        let model = r#"{"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}"#;
        let json =
            format!(r#"{{"version": "1.0", "added_tokens": [], "decoder": {decoder}, "model": {model}}}"#);
        Tokenizer::from_json(json.as_bytes(), None).map_err(|error| error.to_string())
    };
    with_decoder("null").unwrap();
    let error = with_decoder("nul").unwrap_err();
    assert!(error.contains("tokenizer.json: not a tokenizer: expected ident"), "{error}");
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let error = with_decoder(&deep).unwrap_err();
    assert!(error.contains("the tokenizers library failed (Helper"), "{error}");
    assert!(error.contains("save_pretrained"), "{error}");
}

#[test]
fn a_template_with_an_undefined_token_is_refused() {
    let path = fixtures().join("tokenizers/wordpiece-cased/tokenizer.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    json["post_processor"]["special_tokens"].as_object_mut().unwrap().remove("[SEP]");
    let error = Tokenizer::from_json(json.to_string().as_bytes(), None).unwrap_err().to_string();
    assert!(error.contains("[SEP]"), "{error}");
}

#[test]
fn added_tokens_of_another_tokenizer_are_refused() {
    let spoilt = copy_of("wordpiece-cased");
    let path = spoilt.path().join("tokenizer_config.json");
    let mut config: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    config["added_tokens_decoder"] = serde_json::json!({"1500": {"content": "<new>", "special": true}});
    fs::write(&path, config.to_string()).unwrap();
    let tokenizer = Tokenizer::open(spoilt.path()).unwrap();
    assert_eq!(tokenizer.encode("a<new>").unwrap().last(), Some(&1500));
    config["added_tokens_decoder"] = serde_json::json!({"30000": {"content": "<new>", "special": true}});
    fs::write(&path, config.to_string()).unwrap();
    let error = Tokenizer::open(spoilt.path()).unwrap_err().to_string();
    assert!(error.contains("<new>") && error.contains("30000") && error.contains("1500"), "{error}");
}
