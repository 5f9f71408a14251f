//! How far the recall estimate of `posterior` can be trusted, and what stopping at a target costs.
//!
//! ```text
//! cargo run --release -p loxia-search --example target_costs -- --scores S.npy --query-vectors Q.npy \
//!     --item-vectors E.npy --anchors 0..500 --test 500..700
//! ```

mod rows;

use loxia_core::{Answer, Budget, Cancel, Cost, Ranking, RecallTarget, Stop};
use loxia_search::{
    Method, Posterior, PosteriorSettings, QueryRows, QueryView, choose_settings, search_with,
};
use rows::{Fallible, Flags};

fn main() -> Fallible<()> {
    let flags = Flags::parse(std::env::args().skip(1))?;
    let (anchors, test) = flags.read_rows()?;
    let settings = choose_settings(&anchors, PosteriorSettings::default())?;
    let method = Posterior::fit(&anchors, settings)?.calibrated(&anchors)?;
    let queries = test.scores.rows();

    println!("  k cost  recall estimate  error a query  best constant  in the 90 % interval");
    for k in flags.list::<usize>("k", "10,50,100")? {
        for cost in flags.list::<u64>("cost", "100,200,400")? {
            let stop = Stop::at_budget(cost);
            let (mut truths, mut estimates, mut inside) = (Vec::new(), Vec::new(), 0);
            for query in 0..queries {
                let answer = search(&method, &test, query, k, &stop)?;
                let truth = recall(&test, query, k, &answer);
                let estimate = answer.recall_estimate.ok_or("too few anchors to calibrate on")?;
                inside += usize::from((estimate.low - 1e-9..=estimate.high + 1e-9).contains(&truth));
                truths.push(truth);
                estimates.push(estimate.mean);
            }
            let mut sorted = truths.clone();
            sorted.sort_by(f64::total_cmp);
            let constant = sorted[queries / 2];
            let error = mean(truths.iter().zip(&estimates).map(|(truth, estimate)| (truth - estimate).abs()));
            let plain = mean(truths.iter().map(|truth| (truth - constant).abs()));
            println!(
                "{k:3} {cost:4}  {:.3}  {:.3}     {error:.3}          {plain:.3}          {:.3}",
                mean(truths.iter().copied()),
                mean(estimates.iter().copied()),
                inside as f64 / queries as f64
            );
        }
    }
    println!("  k target  recall  mean cost  recall of that fixed budget");
    for k in [10, 50] {
        for target in [0.9, 0.95] {
            let stop = Stop {
                recall: Some(RecallTarget::new(target)?),
                budget: Some(Budget(1000)),
                ..Stop::default()
            };
            let (mut reached, mut paid) = (Vec::new(), Vec::new());
            for query in 0..queries {
                let answer = search(&method, &test, query, k, &stop)?;
                reached.push(recall(&test, query, k, &answer));
                paid.push(answer.cost.pairs as f64);
            }
            let cost = mean(paid.into_iter());
            let fixed = Stop::at_budget(cost.round() as u64);
            let mut even = Vec::new();
            for query in 0..queries {
                even.push(recall(&test, query, k, &search(&method, &test, query, k, &fixed)?));
            }
            println!(
                "{k:3}   {target:.2}   {:.3}   {cost:6.1}     {:.3}",
                mean(reached.into_iter()),
                mean(even.into_iter())
            );
        }
    }
    Ok(())
}

fn search(method: &dyn Method, rows: &QueryRows, query: usize, k: usize, stop: &Stop) -> Fallible<Answer> {
    let id = query.to_string();
    let vector = rows.vectors.as_ref().map(|vectors| vectors.row(query));
    let view = QueryView { id: &id, vector, text: None };
    let row = rows.scores.row(query);
    Ok(search_with(method, &view, k, stop, &Cancel::new(), |items, scores, _| {
        items.iter().zip(scores).for_each(|(&item, score)| *score = row[item as usize]);
        Ok(Cost { pairs: items.len() as u64, ..Cost::default() })
    })?)
}

fn recall(rows: &QueryRows, query: usize, k: usize, answer: &Answer) -> f64 {
    let exact = Ranking::from_scores(rows.scores.row(query));
    let found: std::collections::HashSet<u32> = answer.ranking.items().collect();
    exact.top(k).iter().filter(|scored| found.contains(&scored.item)).count() as f64 / k as f64
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}
