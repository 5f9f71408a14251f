//! Tokenising only as much of a long text as is needed.
//!
//! A text is cut before an ASCII space that stands between two printing ASCII characters. For the
//! pipelines accepted by [`cuts_at_spaces`] the pieces of both halves are exactly the pieces of the whole:
//!
//! * the normalisers work on a character or a grapheme cluster, and none reaches across such a space;
//! * the pre-tokenisers begin a new word at it (the space opening the next word, or belonging to none);
//! * no added token contains white space, so none lies across it; one that strips white space on its right
//!   would need to see the space, and excludes the pipeline.
//!
//! All other pipelines tokenise the whole text.

use tokenizers::{NormalizedString, Normalizer, NormalizerWrapper, PreTokenizerWrapper};

/// The first cut at or after byte `from`.
pub(super) fn next_cut(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    (from.max(1)..bytes.len().saturating_sub(1)).find(|&at| is_cut(bytes, at))
}

/// The last cut at or before byte `from`.
pub(super) fn previous_cut(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    (1..bytes.len().saturating_sub(1).min(from.saturating_add(1))).rev().find(|&at| is_cut(bytes, at))
}

fn is_cut(bytes: &[u8], at: usize) -> bool {
    bytes[at] == b' ' && bytes[at - 1].is_ascii_graphic() && bytes[at + 1].is_ascii_graphic()
}

/// Whether cutting at such a space changes no token.
pub(super) fn cuts_at_spaces(pipeline: &tokenizers::Tokenizer) -> bool {
    let normalizer = pipeline.get_normalizer();
    normalizer.is_none_or(is_local)
        && pipeline.get_pre_tokenizer().is_some_and(opens_words_at_spaces)
        && pipeline.get_added_vocabulary().get_added_tokens_decoder().values().all(|token| {
            let mut normalized = NormalizedString::from(token.content.as_str());
            let sound = normalizer.is_none_or(|normalizer| normalizer.normalize(&mut normalized).is_ok());
            let has_space = |text: &str| text.chars().any(char::is_whitespace);
            sound && !token.rstrip && !has_space(&token.content) && !has_space(normalized.get())
        })
}

fn is_local(normalizer: &NormalizerWrapper) -> bool {
    match normalizer {
        NormalizerWrapper::BertNormalizer(_)
        | NormalizerWrapper::StripAccents(_)
        | NormalizerWrapper::NFC(_)
        | NormalizerWrapper::NFD(_)
        | NormalizerWrapper::NFKC(_)
        | NormalizerWrapper::NFKD(_)
        | NormalizerWrapper::Lowercase(_)
        | NormalizerWrapper::Nmt(_)
        | NormalizerWrapper::Precompiled(_) => true,
        NormalizerWrapper::Sequence(sequence) => sequence.as_ref().iter().all(is_local),
        // The one pattern that converters of SentencePiece models write: runs of spaces become one.
        NormalizerWrapper::Replace(replace) => serde_json::to_value(replace)
            .is_ok_and(|replace| replace.pointer("/pattern/Regex").is_some_and(|pattern| pattern == " {2,}")),
        _ => false,
    }
}

fn opens_words_at_spaces(pre_tokenizer: &PreTokenizerWrapper) -> bool {
    match pre_tokenizer {
        PreTokenizerWrapper::BertPreTokenizer(_) | PreTokenizerWrapper::WhitespaceSplit(_) => true,
        PreTokenizerWrapper::ByteLevel(byte_level) => byte_level.use_regex,
        PreTokenizerWrapper::Metaspace(metaspace) => metaspace.get_split(),
        PreTokenizerWrapper::Sequence(sequence) => match sequence.as_ref() {
            [PreTokenizerWrapper::WhitespaceSplit(_), PreTokenizerWrapper::Metaspace(_)] => true,
            [only] => opens_words_at_spaces(only),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_stand_between_printing_characters() {
        let text = "ab cd  é f ";
        assert_eq!(next_cut(text, 0), Some(2));
        assert_eq!(next_cut(text, 3), None);
        assert_eq!(previous_cut(text, text.len()), Some(2));
        assert_eq!(previous_cut(text, 1), None);
        for text in ["", " ", "a", "a "] {
            assert_eq!(next_cut(text, 0), None);
            assert_eq!(previous_cut(text, text.len()), None);
        }
    }
}
