//! `tokenizer_config.json`, `special_tokens_map.json` and `added_tokens.json`, as transformers reads them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};
use tokenizers::AddedToken;

use super::TokenizerError;

/// A `model_max_length` above this stands for "no limit" (transformers writes 1e30).
const LONGEST_LIMIT: f64 = 1e7;

/// The classes of transformers whose settings change what `tokenizer.json` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TokenizerClass {
    /// BERT, DistilBERT, ELECTRA: the settings rule the BERT normaliser.
    Bert,
    /// The same normaliser, RoBERTa's template.
    Mpnet,
    /// Byte-level BPE: the settings rule the leading space.
    Roberta,
    /// Unigram; `tokenizer.json` stands as it is.
    XlmRoberta,
    /// Anything else: `tokenizer.json` stands as it is.
    #[default]
    Other,
}

impl TokenizerClass {
    fn from_class_name(name: &str) -> Self {
        match name.strip_suffix("Fast").unwrap_or(name) {
            "BertTokenizer" | "DistilBertTokenizer" | "ElectraTokenizer" | "MobileBertTokenizer" => {
                Self::Bert
            }
            "MPNetTokenizer" => Self::Mpnet,
            "RobertaTokenizer" => Self::Roberta,
            "XLMRobertaTokenizer" => Self::XlmRoberta,
            _ => Self::Other,
        }
    }

    fn from_model_type(model_type: &str) -> Self {
        match model_type {
            "bert" | "distilbert" | "electra" | "mobilebert" => Self::Bert,
            "mpnet" => Self::Mpnet,
            "roberta" => Self::Roberta,
            "xlm-roberta" => Self::XlmRoberta,
            _ => Self::Other,
        }
    }
}

/// The special tokens that have a role, each in the order transformers adds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Bos,
    Eos,
    Unk,
    Sep,
    Pad,
    Cls,
    Mask,
}

impl Role {
    pub(super) const ALL: [Role; 7] =
        [Role::Bos, Role::Eos, Role::Unk, Role::Sep, Role::Pad, Role::Cls, Role::Mask];

    fn key(self) -> &'static str {
        match self {
            Role::Bos => "bos_token",
            Role::Eos => "eos_token",
            Role::Unk => "unk_token",
            Role::Sep => "sep_token",
            Role::Pad => "pad_token",
            Role::Cls => "cls_token",
            Role::Mask => "mask_token",
        }
    }

    /// The token a class gives this role where the files name none.
    fn default_for(self, class: TokenizerClass) -> Option<&'static str> {
        let bert = match self {
            Role::Unk => Some("[UNK]"),
            Role::Sep => Some("[SEP]"),
            Role::Pad => Some("[PAD]"),
            Role::Cls => Some("[CLS]"),
            Role::Mask => Some("[MASK]"),
            Role::Bos | Role::Eos => None,
        };
        let roberta = match self {
            Role::Bos | Role::Cls => "<s>",
            Role::Eos | Role::Sep => "</s>",
            Role::Unk => "<unk>",
            Role::Pad => "<pad>",
            Role::Mask => "<mask>",
        };
        match class {
            TokenizerClass::Bert => bert,
            TokenizerClass::Mpnet if self == Role::Unk => Some("[UNK]"),
            TokenizerClass::Mpnet | TokenizerClass::Roberta | TokenizerClass::XlmRoberta => Some(roberta),
            TokenizerClass::Other => None,
        }
    }
}

/// Everything the side files say about a tokenizer.
#[derive(Debug, Clone, Default)]
pub(super) struct TokenizerConfig {
    class: Option<TokenizerClass>,
    pub(super) do_lower_case: Option<bool>,
    pub(super) strip_accents: Option<bool>,
    pub(super) tokenize_chinese_chars: Option<bool>,
    pub(super) add_prefix_space: Option<bool>,
    pub(super) split_special_tokens: bool,
    pub(super) max_length: Option<usize>,
    /// Tokens to put on top of the vocabulary, by their id.
    pub(super) added: BTreeMap<u32, AddedToken>,
    roles: BTreeMap<Role, AddedToken>,
    /// Special tokens without a role.
    pub(super) extra: Vec<AddedToken>,
}

impl TokenizerConfig {
    /// Reads the side files of a directory; each of them may be absent.
    pub(super) fn read(directory: &Path) -> Result<Self, TokenizerError> {
        let path = directory.join("tokenizer_config.json");
        let mut config = match super::read_optional(&path)? {
            Some(bytes) => Self::parse(&bytes, &path)?,
            None => Self::default(),
        };
        // transformers reads the older files only where the newer list is absent.
        if config.added.is_empty() {
            let path = directory.join("special_tokens_map.json");
            if let Some(bytes) = super::read_optional(&path)? {
                config.take_special_tokens(&object(&bytes, &path)?, &path)?;
            }
            let path = directory.join("added_tokens.json");
            if let Some(bytes) = super::read_optional(&path)? {
                config.take_added_tokens(&object(&bytes, &path)?, &path)?;
            }
        }
        if config.class.is_none() {
            let path = directory.join("config.json");
            if let Some(bytes) = super::read_optional(&path)? {
                let model = object(&bytes, &path)?;
                config.class =
                    model.get("model_type").and_then(Value::as_str).map(TokenizerClass::from_model_type);
            }
        }
        Ok(config)
    }

    /// Parses `tokenizer_config.json`.
    pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Self, TokenizerError> {
        let fields = object(bytes, path)?;
        let mut config = Self {
            class: fields.get("tokenizer_class").and_then(Value::as_str).map(TokenizerClass::from_class_name),
            do_lower_case: flag(&fields, "do_lower_case", path)?,
            strip_accents: flag(&fields, "strip_accents", path)?,
            tokenize_chinese_chars: flag(&fields, "tokenize_chinese_chars", path)?,
            add_prefix_space: flag(&fields, "add_prefix_space", path)?,
            split_special_tokens: flag(&fields, "split_special_tokens", path)?.unwrap_or(false),
            max_length: limit(&fields, path)?,
            ..Self::default()
        };
        if let Some(tokens) = fields.get("added_tokens_decoder").and_then(Value::as_object) {
            for (id, token) in tokens {
                let id = id.parse().map_err(|_| {
                    TokenizerError::invalid(path, format!("added_tokens_decoder: {id:?} is not a token id"))
                })?;
                if let Some(token) = added_token(token, false, path)? {
                    config.added.insert(id, token);
                }
            }
        }
        config.take_special_tokens(&fields, path)?;
        Ok(config)
    }

    pub(super) fn class(&self) -> TokenizerClass {
        self.class.unwrap_or_default()
    }

    /// A class for files that name none but can only be of one.
    pub(super) fn assume_class(&mut self, class: TokenizerClass) {
        if self.class() == TokenizerClass::Other {
            self.class = Some(class);
        }
    }

    /// The token of a role: as the files name it, or the class's own.
    pub(super) fn role(&self, role: Role) -> Option<AddedToken> {
        self.roles.get(&role).cloned().or_else(|| {
            let content = role.default_for(self.class())?;
            // A mask takes the space before it along where words carry their leading space.
            let takes_space = role == Role::Mask && self.class() != TokenizerClass::Bert;
            Some(AddedToken::from(content, true).lstrip(takes_space))
        })
    }

    fn take_special_tokens(
        &mut self,
        fields: &Map<String, Value>,
        path: &Path,
    ) -> Result<(), TokenizerError> {
        for role in Role::ALL {
            if let Some(token) = fields.get(role.key())
                && let Some(token) = added_token(token, true, path)?
            {
                self.roles.insert(role, token);
            }
        }
        for key in ["additional_special_tokens", "extra_special_tokens"] {
            let tokens: Vec<&Value> = match fields.get(key) {
                Some(Value::Array(tokens)) => tokens.iter().collect(),
                Some(Value::Object(tokens)) => tokens.values().collect(),
                _ => continue,
            };
            for token in tokens {
                self.extra.extend(added_token(token, true, path)?);
            }
        }
        Ok(())
    }

    fn take_added_tokens(&mut self, fields: &Map<String, Value>, path: &Path) -> Result<(), TokenizerError> {
        for (content, id) in fields {
            let id = id.as_u64().and_then(|id| u32::try_from(id).ok()).ok_or_else(|| {
                TokenizerError::invalid(path, format!("id of {content:?} is {id}, expected a token id"))
            })?;
            let special = self.roles.values().chain(&self.extra).any(|token| &token.content == content);
            self.added.insert(id, AddedToken::from(content.clone(), special));
        }
        Ok(())
    }
}

fn object(bytes: &[u8], path: &Path) -> Result<Map<String, Value>, TokenizerError> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(TokenizerError::invalid(path, "not a JSON object")),
        Err(error) => Err(TokenizerError::invalid(path, format!("not valid JSON: {error}"))),
    }
}

fn flag(fields: &Map<String, Value>, key: &str, path: &Path) -> Result<Option<bool>, TokenizerError> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(other) => {
            Err(TokenizerError::invalid(path, format!("{key} is {other}, expected true or false")))
        }
    }
}

fn limit(fields: &Map<String, Value>, path: &Path) -> Result<Option<usize>, TokenizerError> {
    let Some(value) = fields.get("model_max_length").or_else(|| fields.get("max_len")) else {
        return Ok(None);
    };
    match value.as_f64() {
        None if value.is_null() => Ok(None),
        Some(limit) if limit > LONGEST_LIMIT => Ok(None),
        Some(limit) if limit >= 1.0 => Ok(Some(limit as usize)),
        _ => Err(TokenizerError::invalid(
            path,
            format!("model_max_length is {value}, expected a positive number"),
        )),
    }
}

/// A token written as a string or as an object; `None` for null.
fn added_token(value: &Value, special: bool, path: &Path) -> Result<Option<AddedToken>, TokenizerError> {
    let fields = match value {
        Value::Null => return Ok(None),
        Value::String(content) => return Ok(Some(AddedToken::from(content.clone(), special))),
        Value::Object(fields) => fields,
        other => {
            return Err(TokenizerError::invalid(
                path,
                format!("found {other} for a token, expected a string or an object with `content`"),
            ));
        }
    };
    let content = fields
        .get("content")
        .and_then(Value::as_str)
        .ok_or_else(|| TokenizerError::invalid(path, "a token without `content`"))?;
    let special = special || flag(fields, "special", path)?.unwrap_or(false);
    let get = |key| Ok::<_, TokenizerError>(flag(fields, key, path)?.unwrap_or(false));
    Ok(Some(
        AddedToken::from(content, special)
            .single_word(get("single_word")?)
            .lstrip(get("lstrip")?)
            .rstrip(get("rstrip")?)
            .normalized(flag(fields, "normalized", path)?.unwrap_or(!special)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<TokenizerConfig, TokenizerError> {
        TokenizerConfig::parse(json.as_bytes(), Path::new("tokenizer_config.json"))
    }

    #[test]
    fn absurd_limits_are_no_limits() {
        assert_eq!(parse(r#"{"model_max_length": 512}"#).unwrap().max_length, Some(512));
        let huge = parse(r#"{"model_max_length": 1000000000000000019884624838656}"#).unwrap();
        assert_eq!(huge.max_length, None);
        assert!(parse(r#"{"model_max_length": -3}"#).is_err());
        assert!(parse(r#"{"model_max_length": "long"}"#).is_err());
    }

    #[test]
    fn tokens_come_as_strings_and_as_objects() {
        let config = parse(
            r#"{"tokenizer_class": "MPNetTokenizer", "cls_token": "<c>",
                "mask_token": {"__type": "AddedToken", "content": "<m>", "lstrip": true, "normalized": true},
                "added_tokens_decoder": {"7": {"content": "<x>", "special": true}}}"#,
        )
        .unwrap();
        assert_eq!(config.role(Role::Cls).unwrap().content, "<c>");
        let mask = config.role(Role::Mask).unwrap();
        assert!(mask.lstrip && mask.normalized && mask.special);
        assert_eq!(config.role(Role::Unk).unwrap().content, "[UNK]");
        assert_eq!(config.role(Role::Sep).unwrap().content, "</s>");
        assert!(config.added[&7].special && !config.added[&7].normalized);
    }

    #[test]
    fn wrong_types_name_the_key() {
        let error = parse(r#"{"do_lower_case": "yes"}"#).unwrap_err().to_string();
        assert!(error.contains("do_lower_case") && error.contains("yes"), "{error}");
        assert!(parse(r#"{"added_tokens_decoder": {"x": "t"}}"#).is_err());
        assert!(parse("[]").is_err());
        assert!(parse("{").is_err());
    }
}
