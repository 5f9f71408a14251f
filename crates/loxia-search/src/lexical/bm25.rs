//! BM25 retrieval through tantivy (feature `bm25`).
//!
//! The index lives in memory, without the texts: one segment whose documents are the items in their order,
//! so that tantivy's tie rule (lower document first) is ours and nothing depends on threads. tantivy fixes
//! `k1` = 1.2 and `b` = 0.75, and like Lucene it stores the length of a text in one byte.

use std::collections::BTreeMap;

use loxia_core::{Cancel, QueryText, Ranking, Scored};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, BoostQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{
    Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, StopWordFilter, TextAnalyzer,
};
use tantivy::{Index, Searcher, TantivyDocument, Term};

use super::texts::{ItemTexts, query_terms};
use crate::first_stage::query_text;
use crate::{Error, FirstStage, QueryView, Result};

/// What words are looked at as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stemming {
    /// English stems, without the 33 stop words of Lucene: close to what Anserini does.
    #[default]
    English,
    /// Lower-cased words as they are.
    None,
}

/// Items by BM25.
///
/// Only items that share a word with the query are found.
///
/// ```
/// use loxia_core::{Cancel, Item, QueryText};
/// use loxia_search::{Bm25, Stemming};
/// let items = vec![Item::plain("a", "a stove heats the room"), Item::plain("b", "crossbills eat seeds")];
/// let bm25 = Bm25::new(&items, Stemming::English, &Cancel::new()).unwrap();
/// let found = bm25.search(&QueryText::Plain("a crossbill eating".into()), 10).unwrap();
/// assert_eq!((found.len(), found.as_slice()[0].item), (1, 1));
/// ```
pub struct Bm25 {
    searcher: Searcher,
    analyser: TextAnalyzer,
    field: Field,
    items: usize,
}

const ANALYSER: &str = "loxia";
/// Longer words are no words: keys, addresses, noise. Lucene's limit.
const LONGEST_WORD: usize = 255;
/// Memory that tantivy's tables start with; they grow beyond it.
const TABLE_MEMORY: usize = 50_000_000;
const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
    "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to",
    "was", "will", "with",
];

impl Bm25 {
    /// How soon repetitions of a word stop to count; fixed by tantivy.
    pub const K1: f64 = 1.2;
    /// How much long texts are held back; fixed by tantivy.
    pub const B: f64 = 0.75;

    /// Indexes the texts of items.
    pub fn new(texts: &dyn ItemTexts, stemming: Stemming, cancel: &Cancel) -> Result<Self> {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(ANALYSER)
            .set_fieldnorms(true)
            .set_index_option(IndexRecordOption::WithFreqs);
        let field = schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
        let analyser = analyser(stemming);
        let tokenizers = tantivy::tokenizer::TokenizerManager::new();
        tokenizers.register(ANALYSER, analyser.clone());
        let mut writer = Index::builder()
            .schema(schema.build())
            .tokenizers(tokenizers)
            .single_segment_index_writer(tantivy::directory::RamDirectory::create(), TABLE_MEMORY)?;
        let mut items = 0;
        texts.for_each(&mut |text| {
            cancel.check()?;
            let mut document = TantivyDocument::new();
            document.add_text(field, text);
            writer.add_document(document)?;
            items += 1;
            Ok(())
        })?;
        let index = writer.finalize()?;
        let searcher = index.reader()?.searcher();
        Ok(Bm25 { searcher, analyser, field, items })
    }

    /// The best `count` items with their scores; items that share no word with the query are not among them.
    /// A mention counts three times beside its context.
    pub fn search(&self, query: &QueryText, count: usize) -> Result<Ranking> {
        let count = count.min(self.items);
        let mut terms = BTreeMap::<String, u32>::new();
        let text = query_terms(query);
        let mut analyser = self.analyser.clone();
        analyser.token_stream(&text).process(&mut |token| *terms.entry(token.text.clone()).or_default() += 1);
        if count == 0 || terms.is_empty() {
            return Ok(Ranking::default());
        }
        let clauses = terms.into_iter().map(|(term, times)| {
            let term = Term::from_field_text(self.field, &term);
            let query: Box<dyn Query> = Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
            let query = if times == 1 { query } else { Box::new(BoostQuery::new(query, times as f32)) };
            (Occur::Should, query)
        });
        let query = BooleanQuery::new(clauses.collect());
        let found = self.searcher.search(&query, &TopDocs::with_limit(count).order_by_score())?;
        let scored = found.into_iter().map(|(score, place)| Scored { item: place.doc_id, score });
        Ok(Ranking::new(scored.collect()))
    }
}

fn analyser(stemming: Stemming) -> TextAnalyzer {
    let words = TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(LONGEST_WORD))
        .filter(LowerCaser);
    match stemming {
        Stemming::None => words.build(),
        Stemming::English => words
            .filter(StopWordFilter::remove(STOP_WORDS.map(String::from)))
            .filter(Stemmer::new(Language::English))
            .build(),
    }
}

impl FirstStage for Bm25 {
    fn items(&self) -> usize {
        self.items
    }

    fn best(&self, query: &QueryView<'_>, count: usize) -> Result<Vec<u32>> {
        Ok(self.search(query_text(query, "BM25 retrieval")?, count)?.items().collect())
    }
}

impl From<tantivy::TantivyError> for Error {
    fn from(error: tantivy::TantivyError) -> Self {
        Error::Core(loxia_core::Error::Scorer(Box::new(error)))
    }
}

impl std::fmt::Debug for Bm25 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bm25").field("items", &self.items).finish_non_exhaustive()
    }
}
