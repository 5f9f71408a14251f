//! Layouts against a second implementation of the rules (`tools/golden/layouts.py`).

use std::sync::LazyLock;

use flate2::Crc;
use loxia_core::{Item, QueryText};
use loxia_model::layout::{BoundLayout, Compat, Layout, LayoutError, LayoutKind, TokenSequence};
use loxia_model::tokenizer::Tokenizer;
use rayon::prelude::*;
use serde::Deserialize;

use crate::tokenizer::{fixtures, gunzip, open};

/// More positions than any case needs.
const POSITIONS: usize = 512;

#[derive(Deserialize)]
struct Case {
    #[serde(rename = "L")]
    length: usize,
    left: Option<String>,
    mention: String,
    right: String,
    title: Option<String>,
    text: String,
}

impl Case {
    fn query(&self) -> QueryText {
        match &self.left {
            None => QueryText::Plain(self.mention.clone()),
            Some(left) => QueryText::Mention {
                left: left.clone(),
                mention: self.mention.clone(),
                right: self.right.clone(),
            },
        }
    }

    fn item(&self) -> Item {
        Item { id: "item".into(), title: self.title.clone(), text: self.text.clone() }
    }
}

#[derive(Deserialize)]
struct Expected {
    layout: LayoutKind,
    compat: Option<Compat>,
    mark_mention: bool,
    crc: Vec<[u32; 3]>,
    full: Vec<[Full; 3]>,
}

#[derive(Deserialize, Debug, PartialEq)]
struct Full {
    ids: Vec<u32>,
    types: Vec<u32>,
    positions: Vec<u32>,
    marks: [i32; 3],
    cut: u8,
}

impl Full {
    fn new(sequence: &TokenSequence) -> Self {
        let marks = [sequence.marks.start, sequence.marks.end, sequence.marks.tag];
        Full {
            ids: sequence.ids.clone(),
            types: sequence.types.clone(),
            positions: sequence.positions.clone(),
            marks: marks.map(|mark| mark.map_or(-1, |at| at as i32)),
            cut: u8::from(sequence.truncated),
        }
    }

    fn crc(&self) -> u32 {
        let mut crc = Crc::new();
        crc.update(&(self.ids.len() as u32).to_le_bytes());
        for number in self.ids.iter().chain(&self.types).chain(&self.positions) {
            crc.update(&number.to_le_bytes());
        }
        for mark in self.marks {
            crc.update(&mark.to_le_bytes());
        }
        crc.update(&u32::from(self.cut).to_le_bytes());
        crc.sum()
    }
}

static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| open("wordpiece"));

fn read<T: for<'de> Deserialize<'de>>(name: &str) -> Vec<T> {
    gunzip(&fixtures().join("layouts").join(name))
        .split_terminator('\n')
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The limits that the goldens are made with.
fn layout_for(expected: &Expected, length: usize) -> BoundLayout {
    let mut layout = Layout::new(expected.layout);
    layout.compat = expected.compat;
    layout.mark_mention = expected.mark_mention;
    if expected.layout != LayoutKind::Pair {
        layout.max_query = Some(length);
        layout.max_item = Some(length);
    }
    layout.max_length = match (expected.layout, expected.compat) {
        (LayoutKind::Pair, _) => Some(length),
        (LayoutKind::Blink, Some(_)) => Some(2 * length - 6),
        (LayoutKind::HardNce | LayoutKind::Blink, _) => Some(2 * length),
        _ => None,
    };
    layout.bind(&TOKENIZER, POSITIONS).unwrap()
}

#[test]
fn sequences_are_those_of_the_rules() {
    let cases: Vec<Case> = read("cases.jsonl.gz");
    let expected: Vec<Expected> = read("expected.jsonl.gz");
    assert_eq!((cases.len(), expected.len()), (1000, 9));
    expected.par_iter().for_each(|expected| {
        let name = format!("{} {:?} {}", expected.layout, expected.compat, expected.mark_mention);
        let bound = [16, 32, 64, 128].map(|length| (length, layout_for(expected, length)));
        for (number, (case, crc)) in cases.iter().zip(&expected.crc).enumerate() {
            let (_, layout) = bound.iter().find(|(length, _)| *length == case.length).unwrap();
            let (query, item) = (case.query(), case.item());
            let pair = layout.pair(&layout.query(&query).unwrap(), &layout.item(&item).unwrap());
            let found = [pair, layout.single_query(&query).unwrap(), layout.single_item(&item).unwrap()]
                .map(|sequence| Full::new(&sequence));
            if number % 50 == 0 {
                assert_eq!(found, expected.full[number / 50], "{name}, case {number}");
            }
            assert_eq!(found.each_ref().map(Full::crc), *crc, "{name}, case {number}: {found:?}");
        }
    });
}

fn plain(text: &str) -> QueryText {
    QueryText::Plain(text.into())
}

fn bind(layout: &Layout) -> Result<BoundLayout, LayoutError> {
    layout.bind(&TOKENIZER, 256)
}

#[test]
fn the_template_is_never_cut() {
    let mut layout = Layout::new(LayoutKind::Pair);
    layout.max_length = Some(12);
    let layout = bind(&layout).unwrap();
    let long = "a stove that burns wood ".repeat(2000);
    let query = layout.query(&plain(&long)).unwrap();
    let item = layout.item(&Item::plain("d", long)).unwrap();
    let pair = layout.pair(&query, &item);
    let special = TOKENIZER.special_tokens();
    assert_eq!(pair.len(), 12);
    assert!(pair.truncated);
    assert_eq!(pair.ids[0], special.cls.unwrap());
    assert_eq!(pair.ids.iter().filter(|&&id| Some(id) == special.sep).count(), 2);
}

#[test]
fn caps_bind_before_the_budget_is_shared() {
    let mut layout = Layout::new(LayoutKind::Pair);
    (layout.max_query, layout.max_item, layout.max_length) = (Some(2), Some(3), Some(64));
    let layout = bind(&layout).unwrap();
    let query = layout.query(&plain("a b c d e")).unwrap();
    let item = layout.item(&Item::plain("d", "a b c d e")).unwrap();
    let pair = layout.pair(&query, &item);
    assert_eq!((pair.len(), pair.truncated), (8, true));
    assert_eq!(layout.single_query(&plain("a b c d e")).unwrap().len(), 4);
    assert!(!layout.single_query(&plain("a b")).unwrap().truncated);
}

#[test]
fn roberta_templates_double_the_separator() {
    let tokenizer = open("roberta");
    let layout = Layout::new(LayoutKind::Pair).bind(&tokenizer, 128).unwrap();
    let query = layout.query(&plain("seed")).unwrap();
    let pair = layout.pair(&query, &layout.item(&Item::plain("d", "seed")).unwrap());
    let special = tokenizer.special_tokens();
    assert_eq!(pair.ids.iter().filter(|&&id| Some(id) == special.sep).count(), 3);
    assert!(pair.types.iter().all(|&type_id| type_id == 0));
}

#[test]
fn blank_texts_leave_the_template() {
    for &kind in LayoutKind::ALL {
        let layout = bind(&Layout::new(kind)).unwrap();
        let (query, item) = (layout.query(&plain("")).unwrap(), layout.item(&Item::plain("d", "")).unwrap());
        let pair = layout.pair(&query, &item);
        assert!((3..=6).contains(&pair.len()) && !pair.truncated, "{kind}: {pair:?}");
    }
}

#[test]
fn a_megabyte_on_either_side_is_fine() {
    let text = "a stove that burns wood ".repeat(43_000);
    for &kind in LayoutKind::ALL {
        let layout = bind(&Layout::new(kind)).unwrap();
        let query = QueryText::Mention { left: text.clone(), mention: "stove".into(), right: text.clone() };
        let item = Item { id: "d".into(), title: Some("stove".into()), text: text.clone() };
        let pair = layout.pair(&layout.query(&query).unwrap(), &layout.item(&item).unwrap());
        assert!(pair.truncated && pair.len() <= 256, "{kind}");
    }
}

#[test]
fn unfit_layouts_say_what_is_wrong() {
    let message = |change: fn(&mut Layout), kind| {
        let mut layout = Layout::new(kind);
        change(&mut layout);
        bind(&layout).unwrap_err().to_string()
    };
    for (change, kind, part) in [
        ((|layout| layout.markers.tag = "<tag>".into()) as fn(&mut Layout), LayoutKind::Anncur, "<tag>"),
        (|layout| layout.compat = Some(Compat::Blink), LayoutKind::Anncur, "compat blink"),
        (|layout| layout.compat = Some(Compat::Ecir24), LayoutKind::Pair, "ecir24"),
        (|layout| layout.max_length = Some(300), LayoutKind::Pair, "256"),
        (|layout| layout.max_length = Some(3), LayoutKind::Pair, "at least 5"),
        (|layout| layout.max_query = Some(3), LayoutKind::Blink, "at least 4"),
        (|layout| layout.max_item = Some(1000), LayoutKind::HardNce, "max_item is 1000"),
    ] {
        let message = message(change, kind);
        assert!(message.contains(part), "{message}");
    }
    let missing = Layout::new(LayoutKind::Anncur).bind(&open("roberta"), 512).unwrap_err().to_string();
    assert!(missing.contains("[unused0]") && missing.contains("model convert"), "{missing}");

    // Two sides that fit alone but not together are fine for a dual encoder.
    let mut layout = Layout::new(LayoutKind::Anncur);
    (layout.max_query, layout.max_item) = (Some(200), Some(100));
    let layout = bind(&layout).unwrap();
    assert!(layout.single_query(&plain("stove")).is_ok());
    let error = layout.query(&plain("stove")).unwrap_err().to_string();
    assert!(error.contains("--max-query"), "{error}");
}
