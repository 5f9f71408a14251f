//! A packed affine map with an activation, for heads and poolers.

use rayon::prelude::*;

use crate::kernels::{Isa, Packed};
use crate::{Activation, Error, Kernel, Linear, Result};

/// An affine map, packed for a kernel, followed by an activation.
///
/// ```
/// use loxia_nn::{Activation, Dense, Kernel, Linear};
/// let linear = Linear { weight: vec![1.0, -1.0], bias: Some(vec![0.5]), inputs: 2, outputs: 1 };
/// let head = Dense::new(&linear, Activation::Identity, Kernel::Portable).unwrap();
/// let mut scores = [0.0; 2];
/// head.apply(&[3.0, 1.0, 0.0, 2.0], &mut scores).unwrap();
/// assert_eq!(scores, [2.5, -1.5]);
/// ```
pub struct Dense {
    isa: Isa,
    packed: Packed,
    activation: Activation,
}

/// Rows of one task; larger inputs are shared among threads.
const ROWS: usize = 96;

impl Dense {
    /// Packs a map for a kernel.
    pub fn new(linear: &Linear, activation: Activation, kernel: Kernel) -> Result<Self> {
        linear.check("dense")?;
        let isa = kernel.check()?;
        Ok(Dense { isa, packed: Packed::new(isa, &[linear]), activation })
    }

    /// Applies it to `input`, `[rows][inputs]`, into `out`, `[rows][outputs]`.
    pub fn apply(&self, input: &[f32], out: &mut [f32]) -> Result<()> {
        let (inputs, outputs) = (self.inputs(), self.outputs());
        let rows = input.len() / inputs;
        if !input.len().is_multiple_of(inputs) {
            let expected = (rows + 1) * inputs;
            return Err(Error::Length { what: "input of a dense layer", found: input.len(), expected });
        }
        if out.len() != rows * outputs {
            let expected = rows * outputs;
            return Err(Error::Length { what: "output of a dense layer", found: out.len(), expected });
        }
        if rows <= ROWS {
            self.isa.product_f32(input, &self.packed, self.activation, out);
        } else {
            out.par_chunks_mut(ROWS * outputs)
                .zip(input.par_chunks(ROWS * inputs))
                .for_each(|(out, input)| self.isa.product_f32(input, &self.packed, self.activation, out));
        }
        Ok(())
    }

    /// Width of an input row.
    pub fn inputs(&self) -> usize {
        self.packed.inputs()
    }

    /// Width of an output row.
    pub fn outputs(&self) -> usize {
        self.packed.outputs()
    }
}

impl std::fmt::Debug for Dense {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dense({} -> {}, {})", self.inputs(), self.outputs(), self.activation.name())
    }
}
