//! Text to token ids, as transformers' fast tokenizers give them.
//!
//! [`Tokenizer`] wraps the `tokenizers` crate: what that leaves to Python (which settings overrule
//! `tokenizer.json`, where special tokens come from, building from a bare vocabulary) is done here, and the
//! ids are those of `AutoTokenizer.from_pretrained(DIR)`. Truncation and padding that a `tokenizer.json`
//! may store are switched off; [`layout`](crate::layout) cuts, and nothing in Loxia pads.
//!
//! The text of a special token inside a text (`[SEP]` in a web page) becomes that token, as it does in
//! transformers.
//!
//! Long texts cost what is read of them: [`Tokenizer::encode_prefix`] and [`Tokenizer::encode_suffix`]
//! stop early where that provably changes nothing.

mod build;
mod chunks;
mod config;
mod contained;
mod error;
mod template;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

pub use error::TokenizerError;
pub use template::{PairTemplate, SingleTemplate, TemplateToken};

use config::{Role, TokenizerClass, TokenizerConfig};
use contained::contained;
use template::Separators;

/// Larger files are refused: the largest vocabularies in use take some 20 MB.
const MAX_FILE_BYTES: u64 = 1 << 29;

/// First guess at the bytes of a token, when a text is read piece by piece.
const BYTES_PER_TOKEN: usize = 8;

/// A tokenizer of a model directory. Clones share one vocabulary; all methods may be called from many
/// threads.
///
/// ```
/// # let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tokenizers/wordpiece");
/// use loxia_model::tokenizer::Tokenizer;
/// let tokenizer = Tokenizer::open(directory.as_ref())?;
/// let ids = tokenizer.encode("Wood stoves")?;
/// assert_eq!(tokenizer.encode("wood   STOVES")?, ids);
/// let prefix = tokenizer.encode_prefix("wood stoves and pipes", 1)?;
/// assert_eq!((prefix.ids.as_slice(), prefix.cut), (&ids[..1], true));
/// # Ok::<(), loxia_model::tokenizer::TokenizerError>(())
/// ```
#[derive(Clone)]
pub struct Tokenizer(Arc<Inner>);

struct Inner {
    pipeline: tokenizers::Tokenizer,
    cuts_at_spaces: bool,
    single: SingleTemplate,
    pair: PairTemplate,
    special: SpecialTokens,
    max_length: Option<usize>,
}

/// Ids of the special tokens that have a role; those a vocabulary lacks are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpecialTokens {
    /// Opens a sequence (`[CLS]`, `<s>`).
    pub cls: Option<u32>,
    /// Ends a text (`[SEP]`, `</s>`).
    pub sep: Option<u32>,
    /// Fills up (`[PAD]`, `<pad>`).
    pub pad: Option<u32>,
    /// Stands for what the vocabulary cannot spell.
    pub unk: Option<u32>,
    /// Hides a token.
    pub mask: Option<u32>,
}

/// The beginning or the end of a text as ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The ids, no more than were asked for.
    pub ids: Vec<u32>,
    /// Whether the text has more tokens than that.
    pub cut: bool,
}

impl Tokenizer {
    /// Opens the tokenizer of a model directory: `tokenizer.json`, else `vocab.txt`, else `vocab.json` with
    /// `merges.txt`; with `tokenizer_config.json`, `special_tokens_map.json` and `added_tokens.json` where
    /// they exist.
    pub fn open(directory: &Path) -> Result<Self, TokenizerError> {
        let mut config = TokenizerConfig::read(directory)?;
        contained(|| {
            let pipeline = build::from_directory(directory, &mut config)?;
            Self::new(pipeline, &config, directory)
        })
        .unwrap_or_else(|what| Err(TokenizerError::invalid(directory, what)))
    }

    /// A tokenizer from the bytes of `tokenizer.json` and, where there is one, `tokenizer_config.json`.
    ///
    /// ```
    /// # let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tokenizers/wordpiece");
    /// # let json = std::fs::read(format!("{directory}/tokenizer.json")).unwrap();
    /// let tokenizer = loxia_model::tokenizer::Tokenizer::from_json(&json, None)?;
    /// assert_eq!(tokenizer.pair_template().added(), 3);
    /// # Ok::<(), loxia_model::tokenizer::TokenizerError>(())
    /// ```
    pub fn from_json(tokenizer: &[u8], config: Option<&[u8]>) -> Result<Self, TokenizerError> {
        let path = Path::new("tokenizer.json");
        let config = match config {
            Some(bytes) => TokenizerConfig::parse(bytes, Path::new("tokenizer_config.json"))?,
            None => TokenizerConfig::default(),
        };
        contained(|| Self::new(build::from_json(tokenizer, &config, path)?, &config, path))
            .unwrap_or_else(|what| Err(TokenizerError::invalid(path, what)))
    }

    fn new(
        pipeline: tokenizers::Tokenizer,
        config: &TokenizerConfig,
        path: &Path,
    ) -> Result<Self, TokenizerError> {
        // Where the files name no class, both conventions are tried.
        let id = |role, usual: [&str; 2]| match config.role(role) {
            Some(token) => pipeline.token_to_id(&token.content),
            None => usual.iter().find_map(|token| pipeline.token_to_id(token)),
        };
        let special = SpecialTokens {
            cls: id(Role::Cls, ["[CLS]", "<s>"]),
            sep: id(Role::Sep, ["[SEP]", "</s>"]),
            pad: id(Role::Pad, ["[PAD]", "<pad>"]),
            unk: id(Role::Unk, ["[UNK]", "<unk>"]),
            mask: id(Role::Mask, ["[MASK]", "<mask>"]),
        };
        let separators = match config.class() {
            TokenizerClass::Bert | TokenizerClass::Other => Separators::Bert,
            TokenizerClass::Mpnet | TokenizerClass::Roberta | TokenizerClass::XlmRoberta => {
                Separators::Roberta
            }
        };
        let (single, pair) = match pipeline.get_post_processor() {
            Some(processor) => {
                template::discover(processor).map_err(|what| TokenizerError::invalid(path, what))?
            }
            None => template::from_special_tokens(special.cls, special.sep, separators),
        };
        let cuts_at_spaces = chunks::cuts_at_spaces(&pipeline);
        let max_length = config.max_length;
        Ok(Self(Arc::new(Inner { pipeline, cuts_at_spaces, single, pair, special, max_length })))
    }

    /// All ids of a text, without the template's special tokens.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let encoded =
            contained(|| self.0.pipeline.encode_fast(text, false).map_err(|error| error.to_string()));
        match encoded.flatten() {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(what) => Err(TokenizerError::Encode { excerpt: text.chars().take(60).collect(), what }),
        }
    }

    /// The first `max_tokens` ids of [`encode`](Self::encode), reading no more of the text than needed.
    pub fn encode_prefix(&self, text: &str, max_tokens: usize) -> Result<Part, TokenizerError> {
        let mut ids = Vec::new();
        let mut rest = text;
        while !rest.is_empty() && ids.len() <= max_tokens {
            let wanted = (max_tokens - ids.len()).saturating_add(1).saturating_mul(BYTES_PER_TOKEN);
            let end = self.0.cuts_at_spaces.then(|| chunks::next_cut(rest, wanted)).flatten();
            let (chunk, after) = rest.split_at(end.unwrap_or(rest.len()));
            ids.append(&mut self.encode(chunk)?);
            rest = after;
        }
        let cut = ids.len() > max_tokens;
        ids.truncate(max_tokens);
        Ok(Part { ids, cut })
    }

    /// The last `max_tokens` ids of [`encode`](Self::encode), reading no more of the text than needed.
    pub fn encode_suffix(&self, text: &str, max_tokens: usize) -> Result<Part, TokenizerError> {
        let mut chunks: Vec<Vec<u32>> = Vec::new();
        let mut length = 0;
        let mut rest = text;
        while !rest.is_empty() && length <= max_tokens {
            let wanted = (max_tokens - length).saturating_add(1).saturating_mul(BYTES_PER_TOKEN);
            let from = rest.len().saturating_sub(wanted);
            let start = self.0.cuts_at_spaces.then(|| chunks::previous_cut(rest, from)).flatten();
            let (before, chunk) = rest.split_at(start.unwrap_or(0));
            let ids = self.encode(chunk)?;
            length += ids.len();
            chunks.push(ids);
            rest = before;
        }
        let ids = chunks.into_iter().rev().flatten().skip(length.saturating_sub(max_tokens)).collect();
        Ok(Part { ids, cut: length > max_tokens })
    }

    /// The id of a token.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.0.pipeline.token_to_id(token)
    }

    /// The token of an id.
    pub fn token(&self, id: u32) -> Option<String> {
        self.0.pipeline.id_to_token(id)
    }

    /// Number of tokens, added ones included.
    pub fn vocabulary_size(&self) -> usize {
        self.0.pipeline.get_vocab_size(true)
    }

    /// `model_max_length` of `tokenizer_config.json`, special tokens included; `None` where it is absent or
    /// absurdly large.
    pub fn max_length(&self) -> Option<usize> {
        self.0.max_length
    }

    /// Ids of the special tokens.
    pub fn special_tokens(&self) -> SpecialTokens {
        self.0.special
    }

    /// What stands around a single text.
    pub fn single_template(&self) -> &SingleTemplate {
        &self.0.single
    }

    /// What stands around a pair of texts.
    pub fn pair_template(&self) -> &PairTemplate {
        &self.0.pair
    }

    /// Whether every id has a row in an embedding of `model_vocabulary` rows. Reads the whole vocabulary:
    /// for once at loading.
    pub fn check_vocabulary(&self, model_vocabulary: usize) -> Result<(), TokenizerError> {
        let largest = self.0.pipeline.get_vocab(true).into_iter().max_by_key(|(_, id)| *id);
        match largest {
            Some((token, id)) if id as usize >= model_vocabulary => Err(TokenizerError::Vocabulary {
                id,
                token,
                tokenizer_vocabulary: self.vocabulary_size(),
                model_vocabulary,
            }),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("vocabulary", &self.vocabulary_size())
            .field("max_length", &self.0.max_length)
            .field("special", &self.0.special)
            .finish_non_exhaustive()
    }
}

/// The content of a file, or `None` where there is no such file.
fn read_optional(path: &Path) -> Result<Option<Vec<u8>>, TokenizerError> {
    let io = |source| TokenizerError::Io { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(TokenizerError::invalid(path, format!("larger than {} MB", MAX_FILE_BYTES >> 20)));
    }
    Ok(Some(bytes))
}
