//! From files to a tokenizer that gives transformers' ids.
//!
//! transformers does not take `tokenizer.json` as it stands: for the BERT classes the settings of
//! `tokenizer_config.json` (and their defaults: lower case, Chinese characters apart) overrule the stored
//! normaliser, for RoBERTa the leading space. Where only `vocab.txt`, or `vocab.json` and `merges.txt`
//! exist, the pipeline is put together as transformers' own converters do.

use std::collections::HashMap;
use std::path::Path;

use serde::de::IgnoredAny;
use serde_json::Value;
use tokenizers::models::bpe::{BPE, Merges, Vocab};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, ModelWrapper, NormalizerWrapper, PreTokenizerWrapper};

use super::config::{Role, TokenizerClass, TokenizerConfig};
use super::{TokenizerError, read_optional};

type Pipeline = tokenizers::Tokenizer;

/// Builds the pipeline of a directory.
pub(super) fn from_directory(
    directory: &Path,
    config: &mut TokenizerConfig,
) -> Result<Pipeline, TokenizerError> {
    let path = directory.join("tokenizer.json");
    if let Some(bytes) = read_optional(&path)? {
        return from_json(&bytes, config, &path);
    }
    let path = directory.join("vocab.txt");
    if let Some(bytes) = read_optional(&path)? {
        config.assume_class(TokenizerClass::Bert);
        return finish(word_piece(&bytes, config, &path)?, config, &path);
    }
    let (path, merges_path) = (directory.join("vocab.json"), directory.join("merges.txt"));
    if let (Some(vocabulary), Some(merges)) = (read_optional(&path)?, read_optional(&merges_path)?) {
        config.assume_class(TokenizerClass::Roberta);
        let pipeline = byte_level_bpe(&vocabulary, &merges, config, &path, &merges_path)?;
        return finish(pipeline, config, &path);
    }
    for name in ["sentencepiece.bpe.model", "spiece.model", "tokenizer.model"] {
        let path = directory.join(name);
        if path.exists() {
            return Err(TokenizerError::SentencePiece { path });
        }
    }
    Err(TokenizerError::Missing { path: directory.to_owned() })
}

/// Builds the pipeline of a `tokenizer.json`.
pub(super) fn from_json(
    bytes: &[u8],
    config: &TokenizerConfig,
    path: &Path,
) -> Result<Pipeline, TokenizerError> {
    let refuse =
        |error: &dyn std::fmt::Display| TokenizerError::invalid(path, format!("not a tokenizer: {error}"));
    // The library panics on some text that is not JSON.
    serde_json::from_slice::<IgnoredAny>(bytes).map_err(|error| refuse(&error))?;
    let mut pipeline = Pipeline::from_bytes(bytes).map_err(|error| refuse(&error))?;
    check_template(&pipeline, path)?;
    overrule(&mut pipeline, config).map_err(|error| TokenizerError::invalid(path, error))?;
    finish(pipeline, config, path)
}

/// The settings of the class against those stored in the file.
fn overrule(pipeline: &mut Pipeline, config: &TokenizerConfig) -> tokenizers::Result<()> {
    match config.class() {
        TokenizerClass::Bert | TokenizerClass::Mpnet => {
            if let Some(NormalizerWrapper::BertNormalizer(stored)) = pipeline.get_normalizer() {
                let wanted = bert_normalizer(config, stored.clean_text);
                pipeline.with_normalizer(Some(wanted))?;
            }
        }
        TokenizerClass::Roberta => {
            if let Some(PreTokenizerWrapper::ByteLevel(stored)) = pipeline.get_pre_tokenizer() {
                let wanted = stored.add_prefix_space(config.add_prefix_space.unwrap_or(false));
                pipeline.with_pre_tokenizer(Some(wanted));
            }
        }
        TokenizerClass::XlmRoberta | TokenizerClass::Other => {}
    }
    Ok(())
}

fn bert_normalizer(config: &TokenizerConfig, clean_text: bool) -> BertNormalizer {
    BertNormalizer::new(
        clean_text,
        config.tokenize_chinese_chars.unwrap_or(true),
        config.strip_accents,
        config.do_lower_case.unwrap_or(true),
    )
}

/// Special and added tokens, and everything switched off that we do ourselves.
fn finish(mut pipeline: Pipeline, config: &TokenizerConfig, path: &Path) -> Result<Pipeline, TokenizerError> {
    let invalid = |error: Box<dyn std::error::Error + Send + Sync>| TokenizerError::invalid(path, error);
    pipeline.with_truncation(None).map_err(invalid)?;
    pipeline.with_padding(None);
    if let ModelWrapper::BPE(model) = pipeline.get_model()
        && model.dropout.is_some()
    {
        // A text has one tokenisation, whatever augmentation the model was trained with.
        let mut model = model.clone();
        model.dropout = None;
        pipeline.with_model(model);
    }
    for (&id, token) in &config.added {
        if pipeline.get_added_vocabulary().get_added_tokens_decoder().get(&id) != Some(token) {
            pipeline.add_tokens([token.clone()]).map_err(invalid)?;
        }
        let given = pipeline.token_to_id(&token.content);
        if given != Some(id) {
            return Err(TokenizerError::invalid(
                path,
                format!(
                    "added token {:?} is declared with id {id} but would get {}; the vocabulary and \
                     tokenizer_config.json or added_tokens.json are not of the same tokenizer",
                    token.content,
                    given.map_or_else(|| "none".to_owned(), |given| given.to_string())
                ),
            ));
        }
    }
    // transformers would also add a role's token that the vocabulary lacks; no model has a vector for it.
    let roles: Vec<AddedToken> = Role::ALL
        .into_iter()
        .filter_map(|role| config.role(role))
        .filter(|token| pipeline.token_to_id(&token.content).is_some())
        .collect();
    let missing: Vec<AddedToken> = roles
        .into_iter()
        .chain(config.extra.iter().cloned())
        .filter(|token| !pipeline.get_added_vocabulary().get_vocab().contains_key(&token.content))
        .collect();
    pipeline.add_special_tokens(missing).map_err(invalid)?;
    if config.split_special_tokens {
        pipeline.set_encode_special_tokens(true);
    }
    Ok(pipeline)
}

fn word_piece(bytes: &[u8], config: &TokenizerConfig, path: &Path) -> Result<Pipeline, TokenizerError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| TokenizerError::invalid(path, format!("not valid UTF-8: {error}")))?;
    let mut vocabulary = Vocab::default();
    for (id, token) in text.lines().enumerate() {
        let id = u32::try_from(id).map_err(|_| TokenizerError::invalid(path, "more than 2^32 tokens"))?;
        vocabulary.insert(token.to_owned(), id);
    }
    let unknown = config.role(Role::Unk).map_or_else(|| "[UNK]".to_owned(), |token| token.content);
    if !vocabulary.contains_key(&unknown) {
        return Err(TokenizerError::invalid(
            path,
            format!("{} tokens, none of them {unknown:?}; not the vocabulary of a BERT", vocabulary.len()),
        ));
    }
    let model = WordPiece::builder()
        .vocab(vocabulary)
        .unk_token(unknown)
        .build()
        .map_err(|error| TokenizerError::invalid(path, error))?;
    let mut pipeline = Pipeline::new(model);
    pipeline
        .with_normalizer(Some(bert_normalizer(config, true)))
        .map_err(|error| TokenizerError::invalid(path, error))?
        .with_pre_tokenizer(Some(BertPreTokenizer));
    Ok(pipeline)
}

fn byte_level_bpe(
    vocabulary: &[u8],
    merges: &[u8],
    config: &TokenizerConfig,
    path: &Path,
    merges_path: &Path,
) -> Result<Pipeline, TokenizerError> {
    let vocabulary: HashMap<String, u32> = serde_json::from_slice(vocabulary)
        .map_err(|error| TokenizerError::invalid(path, format!("not a map of tokens to ids: {error}")))?;
    let model = BPE::builder()
        .vocab_and_merges(vocabulary.into_iter().collect::<Vocab>(), read_merges(merges, merges_path)?)
        .build()
        .map_err(|error| TokenizerError::invalid(merges_path, error))?;
    let mut pipeline = Pipeline::new(model);
    let leading_space = config.add_prefix_space.unwrap_or(false);
    pipeline.with_pre_tokenizer(Some(ByteLevel::default().add_prefix_space(leading_space)));
    Ok(pipeline)
}

fn read_merges(bytes: &[u8], path: &Path) -> Result<Merges, TokenizerError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| TokenizerError::invalid(path, format!("not valid UTF-8: {error}")))?;
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with("#version") && !line.is_empty())
        .map(|(number, line)| match line.split_once(' ') {
            Some((left, right)) if !right.contains(' ') => Ok((left.to_owned(), right.to_owned())),
            _ => Err(TokenizerError::invalid(
                path,
                format!("line {}: found {line:?}, expected two pieces and a space between", number + 1),
            )),
        })
        .collect()
}

/// A template that names a special token it does not define would fail only when used.
fn check_template(pipeline: &Pipeline, path: &Path) -> Result<(), TokenizerError> {
    let processor = serde_json::to_value(pipeline.get_post_processor())
        .map_err(|error| TokenizerError::invalid(path, error))?;
    undefined_token(&processor).map_or(Ok(()), |token| {
        Err(TokenizerError::invalid(
            path,
            format!("the post-processor's template uses {token} without defining it"),
        ))
    })
}

fn undefined_token(processor: &Value) -> Option<String> {
    if let Some(parts) = processor.get("processors").and_then(Value::as_array) {
        return parts.iter().find_map(undefined_token);
    }
    let defined = processor.get("special_tokens")?;
    ["single", "pair"]
        .into_iter()
        .filter_map(|name| processor.get(name).and_then(Value::as_array))
        .flatten()
        .filter_map(|piece| piece.pointer("/SpecialToken/id").and_then(Value::as_str))
        .find(|id| defined.get(id).is_none())
        .map(str::to_owned)
}
