//! Sixteen lanes in plain Rust with the tile of AVX-512, so that tests can run the wide path on any machine.

use super::{Simd, Task};

/// Sixteen emulated lanes.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Emulated;

type Lanes = [f32; 16];

fn lanewise(a: Lanes, b: Lanes, operation: impl Fn(f32, f32) -> f32) -> Lanes {
    std::array::from_fn(|lane| operation(a[lane], b[lane]))
}

impl Simd for Emulated {
    type Vector = Lanes;
    const LANES: usize = 16;
    const PANEL_VECTORS: usize = 3;
    const TILE_ROWS: usize = 8;
    // Small, so that products of a few inputs already take several passes.
    const DEPTH: usize = 24;

    fn run<T: Task>(self, task: T) {
        task.run(self);
    }

    fn splat(self, value: f32) -> Lanes {
        [value; 16]
    }

    unsafe fn load(self, from: *const f32) -> Lanes {
        // SAFETY: the caller vouches for the pointer.
        unsafe { from.cast::<Lanes>().read_unaligned() }
    }

    unsafe fn store(self, to: *mut f32, vector: Lanes) {
        // SAFETY: the caller vouches for the pointer.
        unsafe { to.cast::<Lanes>().write_unaligned(vector) }
    }

    fn add(self, a: Lanes, b: Lanes) -> Lanes {
        lanewise(a, b, |a, b| a + b)
    }

    fn sub(self, a: Lanes, b: Lanes) -> Lanes {
        lanewise(a, b, |a, b| a - b)
    }

    fn mul(self, a: Lanes, b: Lanes) -> Lanes {
        lanewise(a, b, |a, b| a * b)
    }

    fn div(self, a: Lanes, b: Lanes) -> Lanes {
        lanewise(a, b, |a, b| a / b)
    }

    fn mul_add(self, a: Lanes, b: Lanes, c: Lanes) -> Lanes {
        std::array::from_fn(|lane| a[lane].mul_add(b[lane], c[lane]))
    }

    fn max(self, a: Lanes, b: Lanes) -> Lanes {
        lanewise(a, b, |a, b| if a > b { a } else { b })
    }

    fn min(self, a: Lanes, b: Lanes) -> Lanes {
        lanewise(a, b, |a, b| if a < b { a } else { b })
    }

    fn select_less(self, a: Lanes, b: Lanes, yes: Lanes, no: Lanes) -> Lanes {
        std::array::from_fn(|lane| if a[lane] < b[lane] { yes[lane] } else { no[lane] })
    }

    fn power_of_two(self, shifted: Lanes) -> Lanes {
        shifted.map(|value| f32::from_bits(value.to_bits().wrapping_add(127) << 23))
    }
}
