//! What is computed repeatedly: texts made of single-token words, so that a sequence has the length asked for,
//! or token ids where other engines get token ids too.

use std::path::PathBuf;

use anyhow::{Result, bail};
use loxia::core::{Item, Query, QueryId, QueryText, Seed};
use loxia::model::layout::{BoundLayout, TokenSequence};
use loxia::model::tokenizer::Tokenizer;

use super::subject::Subject;

/// Words to write texts with.
const WORDS: usize = 4096;
/// Words of a generated query; the rest of a pair is the item.
const QUERY_WORDS: usize = 6;

/// Inputs of one measurement.
pub(super) enum Workload {
    /// Texts to embed.
    Texts(Vec<Item>),
    /// Pairs to score, as positions of queries and items.
    Pairs { queries: Vec<Query>, items: Vec<Item>, pairs: Vec<(u32, u32)> },
    /// Sequences of token ids.
    Tokens(Vec<TokenSequence>),
    /// A run with its texts, reranked from file to file.
    RunFile { run: PathBuf, output: PathBuf },
}

impl Workload {
    /// The longest sequence that a generated text or pair becomes: some layouts bound each side by itself.
    pub(super) fn longest(subject: &Subject) -> Result<usize> {
        let layout = subject.layout();
        let words = single_token_words(layout.tokenizer())?;
        let endless: Vec<&str> =
            words.iter().cycle().take(2 * layout.max_length()).map(String::as_str).collect();
        Ok(write(subject, &[endless]).lengths(layout)?[0])
    }

    /// Generated texts or pairs that become sequences of these lengths.
    pub(super) fn of_lengths(subject: &Subject, lengths: &[usize]) -> Result<Self> {
        let layout = subject.layout();
        let words = single_token_words(layout.tokenizer())?;
        let mut stream = Seed(0).stream("bench words");
        let mut draw = |count: usize| -> Vec<&str> {
            (0..count).map(|_| words[stream.below(words.len() as u64) as usize].as_str()).collect()
        };
        // What a template adds is what a text of few words has too many of.
        let probe = [draw(2 * QUERY_WORDS)];
        let template = write(subject, &probe).lengths(layout)?[0].saturating_sub(probe[0].len());
        let fewest = template + if subject.scores_pairs() || subject.needs_marks() { 4 } else { 1 };
        if let Some(length) = lengths.iter().find(|&&length| length < fewest) {
            bail!("a sequence of {length} tokens is too short: this model's template needs {fewest}");
        }
        let texts: Vec<Vec<&str>> = lengths.iter().map(|length| draw(length - template)).collect();
        let workload = write(subject, &texts);
        let found = workload.lengths(layout)?;
        if let Some((found, wanted)) = found.iter().zip(lengths).find(|(found, wanted)| found != wanted) {
            bail!("the tokenizer makes {found} tokens of a text written to have {wanted}");
        }
        Ok(workload)
    }

    /// Sequences with exactly these token ids, template included, laid out as the model lays out texts.
    pub(super) fn of_ids(subject: &Subject, sequences: &[Vec<u32>]) -> Result<Self> {
        let layout = subject.layout();
        let special = layout.tokenizer().special_tokens();
        let mut workload = Workload::empty(subject);
        for ids in sequences {
            // What stands between separators, without the token that opens a sequence.
            let sides: Vec<Vec<u32>> = ids
                .split(|id| Some(*id) == special.sep)
                .map(|side| side.iter().copied().filter(|id| Some(*id) != special.cls).collect())
                .collect();
            let text = |side: usize| -> Result<String> {
                let ids = sides.get(side).map_or(&[][..], Vec::as_slice);
                let spelled = |&id: &u32| layout.tokenizer().token(id).map(bare);
                match ids.iter().map(spelled).collect::<Option<Vec<String>>>() {
                    Some(words) => Ok(words.join(" ")),
                    None => bail!("a token id is beyond the vocabulary"),
                }
            };
            match &mut workload {
                Workload::Pairs { .. } => {
                    let (query, item) = (text(0)?, text(1)?);
                    workload.push(Some(QueryText::Plain(query)), None, item);
                }
                _ => workload.push(None, None, text(0)?),
            }
        }
        let found = workload.sequences(layout)?;
        if let Some(at) = found.iter().zip(sequences).position(|(found, ids)| found.ids != *ids) {
            bail!(
                "sequence {at} cannot be written as text: use ids of whole words, in the model's own template"
            );
        }
        Ok(Workload::Tokens(found))
    }

    /// A workload to add to.
    fn empty(subject: &Subject) -> Self {
        if subject.scores_pairs() {
            Workload::Pairs { queries: Vec::new(), items: Vec::new(), pairs: Vec::new() }
        } else {
            Workload::Texts(Vec::new())
        }
    }

    fn push(&mut self, query: Option<QueryText>, title: Option<String>, text: String) {
        match self {
            Workload::Texts(items) => {
                items.push(Item { title, ..Item::plain(items.len().to_string().as_str(), text) });
            }
            Workload::Pairs { queries, items, pairs } => {
                let id = pairs.len().to_string();
                let text_of_query = query.unwrap_or_else(|| QueryText::Plain(String::new()));
                pairs.push((queries.len() as u32, items.len() as u32));
                queries.push(Query { id: QueryId::from(id.as_str()), text: text_of_query });
                items.push(Item { title, ..Item::plain(id.as_str(), text) });
            }
            Workload::Tokens(_) | Workload::RunFile { .. } => {}
        }
    }

    /// Number of texts or pairs; 0 for a file that is not read yet.
    pub(super) fn len(&self) -> usize {
        match self {
            Workload::Texts(items) => items.len(),
            Workload::Pairs { pairs, .. } => pairs.len(),
            Workload::Tokens(sequences) => sequences.len(),
            Workload::RunFile { .. } => 0,
        }
    }

    /// Lengths of the sequences.
    pub(super) fn lengths(&self, layout: &BoundLayout) -> Result<Vec<usize>> {
        Ok(self.sequences(layout)?.iter().map(TokenSequence::len).collect())
    }

    fn sequences(&self, layout: &BoundLayout) -> Result<Vec<TokenSequence>> {
        match self {
            Workload::Texts(items) => items.iter().map(|item| Ok(layout.single_item(item)?)).collect(),
            Workload::Pairs { queries, items, pairs } => {
                let pair = |&(query, item): &(u32, u32)| {
                    let query = layout.query(&queries[query as usize].text)?;
                    Ok(layout.pair(&query, &layout.item(&items[item as usize])?))
                };
                pairs.iter().map(pair).collect()
            }
            Workload::Tokens(sequences) => Ok(sequences.clone()),
            Workload::RunFile { .. } => Ok(Vec::new()),
        }
    }
}

/// Texts or pairs of these words. A model that reads marks gets a mention and a title.
fn write(subject: &Subject, texts: &[Vec<&str>]) -> Workload {
    let mut workload = Workload::empty(subject);
    for words in texts {
        if !subject.scores_pairs() {
            let (title, text) = if subject.needs_marks() { words.split_at(1) } else { words.split_at(0) };
            workload.push(None, (!title.is_empty()).then(|| title.join(" ")), text.join(" "));
            continue;
        }
        // Layouts with marks bound each side by itself.
        let most = if subject.needs_marks() { words.len() } else { QUERY_WORDS };
        let (query, item) = words.split_at(most.min(words.len() / 2));
        if subject.needs_marks() {
            let (mention, right) = query.split_at(1);
            let (title, text) = item.split_at(1);
            let query = QueryText::Mention {
                left: String::new(),
                mention: mention.join(" "),
                right: right.join(" "),
            };
            workload.push(Some(query), Some(title.join(" ")), text.join(" "));
        } else {
            workload.push(Some(QueryText::Plain(query.join(" "))), None, item.join(" "));
        }
    }
    workload
}

/// Words that are one token each, wherever they stand.
fn single_token_words(tokenizer: &Tokenizer) -> Result<Vec<String>> {
    let plain = |word: &String| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let single = |word: &String| tokenizer.encode(&format!("{word} {word}")).is_ok_and(|ids| ids.len() == 2);
    let words: Vec<String> = (0..tokenizer.vocabulary_size() as u32)
        .filter_map(|id| tokenizer.token(id).map(bare))
        .filter(|word| plain(word) && single(word))
        .take(WORDS)
        .collect();
    if words.is_empty() {
        bail!("the tokenizer has no word of plain letters that is one token");
    }
    Ok(words)
}

/// A token without the mark that some vocabularies put where a word begins.
fn bare(token: String) -> String {
    token.trim_start_matches(['\u{0120}', '\u{2581}']).to_owned()
}
