//! Sixteen lanes in plain Rust with the tile of AVX-512, so that tests can run the wide path on any machine.

use super::matrix::{BLOCK_ROWS, MatrixUnit, PAIRED, PANEL, SIDE, Sums};
use super::{Reach, Simd, Task};

/// Sixteen emulated lanes, with sums of 16 bits or without.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Emulated<const NARROW: bool>;

type Lanes = [f32; 16];

fn lanewise(a: Lanes, b: Lanes, operation: impl Fn(f32, f32) -> f32) -> Lanes {
    std::array::from_fn(|lane| operation(a[lane], b[lane]))
}

impl<const NARROW: bool> Simd for Emulated<NARROW> {
    type Vector = Lanes;
    type Ints = [i32; 16];
    const REACH: Reach = if NARROW { Reach::NARROW } else { Reach::WIDE };
    const LANES: usize = 16;
    const PANEL_VECTORS: usize = 3;
    const TILE_ROWS: usize = 8;
    const INT8_TILE_ROWS: usize = if NARROW { 4 } else { 8 };
    // Small, so that products of a few inputs already take several passes.
    const DEPTH: usize = 24;

    fn run<T: Task>(self, task: T) {
        task.run(self);
    }

    fn prefetch(self, _from: *const u8) {}

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

    fn splat_ints(self, value: i32) -> [i32; 16] {
        [value; 16]
    }

    unsafe fn load_ints(self, from: *const i32) -> [i32; 16] {
        // SAFETY: the caller vouches for the pointer.
        unsafe { from.cast::<[i32; 16]>().read_unaligned() }
    }

    fn sub_ints(self, a: [i32; 16], b: [i32; 16]) -> [i32; 16] {
        std::array::from_fn(|lane| a[lane].wrapping_sub(b[lane]))
    }

    fn mul_ints(self, a: [i32; 16], b: [i32; 16]) -> [i32; 16] {
        std::array::from_fn(|lane| a[lane].wrapping_mul(b[lane]))
    }

    fn dot_add(self, sums: [i32; 16], codes: [i32; 16], weights: [i32; 16]) -> [i32; 16] {
        std::array::from_fn(|lane| dot_add(sums[lane], codes[lane], weights[lane]))
    }

    /// Panics where 16 bits are not enough.
    fn dot_add_halves(self, halves: [i32; 16], codes: [i32; 16], weights: [i32; 16]) -> [i32; 16] {
        std::array::from_fn(|lane| {
            let (codes, weights) = (codes[lane].to_le_bytes(), weights[lane].to_le_bytes());
            let products = |place: usize| i32::from(codes[place]) * i32::from(weights[place] as i8);
            let add = |sum: i16, more: i32| u32::from(i16::try_from(i32::from(sum) + more).unwrap() as u16);
            let low = add(halves[lane] as i16, products(0) + products(1));
            let high = add((halves[lane] >> 16) as i16, products(2) + products(3));
            (low | high << 16) as i32
        })
    }

    fn add_halves(self, sums: [i32; 16], halves: [i32; 16]) -> [i32; 16] {
        std::array::from_fn(|lane| {
            sums[lane] + i32::from(halves[lane] as i16) + i32::from((halves[lane] >> 16) as i16)
        })
    }

    fn to_floats(self, ints: [i32; 16]) -> Lanes {
        ints.map(|value| value as f32)
    }

    unsafe fn store_codes(self, to: *mut u8, vectors: [Lanes; 4]) {
        let codes = vectors.map(|vector| vector.map(|value| value.round_ties_even() as u8));
        // SAFETY: the caller vouches for the pointer.
        unsafe { to.cast::<[[u8; 16]; 4]>().write_unaligned(codes) }
    }

    fn times_power_of_two(self, x: Lanes, shifted: Lanes) -> Lanes {
        lanewise(x, shifted, |x, shifted| f32::from_bits(x.to_bits().wrapping_add(shifted.to_bits() << 23)))
    }

    unsafe fn transpose8(self, from: *const f32, stride: usize, to: *mut f32, to_stride: usize) {
        for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
            // SAFETY: the caller vouches for the pointers.
            unsafe { *to.add(column * to_stride + row) = *from.add(row * stride + column) };
        }
    }
}

/// A matrix unit in plain Rust.
pub(in crate::kernels) struct EmulatedUnit(Sums);

impl EmulatedUnit {
    pub(in crate::kernels) fn new() -> Self {
        EmulatedUnit(Sums([[i32::MAX; PANEL]; BLOCK_ROWS]))
    }
}

impl MatrixUnit for EmulatedUnit {
    fn start(&mut self) {
        self.0.0.as_flattened_mut().fill(0);
    }

    unsafe fn add(&mut self, rows: usize, codes: *const u32, depth: usize, panel: &[u32; SIDE * PANEL]) {
        assert!(rows == SIDE || rows == BLOCK_ROWS);
        for (row, sums) in self.0.0[..rows].iter_mut().enumerate() {
            for (word, weights) in panel.chunks_exact(PANEL).enumerate() {
                // SAFETY: the caller vouches for so many words of so many rows.
                let codes = unsafe { *codes.add(row * depth + word) };
                for (sum, &weight) in sums.iter_mut().zip(weights) {
                    *sum = dot_add(*sum, codes as i32, weight as i32);
                }
            }
        }
    }

    fn write(&mut self, rows: usize, sums: &mut Sums) {
        sums.0[..rows].copy_from_slice(&self.0.0[..rows]);
    }

    fn multiply_halves(
        &mut self,
        rows: &[u16],
        stride: usize,
        panel: &[u32],
        out: &mut [f32],
        out_stride: usize,
    ) {
        self.0.0.as_flattened_mut().fill(i32::MAX);
        let depth = 2 * panel.len() / PAIRED;
        let float = |half: u32| f32::from_bits(half << 16);
        for row in 0..SIDE {
            let halves = &rows[row * stride..][..depth];
            for column in 0..PAIRED {
                let pairs = panel[column..].iter().step_by(PAIRED).zip(halves.chunks_exact(2));
                out[row * out_stride + column] = pairs.fold(0.0, |sum, (&pair, halves)| {
                    let sum = float(halves[0].into()).mul_add(float(pair & 0xffff), sum);
                    float(halves[1].into()).mul_add(float(pair >> 16), sum)
                });
            }
        }
    }
}

/// Adds the products of the values of two words.
fn dot_add(sum: i32, codes: i32, weights: i32) -> i32 {
    let weights = weights.to_le_bytes().map(|byte| i32::from(byte as i8));
    let codes = codes.to_le_bytes().map(i32::from);
    sum.wrapping_add(codes.iter().zip(weights).map(|(code, weight)| code * weight).sum())
}
