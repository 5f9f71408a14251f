//! Writes TF-IDF vectors of a data set as npy files, for the example `knn`.
//!
//! ```text
//! cargo run --release -p loxia-search --example tfidf_vectors -- --data wordnet-worlds \
//!     --world noun.artifact --split test --queries Q.npy --items E.npy
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::time::Instant;

use loxia_core::Cancel;
use loxia_core::npy::NpyWriter;
use loxia_data::{DataOptions, DataSet};
use loxia_search::linalg::Dense;
use loxia_search::{QueryEncoder, TfidfSettings, TfidfVectors};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let flags: HashMap<&str, &str> = arguments.chunks_exact(2).map(|pair| (&*pair[0], &*pair[1])).collect();
    let needed = |name: &str| flags.get(name).copied().ok_or(format!("{name} is missing"));
    let text = |name: &str| flags.get(name).map(|&value| value.to_owned());
    let options = DataOptions { world: text("--world"), split: text("--split"), ..DataOptions::default() };
    let data = DataSet::open(needed("--data")?, &options)?;
    let items = data.items()?.read(0..data.items()?.len())?;
    let started = Instant::now();
    let (tfidf, vectors) = TfidfVectors::fit(&items, &TfidfSettings::default(), &Cancel::new())?;
    eprintln!(
        "{} items, {} terms, {} dimensions in {:.1} s",
        tfidf.items(),
        tfidf.terms(),
        tfidf.dims(),
        started.elapsed().as_secs_f64()
    );
    let queries = data.queries()?.read(0..data.queries()?.len())?;
    let encoded: Vec<f32> =
        queries.iter().map(|query| tfidf.encode(query)).collect::<Result<Vec<_>, _>>()?.concat();
    write(needed("--items")?, &vectors)?;
    write(needed("--queries")?, &Dense::new(queries.len(), tfidf.dims(), encoded)?)
}

fn write(path: &str, matrix: &Dense) -> Result<(), Box<dyn Error>> {
    let shape = [matrix.rows() as u64, matrix.cols() as u64];
    let mut writer = NpyWriter::new(BufWriter::new(File::create(path)?), &shape)?;
    writer.write_row(matrix.values())?;
    writer.finish()?;
    Ok(())
}
