//! Representative items: those nearest to the centres of a k-means.

use loxia_core::Seed;

use crate::linalg::{Dense, product_nt};
use crate::{Error, Result};

const ITERATIONS: usize = 10;

/// `count` distinct items, ascending: for each centre of Lloyd's algorithm, begun at random items, the
/// nearest item that is not taken yet.
pub(crate) fn nearest_to_centres(vectors: &Dense, count: usize, seed: Seed) -> Result<Vec<usize>> {
    let items = vectors.rows();
    if count > items {
        return Err(Error::Setting {
            name: "number of centres",
            value: count.to_string(),
            allowed: "at most the number of items",
        });
    }
    let drawn = seed.stream("k-means").sample(items as u64, count);
    let drawn: Vec<usize> = drawn.into_iter().map(|item| item as usize).collect();
    let mut centres = vectors.select_rows(&drawn);
    for _ in 0..ITERATIONS {
        let assigned = nearest_centres(vectors, &centres);
        move_to_means(vectors, &assigned, &mut centres);
    }
    let mut taken = vec![false; items];
    let closeness = closeness(&centres, vectors);
    for centre in 0..count {
        let row = closeness.row(centre);
        let free = (0..items).filter(|&item| !taken[item]);
        if let Some(best) = free.reduce(|best, item| if row[item] > row[best] { item } else { best }) {
            taken[best] = true;
        }
    }
    Ok((0..items).filter(|&item| taken[item]).collect())
}

/// For each row of `a` and `b`, minus half the squared distance, up to a term of `a` alone.
fn closeness(a: &Dense, b: &Dense) -> Dense {
    let mut dots = product_nt(a, b);
    let halves: Vec<f32> =
        (0..b.rows()).map(|row| 0.5 * b.row(row).iter().map(|value| value * value).sum::<f32>()).collect();
    for row in 0..dots.rows() {
        dots.row_mut(row).iter_mut().zip(&halves).for_each(|(dot, half)| *dot -= half);
    }
    dots
}

fn nearest_centres(vectors: &Dense, centres: &Dense) -> Vec<usize> {
    let closeness = closeness(vectors, centres);
    let nearest = |row: &[f32]| {
        (1..row.len()).fold(0, |best, centre| if row[centre] > row[best] { centre } else { best })
    };
    (0..vectors.rows()).map(|item| nearest(closeness.row(item))).collect()
}

fn move_to_means(vectors: &Dense, assigned: &[usize], centres: &mut Dense) {
    let mut sums = Dense::<f64>::zeros(centres.rows(), centres.cols());
    let mut counts = vec![0usize; centres.rows()];
    for (item, &centre) in assigned.iter().enumerate() {
        counts[centre] += 1;
        let sum = sums.row_mut(centre).iter_mut();
        sum.zip(vectors.row(item)).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    for (centre, &count) in counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
        let mean = centres.row_mut(centre).iter_mut();
        mean.zip(sums.row(centre)).for_each(|(mean, sum)| *mean = (sum / count as f64) as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_one_item_of_each_cluster() {
        // Three clusters of four points on a line.
        let vectors = Dense::from_fn(12, 1, |row, _| (row / 4 * 100 + row % 4) as f32);
        let items = nearest_to_centres(&vectors, 3, Seed(3)).unwrap();
        assert_eq!(items.len(), 3);
        assert!(nearest_to_centres(&vectors, 12, Seed(3)).unwrap().len() == 12);
        assert!(nearest_to_centres(&vectors, 13, Seed(3)).is_err());
    }
}
