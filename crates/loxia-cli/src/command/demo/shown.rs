//! Searches that a person can judge: what reranking did not find.

use std::collections::HashSet;
use std::fmt::Write as _;

use anyhow::Result;
use loxia::core::{Answer, Cancel, Cost, Stop};
use loxia::search::{AnchorSet, BuildOptions, Index, Method, MethodName, build, search_with};
use serde_json::{Value, json};

use super::material::Material;
use crate::ranked_output::head;

/// How many searches are shown.
const SHOWN: usize = 3;
/// The top that is looked for, and what each method may pay.
const K: usize = 10;
const COST: u64 = 100;

/// Three searches, and how all of them went on average.
pub(super) struct Shown {
    pub(super) searches: Vec<Judged>,
    /// Mean number of the top items found over all searched queries: by reranking, by `posterior`.
    means: (f64, f64),
}

/// One query, searched twice.
pub(super) struct Judged {
    pub(super) query: usize,
    pub(super) top: Vec<TopItem>,
}

/// One of the cross-encoder's best, and who found it.
pub(super) struct TopItem {
    pub(super) item: u32,
    pub(super) score: f32,
    pub(super) reranked: bool,
    pub(super) found: bool,
}

impl Shown {
    /// Searches every query both ways and keeps those where most is to be seen.
    pub(super) fn choose(
        material: &Material,
        anchors: &AnchorSet,
        index: &Index,
        cancel: &Cancel,
    ) -> Result<Self> {
        let rerank = build(MethodName::Rerank, anchors, &BuildOptions::default())?.method;
        let mut searches = Vec::new();
        for query in material.searched() {
            searches.push(Judged::search(material, query, &*rerank, index, cancel)?);
        }
        let count = searches.len().max(1) as f64;
        let mean = |found: fn(&TopItem) -> bool| {
            searches.iter().map(|s| s.count(found)).sum::<usize>() as f64 / count
        };
        let means = (mean(|top| top.reranked), mean(|top| top.found));
        // First those where reranking missed the very item that is meant; ties stay in the order of the data.
        searches.sort_by_key(|search| std::cmp::Reverse(search.interest(material)));
        searches.truncate(SHOWN);
        Ok(Shown { searches, means })
    }

    pub(super) fn text(&self, material: &Material) -> String {
        let mut text = format!(
            "\nWhat reranking misses. With {COST} pairs it finds {:.1} of the cross-encoder's {K} best on average, \
             posterior {:.1}.\nThree searches with much to see (the others are in those means):\n",
            self.means.0, self.means.1
        );
        for search in &self.searches {
            let asked = head(&material.asked(search.query), 96);
            let _ = writeln!(text, "\n  {asked}\n   rank    score  rerank  posterior");
            for (rank, top) in (1..).zip(&search.top) {
                let said = |found: bool| if found { "found" } else { "-" };
                let mark = if material.golds[search.query] == Some(top.item) { '*' } else { ' ' };
                let _ = writeln!(
                    text,
                    "   {rank:>4}  {:>7.2}  {:<6}  {:<9} {mark} {}",
                    top.score,
                    said(top.reranked),
                    said(top.found),
                    head(&material.items[top.item as usize].text, 62),
                );
            }
        }
        if material.golds.iter().any(Option::is_some) {
            text += "  (* is what the data set says is meant)";
        }
        text.trim_end().to_owned()
    }

    pub(super) fn json(&self, material: &Material) -> Vec<Value> {
        let search = |search: &Judged| {
            let top: Vec<Value> = (1..).zip(&search.top).map(|(rank, top): (usize, _)| {
                let item = &material.items[top.item as usize];
                json!({
                    "rank": rank, "item": item.id.as_str(), "text": item.text, "score": crate::flags::shortest(top.score),
                    "rerank": top.reranked, "posterior": top.found,
                    "meant": material.golds[search.query] == Some(top.item),
                })
            }).collect();
            json!({ "query": material.asked(search.query), "cost": COST, "top": top })
        };
        self.searches.iter().map(search).collect()
    }
}

impl Judged {
    fn search(
        material: &Material,
        query: usize,
        rerank: &dyn Method,
        index: &Index,
        cancel: &Cancel,
    ) -> Result<Self> {
        let paid = |method: &dyn Method| -> Result<HashSet<u32>> {
            let answer = search_stored(material, query, method, K, &Stop::at_budget(COST), cancel)?;
            Ok(answer.evidence.items().collect())
        };
        let (reranked, found) = (paid(rerank)?, paid(index)?);
        let top = material.exact(query, K).into_iter().map(|(item, score)| TopItem {
            item,
            score,
            reranked: reranked.contains(&item),
            found: found.contains(&item),
        });
        Ok(Judged { query, top: top.collect() })
    }

    pub(super) fn count(&self, found: impl Fn(&TopItem) -> bool) -> usize {
        self.top.iter().filter(|top| found(top)).count()
    }

    /// Whether the meant item was missed by reranking alone, and by how many items it is behind.
    fn interest(&self, material: &Material) -> (bool, isize) {
        let gold = material.golds[self.query];
        let missed = self.top.iter().any(|top| gold == Some(top.item) && !top.reranked && top.found);
        (missed, self.count(|top| top.found) as isize - self.count(|top| top.reranked) as isize)
    }
}

/// A search that reads the scores which are known already: the same bits as scoring again.
pub(super) fn search_stored(
    material: &Material,
    query: usize,
    method: &dyn Method,
    k: usize,
    stop: &Stop,
    cancel: &Cancel,
) -> Result<Answer> {
    let row = material.row(query);
    Ok(search_with(method, &material.view(query), k, stop, cancel, |items, scores, _| {
        items.iter().zip(scores).for_each(|(&item, score)| *score = row[item as usize]);
        Ok(Cost { pairs: items.len() as u64, ..Cost::default() })
    })?)
}
