//! The posterior method against its numpy reference (`tools/golden/search_posterior.py`).

use std::path::Path;
use std::sync::Arc;

use loxia_core::npy::read_npy_matrix;
use loxia_core::{Cancel, Cost, Stop};
use loxia_search::linalg::Dense;
use loxia_search::{AnchorSet, Posterior, PosteriorSettings, QueryView, Schedule, search_with};
use serde_json::Value;

const ANCHORS: usize = 60;

fn fixture(name: &str) -> Dense {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let matrix = read_npy_matrix(&path).unwrap();
    Dense::new(matrix.rows, matrix.cols, matrix.values).unwrap()
}

fn numbers(value: &Value) -> impl Iterator<Item = f64> + '_ {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap())
}

#[test]
fn agrees_with_the_numpy_reference() {
    let scores = fixture("posterior.scores.npy");
    let queries = fixture("posterior.queries.npy");
    let items = Arc::new(fixture("posterior.items.npy"));
    let first: Vec<usize> = (0..ANCHORS).collect();
    let cases: Value = serde_json::from_str(include_str!("fixtures/posterior.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let with_vectors = case["vectors"].as_bool().unwrap();
        let vectors = with_vectors.then(|| (Arc::new(queries.select_rows(&first)), items.clone()));
        let anchors = AnchorSet::new(Arc::new(scores.select_rows(&first)), vectors).unwrap();
        let settings = PosteriorSettings {
            transform: case["transform"].as_f64(),
            query_effects: 0.0,
            dual_regard: 0.0,
            ..PosteriorSettings::default()
        };
        let model = Posterior::fit(&anchors, settings).unwrap();
        let model = model.with_schedule(Schedule::Even { rounds: 5 });
        let row = case["row"].as_u64().unwrap() as usize;
        let view = QueryView { id: "q", vector: with_vectors.then(|| queries.row(row)), text: None };

        let (mean, variance) = model.prior(&view).unwrap();
        for (found, expected) in mean.iter().step_by(7).zip(numbers(&case["mean"])) {
            // Numbers of the items are kept in half precision.
            let close = (f64::from(*found) - expected).abs() < 2e-3 * expected.abs().max(1.0);
            assert!(close, "row {row}: mean {found}, not {expected}");
        }
        for (found, expected) in variance.iter().step_by(7).zip(numbers(&case["variance"])) {
            // It goes by the level of the mean, and steeply at the top: half a per cent of the one can be one of the other.
            let close = (f64::from(*found) - expected).abs() < 1e-2 * expected.max(0.1);
            assert!(close, "row {row}: variance {found}, not {expected}");
        }

        let answer =
            search_with(&model, &view, 10, &Stop::at_budget(50), &Cancel::new(), |wanted, out, _| {
                wanted.iter().zip(out).for_each(|(&item, score)| *score = scores[(row, item as usize)]);
                Ok(Cost { pairs: wanted.len() as u64, ..Cost::default() })
            })
            .unwrap();
        let expected: std::collections::BTreeSet<u32> = numbers(&case["paid"]).map(|x| x as u32).collect();
        let same = answer.evidence.items().filter(|item| expected.contains(item)).count();
        // Rounding may swap items of nearly equal means at the edge of a batch.
        assert!(same >= 48, "row {row}, vectors {with_vectors}: {same} of 50 items are the reference's");
    }
}
