//! The kernels in vectors: tiles of four rows, one register of running sums for each result; written once, for every
//! instruction set there is.
//!
//! Nothing here passes closures to generic functions: those are compiled without the features and could not
//! take the closures in.

/// How far ahead of its use memory is asked for, in bytes.
pub(super) const AHEAD: usize = 6144;
/// The same for named rows, in tiles of them, with one vector: such tiles are done long before memory has come.
pub(super) const TILES_AHEAD: usize = 4;
/// What comes at once when memory is asked for.
pub(super) const LINE: usize = 64;
/// Rows of a tile.
pub(super) const ROWS: usize = 4;
/// Vectors of a row in one turn of the inner loop: enough that it does not matter where the loop lies in memory.
pub(super) const STEP: usize = 4;

/// Copies the results of a tile, of which the last may have fewer than it has room for.
#[inline(always)]
pub(super) fn copy_results(results: &[f32; ROWS], to: &mut [f32]) {
    // Mostly all of them, and then without a call.
    match <&mut [f32; ROWS]>::try_from(&mut *to) {
        Ok(to) => *to = *results,
        Err(_) => to.iter_mut().zip(results).for_each(|(to, result)| *to = *result),
    }
}

/// The kernels in a module that has a trait `Stored` to load numbers with, and these functions.
macro_rules! tile_kernels {
    (
        features: $features:literal,
        lanes: $lanes:literal,
        // Vectors that share a tile: sums, vectors and rows must fit the registers.
        vectors: $vectors:literal,
        register: $register:ty,
        zero: $zero:path,
        mul_add: $mul_add:path,
        // The sums over the lanes of each register, in one order whatever is beside it.
        totals: $totals:path,
    ) => {
        const LANES: usize = $lanes;
        const VECTORS: usize = $vectors;

        /// Asks for the lines of memory that hold `bytes` from `start` on. They need not be anyone's: nothing is read.
        #[inline]
        #[target_feature(enable = $features)]
        fn fetch<T>(start: *const T, bytes: usize) {
            for offset in (0..bytes).step_by(LINE) {
                _mm_prefetch::<_MM_HINT_T0>(start.cast::<i8>().wrapping_add(offset));
            }
        }

        /// The dot product of each row with `x`. The last tile repeats its last row to be full: so every row goes
        /// the same way.
        #[target_feature(enable = $features)]
        pub(super) fn dots<T: Stored>(rows: &[T], x: &[f32], out: &mut [f32]) {
            let width = x.len();
            for (tile, sums) in out.chunks_mut(ROWS).enumerate() {
                let (first, last) = (tile * ROWS, sums.len() - 1);
                let row = |i: usize| &rows[(first + i.min(last)) * width..][..width];
                let soon = row(0).as_ptr().wrapping_byte_add(AHEAD);
                let [results] = tile_dots([row(0), row(1), row(2), row(3)], [x], Some(soon));
                copy_results(&results, sums);
            }
        }

        /// As [`dots`], for the named rows only.
        #[target_feature(enable = $features)]
        pub(super) fn dots_of<T: Stored>(rows: &[T], named: &[u32], x: &[f32], out: &mut [f32]) {
            let width = x.len();
            for (tile, (names, sums)) in named.chunks(ROWS).zip(out.chunks_mut(ROWS)).enumerate() {
                let last = names.len() - 1;
                let row = |i: usize| &rows[names[i.min(last)] as usize * width..][..width];
                fetch_tile(rows, named, tile + TILES_AHEAD, width);
                let [results] = tile_dots([row(0), row(1), row(2), row(3)], [x], None);
                copy_results(&results, sums);
            }
        }

        /// Asks for the rows of a tile of named ones: they come from anywhere.
        #[inline]
        #[target_feature(enable = $features)]
        fn fetch_tile<T>(rows: &[T], named: &[u32], tile: usize, width: usize) {
            for &name in named.iter().skip(tile * ROWS).take(ROWS) {
                let row = &rows[name as usize * width..][..width];
                fetch(row.as_ptr(), size_of_val(row));
            }
        }

        /// The dot product of each vector with each of the named rows: `out` has a row for each vector.
        #[target_feature(enable = $features)]
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
                    let mut together = [&vectors[first * width..][..width]; VECTORS];
                    for i in 1..=last {
                        together[i] = &vectors[(first + i) * width..][..width];
                    }
                    let results = tile_dots(four, together, None);
                    for (i, results) in results.iter().take(last + 1).enumerate() {
                        let target = &mut out[(first + i) * named.len() + tile * ROWS..][..=last_name];
                        copy_results(results, target);
                    }
                }
            }
        }

        /// Dot products of four rows with some vectors. Memory from `soon` on is asked for meanwhile, as evenly as the
        /// rows are read and in its order: a burst would be more than a processor can wait for, and only a sequence
        /// wakes its own fetching.
        // Iterators with closures would not be compiled with the features.
        #[allow(clippy::needless_range_loop)]
        #[inline]
        #[target_feature(enable = $features)]
        fn tile_dots<T: Stored, const V: usize>(
            rows: [&[T]; ROWS],
            vectors: [&[f32]; V],
            soon: Option<*const T>,
        ) -> [[f32; ROWS]; V] {
            let width = rows[0].len();
            let whole = width - width % LANES;
            let mut sums = [[$zero(); ROWS]; V];
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
            if let Some(soon) = soon {
                fetch(soon.wrapping_add(stepped * ROWS), (width - stepped) * ROWS * size_of::<T>());
            }
            for at in (stepped..whole).step_by(LANES) {
                // SAFETY: as above.
                unsafe { add_step(at, rows, vectors, &mut sums) };
            }
            if whole < width {
                let mut x = [$zero(); V];
                for vector in 0..V {
                    // SAFETY: the machine has what this function needs, which is what `load_part` needs.
                    x[vector] = unsafe { f32::load_part(&vectors[vector][whole..]) };
                }
                for row in 0..ROWS {
                    // SAFETY: as above.
                    let values = unsafe { T::load_part(&rows[row][whole..]) };
                    for vector in 0..V {
                        sums[vector][row] = $mul_add(values, x[vector], sums[vector][row]);
                    }
                }
            }
            $totals(sums)
        }

        /// Adds the products of a register of numbers from `at` on.
        ///
        /// # Safety
        /// All rows and vectors must be at least `at + LANES` long.
        #[allow(clippy::needless_range_loop)]
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn add_step<T: Stored, const V: usize>(
            at: usize,
            rows: [&[T]; ROWS],
            vectors: [&[f32]; V],
            sums: &mut [[$register; ROWS]; V],
        ) {
            // SAFETY: the machine has what this function needs, which is what `load` needs; the caller vouches for the
            // lengths.
            unsafe {
                let mut x = [$zero(); V];
                for vector in 0..V {
                    x[vector] = f32::load(&*vectors[vector].as_ptr().add(at).cast());
                }
                for row in 0..ROWS {
                    let values = T::load(&*rows[row].as_ptr().add(at).cast());
                    for vector in 0..V {
                        sums[vector][row] = $mul_add(values, x[vector], sums[vector][row]);
                    }
                }
            }
        }
    };
}
pub(super) use tile_kernels;
