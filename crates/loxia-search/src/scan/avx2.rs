//! The kernels with AVX2, FMA and F16C: tiles of four rows, one register of running sums for each result.
//!
//! Nothing here passes closures to generic functions: those are compiled without the features and could not
//! take the closures in.

use std::arch::x86_64::*;

use half::f16;

const LANES: usize = 8;
const ROWS: usize = 4;
/// With three the running sums, vectors and rows would not all fit the sixteen registers.
const VECTORS: usize = 2;
/// How far ahead of its use memory is asked for, in bytes, and the size of what comes then.
const AHEAD: usize = 6144;
const LINE: usize = 64;
/// Vectors of a row in one turn of the inner loop: enough that it does not matter where the loop lies in memory.
const STEP: usize = 4;

/// Whether this machine has what the kernels need.
pub(super) fn available() -> bool {
    // The answers are kept by the standard library: this is a load and a test.
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
}

/// A number that rows are stored in.
pub(super) trait Stored: Copy + Default {
    /// Eight of them, in single precision.
    ///
    /// # Safety
    /// The machine must have what [`available`] looks for.
    unsafe fn load(values: &[Self; LANES]) -> __m256;
}

impl Stored for f16 {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load(values: &[Self; LANES]) -> __m256 {
        // SAFETY: eight values of two bytes are the sixteen that are read; any alignment will do.
        _mm256_cvtph_ps(unsafe { _mm_loadu_si128(values.as_ptr().cast()) })
    }
}

impl Stored for f32 {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load(values: &[Self; LANES]) -> __m256 {
        // SAFETY: eight values of four bytes are the 32 that are read; any alignment will do.
        unsafe { _mm256_loadu_ps(values.as_ptr()) }
    }
}

/// Asks for the lines of memory that hold `bytes` from `start` on. They need not be anyone's: nothing is read.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn fetch<T>(start: *const T, bytes: usize) {
    for offset in (0..bytes).step_by(LINE) {
        _mm_prefetch::<_MM_HINT_T0>(start.cast::<i8>().wrapping_add(offset));
    }
}

/// The dot product of each row with `x`. The last tile repeats its last row to be full: so every row goes
/// the same way.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn dots<T: Stored>(rows: &[T], x: &[f32], out: &mut [f32]) {
    let width = x.len();
    for (tile, sums) in out.chunks_mut(ROWS).enumerate() {
        let (first, last) = (tile * ROWS, sums.len() - 1);
        let row = |i: usize| &rows[(first + i.min(last)) * width..][..width];
        let soon = row(0).as_ptr().wrapping_byte_add(AHEAD);
        let [results] = tile_dots([row(0), row(1), row(2), row(3)], [x], Some(soon));
        sums.copy_from_slice(&results[..=last]);
    }
}

/// As [`dots`], for the named rows only.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn dots_of<T: Stored>(rows: &[T], named: &[u32], x: &[f32], out: &mut [f32]) {
    let width = x.len();
    for (tile, (names, sums)) in named.chunks(ROWS).zip(out.chunks_mut(ROWS)).enumerate() {
        let last = names.len() - 1;
        let row = |i: usize| &rows[names[i.min(last)] as usize * width..][..width];
        fetch_tile(rows, named, tile + 1, width);
        let [results] = tile_dots([row(0), row(1), row(2), row(3)], [x], None);
        sums.copy_from_slice(&results[..=last]);
    }
}

/// Asks for the rows of a tile of named ones: they come from anywhere.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn fetch_tile<T>(rows: &[T], named: &[u32], tile: usize, width: usize) {
    for &name in named.iter().skip(tile * ROWS).take(ROWS) {
        let row = &rows[name as usize * width..][..width];
        fetch(row.as_ptr(), size_of_val(row));
    }
}

/// The dot product of each vector with each of the named rows: `out` has a row for each vector.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn cross_dots<T: Stored>(
    vectors: &[f32],
    rows: &[T],
    named: &[u32],
    width: usize,
    out: &mut [f32],
) {
    let count = out.len() / named.len().max(1);
    for (tile, names) in named.chunks(ROWS).enumerate() {
        let last_name = names.len() - 1;
        let row = |i: usize| &rows[names[i.min(last_name)] as usize * width..][..width];
        let four = [row(0), row(1), row(2), row(3)];
        fetch_tile(rows, named, tile + 1, width);
        for first in (0..count).step_by(VECTORS) {
            let last = (count - first).min(VECTORS) - 1;
            let vector = |i: usize| &vectors[(first + i.min(last)) * width..][..width];
            let results = tile_dots(four, [vector(0), vector(1)], None);
            for (i, results) in results.iter().take(last + 1).enumerate() {
                let target = &mut out[(first + i) * named.len() + tile * ROWS..][..=last_name];
                target.copy_from_slice(&results[..=last_name]);
            }
        }
    }
}

/// Dot products of four rows with some vectors. Memory from `soon` on is asked for meanwhile, as evenly as the rows are
/// read and in its order: a burst would be more than a processor can wait for, and only a sequence wakes its own fetching.
// Iterators with closures would not be compiled with the features.
#[allow(clippy::needless_range_loop)]
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn tile_dots<T: Stored, const V: usize>(
    rows: [&[T]; ROWS],
    vectors: [&[f32]; V],
    soon: Option<*const T>,
) -> [[f32; ROWS]; V] {
    let width = rows[0].len();
    let whole = width - width % LANES;
    let mut sums = [[_mm256_setzero_ps(); ROWS]; V];
    let stepped = whole - whole % (STEP * LANES);
    for first in (0..stepped).step_by(STEP * LANES) {
        if let Some(soon) = soon {
            let step = ROWS * STEP * LANES * size_of::<T>();
            fetch(soon.wrapping_add(first * ROWS), step);
        }
        for step in 0..STEP {
            // SAFETY: all rows and vectors are as wide, and this is a whole step below their width.
            unsafe { add_step(first + step * LANES, rows, vectors, &mut sums) };
        }
    }
    for at in (stepped..whole).step_by(LANES) {
        // SAFETY: as above.
        unsafe { add_step(at, rows, vectors, &mut sums) };
    }
    if whole < width {
        for vector in 0..V {
            for row in 0..ROWS {
                // SAFETY: as above, on full copies.
                unsafe {
                    let x = f32::load(&padded(&vectors[vector][whole..]));
                    let values = T::load(&padded(&rows[row][whole..]));
                    sums[vector][row] = _mm256_fmadd_ps(values, x, sums[vector][row]);
                }
            }
        }
    }
    let mut out = [[0.0; ROWS]; V];
    for vector in 0..V {
        let [a, b, c, d] = sums[vector];
        let pairs = (_mm_hadd_ps(halves(a), halves(b)), _mm_hadd_ps(halves(c), halves(d)));
        // SAFETY: four values of four bytes are the sixteen that are written; any alignment will do.
        unsafe { _mm_storeu_ps(out[vector].as_mut_ptr(), _mm_hadd_ps(pairs.0, pairs.1)) };
    }
    out
}

/// Adds the products of eight numbers from `at` on.
///
/// # Safety
/// All rows and vectors must be at least `at + LANES` long.
#[allow(clippy::needless_range_loop)]
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add_step<T: Stored, const V: usize>(
    at: usize,
    rows: [&[T]; ROWS],
    vectors: [&[f32]; V],
    sums: &mut [[__m256; ROWS]; V],
) {
    // SAFETY: the machine has what this function needs, which is what `load` needs; the caller vouches for the
    // lengths.
    unsafe {
        let mut x = [_mm256_setzero_ps(); V];
        for vector in 0..V {
            x[vector] = f32::load(&*vectors[vector].as_ptr().add(at).cast());
        }
        for row in 0..ROWS {
            let values = T::load(&*rows[row].as_ptr().add(at).cast());
            for vector in 0..V {
                sums[vector][row] = _mm256_fmadd_ps(values, x[vector], sums[vector][row]);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn halves(sum: __m256) -> __m128 {
    _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum))
}

#[inline]
fn padded<T: Copy + Default>(rest: &[T]) -> [T; LANES] {
    let mut full = [T::default(); LANES];
    full[..rest.len()].copy_from_slice(rest);
    full
}

/// Numbers in single precision, times `scale`.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn widen(values: &[f16], scale: f32, out: &mut [f32]) {
    let factor = _mm256_set1_ps(scale);
    let (chunks, rest) = values.as_chunks::<LANES>();
    let (targets, target_rest) = out.as_chunks_mut::<LANES>();
    for (chunk, target) in chunks.iter().zip(targets) {
        // SAFETY: the machine has what this function needs, which is what `load` needs; eight values of
        // four bytes are the 32 that are written.
        unsafe { _mm256_storeu_ps(target.as_mut_ptr(), _mm256_mul_ps(f16::load(chunk), factor)) };
    }
    for (value, target) in rest.iter().zip(target_rest) {
        *target = value.to_f32() * scale;
    }
}
