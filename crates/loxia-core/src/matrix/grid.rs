//! How a matrix is cut into tiles.

use std::ops::Range;

use crate::{Error, Result};

/// Extents of a tile; those at the right and lower edge may be smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileShape {
    /// Rows of a tile.
    pub rows: usize,
    /// Columns of a tile.
    pub cols: usize,
}

impl TileShape {
    /// Cells that a tile is meant to have.
    ///
    /// A tile is what a crash may cost and what a sync must carry. 16,384 pairs are seconds of work for a
    /// small cross-encoder on one core, so the two syncs of a tile (milliseconds) vanish in it; and they are
    /// little enough that losing them does not matter.
    const CELLS: usize = 1 << 14;

    /// The usual shape for a matrix: about 16,384 cells, 16 rows by 1024 columns where the matrix is large
    /// enough. Several rows share the preparation of an item's text, many columns that of a query's.
    ///
    /// ```
    /// use loxia_core::matrix::TileShape;
    /// assert_eq!(TileShape::for_matrix(700, 11_587), TileShape { rows: 16, cols: 1024 });
    /// assert_eq!(TileShape::for_matrix(5, 1408), TileShape { rows: 5, cols: 1408 });
    /// ```
    pub fn for_matrix(rows: usize, cols: usize) -> Self {
        const ROWS: usize = 16;
        let tile_cols = (Self::CELLS / rows.clamp(1, ROWS)).min(cols).max(1);
        let tile_rows = (Self::CELLS / tile_cols).min(rows).max(1);
        TileShape { rows: tile_rows, cols: tile_cols }
    }
}

/// The tiles of a matrix, numbered along the rows of tiles from the top left.
///
/// ```
/// use loxia_core::matrix::{TileGrid, TileShape};
/// let grid = TileGrid::new(5, 7, TileShape { rows: 2, cols: 4 }).unwrap();
/// assert_eq!(grid.tiles(), 6);
/// assert_eq!((grid.rows_of(5), grid.cols_of(5)), (4..5, 4..7));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileGrid {
    rows: usize,
    cols: usize,
    tile: TileShape,
    across: usize,
    tiles: usize,
}

impl TileGrid {
    /// Most tiles a matrix may have; each costs a record and two syncs.
    const MOST_TILES: usize = 1 << 26;

    /// Cuts a matrix of `rows` by `cols` cells.
    pub fn new(rows: usize, cols: usize, tile: TileShape) -> Result<Self> {
        let refuse = |what: &str| {
            let TileShape { rows: tile_rows, cols: tile_cols } = tile;
            Err(Error::Invalid(format!(
                "{rows} x {cols} cells in tiles of {tile_rows} x {tile_cols}: {what}"
            )))
        };
        if tile.rows == 0 || tile.cols == 0 {
            return refuse("a tile needs at least one cell");
        }
        if rows.checked_mul(cols).and_then(|cells| cells.checked_mul(4)).is_none_or(|bytes| bytes > 1 << 60) {
            return refuse("more cells than any disk holds");
        }
        let across = cols.div_ceil(tile.cols);
        match rows.div_ceil(tile.rows).checked_mul(across) {
            Some(tiles) if tiles <= Self::MOST_TILES => Ok(TileGrid { rows, cols, tile, across, tiles }),
            _ => refuse("more than 67,108,864 tiles; choose larger ones"),
        }
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the matrix.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Extents of a tile.
    pub fn tile_shape(&self) -> TileShape {
        self.tile
    }

    /// Number of tiles.
    pub fn tiles(&self) -> usize {
        self.tiles
    }

    /// Rows of a tile.
    ///
    /// # Panics
    /// If `tile` is not below [`tiles`](TileGrid::tiles).
    pub fn rows_of(&self, tile: usize) -> Range<usize> {
        assert!(tile < self.tiles, "tile {tile} of {}", self.tiles);
        let start = tile / self.across * self.tile.rows;
        start..start.saturating_add(self.tile.rows).min(self.rows)
    }

    /// Columns of a tile.
    ///
    /// # Panics
    /// If `tile` is not below [`tiles`](TileGrid::tiles).
    pub fn cols_of(&self, tile: usize) -> Range<usize> {
        assert!(tile < self.tiles, "tile {tile} of {}", self.tiles);
        let start = tile % self.across * self.tile.cols;
        start..start.saturating_add(self.tile.cols).min(self.cols)
    }

    /// Number of cells of a tile.
    pub fn cells_of(&self, tile: usize) -> usize {
        self.rows_of(tile).len() * self.cols_of(tile).len()
    }

    /// Where each row of a tile lies in the dense file, in bytes.
    pub(super) fn segments(&self, tile: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let (rows, cols, width) = (self.rows_of(tile), self.cols_of(tile), self.cols);
        rows.map(move |row| (row * width + cols.start) * 4..(row * width + cols.end) * 4)
    }

    /// How messages call a tile.
    pub(super) fn name(&self, tile: usize) -> String {
        let (rows, cols) = (self.rows_of(tile), self.cols_of(tile));
        format!("tile {tile} of {} (rows {rows:?}, columns {cols:?})", self.tiles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn tiles_cover_every_cell_once(rows in 0usize..20, cols in 0usize..20, r in 1usize..25, c in 1usize..25) {
            let grid = TileGrid::new(rows, cols, TileShape { rows: r, cols: c }).unwrap();
            let mut hits = vec![0; rows * cols];
            for tile in 0..grid.tiles() {
                let bytes: usize = grid.segments(tile).map(|segment| segment.len()).sum();
                prop_assert_eq!(bytes, grid.cells_of(tile) * 4);
                grid.segments(tile).for_each(|s| hits[s.start / 4..s.end / 4].iter_mut().for_each(|hit| *hit += 1));
            }
            prop_assert!(hits.iter().all(|&hit| hit == 1));
        }

        #[test]
        fn usual_tiles_are_within_the_matrix_and_the_size(rows in 1usize..5000, cols in 1usize..50_000) {
            let tile = TileShape::for_matrix(rows, cols);
            prop_assert!(tile.rows <= rows && tile.cols <= cols && tile.rows * tile.cols <= 1 << 14);
            prop_assert!(tile.rows * tile.cols > 1 << 12 || tile.rows * tile.cols == rows * cols);
        }
    }

    #[test]
    fn absurd_extents_are_refused() {
        let one = TileShape { rows: 1, cols: 1 };
        assert!(TileGrid::new(1 << 60, 1 << 60, one).is_err());
        assert!(TileGrid::new(1 << 20, 1 << 20, one).is_err());
        assert!(TileGrid::new(4, 4, TileShape { rows: 0, cols: 4 }).is_err());
    }
}
