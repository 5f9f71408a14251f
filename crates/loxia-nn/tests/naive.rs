//! An encoder in `f64` written from the definition, to measure the real one against.

use loxia_nn::*;

type Rows = Vec<Vec<f64>>;

fn affine(rows: &Rows, map: &Linear) -> Rows {
    let output = |row: &Vec<f64>, output: usize| {
        let weights = &map.weight[output * map.inputs..(output + 1) * map.inputs];
        let sum: f64 = row.iter().zip(weights).map(|(x, &w)| x * f64::from(w)).sum();
        sum + map.bias.as_ref().map_or(0.0, |bias| f64::from(bias[output]))
    };
    rows.iter().map(|row| (0..map.outputs).map(|index| output(row, index)).collect()).collect()
}

fn norm(rows: &mut Rows, norm: &LayerNorm) {
    for row in rows {
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64;
        for (index, x) in row.iter_mut().enumerate() {
            let unit = (*x - mean) / (variance + f64::from(norm.eps)).sqrt();
            *x = unit * f64::from(norm.scale[index]) + f64::from(norm.shift[index]);
        }
    }
}

fn add(rows: &mut Rows, other: &Rows) {
    rows.iter_mut().flatten().zip(other.iter().flatten()).for_each(|(x, y)| *x += y);
}

/// `1 + erf(z)` by Simpson's rule, slow and plain.
fn one_plus_erf(z: f64) -> f64 {
    let steps = 400;
    let width = z / f64::from(steps);
    let density = |i: i32| (-(f64::from(i) * width).powi(2)).exp();
    let weight = |i: i32| if i == 0 || i == steps { 1.0 } else { 2.0 + 2.0 * f64::from(i % 2) };
    let integral: f64 = (0..=steps).map(|i| weight(i) * density(i)).sum::<f64>() * width / 3.0;
    1.0 + std::f64::consts::FRAC_2_SQRT_PI * integral
}

fn activate(rows: &mut Rows, activation: Activation) {
    for x in rows.iter_mut().flatten() {
        *x = match activation {
            Activation::GeluErf => 0.5 * *x * one_plus_erf(*x / std::f64::consts::SQRT_2),
            Activation::Relu => x.max(0.0),
            other => panic!("{other:?} is not written here"),
        };
    }
}

fn attention(shape: &EncoderShape, weights: &EncoderWeights, layer: &LayerWeights, rows: &Rows) -> Rows {
    let (q, k, v) = (affine(rows, &layer.query), affine(rows, &layer.key), affine(rows, &layer.value));
    let width = shape.hidden / shape.heads;
    let mut out = vec![vec![0.0; shape.hidden]; rows.len()];
    for head in 0..shape.heads {
        let columns = head * width..(head + 1) * width;
        for query in 0..rows.len() {
            let score = |key: usize| {
                let dot: f64 = columns.clone().map(|c| q[query][c] * k[key][c]).sum();
                let bias = match (shape.relative, &weights.relative_bias) {
                    (Some(relative), Some(bias)) => {
                        let bucket = relative.bucket(key as i64 - query as i64);
                        f64::from(bias[bucket * shape.heads + head])
                    }
                    _ => 0.0,
                };
                (dot / (width as f64).sqrt() + bias).exp()
            };
            let shares: Vec<f64> = (0..rows.len()).map(score).collect();
            let total: f64 = shares.iter().sum();
            for c in columns.clone() {
                out[query][c] = shares.iter().zip(&v).map(|(share, v)| share * v[c]).sum::<f64>() / total;
            }
        }
    }
    out
}

/// Hidden states of one sequence after the embeddings and after each layer.
pub(crate) fn states(
    shape: &EncoderShape,
    weights: &EncoderWeights,
    batch: &PackedBatch,
    sequence: usize,
) -> Vec<Rows> {
    let row = |table: &Option<Vec<f32>>, index: u32| -> Vec<f64> {
        let start = index as usize * shape.embedding;
        match table {
            Some(table) => table[start..start + shape.embedding].iter().map(|&x| f64::from(x)).collect(),
            None => vec![0.0; shape.embedding],
        }
    };
    let word = Some(weights.word.clone());
    let mut rows: Rows = batch.range(sequence).map(|token| row(&word, batch.ids()[token])).collect();
    let tokens = batch.range(sequence);
    add(&mut rows, &tokens.clone().map(|token| row(&weights.types, batch.types()[token])).collect());
    add(&mut rows, &tokens.map(|token| row(&weights.position, batch.positions()[token])).collect());
    norm(&mut rows, &weights.embedding_norm);
    if let Some(projection) = &weights.embedding_projection {
        rows = affine(&rows, projection);
    }
    let mut all = vec![rows.clone()];
    for layer in &weights.layers {
        let context = attention(shape, weights, layer, &rows);
        add(&mut rows, &affine(&context, &layer.attention_output));
        norm(&mut rows, &layer.attention_norm);
        let mut inner = affine(&rows, &layer.intermediate);
        activate(&mut inner, shape.activation);
        add(&mut rows, &affine(&inner, &layer.output));
        norm(&mut rows, &layer.output_norm);
        all.push(rows.clone());
    }
    all
}
