//! A large run takes no quadratic time.

use std::time::{Duration, Instant};

use loxia_core::{Qrels, Run, RunEntry, Seed};
use loxia_eval::{EvalOptions, Measure, evaluate};

#[test]
fn a_thousand_queries_of_a_thousand_items() {
    let mut stream = Seed(1).stream("speed");
    let (mut run, mut qrels) = (Run::new("run"), Qrels::new());
    for query in 0..1000 {
        let query = loxia_core::QueryId::from(format!("q{query}"));
        let entry = |item: u64, score| RunEntry { item: format!("document-{item}").into(), score };
        run.insert(query.clone(), (0..1000).map(|item| entry(item, stream.unit())).collect());
        for item in stream.sample(2000, 200) {
            qrels.insert(query.clone(), format!("document-{item}").into(), (item % 4) as i32);
        }
    }
    let mut measures = Measure::official();
    measures.extend(Measure::parse_all("ndcg_cut").unwrap());
    let start = Instant::now();
    evaluate(&run, &qrels, &measures, EvalOptions::default()).unwrap();
    let taken = start.elapsed();
    println!("{} measures in {taken:?}", measures.len());
    // Generous, for slow and busy machines and unoptimised builds; quadratic work would take minutes.
    assert!(taken < Duration::from_secs(20), "{taken:?}");
}
