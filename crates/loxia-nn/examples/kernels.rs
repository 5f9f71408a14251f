//! Speed of the kernels on one thread: `cargo run --release -p loxia-nn --example kernels [SECONDS]`;
//! `LOXIA_KERNEL` picks one kernel.
//!
//! The machine may be shared: see [`best`] for what is measured. GFLOP/s count the useful
//! operations: two for each multiply-add of the matrix products, nothing for norms, softmax and activations.

use std::time::Instant;

use loxia_nn::*;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0.5);
    let features = Kernel::features().join(" ");
    println!("features: {features}");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool of one thread");
    pool.install(|| {
        let kernels = match std::env::var_os(Kernel::VARIABLE) {
            Some(_) => vec![Kernel::detect().expect("a kernel of this machine")],
            None => Kernel::available(),
        };
        for kernel in kernels {
            println!("\n{kernel}");
            for (inputs, outputs) in [(384, 384), (384, 1536), (1536, 384), (768, 3072), (3072, 768)] {
                for activation in [Activation::Identity, Activation::GeluErf] {
                    product(kernel, inputs, outputs, activation, seconds);
                }
            }
            for precision in [Precision::F32, Precision::Int8] {
                println!("  {precision}");
                let (mini, base) = (shape(384, 6, 1536), shape(768, 2, 3072));
                let run = |what, shape, sequences, tokens, all| {
                    forward(what, kernel, precision, shape, sequences, tokens, all, seconds);
                };
                run("MiniLM-L6  8 x 256, all rows", &mini, 8, 256, true);
                run("MiniLM-L6  8 x 256, [CLS] rows", &mini, 8, 256, false);
                run("MiniLM-L6  50 x 40, [CLS] rows", &mini, 50, 40, false);
                run("MiniLM-L6  1 x 128, [CLS] row", &mini, 1, 128, false);
                run("BERT-base, 2 layers  8 x 256, all rows", &base, 8, 256, true);
            }
        }
    });
}

/// Seconds of one call, after one to warm up: the best wall time, or the mean time on the processor where the
/// system tells it and it is less.
fn best(seconds: f64, mut work: impl FnMut()) -> f64 {
    work();
    let (start, on_processor) = (Instant::now(), processor_seconds());
    let mut best = f64::INFINITY;
    let mut calls = 0;
    while start.elapsed().as_secs_f64() < seconds || calls < 3 {
        let call = Instant::now();
        work();
        best = best.min(call.elapsed().as_secs_f64());
        calls += 1;
    }
    match (on_processor, processor_seconds()) {
        (Some(before), Some(after)) => best.min((after - before) / f64::from(calls)),
        _ => best,
    }
}

/// Time this thread has spent on a processor, on Linux.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split(' ').next()?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}

fn report(what: &str, flops: f64, seconds: f64) {
    println!("  {what:<44} {:>8.1} GFLOP/s {:>10.3} ms", flops / seconds / 1e9, seconds * 1e3);
}

fn wave(count: usize, scale: f32) -> Vec<f32> {
    (0..count).map(|index| ((index as f32 * 0.37).sin() + (index as f32 * 1.71).sin()) * scale).collect()
}

fn linear(inputs: usize, outputs: usize) -> Linear {
    let weight = wave(inputs * outputs, 1.0 / (inputs as f32).sqrt());
    Linear { weight, bias: Some(wave(outputs, 0.1)), inputs, outputs }
}

fn norm(width: usize) -> LayerNorm {
    LayerNorm { scale: vec![1.0; width], shift: wave(width, 0.1), eps: 1e-12 }
}

fn product(kernel: Kernel, inputs: usize, outputs: usize, activation: Activation, seconds: f64) {
    let rows = 96;
    let dense = Dense::new(&linear(inputs, outputs), activation, kernel).expect("a sound layer");
    let input = wave(rows * inputs, 1.0);
    let mut out = vec![0.0; rows * outputs];
    let time = best(seconds, || dense.apply(&input, &mut out).expect("fitting buffers"));
    let what = format!("product {rows} x {inputs} x {outputs}, {}", activation.name());
    report(&what, 2.0 * (rows * inputs * outputs) as f64, time);
}

fn shape(hidden: usize, layers: usize, intermediate: usize) -> EncoderShape {
    EncoderShape {
        vocab: 1000,
        embedding: hidden,
        hidden,
        layers,
        heads: 12,
        intermediate,
        positions: 512,
        types: 2,
        layer_norm_eps: 1e-12,
        activation: Activation::GeluErf,
        relative: None,
    }
}

fn encoder(shape: &EncoderShape, kernel: Kernel, precision: Precision) -> CpuEncoder {
    let hidden = shape.hidden;
    let layer = || LayerWeights {
        query: linear(hidden, hidden),
        key: linear(hidden, hidden),
        value: linear(hidden, hidden),
        attention_output: linear(hidden, hidden),
        attention_norm: norm(hidden),
        intermediate: linear(hidden, shape.intermediate),
        output: linear(shape.intermediate, hidden),
        output_norm: norm(hidden),
    };
    let weights = EncoderWeights {
        word: wave(shape.vocab * hidden, 1.0),
        position: Some(wave(shape.positions * hidden, 0.5)),
        types: Some(wave(shape.types * hidden, 0.5)),
        embedding_norm: norm(hidden),
        embedding_projection: None,
        relative_bias: None,
        layers: (0..shape.layers).map(|_| layer()).collect(),
    };
    CpuEncoder::new(shape.clone(), weights, kernel, precision).expect("sound weights")
}

fn batch(sequences: usize, tokens: usize) -> PackedBatch {
    let mut batch = PackedBatch::new();
    let positions: Vec<u32> = (0..tokens as u32).collect();
    for sequence in 0..sequences as u32 {
        let ids: Vec<u32> = positions.iter().map(|position| (position * 31 + sequence * 7) % 1000).collect();
        batch.push(&ids, &vec![0; tokens], &positions).expect("a sound sequence");
    }
    batch
}

/// A forward pass: its speed, and the share and speed of each kind of work.
#[allow(clippy::too_many_arguments)]
fn forward(
    what: &str,
    kernel: Kernel,
    precision: Precision,
    shape: &EncoderShape,
    sequences: usize,
    tokens: usize,
    all: bool,
    seconds: f64,
) {
    let encoder = encoder(shape, kernel, precision);
    let batch = batch(sequences, tokens);
    let step = if all { 1 } else { tokens };
    let rows: Vec<u32> = (0..batch.tokens() as u32).step_by(step).collect();
    let mut out = vec![0.0; rows.len() * shape.hidden];
    let time = best(2.0 * seconds, || encoder.forward(&batch, &rows, &mut out).expect("a sound batch"));
    // Counted as if all rows went through the last layer, so that both numbers compare with other libraries.
    let weights = 4 * shape.hidden * shape.hidden + 2 * shape.hidden * shape.intermediate;
    let token = shape.layers * (2 * weights + 4 * tokens * shape.hidden);
    report(what, (batch.tokens() * token) as f64, time);
    if all {
        let profile = Profile::default();
        encoder.forward_profiled(&batch, &rows, &mut out, &profile).expect("a sound batch");
        let share = |work: Work| profile.time(work).as_secs_f64() / profile.total().as_secs_f64();
        let operations = |work: Work| {
            let weights = match work {
                Work::Projections => 3 * shape.hidden * shape.hidden,
                Work::AttentionOutput => shape.hidden * shape.hidden,
                Work::Intermediate | Work::Output => shape.hidden * shape.intermediate,
                Work::Attention => 2 * tokens * shape.hidden,
                _ => 0,
            };
            (2 * batch.tokens() * shape.layers * weights) as f64
        };
        for work in Work::ALL {
            let speed = operations(work) / profile.time(work).as_secs_f64() / 1e9;
            println!("    {:<30} {:>5.1} % {speed:>8.1} GFLOP/s", work.name(), 100.0 * share(work));
        }
    }
}
