//! Queries and items as texts.

use crate::{ItemId, QueryId};

/// What a user asks: a plain text, or a mention inside its context (entity linking).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum QueryText {
    /// A plain query.
    Plain(String),
    /// A mention with the text on both sides of it.
    Mention {
        /// Text before the mention.
        left: String,
        /// The mention itself.
        mention: String,
        /// Text after the mention.
        right: String,
    },
}

impl QueryText {
    /// A query as people type it: `left [[mention]] right` is a mention in its context, anything else plain text.
    ///
    /// ```
    /// use loxia_core::QueryText;
    /// let [left, mention, right] = ["he", "ran", "home"].map(String::from);
    /// assert_eq!(QueryText::typed("he [[ran]] home"), QueryText::Mention { left, mention, right });
    /// assert_eq!(QueryText::typed("he ran home"), QueryText::Plain("he ran home".into()));
    /// assert_eq!(QueryText::typed("x[[]] = y"), QueryText::Plain("x[[]] = y".into()));
    /// ```
    pub fn typed(text: &str) -> QueryText {
        if let Some((left, rest)) = text.split_once("[[")
            && let Some((mention, right)) = rest.split_once("]]")
            && !mention.trim().is_empty()
        {
            let part = |text: &str| text.trim().to_owned();
            return QueryText::Mention { left: part(left), mention: part(mention), right: part(right) };
        }
        QueryText::Plain(text.to_owned())
    }

    /// The text as one line: a mention is joined with its contexts by single spaces.
    ///
    /// ```
    /// use loxia_core::QueryText;
    /// let text = QueryText::Mention { left: "a wood".into(), mention: "stove".into(), right: "".into() };
    /// assert_eq!(text.joined(), "a wood stove");
    /// ```
    pub fn joined(&self) -> String {
        match self {
            QueryText::Plain(text) => text.clone(),
            QueryText::Mention { left, mention, right } => [left, mention, right]
                .into_iter()
                .map(|part| part.trim())
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(" "),
        }
    }

    /// Whether nothing but white space would be read: the query's text, or the mention itself.
    pub fn is_blank(&self) -> bool {
        match self {
            QueryText::Plain(text) => text.trim().is_empty(),
            QueryText::Mention { mention, .. } => mention.trim().is_empty(),
        }
    }
}

/// A query with its id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Query {
    /// Its id, unique within a data set.
    pub id: QueryId,
    /// What is asked.
    pub text: QueryText,
}

impl Query {
    /// A plain query.
    ///
    /// ```
    /// let query = loxia_core::Query::plain("q1", "how do crossbills feed");
    /// assert_eq!(query.id.as_str(), "q1");
    /// ```
    pub fn plain(id: impl Into<QueryId>, text: impl Into<String>) -> Self {
        Query { id: id.into(), text: QueryText::Plain(text.into()) }
    }
}

/// A document, passage or entity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Item {
    /// Its id, unique within a collection.
    pub id: ItemId,
    /// Title or name, where the collection has one.
    pub title: Option<String>,
    /// The text.
    pub text: String,
}

impl Item {
    /// An item without a title.
    ///
    /// ```
    /// let item = loxia_core::Item::plain("d7", "Crossbills eat conifer seeds.");
    /// assert_eq!(item.title_and_text(), "Crossbills eat conifer seeds.");
    /// ```
    pub fn plain(id: impl Into<ItemId>, text: impl Into<String>) -> Self {
        Item { id: id.into(), title: None, text: text.into() }
    }

    /// Title and text joined by a space and trimmed, as BEIR's tools join them.
    pub fn title_and_text(&self) -> String {
        match &self.title {
            Some(title) => format!("{title} {}", self.text).trim().to_owned(),
            None => self.text.clone(),
        }
    }
}
