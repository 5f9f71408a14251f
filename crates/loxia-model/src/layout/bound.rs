//! A layout bound to a tokenizer.

use loxia_core::{Item, QueryText};

use super::entity::entity_row;
use super::mention::{MarkedWindow, MentionMarks, QuotaRule, quota_query, reranker_query, retriever_query};
use super::plain::{Unread, encode_words, longest_first};
use super::window::Slicing;
use super::{Compat, Layout, LayoutError, LayoutKind, Marks, TokenSequence};
use crate::tokenizer::{TemplateToken, Tokenizer};

/// Longest side of the entity-linking layouts, and longest pair of hard-nce-el and BLINK, as published.
const SIDE: usize = 128;
const PAIR: usize = 256;

/// A layout that knows its tokenizer. Cheap to clone, used from many threads.
///
/// ```
/// # let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tokenizers/wordpiece");
/// use loxia_core::{Item, QueryText};
/// use loxia_model::layout::{Layout, LayoutKind};
/// use loxia_model::tokenizer::Tokenizer;
///
/// let tokenizer = Tokenizer::open(directory.as_ref())?;
/// let layout = Layout::new(LayoutKind::Pair).bind(&tokenizer, 256)?;
/// let query = layout.query(&QueryText::Plain("wood stove".into()))?;
/// let item = layout.item(&Item::plain("d1", "a stove for wood"))?;
/// let pair = layout.pair(&query, &item);
/// assert_eq!(pair.types, [0, 0, 0, 0, 1, 1, 1, 1, 1]);
/// # Ok::<(), loxia_model::layout::LayoutError>(())
/// ```
#[derive(Debug, Clone)]
pub struct BoundLayout {
    tokenizer: Tokenizer,
    layout: Layout,
    form: Form,
    max_query: usize,
    max_item: usize,
    max_length: usize,
    keep_marks: bool,
}

/// The tokens that the entity-linking layouts put in themselves.
#[derive(Debug, Clone, Copy)]
struct OwnTokens {
    marks: MentionMarks,
    tag: u32,
    cls: u32,
    sep: u32,
    pad: u32,
}

/// What a kind of layout comes down to.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// Two texts in the tokenizer's template.
    Template,
    /// Two complete rows, the second without its `[CLS]` (`anncur`, `blink`).
    Rows { tokens: OwnTokens, rule: QuotaRule, keep_tag: bool },
    /// hard-nce-el; `original` with its quirks.
    HardNce { tokens: OwnTokens, original: bool },
}

/// One side of a pair, tokenised and cut to what the layout can use of it.
#[derive(Debug, Clone)]
pub struct Prepared {
    ids: Vec<u32>,
    marks: Marks,
    truncated: bool,
    unread: Option<Box<Unread>>,
}

impl Prepared {
    /// Number of tokens kept.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether no token was kept.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether the text was cut already; a pair may cut more.
    pub fn truncated(&self) -> bool {
        self.truncated
    }
}

impl From<MarkedWindow> for Prepared {
    fn from(window: MarkedWindow) -> Self {
        Prepared { ids: window.ids, marks: window.marks, truncated: window.truncated, unread: None }
    }
}

impl Layout {
    /// Resolves markers and limits for a tokenizer and a model of `positions` usable positions.
    ///
    /// Without `max_length` the limit is the smaller of the tokenizer's and the model's.
    pub fn bind(&self, tokenizer: &Tokenizer, positions: usize) -> Result<BoundLayout, LayoutError> {
        let kind = self.kind;
        let compat = self.compat.filter(|compat| *compat != Compat::None);
        let fits = match compat {
            None | Some(Compat::None) => true,
            Some(Compat::Anncur) => kind == LayoutKind::Anncur,
            Some(Compat::HardNce) => kind == LayoutKind::HardNce,
            Some(Compat::Blink) => kind == LayoutKind::Blink,
            Some(Compat::Ecir24) => false,
        };
        if let (Some(compat), false) = (compat, fits) {
            return Err(LayoutError::Compat { kind, compat });
        }
        let limit = tokenizer.max_length().map_or(positions, |limit| limit.min(positions));
        let usual = match kind {
            LayoutKind::Pair | LayoutKind::Anncur => limit,
            LayoutKind::HardNce | LayoutKind::Blink => limit.min(PAIR),
        };
        let max_length = self.max_length.unwrap_or(usual);
        let template = tokenizer.pair_template().added();
        check(kind, "max_length", max_length, template + 2, positions)?;
        // A dual encoder of hard-nce-el is not bound by the reranker's limit.
        let longest_side = match kind {
            LayoutKind::HardNce => limit.max(max_length),
            _ => max_length,
        };
        let (side, least_query, least_item) = match kind {
            LayoutKind::Pair => (usize::MAX, 1, 1),
            LayoutKind::Anncur | LayoutKind::Blink | LayoutKind::HardNce => (SIDE, 4, 3),
        };
        let max_query = self.max_query.unwrap_or(side);
        let max_item = self.max_item.unwrap_or(side);
        let longest_side = if kind == LayoutKind::Pair { usize::MAX } else { longest_side };
        check(kind, "max_query", max_query, least_query, longest_side)?;
        check(kind, "max_item", max_item, least_item, longest_side)?;

        let original = compat.is_some();
        let slicing = if original { Slicing::Python } else { Slicing::Clamped };
        let form = match kind {
            LayoutKind::Pair => Form::Template,
            LayoutKind::Anncur => Form::Rows {
                tokens: self.own_tokens(tokenizer)?,
                rule: QuotaRule { lower_case: true, original, slicing },
                keep_tag: !original,
            },
            LayoutKind::Blink => Form::Rows {
                tokens: self.own_tokens(tokenizer)?,
                // Where ANNCUR slices oddly BLINK stops at an assertion: nothing to reproduce.
                rule: QuotaRule { lower_case: false, original, slicing: Slicing::Clamped },
                keep_tag: false,
            },
            LayoutKind::HardNce => Form::HardNce { tokens: self.own_tokens(tokenizer)?, original },
        };
        let (tokenizer, layout) = (tokenizer.clone(), self.clone());
        Ok(BoundLayout { tokenizer, layout, form, max_query, max_item, max_length, keep_marks: false })
    }

    fn own_tokens(&self, tokenizer: &Tokenizer) -> Result<OwnTokens, LayoutError> {
        let kind = self.kind;
        let marker = |token: &str| {
            tokenizer
                .token_id(token)
                .ok_or_else(|| LayoutError::MissingMarker { kind, token: token.to_owned() })
        };
        let special = tokenizer.special_tokens();
        let needed = |id: Option<u32>, role| id.ok_or(LayoutError::MissingSpecial { kind, role });
        Ok(OwnTokens {
            marks: MentionMarks { start: marker(&self.markers.start)?, end: marker(&self.markers.end)? },
            tag: marker(&self.markers.tag)?,
            cls: needed(special.cls, "cls")?,
            sep: needed(special.sep, "sep")?,
            pad: needed(special.pad, "pad")?,
        })
    }
}

fn check(
    kind: LayoutKind,
    name: &'static str,
    found: usize,
    least: usize,
    most: usize,
) -> Result<(), LayoutError> {
    if found < least {
        return Err(LayoutError::TooShort { kind, name, found, least });
    }
    if found > most {
        return Err(LayoutError::TooLong { kind, name, found, most });
    }
    Ok(())
}

impl BoundLayout {
    /// The layout as it was given.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The same layout for a model that reads the states at marks: a mention or title whose marks the published
    /// rules would cut away is laid out without them. The original of such a model stops there, so that there
    /// is nothing to reproduce, and one long title need not stop a run.
    #[must_use]
    pub fn keeping_marks(self) -> Self {
        BoundLayout { keep_marks: true, ..self }
    }

    /// Longest sequence of a pair.
    pub fn max_length(&self) -> usize {
        self.max_length
    }

    /// The layout with every limit written out: what a saved model stores.
    pub fn resolved(&self) -> Layout {
        let mut layout = self.layout.clone();
        layout.max_length = Some(self.max_length);
        if layout.kind != LayoutKind::Pair {
            layout.max_query = Some(self.max_query);
            layout.max_item = Some(self.max_item);
        }
        layout
    }

    /// Prepares a query for pairs.
    pub fn query(&self, query: &QueryText) -> Result<Prepared, LayoutError> {
        match self.form {
            Form::Template => self.text(&query.joined(), self.max_query),
            Form::Rows { tokens, rule, .. } => {
                self.check_pair(rule)?;
                self.mention_row(query, tokens, rule)
            }
            Form::HardNce { tokens, .. } => {
                let marks = self.layout.mark_mention.then_some(tokens.marks);
                Ok(reranker_query(&self.tokenizer, query, marks, self.reranker_budgets().0)?.into())
            }
        }
    }

    /// Prepares an item for pairs.
    pub fn item(&self, item: &Item) -> Result<Prepared, LayoutError> {
        match self.form {
            Form::Template => self.text(&item.title_and_text(), self.max_item),
            Form::Rows { tokens, rule, keep_tag } => {
                self.check_pair(rule)?;
                let mut row = self.entity(item, tokens.tag, keep_tag)?;
                row.ids.push(tokens.sep);
                Ok(row)
            }
            Form::HardNce { .. } => {
                let budget = self.reranker_budgets().1;
                let (ids, truncated) = encode_words(&self.tokenizer, &item.text, budget, budget)?;
                Ok(Prepared { ids, marks: Marks::default(), truncated, unread: None })
            }
        }
    }

    /// Joins a query and an item prepared by this layout.
    pub fn pair(&self, query: &Prepared, item: &Prepared) -> TokenSequence {
        let (first, second) = match self.form {
            Form::Template => self.share(query, item),
            _ => (query.len(), item.len()),
        };
        let (query_ids, item_ids) = (&query.ids[..first], &item.ids[..second]);
        let template = self.tokenizer.pair_template();
        let mut sequence = TokenSequence::with_capacity(first + second + template.added());
        let at_query;
        let at_item;
        if let Form::Rows { .. } = self.form {
            at_query = 0;
            sequence.extend(query_ids, template.first_type);
            at_item = sequence.len();
            sequence.extend(item_ids, template.second_type);
        } else {
            append(&mut sequence, &template.prefix);
            at_query = sequence.len();
            sequence.extend(query_ids, template.first_type);
            append(&mut sequence, &template.middle);
            at_item = sequence.len();
            sequence.extend(item_ids, template.second_type);
            append(&mut sequence, &template.suffix);
        }
        let shift = |mark: Option<u32>, by: usize| mark.map(|at| at + by as u32);
        sequence.marks = Marks {
            start: shift(query.marks.start, at_query),
            end: shift(query.marks.end, at_query),
            tag: shift(item.marks.tag, at_item),
        };
        sequence.truncated = query.truncated || item.truncated || first < query.len() || second < item.len();
        match self.form {
            Form::Rows { tokens, rule, .. } if rule.original => {
                sequence.open_gap(at_item, self.max_query as u32);
                sequence.cut_positions(self.max_length as u32);
                sequence.remove(tokens.pad);
            }
            Form::HardNce { tokens, original: true } => sequence.fill(tokens.pad, self.max_length),
            _ => {}
        }
        sequence
    }

    /// A query alone, for a dual encoder.
    pub fn single_query(&self, query: &QueryText) -> Result<TokenSequence, LayoutError> {
        match self.form {
            Form::Template => self.single_text(&query.joined(), self.max_query),
            Form::Rows { tokens, rule, .. } => {
                let row = self.mention_row(query, tokens, rule)?;
                Ok(self.single_row(row, rule.original.then_some(tokens.pad)))
            }
            Form::HardNce { tokens, original } => {
                let slicing = if original { Slicing::Python } else { Slicing::Clamped };
                let budget = self.max_query - 2;
                let window = retriever_query(&self.tokenizer, query, tokens.marks, budget, slicing)?;
                Ok(self.single_row(wrap(window.into(), tokens), None))
            }
        }
    }

    /// An item alone, for a dual encoder.
    pub fn single_item(&self, item: &Item) -> Result<TokenSequence, LayoutError> {
        let (tokens, keep_tag, masked) = match self.form {
            Form::Template => return self.single_text(&item.title_and_text(), self.max_item),
            Form::Rows { tokens, rule, keep_tag } => (tokens, keep_tag, rule.original.then_some(tokens.pad)),
            Form::HardNce { tokens, .. } => (tokens, false, None),
        };
        let row = self.entity(item, tokens.tag, keep_tag)?;
        Ok(self.single_row(wrap(row, tokens), masked))
    }

    /// Tokens of mention and candidate in hard-nce-el's reranker.
    fn reranker_budgets(&self) -> (usize, usize) {
        let both = self.max_length - self.tokenizer.pair_template().added();
        (both / 2, both - both / 2)
    }

    /// Both rows must fit together, unless the original cuts them.
    fn check_pair(&self, rule: QuotaRule) -> Result<(), LayoutError> {
        let cut = rule.original && self.layout.kind == LayoutKind::Blink;
        if cut || self.max_query + self.max_item - 1 <= self.max_length {
            return Ok(());
        }
        Err(LayoutError::PairTooLong {
            kind: self.layout.kind,
            max_query: self.max_query,
            max_item: self.max_item,
            max_length: self.max_length,
        })
    }

    /// The beginning of a text: as much as a pair could hold if the other side were empty.
    fn text(&self, text: &str, cap: usize) -> Result<Prepared, LayoutError> {
        let budget = self.max_length - self.tokenizer.pair_template().added();
        let part = self.tokenizer.encode_prefix(text, budget.min(cap))?;
        // Only an odd budget has a token over, and only two long sides compete for it.
        let unread = (part.cut && cap > budget && budget % 2 == 1).then(|| Box::new(Unread::new(text, cap)));
        Ok(Prepared { ids: part.ids, marks: Marks::default(), truncated: part.cut, unread })
    }

    /// How many tokens of each side a pair keeps.
    fn share(&self, query: &Prepared, item: &Prepared) -> (usize, usize) {
        let budget = self.max_length - self.tokenizer.pair_template().added();
        if let (Some(first), Some(second)) = (&query.unread, &item.unread) {
            return longest_first(first.length(&self.tokenizer), second.length(&self.tokenizer), budget);
        }
        // A side that goes on beyond the budget is longer than one that fills it.
        let length = |side: &Prepared| side.len() + usize::from(side.unread.is_some());
        longest_first(length(query), length(item), budget)
    }

    fn mention_row(
        &self,
        query: &QueryText,
        tokens: OwnTokens,
        rule: QuotaRule,
    ) -> Result<Prepared, LayoutError> {
        let row = self.quota_row(query, tokens, rule)?;
        let marked = row.marks.start.is_some() && row.marks.end.is_some();
        if marked || !self.keep_marks {
            return Ok(row);
        }
        self.quota_row(query, tokens, QuotaRule { original: false, slicing: Slicing::Clamped, ..rule })
    }

    fn quota_row(
        &self,
        query: &QueryText,
        tokens: OwnTokens,
        rule: QuotaRule,
    ) -> Result<Prepared, LayoutError> {
        let window = quota_query(&self.tokenizer, query, tokens.marks, self.max_query, rule)?;
        let mut row = wrap(window.into(), tokens);
        if row.len() > self.max_query {
            row.ids.truncate(self.max_query);
            row.truncated = true;
            let inside = |mark: Option<u32>| mark.filter(|&at| (at as usize) < self.max_query);
            row.marks.start = inside(row.marks.start);
            row.marks.end = inside(row.marks.end);
        }
        Ok(row)
    }

    fn entity(&self, item: &Item, tag: u32, keep_tag: bool) -> Result<Prepared, LayoutError> {
        let row = entity_row(&self.tokenizer, item, tag, self.max_item - 2, keep_tag || self.keep_marks)?;
        Ok(Prepared { ids: row.ids, marks: row.marks, truncated: row.truncated, unread: None })
    }

    /// A row as a sequence. The originals of `anncur` and `blink` mask by id, so that a `[PAD]` written in a
    /// text is `masked` too; hard-nce-el masks by length.
    fn single_row(&self, row: Prepared, masked: Option<u32>) -> TokenSequence {
        let mut sequence = TokenSequence::with_capacity(row.len());
        sequence.extend(&row.ids, self.tokenizer.single_template().text_type);
        (sequence.marks, sequence.truncated) = (row.marks, row.truncated);
        if let Some(id) = masked {
            sequence.remove(id);
        }
        sequence
    }

    fn single_text(&self, text: &str, cap: usize) -> Result<TokenSequence, LayoutError> {
        let template = self.tokenizer.single_template();
        let budget = self.max_length.saturating_sub(template.added()).min(cap);
        let part = self.tokenizer.encode_prefix(text, budget)?;
        let mut sequence = TokenSequence::with_capacity(part.ids.len() + template.added());
        append(&mut sequence, &template.prefix);
        sequence.extend(&part.ids, template.text_type);
        append(&mut sequence, &template.suffix);
        sequence.truncated = part.cut;
        Ok(sequence)
    }
}

fn append(sequence: &mut TokenSequence, tokens: &[TemplateToken]) {
    for token in tokens {
        sequence.extend(&[token.id], token.type_id);
    }
}

/// Puts `[CLS]` before and `[SEP]` after.
fn wrap(mut row: Prepared, tokens: OwnTokens) -> Prepared {
    row.ids.insert(0, tokens.cls);
    row.ids.push(tokens.sep);
    for mark in [&mut row.marks.start, &mut row.marks.end, &mut row.marks.tag] {
        *mark = mark.map(|at| at + 1);
    }
    row
}
