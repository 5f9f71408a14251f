//! Anchor queries for a collection that comes without queries: sentences of its items, or the items.

use anyhow::Result;
use clap::ValueEnum;
use loxia::core::{Item, Query, Seed};
use loxia::data::ItemStore;

/// Shortest sentence that is asked, in words: less is a heading or a name.
const FEWEST_WORDS: usize = 3;

/// `--anchors-from`: what anchor queries are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum AnchorSource {
    /// The queries of the data set
    Queries,
    /// A sentence of each of some items
    Sentences,
    /// Some items, title and text
    Items,
}

/// Queries made of the items at some positions; items without a word are left out.
pub(super) fn queries_from(
    items: &ItemStore,
    positions: &[usize],
    whole: bool,
    seed: Seed,
) -> Result<Vec<Query>> {
    let mut queries = Vec::with_capacity(positions.len());
    for &position in positions {
        let item = items.get(position as u32)?;
        let text = if whole { item.title_and_text() } else { sentence_of(&item, seed) };
        let query = Query::plain(format!("item:{}", item.id), text);
        if !query.text.is_blank() {
            queries.push(query);
        }
    }
    Ok(queries)
}

/// One sentence, drawn by the item's id; an item of a single one is asked whole.
fn sentence_of(item: &Item, seed: Seed) -> String {
    let long_enough = |sentence: &&str| sentence.split_whitespace().count() >= FEWEST_WORDS;
    let sentences: Vec<&str> = sentences(&item.text).filter(long_enough).collect();
    if sentences.is_empty() {
        return item.title_and_text();
    }
    let mut stream = seed.stream(&format!("index/sentence/{}", item.id));
    sentences[stream.below(sentences.len() as u64) as usize].to_owned()
}

/// Pieces of a text that end with a mark and white space, or with a line.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| {
            let mut rest = line;
            std::iter::from_fn(move || {
                if rest.is_empty() {
                    return None;
                }
                let end = rest
                    .char_indices()
                    .zip(rest.chars().skip(1))
                    .find(|((_, mark), next)| matches!(mark, '.' | '!' | '?') && next.is_whitespace())
                    .map_or(rest.len(), |((at, mark), _)| at + mark.len_utf8());
                let (sentence, later) = rest.split_at(end);
                rest = later;
                Some(sentence.trim())
            })
        })
        .filter(|sentence| !sentence.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_marks_and_lines() {
        let text = "Crossbills eat seeds. Do they? They do!\nOf 3.5 kinds";
        let found: Vec<&str> = sentences(text).collect();
        assert_eq!(found, ["Crossbills eat seeds.", "Do they?", "They do!", "Of 3.5 kinds"]);
    }

    #[test]
    fn short_texts_are_asked_whole() {
        let item = Item { id: "a".into(), title: Some("pine".into()), text: "a tree".into() };
        assert_eq!(sentence_of(&item, Seed(0)), "pine a tree");
        let item = Item::plain("b", "Oh. It is a tall tree.");
        assert_eq!(sentence_of(&item, Seed(0)), "It is a tall tree.");
    }
}
