//! Training data of MS MARCO's kind, streamed: triples of texts or ids, pairs with a teacher's scores,
//! and lists of scored passages.
//!
//! ```
//! use loxia_data::training::{ScoredPair, parse};
//! let lines = b"12.5\t3.25\tq1\td7\td9\n";
//! let pairs: Vec<ScoredPair> = parse(&lines[..], "kd.tsv", &Default::default())
//!     .unwrap()
//!     .collect::<Result<_, _>>()
//!     .unwrap();
//! assert_eq!(pairs[0].positive.as_str(), "d7");
//! ```

use std::fmt;
use std::io::{BufRead, Write};
use std::path::Path;

use loxia_core::{ItemId, QueryId};
use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeSeq, Serializer};

use crate::fields::IdField;
use crate::write::{column, ends_column, write_line};
use crate::{Error, Line, LineReader, ReadOptions, Records, Result};

/// A kind of training example that one line holds.
pub trait Example: Sized + 'static {
    /// The example on a line.
    fn parse(line: &Line<'_>) -> Result<Self>;

    /// Writes the example as a line that reads back as the same; what a line cannot hold is refused.
    ///
    /// ```
    /// use loxia_data::training::{Example, IdTriple};
    /// let mut bytes = Vec::new();
    /// IdTriple { query: "q1".into(), positive: "d7".into(), negative: "d9".into() }.write(&mut bytes).unwrap();
    /// assert_eq!(bytes, b"q1\td7\td9\n");
    /// ```
    fn write(&self, output: impl Write) -> Result<()>;
}

/// Streams the examples of a file, plain or gzip, or of standard input.
pub fn read<T: Example>(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Records<'static, T>> {
    Ok(Records::new(LineReader::open(path, &options.limits)?, T::parse))
}

/// Streams the examples of any reader; `name` stands for the path in messages.
pub fn parse<'a, T: Example>(
    input: impl BufRead + Send + 'a,
    name: &str,
    options: &ReadOptions,
) -> Result<Records<'a, T>> {
    Ok(Records::new(LineReader::new(input, name, &options.limits)?, T::parse))
}

/// Three texts: `query`, tab, `positive`, tab, `negative`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTriple {
    /// The query.
    pub query: String,
    /// A relevant passage.
    pub positive: String,
    /// One that is not.
    pub negative: String,
}

impl Example for TextTriple {
    fn parse(line: &Line<'_>) -> Result<Self> {
        let [query, positive, negative] =
            tabs(line, "query, positive text, negative text")?.map(str::to_owned);
        Ok(TextTriple { query, positive, negative })
    }

    fn write(&self, mut output: impl Write) -> Result<()> {
        if self.query.trim().is_empty() {
            // With blank passages the line would be blank, and skipped by every reader.
            return Err(Error::Unwritable { what: "a triple whose query is blank".to_owned() });
        }
        let [query, positive, negative] =
            [&self.query, &self.positive, &self.negative].map(|text| column("the text", text, ends_column));
        writeln!(output, "{}\t{}\t{}", query?, positive?, negative?).map_err(Error::output)
    }
}

/// Three ids: `query`, tab, `positive`, tab, `negative`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdTriple {
    /// The query.
    pub query: QueryId,
    /// A relevant item.
    pub positive: ItemId,
    /// One that is not.
    pub negative: ItemId,
}

impl Example for IdTriple {
    fn parse(line: &Line<'_>) -> Result<Self> {
        let columns: [&str; 3] = columns(line, "query, positive, negative")?;
        let [query, positive, negative] = columns;
        Ok(IdTriple { query: query.into(), positive: positive.into(), negative: negative.into() })
    }

    fn write(&self, mut output: impl Write) -> Result<()> {
        let [query, positive, negative] =
            [self.query.as_str(), self.positive.as_str(), self.negative.as_str()].map(id);
        writeln!(output, "{}\t{}\t{}", query?, positive?, negative?).map_err(Error::output)
    }
}

/// A pair with a teacher's scores (kd-docpairs): `positive score, negative score, query, positive,
/// negative`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredPair {
    /// The teacher's score of the positive.
    pub positive_score: f32,
    /// The teacher's score of the negative.
    pub negative_score: f32,
    /// The query.
    pub query: QueryId,
    /// The item called positive.
    pub positive: ItemId,
    /// The item called negative.
    pub negative: ItemId,
}

impl Example for ScoredPair {
    fn parse(line: &Line<'_>) -> Result<Self> {
        let [positive_score, negative_score, query, positive, negative] =
            columns(line, "positive score, negative score, query, positive, negative")?;
        Ok(ScoredPair {
            positive_score: finite(positive_score, line)?,
            negative_score: finite(negative_score, line)?,
            query: query.into(),
            positive: positive.into(),
            negative: negative.into(),
        })
    }

    fn write(&self, mut output: impl Write) -> Result<()> {
        let [query, positive, negative] =
            [self.query.as_str(), self.positive.as_str(), self.negative.as_str()].map(id);
        let [better, worse] = [self.positive_score, self.negative_score].map(writable);
        writeln!(output, "{}\t{}\t{}\t{}\t{}", better?, worse?, query?, positive?, negative?)
            .map_err(Error::output)
    }
}

/// A query with many scored items (colbert-docpairs): `[query, [item, score], ...]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredList {
    /// The query.
    pub query: QueryId,
    /// Items with the teacher's scores, in file order.
    pub items: Vec<(ItemId, f32)>,
}

impl Example for ScoredList {
    fn parse(line: &Line<'_>) -> Result<Self> {
        let list: ScoredList = line.json("[query, [item, score], [item, score], ...]")?;
        if list.items.is_empty() {
            return Err(line.invalid("no items after the query; expected [query, [item, score], ...]"));
        }
        match list.items.iter().find(|(_, score)| !score.is_finite()) {
            Some((item, score)) => Err(line.invalid(format!("the score of item {item:?} is {score}"))),
            None => Ok(list),
        }
    }

    fn write(&self, output: impl Write) -> Result<()> {
        if self.items.is_empty() {
            return Err(Error::Unwritable { what: format!("query {:?} without items", self.query) });
        }
        self.items.iter().try_for_each(|(_, score)| writable(*score).map(drop))?;
        write_line(output, self)
    }
}

impl Serialize for ScoredList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.items.len() + 1))?;
        list.serialize_element(self.query.as_str())?;
        for (item, score) in &self.items {
            list.serialize_element(&(item.as_str(), score))?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for ScoredList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor;

        impl<'de> Visitor<'de> for ListVisitor {
            type Value = ScoredList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of a query id and [item, score] pairs")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<ScoredList, A::Error> {
                let query: IdField<'de> =
                    values.next_element()?.ok_or_else(|| A::Error::custom("an empty array"))?;
                let mut items = Vec::new();
                while let Some((item, score)) = values.next_element::<(IdField<'de>, f32)>()? {
                    items.push((item.as_str().into(), score));
                }
                Ok(ScoredList { query: query.as_str().into(), items })
            }
        }

        deserializer.deserialize_seq(ListVisitor)
    }
}

fn tabs<'a, const N: usize>(line: &Line<'a>, expected: &str) -> Result<[&'a str; N]> {
    exactly(line.text().split('\t'), line, expected)
}

fn columns<'a, const N: usize>(line: &Line<'a>, expected: &str) -> Result<[&'a str; N]> {
    exactly(line.text().split_ascii_whitespace(), line, expected)
}

fn exactly<'a, const N: usize>(
    parts: impl Iterator<Item = &'a str>,
    line: &Line<'_>,
    expected: &str,
) -> Result<[&'a str; N]> {
    let mut columns = [""; N];
    let mut count = 0;
    for part in parts {
        if let Some(slot) = columns.get_mut(count) {
            *slot = part;
        }
        count += 1;
    }
    if count == N {
        return Ok(columns);
    }
    Err(line.invalid(format!("{count} columns, expected {N}: {expected}")))
}

fn finite(score: &str, line: &Line<'_>) -> Result<f32> {
    let parsed = score.parse().ok().filter(|score: &f32| score.is_finite());
    parsed.ok_or_else(|| line.invalid(format!("score {score:?} is not a finite number")))
}

fn id(id: &str) -> Result<&str> {
    column("the id", id, char::is_whitespace)
}

fn writable(score: f32) -> Result<f32> {
    if score.is_finite() {
        return Ok(score);
    }
    Err(Error::Unwritable { what: format!("the score {score}; it must be a finite number") })
}
