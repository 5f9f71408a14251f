//! Where a tokenizer's own template puts special tokens.
//!
//! The post-processor of `tokenizer.json` is run once on one-token stand-ins, and what it wrapped around
//! them is kept: afterwards joining sides that are already tokenised is a matter of copying ids.

use tokenizers::{Encoding, PostProcessor, Token};

/// Stand-ins for the two sides: ids no vocabulary reaches.
const FIRST: u32 = u32::MAX - 1;
const SECOND: u32 = u32::MAX;

/// A special token of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateToken {
    /// Its id.
    pub id: u32,
    /// Its token type (segment).
    pub type_id: u32,
}

/// What stands around a single text: `[CLS] A [SEP]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SingleTemplate {
    /// Before the text.
    pub prefix: Vec<TemplateToken>,
    /// Token type of the text.
    pub text_type: u32,
    /// After the text.
    pub suffix: Vec<TemplateToken>,
}

impl SingleTemplate {
    /// Number of special tokens.
    pub fn added(&self) -> usize {
        self.prefix.len() + self.suffix.len()
    }
}

/// What stands around a pair: `[CLS] A [SEP] B [SEP]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairTemplate {
    /// Before the first text.
    pub prefix: Vec<TemplateToken>,
    /// Token type of the first text.
    pub first_type: u32,
    /// Between the texts.
    pub middle: Vec<TemplateToken>,
    /// Token type of the second text.
    pub second_type: u32,
    /// After the second text.
    pub suffix: Vec<TemplateToken>,
}

impl PairTemplate {
    /// Number of special tokens.
    pub fn added(&self) -> usize {
        self.prefix.len() + self.middle.len() + self.suffix.len()
    }
}

/// How many separators stand between the texts of a pair where the tokenizer itself does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separators {
    /// `[CLS] A [SEP] B [SEP]`, types 0 and 1.
    Bert,
    /// `<s> A </s></s> B </s>`, types 0.
    Roberta,
}

/// Both templates of a post-processor, or why they cannot be told.
pub(super) fn discover(processor: &impl PostProcessor) -> Result<(SingleTemplate, PairTemplate), String> {
    let stand_in = |id, type_id| Encoding::from_tokens(vec![Token::new(id, "x".into(), (0, 1))], type_id);
    let run = |second: Option<Encoding>| {
        let encoding =
            processor.process(stand_in(FIRST, 0), second, true).map_err(|error| error.to_string())?;
        Ok::<_, String>(
            encoding
                .get_ids()
                .iter()
                .zip(encoding.get_type_ids())
                .map(|(&id, &type_id)| TemplateToken { id, type_id })
                .collect::<Vec<_>>(),
        )
    };
    let find = |tokens: &[TemplateToken], id| {
        let mut places = tokens.iter().enumerate().filter(|(_, token)| token.id == id).map(|(at, _)| at);
        match (places.next(), places.next()) {
            (Some(at), None) => Ok(at),
            _ => Err("the post-processor does not use each text exactly once".to_owned()),
        }
    };

    let tokens = run(None)?;
    let at = find(&tokens, FIRST)?;
    let single = SingleTemplate {
        prefix: tokens[..at].to_vec(),
        text_type: tokens[at].type_id,
        suffix: tokens[at + 1..].to_vec(),
    };
    let tokens = run(Some(stand_in(SECOND, 1)))?;
    let (first, second) = (find(&tokens, FIRST)?, find(&tokens, SECOND)?);
    if first > second {
        return Err("the post-processor puts the second text before the first".to_owned());
    }
    let pair = PairTemplate {
        prefix: tokens[..first].to_vec(),
        first_type: tokens[first].type_id,
        middle: tokens[first + 1..second].to_vec(),
        second_type: tokens[second].type_id,
        suffix: tokens[second + 1..].to_vec(),
    };
    Ok((single, pair))
}

/// The templates of a tokenizer without a post-processor: from its special tokens, or bare.
pub(super) fn from_special_tokens(
    cls: Option<u32>,
    sep: Option<u32>,
    separators: Separators,
) -> (SingleTemplate, PairTemplate) {
    let token = |id: Option<u32>, type_id| id.map(|id| TemplateToken { id, type_id });
    let second_type = match separators {
        Separators::Bert => 1,
        Separators::Roberta => 0,
    };
    let mut middle: Vec<_> = token(sep, 0).into_iter().collect();
    if separators == Separators::Roberta {
        middle.extend(token(sep, 0));
    }
    let prefix: Vec<_> = token(cls, 0).into_iter().collect();
    let single =
        SingleTemplate { prefix: prefix.clone(), text_type: 0, suffix: token(sep, 0).into_iter().collect() };
    let suffix = token(sep, second_type).into_iter().collect();
    (single, PairTemplate { prefix, first_type: 0, middle, second_type, suffix })
}
