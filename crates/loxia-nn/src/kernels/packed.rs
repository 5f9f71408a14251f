//! Weights packed once for the kernel that will read them.

use super::Isa;
use crate::Linear;
use crate::memory::Buffer;

/// One or more affine maps of the same input, side by side, in panels.
///
/// A panel holds the weights of a few neighbouring outputs, `[inputs][panel width]`, so that the inner loop of
/// a product reads memory in order; the last panel is filled up with zeros.
pub(crate) struct Packed {
    panels: Buffer,
    bias: Buffer,
    inputs: usize,
    outputs: usize,
    width: usize,
}

impl Packed {
    /// Packs maps whose shapes were checked and whose inputs agree; their outputs are concatenated.
    pub(crate) fn new(isa: Isa, maps: &[&Linear]) -> Self {
        Self::with_width(isa.panel_width(), maps)
    }

    /// Packs into panels of a given width.
    pub(crate) fn with_width(width: usize, maps: &[&Linear]) -> Self {
        let outputs = maps.iter().map(|map| map.outputs).sum();
        let mut packed = Self::empty(width, maps[0].inputs, outputs);
        let mut first = 0;
        for map in maps {
            packed.put(first, &map.weight);
            map.bias.iter().for_each(|bias| packed.put_bias(first, bias));
            first += map.outputs;
        }
        packed
    }

    /// Room for maps of the same input, all zeros.
    pub(crate) fn empty(width: usize, inputs: usize, outputs: usize) -> Self {
        let padded = outputs.next_multiple_of(width);
        Packed { panels: Buffer::zeros(padded * inputs), bias: Buffer::zeros(padded), inputs, outputs, width }
    }

    /// Packs the weights, `[outputs][inputs]`, of some outputs from `first` on.
    pub(crate) fn put(&mut self, first: usize, rows: &[f32]) {
        let (width, inputs) = (self.width, self.inputs);
        for (output, row) in (first..).zip(rows.chunks_exact(inputs)) {
            let panel = &mut self.panels[output / width * width * inputs..][..width * inputs];
            let column = panel[output % width..].iter_mut().step_by(width);
            column.zip(row).for_each(|(place, &weight)| *place = weight);
        }
    }

    /// Sets the biases of some outputs from `first` on.
    pub(crate) fn put_bias(&mut self, first: usize, bias: &[f32]) {
        self.bias[first..first + bias.len()].copy_from_slice(bias);
    }

    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// The panels in order, each `[inputs][width]`, with their biases, `[width]`.
    pub(crate) fn panels(&self) -> impl ExactSizeIterator<Item = (&[f32], &[f32])> {
        self.panels.chunks_exact(self.width * self.inputs).zip(self.bias.chunks_exact(self.width))
    }

    /// The weights of some inputs in one panel.
    #[cfg(any(test, target_arch = "x86_64"))]
    pub(crate) fn part(&self, panel: usize, inputs: std::ops::Range<usize>) -> &[f32] {
        let first = panel * self.inputs;
        &self.panels[(first + inputs.start) * self.width..(first + inputs.end) * self.width]
    }

    /// The biases of one panel.
    #[cfg(any(test, target_arch = "x86_64"))]
    pub(crate) fn bias(&self, panel: usize) -> &[f32] {
        &self.bias[panel * self.width..][..self.width]
    }
}
