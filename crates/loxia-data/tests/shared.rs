//! Real data, read from the folder that `LOXIA_TEST_DATA` names; skipped where there is none.

use std::path::PathBuf;

use loxia_data::{DataFormat, DataOptions, DataSet, ReadOptions, read_qrels, read_run};

fn data(part: &str) -> Option<PathBuf> {
    let root = std::env::var_os("LOXIA_TEST_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = root.join(part);
    if !path.exists() {
        println!("skipped: {} is not there (LOXIA_TEST_DATA)", path.display());
        return None;
    }
    Some(path)
}

fn open(path: &PathBuf, world: Option<&str>, split: Option<&str>) -> DataSet {
    let options = DataOptions {
        world: world.map(str::to_owned),
        split: split.map(str::to_owned),
        ..DataOptions::default()
    };
    DataSet::open(path, &options).unwrap()
}

#[test]
fn wordnet_worlds_have_the_counts_of_their_readme() {
    let Some(path) = data("wordnet-worlds") else { return };
    let all = open(&path, None, None);
    assert_eq!(all.format(), DataFormat::Worlds);
    assert_eq!(all.worlds().len(), 41);
    assert_eq!(all.items().unwrap().len(), 117_404);
    for (split, mentions) in [("train", 79_580), ("valid", 4_102), ("test", 18_541)] {
        let data = open(&path, None, Some(split));
        assert_eq!(data.queries().unwrap().len(), mentions);
        assert_eq!(data.golds().unwrap().len(), mentions);
    }
    let worlds = [
        ("noun.artifact", 11_587, 11_280),
        ("noun.communication", 5_607, 5_311),
        ("verb.motion", 1_408, 1_950),
    ];
    for (world, entities, mentions) in worlds {
        let data = open(&path, Some(world), Some("test"));
        assert_eq!((data.items().unwrap().len(), data.queries().unwrap().len()), (entities, mentions));
        let items = data.items().unwrap();
        let golds = data.golds().unwrap();
        assert!(golds.iter().all(|gold| items.position(gold.item.as_str()).is_some()));
        let ids = data.queries().unwrap().ids();
        assert!(golds.iter().zip(ids.iter()).all(|(gold, id)| gold.query.as_str() == id));
    }
    assert_eq!(open(&path, None, Some("test")).items().unwrap().len(), 11_587 + 5_607 + 1_408);
}

#[test]
fn scifact_has_its_documents_and_queries() {
    let Some(path) = data("scifact") else { return };
    let all = open(&path, None, None);
    assert_eq!(all.format(), DataFormat::Beir);
    assert_eq!(all.items().unwrap().len(), 5_183);
    assert_eq!(all.queries().unwrap().len(), 1_109);
    for (split, queries) in [("train", 809), ("test", 300)] {
        let data = open(&path, None, Some(split));
        assert_eq!(data.queries().unwrap().len(), queries);
        assert_eq!(data.qrels().unwrap().len(), queries);
    }
}

#[test]
fn deep_learning_track_run_and_judgements() {
    let Some(path) = data("trec-dl19") else { return };
    let file = read_run(path.join("bm25.run.gz"), &ReadOptions::default()).unwrap();
    assert_eq!((file.run.len(), file.duplicates.count), (43, 0));
    assert!(file.run.iter().all(|(_, list)| list.len() == 500));
    assert_eq!(file.run.tag, "pyserini-BM25");
    let qrels = read_qrels(path.join("qrels.txt"), &ReadOptions::default()).unwrap().qrels;
    assert_eq!(qrels.len(), 43);
    assert_eq!(qrels.iter().map(|(_, items)| items.len()).sum::<usize>(), 9_260);
}
