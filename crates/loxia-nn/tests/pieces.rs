//! Weights that come in pieces make the same encoder as weights that are all there, and what is wrong is named.

use std::ops::ControlFlow;

use loxia_nn::*;

use crate::model;

/// Gives weights in pieces of so many rows; one matrix may be too long or too short by some numbers.
struct Pieces {
    weights: EncoderWeights,
    rows: usize,
    wrong: Option<(Matrix, isize)>,
}

impl WeightSource for Pieces {
    type Error = Error;

    fn frame(&mut self) -> Result<EncoderWeights> {
        let mut frame = self.weights.clone();
        frame.word.clear();
        for layer in &mut frame.layers {
            LayerMap::ALL.into_iter().for_each(|map| map.of_mut(layer).weight.clear());
        }
        Ok(frame)
    }

    fn rows(&mut self, matrix: Matrix, take: &mut dyn FnMut(&[f32]) -> ControlFlow<()>) -> Result<()> {
        let (mut values, width) = match matrix {
            Matrix::Words => (self.weights.word.clone(), self.weights.embedding_norm.scale.len()),
            Matrix::Layer { index, map } => {
                let linear = map.of(&self.weights.layers[index]);
                (linear.weight.clone(), linear.inputs)
            }
        };
        if let Some((_, more)) = self.wrong.filter(|(wrong, _)| *wrong == matrix) {
            values.resize(values.len().checked_add_signed(more).unwrap(), 0.5);
        }
        let _ = values.chunks(self.rows * width).try_for_each(take);
        Ok(())
    }
}

fn states(encoder: &CpuEncoder) -> Vec<u32> {
    let mut batch = PackedBatch::new();
    model::push(&mut batch, encoder.shape(), 3, 29);
    model::push(&mut batch, encoder.shape(), 4, 8);
    encoder.all_states(&batch).unwrap().concat().iter().map(|value| value.to_bits()).collect()
}

#[test]
fn pieces_make_the_same_encoder() {
    let relative = Some(RelativeBuckets { buckets: 32, max_distance: 128 });
    let shapes = [
        model::shape(64, 2, 96, 2),
        model::shape(30, 3, 50, 2),
        EncoderShape { embedding: 9, ..model::shape(21, 3, 17, 2) },
        EncoderShape { relative, ..model::shape(16, 2, 32, 1) },
    ];
    for shape in shapes {
        for kernel in Kernel::available() {
            for precision in [Precision::F32, Precision::Int8] {
                let whole = CpuEncoder::new(shape.clone(), model::weights(&shape, 1), kernel, precision);
                let whole = states(&whole.unwrap());
                for rows in [1, 3, 16, 1000] {
                    let mut pieces = Pieces { weights: model::weights(&shape, 1), rows, wrong: None };
                    let read = CpuEncoder::read(shape.clone(), &mut pieces, kernel, precision).unwrap();
                    assert_eq!(states(&read), whole, "{kernel}, {precision}, {rows} rows at a time");
                }
            }
        }
    }
}

#[test]
fn wrong_pieces_are_named() {
    let shape = model::shape(8, 2, 12, 2);
    let refused = |matrix, more| {
        let mut pieces = Pieces { weights: model::weights(&shape, 1), rows: 3, wrong: Some((matrix, more)) };
        let read = CpuEncoder::read(shape.clone(), &mut pieces, Kernel::Portable, Precision::Int8);
        read.unwrap_err().to_string()
    };
    let output = Matrix::Layer { index: 1, map: LayerMap::Output };
    for (matrix, more, expected) in [
        (Matrix::Words, -8, "tensor word: found 392 elements, expected [50, 8]"),
        (Matrix::Words, 3, "tensor word: found 403 elements, expected [50, 8]"),
        (output, -12, "layers[1].output.weight: found 84 elements, expected [8, 12]"),
        (output, -1, "layers[1].output.weight: found 95 elements, expected [8, 12]"),
        (output, 12, "layers[1].output.weight: found 108 elements, expected [8, 12]"),
    ] {
        let message = refused(matrix, more);
        assert!(message.contains(expected), "{message}");
    }
    let mut pieces = Pieces { weights: model::weights(&shape, 1), rows: 3, wrong: None };
    pieces.weights.layers[1].key.bias = Some(vec![0.0; 9]);
    let read = CpuEncoder::read(shape, &mut pieces, Kernel::Portable, Precision::Int8);
    let message = read.unwrap_err().to_string();
    assert!(message.contains("layers[1].key.bias: found 9 elements, expected [8]"), "{message}");
}
