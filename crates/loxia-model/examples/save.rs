//! Opens a model and writes it back, with `loxia.json` beside it.
//!
//!     cargo run --release --example save -- cross|dual MODEL OUT

use std::path::Path;

use loxia_model::{ModelOptions, SaveOptions, save_cross_encoder, save_text_encoder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [kind, model, out] =
        std::env::args().skip(1).collect::<Vec<_>>().try_into().expect("three arguments");
    let save = if kind == "dual" { save_text_encoder } else { save_cross_encoder };
    save(&model.parse()?, &ModelOptions::default(), Path::new(&out), &SaveOptions::default())?;
    Ok(())
}
