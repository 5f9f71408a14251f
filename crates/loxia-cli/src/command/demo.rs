//! `loxia demo`: the main job on an embedded default, with nothing to download.
//!
//! For a few mentions of verbs the dual encoder retrieves eight senses out of 1,408 and the cross-encoder puts
//! them into its own order.

use anyhow::Result;
use clap::Args;
use loxia::core::{Item, NoProgress, PairScorer, Query, QueryText, Ranking};
use loxia::data::{DataOptions, DataSet, ItemStore};
use loxia::model::{CrossEncoder, ModelOptions, TextEncoder};
use loxia::search::linalg::Dense;
use loxia::search::{DualScan, FirstStage, QueryView};

use crate::context::Context;
use crate::embedded::Embedded;
use crate::exit::Outcome;
use crate::output::print_line;
use crate::ranked_output::head;

/// See Loxia work on embedded models and data.
#[derive(Debug, Args)]
pub(crate) struct DemoFlags {}

/// Mentions that show what reranking does, by position in the world.
const SHOWN: [u32; 4] = [0, 3, 34, 54];
/// Candidates for each.
const DEPTH: usize = 8;

/// Runs the command.
pub(crate) fn run(_flags: DemoFlags, context: &Context) -> Result<Outcome> {
    let embedded = Embedded::unpack()?;
    let options = DataOptions {
        world: Some(Embedded::WORLD.to_owned()),
        split: Some("test".to_owned()),
        ..DataOptions::default()
    };
    let data = DataSet::open(embedded.world(), &options)?;
    let items = data.items()?;
    let golds = data.golds()?;
    let dual = TextEncoder::open(&embedded.dual_encoder().parse()?, &ModelOptions::default())?;
    let cross = CrossEncoder::open(&embedded.cross_encoder().parse()?, &ModelOptions::default())?;
    context.say(format_args!(
        "{} senses of verbs of motion (WordNet). A dual encoder retrieves {DEPTH}; the cross-encoder reranks them.",
        items.len()
    ));
    let all = items.read(0..items.len())?;
    let vectors = dual.encode_items(&all, &NoProgress, &context.cancel)?.vectors;
    let scan = DualScan::new(Dense::new(all.len(), dual.dim(), vectors)?.into());
    for position in SHOWN {
        let query = data.queries()?.get(position)?;
        let gold = golds
            .iter()
            .find(|gold| gold.query == query.id)
            .and_then(|gold| items.position(gold.item.as_str()));
        let before = nearest(&dual, &query, &scan, context)?;
        let after = reranked(&cross, &query, items, &before, context)?;
        show(&query, items, &before, &after, gold, context)?;
    }
    Ok(Outcome::Done)
}

/// The best items by the dual encoder.
fn nearest(dual: &TextEncoder, query: &Query, scan: &DualScan, context: &Context) -> Result<Vec<u32>> {
    let vector = dual.encode_queries(std::slice::from_ref(query), &NoProgress, &context.cancel)?.vectors;
    let view = QueryView { id: query.id.as_str(), vector: Some(&vector), text: Some(&query.text) };
    Ok(scan.best(&view, DEPTH)?)
}

/// The same items in the cross-encoder's order, with its scores.
fn reranked(
    cross: &CrossEncoder,
    query: &Query,
    items: &ItemStore,
    candidates: &[u32],
    context: &Context,
) -> Result<Vec<(u32, f32)>> {
    let texts: Vec<Item> = candidates.iter().map(|&item| items.get(item)).collect::<Result<_, _>>()?;
    let pairs: Vec<(u32, u32)> = (0..texts.len() as u32).map(|item| (0, item)).collect();
    let mut scores = vec![0.0; pairs.len()];
    let query = std::slice::from_ref(query);
    cross.score(query, &texts, &pairs, &mut scores, &NoProgress, &context.cancel)?;
    let order = Ranking::from_scores(&scores);
    Ok(order.as_slice().iter().map(|scored| (candidates[scored.item as usize], scored.score)).collect())
}

fn show(
    query: &Query,
    items: &ItemStore,
    before: &[u32],
    after: &[(u32, f32)],
    gold: Option<u32>,
    context: &Context,
) -> Result<()> {
    let asked = match &query.text {
        QueryText::Mention { left, mention, right } => format!("{left} [[{mention}]] {right}"),
        QueryText::Plain(text) => text.clone(),
    };
    let asked = asked.trim();
    if !context.json {
        print_line(format_args!("\n{asked}"))?;
        print_line("  before  after    score  sense (* is the one meant)")?;
    }
    for (rank, &(item, score)) in (1..).zip(after) {
        let earlier = before.iter().position(|&other| other == item).map_or(0, |place| place + 1);
        let (meant, text) = (gold == Some(item), items.get(item)?.text);
        if context.json {
            print_line(serde_json::json!({
                "query": asked, "before": earlier, "after": rank, "score": score, "sense": text, "meant": meant,
            }))?;
        } else {
            let (mark, text) = (if meant { '*' } else { ' ' }, head(&text, 76));
            print_line(format_args!("  {earlier:>6}  {rank:>5}  {score:>7.2} {mark} {text}"))?;
        }
    }
    Ok(())
}
