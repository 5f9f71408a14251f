//! CUR approximations of a whole score matrix, and its spectrum.
//!
//! With anchor rows R and anchor columns C of a matrix M, meeting in A, the approximation is C A^+ R; the
//! oracle takes the best middle, C^+ M R^+, which needs all of M and so shows what the factors could do at
//! best. The ridge variant takes column means off first and regularises A.

use crate::anchors::AnchorSet;
use crate::linalg::{Dense, gram_rows_in_f64, product, pseudo_inverse, row_times, symmetric_eigen, thin_svd};
use crate::method::best_positions;
use crate::row_model::RowModel;
use crate::{Error, Result, Solver};

/// How rows and columns are joined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CurLink {
    /// The pseudo-inverse of the block where they meet, as published.
    Published,
    /// Centred columns and a ridge, in units of the mean squared norm of an item's column.
    Ridge(f64),
    /// The best link there is, made from the whole matrix.
    Oracle,
}

/// How good an approximation is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurQuality {
    /// `|approximation - M| / |M|` over all rows, in the Frobenius norm.
    pub relative_error: f64,
    /// The same over the rows that are no anchors; over all where every row is one.
    pub relative_error_elsewhere: f64,
    /// `|approximation - M| / |M - mean of M|` over those rows: raw scores are often far from zero, so that
    /// even a constant has a small relative error.
    pub error_of_spread: f64,
    /// Share of the exact top k among the items retrieved by approximate score, over the anchor rows.
    pub recall_of_anchors: f64,
    /// The same over the other rows; over all where there are none.
    pub recall: f64,
}

/// Approximates a matrix from some of its rows and columns, and measures the recall of the exact top `k`
/// among the `retrieved` best of each approximate row.
///
/// ```
/// use loxia_search::{CurLink, cur_quality, linalg::Dense};
/// // A matrix of rank one is known from one row and one column.
/// let scores = Dense::from_fn(4, 6, |row, col| ((row + 1) * (col + 2)) as f32);
/// let quality = cur_quality(&scores, &[1], &[3], CurLink::Published, 2, 2).unwrap();
/// assert!(quality.relative_error < 1e-6 && quality.recall == 1.0);
/// ```
pub fn cur_quality(
    scores: &Dense,
    anchor_rows: &[usize],
    anchor_items: &[usize],
    link: CurLink,
    k: usize,
    retrieved: usize,
) -> Result<CurQuality> {
    check_positions("anchor row", anchor_rows, scores.rows())?;
    check_positions("anchor item", anchor_items, scores.cols())?;
    let approximation = Approximation::new(scores, anchor_rows, anchor_items, link)?;
    let mut is_anchor = vec![false; scores.rows()];
    anchor_rows.iter().for_each(|&row| is_anchor[row] = true);
    let mean =
        scores.values().iter().map(|&score| f64::from(score)).sum::<f64>() / scores.values().len() as f64;
    // Anchors, then others.
    let mut sums = [Sums::default(), Sums::default()];
    for row in 0..scores.rows() {
        let truth = scores.row(row);
        let guess = approximation.row(truth, anchor_items);
        sums[usize::from(!is_anchor[row])].add(truth, &guess, mean, k, retrieved);
    }
    let all = sums[0].plus(&sums[1]);
    let elsewhere = if sums[1].rows > 0 { &sums[1] } else { &all };
    Ok(CurQuality {
        relative_error: all.relative_error(),
        relative_error_elsewhere: elsewhere.relative_error(),
        error_of_spread: root_of_share(elsewhere.error, elsewhere.spread),
        recall_of_anchors: sums[0].recall(),
        recall: elsewhere.recall(),
    })
}

/// Item embeddings: a row's scores at the anchor items, times these, are the approximate row.
enum Approximation {
    Rows { model: RowModel, embeddings: Dense },
    Oracle { embeddings: Dense },
}

impl Approximation {
    fn new(scores: &Dense, rows: &[usize], items: &[usize], link: CurLink) -> Result<Self> {
        let solver = match link {
            CurLink::Oracle => return Self::oracle(scores, rows, items),
            CurLink::Published => Solver::published(),
            CurLink::Ridge(relative) => Solver::Ridge { relative },
        };
        let anchors = AnchorSet::new(scores.select_rows(rows).into(), None)?;
        let model = RowModel::new(&anchors, solver, matches!(link, CurLink::Ridge(_)));
        let embeddings = model.item_embeddings(items)?;
        Ok(Approximation::Rows { model, embeddings })
    }

    fn oracle(scores: &Dense, rows: &[usize], items: &[usize]) -> Result<Self> {
        const RCOND: f64 = 1e-10;
        let columns: Dense<f64> = scores.select_cols(items).cast();
        let anchor_rows: Dense<f64> = scores.select_rows(rows).cast();
        // C^+ M R^+, from the left: every product has a short side.
        let left = product(&pseudo_inverse(&columns, RCOND)?, &scores.cast());
        let middle = product(&left, &pseudo_inverse(&anchor_rows, RCOND)?);
        Ok(Approximation::Oracle { embeddings: product(&middle, &anchor_rows).cast() })
    }

    fn row(&self, truth: &[f32], items: &[usize]) -> Vec<f32> {
        let at_items: Vec<f32> = items.iter().map(|&item| truth[item]).collect();
        match self {
            Approximation::Rows { model, embeddings } => {
                let targets: Vec<f32> =
                    model.targets(items, &at_items).into_iter().map(|target| target as f32).collect();
                model.add_means(row_times(&targets, embeddings))
            }
            Approximation::Oracle { embeddings } => row_times(&at_items, embeddings),
        }
    }
}

#[derive(Default)]
struct Sums {
    rows: usize,
    recall: f64,
    error: f64,
    norm: f64,
    spread: f64,
}

impl Sums {
    fn add(&mut self, truth: &[f32], guess: &[f32], mean: f64, k: usize, retrieved: usize) {
        self.rows += 1;
        for (&exact, &approximate) in truth.iter().zip(guess) {
            self.error += (f64::from(exact) - f64::from(approximate)).powi(2);
            self.norm += f64::from(exact).powi(2);
            self.spread += (f64::from(exact) - mean).powi(2);
        }
        let top = best_positions(truth, k, |_| false);
        let mut is_found = vec![false; truth.len()];
        best_positions(guess, retrieved, |_| false).iter().for_each(|&item| is_found[item as usize] = true);
        let found = top.iter().filter(|&&item| is_found[item as usize]).count();
        self.recall += found as f64 / top.len().max(1) as f64;
    }

    fn plus(&self, other: &Sums) -> Sums {
        Sums {
            rows: self.rows + other.rows,
            recall: self.recall + other.recall,
            error: self.error + other.error,
            norm: self.norm + other.norm,
            spread: self.spread + other.spread,
        }
    }

    fn relative_error(&self) -> f64 {
        root_of_share(self.error, self.norm)
    }

    fn recall(&self) -> f64 {
        self.recall / self.rows.max(1) as f64
    }
}

fn root_of_share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).sqrt() } else { 0.0 }
}

fn check_positions(name: &'static str, positions: &[usize], below: usize) -> Result<()> {
    let distinct: std::collections::BTreeSet<usize> = positions.iter().copied().collect();
    let outside = positions.iter().find(|&&position| position >= below);
    if positions.is_empty() || distinct.len() < positions.len() || outside.is_some() {
        let value = match outside {
            Some(position) => position.to_string(),
            None => format!("a list of {} with {} distinct", positions.len(), distinct.len()),
        };
        return Err(Error::Setting { name, value, allowed: "distinct, inside the matrix, at least one" });
    }
    Ok(())
}

/// Singular values, descending.
///
/// ```
/// use loxia_search::{linalg::Dense, numerical_rank, singular_values};
/// let scores = Dense::from_fn(3, 5, |row, col| (row * col) as f32);
/// let values = singular_values(&scores).unwrap();
/// assert_eq!(numerical_rank(&values, 3, 5), 1);
/// ```
pub fn singular_values(scores: &Dense) -> Result<Vec<f64>> {
    /// With fewer columns the Gram matrix would lose what the tolerance of [`numerical_rank`] keeps.
    const LEAST_FOR_GRAM: usize = 64;
    scores.check_finite("score matrix")?;
    let wide = if scores.rows() <= scores.cols() { scores.clone() } else { scores.transposed() };
    if wide.cols() < LEAST_FOR_GRAM {
        return Ok(thin_svd(&wide.cast::<f64>())?.values);
    }
    let eigen = symmetric_eigen(&gram_rows_in_f64(&wide))?;
    Ok(eigen.values.iter().rev().map(|value| value.max(0.0).sqrt()).collect())
}

/// The rank as `numpy.linalg.matrix_rank` counts it in single precision: singular values above the largest
/// times the longer side times 2^-23.
pub fn numerical_rank(values: &[f64], rows: usize, cols: usize) -> usize {
    let largest = values.first().copied().unwrap_or(0.0);
    let tolerance = largest * rows.max(cols) as f64 * f64::from(f32::EPSILON);
    values.iter().filter(|&&value| value > tolerance).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::product_nt;
    use loxia_core::Seed;

    fn noisy(rows: usize, cols: usize, rank: usize, noise: f64) -> Dense {
        let mut stream = Seed(3).stream("cur");
        let mut normals = |rows: usize| Dense::from_fn(rows, rank, |_, _| stream.normal() as f32);
        let (left, right) = (normals(rows), normals(cols));
        let mut matrix = product_nt(&left, &right);
        let mut stream = Seed(4).stream("cur");
        matrix.values_mut().iter_mut().for_each(|value| *value += 3.0 + (noise * stream.normal()) as f32);
        matrix
    }

    #[test]
    fn a_matrix_of_low_rank_is_known_from_few_rows_and_columns() {
        let matrix = noisy(40, 90, 5, 0.0);
        let (rows, items): (Vec<usize>, Vec<usize>) = ((0..12).collect(), (0..90).step_by(7).collect());
        for link in [CurLink::Oracle, CurLink::Ridge(1e-9)] {
            let quality = cur_quality(&matrix, &rows, &items, link, 10, 10).unwrap();
            assert!(quality.relative_error < 1e-3, "{link:?}: {quality:?}");
            assert!(quality.recall > 0.99 && quality.recall_of_anchors > 0.99, "{link:?}: {quality:?}");
        }
    }

    #[test]
    fn a_square_block_collapses_and_a_ridge_or_the_oracle_helps() {
        let matrix = noisy(80, 200, 6, 0.3);
        let (rows, items): (Vec<usize>, Vec<usize>) = ((0..30).collect(), (0..180).step_by(6).collect());
        let error = |link| cur_quality(&matrix, &rows, &items, link, 10, 20).unwrap().relative_error;
        let (published, ridge, oracle) =
            (error(CurLink::Published), error(CurLink::Ridge(0.03)), error(CurLink::Oracle));
        assert!(published > 2.0 * ridge, "{published} against {ridge}");
        assert!(oracle < published, "{oracle} against {published}");
    }

    #[test]
    fn both_ways_to_the_spectrum_agree() {
        let matrix = noisy(20, 100, 4, 0.0);
        let gram = singular_values(&matrix).unwrap();
        let svd = thin_svd(&matrix.cast::<f64>()).unwrap().values;
        assert_eq!(gram.len(), svd.len());
        for (a, b) in gram.iter().zip(&svd) {
            assert!((a - b).abs() < 1e-5 * svd[0], "{a} against {b}");
        }
        // Four products and the constant.
        assert_eq!(numerical_rank(&gram, 20, 100), 5);
        assert_eq!(numerical_rank(&[], 0, 0), 0);
        assert_eq!(numerical_rank(&singular_values(&Dense::zeros(3, 70)).unwrap(), 3, 70), 0);
    }

    #[test]
    fn positions_outside_or_twice_are_refused() {
        let matrix = noisy(4, 5, 2, 0.0);
        let quality =
            |rows: &[usize], items: &[usize]| cur_quality(&matrix, rows, items, CurLink::Published, 1, 1);
        assert!(quality(&[0, 0], &[1]).is_err());
        assert!(quality(&[0], &[5]).unwrap_err().to_string().contains("anchor item is 5"));
        assert!(quality(&[], &[1]).is_err());
    }
}
