//! k-means under the Euclidean distance: k-means++ start, Lloyd's steps, the same result for every number of threads.
//!
//! Points are rows of `dim` numbers, one per member of an ensemble. Distances are computed in parallel, sums over points
//! one after the other, so nothing depends on the order in which threads finish. A cluster that loses all its points takes
//! over the point that is worst off.

use std::collections::BTreeSet;

use fhec_ir::spec::Uniform;
use rayon::prelude::*;

/// Steps after which the centroids are taken as they are.
const MAX_STEPS: usize = 60;
/// Points that one thread looks at in one go.
const CHUNK: usize = 1024;

/// Centroids in ascending order, and for every point the index of its nearest one.
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters {
    /// Rows of the codebook, one after the other.
    pub centroids: Vec<f32>,
    /// One index per point.
    pub indices: Vec<u16>,
}

/// At most `k` centroids for points of `dim` numbers each; no more points than values means no loss.
///
/// # Panics
/// When `dim` or `k` is zero, `k` exceeds 2^16, or the points are no whole number of rows.
#[must_use]
pub fn kmeans(points: &[f32], dim: usize, k: usize, seed: u64) -> Clusters {
    assert!(dim > 0 && k > 0 && k <= 1 << 16, "k-means needs a dimension and a number of centroids");
    assert!(points.len().is_multiple_of(dim), "points are rows of equal length");
    let distinct: BTreeSet<Row> = points.chunks_exact(dim).map(|row| Row(row.to_vec())).collect();
    let mut rows: Vec<Vec<f64>> = if distinct.len() <= k {
        distinct.iter().map(|row| row.0.iter().map(|&v| f64::from(v)).collect()).collect()
    } else {
        refine(points, dim, start(points, dim, k, seed))
    };
    // What a codebook stores decides which entry is nearest.
    rows.iter_mut().flatten().for_each(|v| *v = f64::from(*v as f32));
    rows.sort_by(|a, b| compare(a, b));
    rows.dedup();
    let nearest = Nearest::new(&rows);
    let found = nearest.all(points, dim);
    Clusters {
        centroids: rows.iter().flatten().map(|&v| v as f32).collect(),
        indices: found.iter().map(|&(index, _)| index as u16).collect(),
    }
}

/// A row that can be sorted; minus zero is zero.
#[derive(PartialEq)]
struct Row(Vec<f32>);

impl Eq for Row {}

impl Ord for Row {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let pairs = self.0.iter().zip(&other.0).map(|(a, b)| (a + 0.0).total_cmp(&(b + 0.0)));
        pairs.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    }
}

impl PartialOrd for Row {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

fn compare(a: &[f64], b: &[f64]) -> std::cmp::Ordering {
    let pairs = a.iter().zip(b).map(|(a, b)| a.total_cmp(b));
    pairs.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
}

/// k-means++: every further centroid is a point, drawn in proportion to its squared distance from those so far.
fn start(points: &[f32], dim: usize, k: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut random = Uniform::new(seed);
    let row =
        |i: usize| -> Vec<f64> { points[i * dim..(i + 1) * dim].iter().map(|&v| f64::from(v)).collect() };
    let n = points.len() / dim;
    let mut chosen = vec![row(random.below(n))];
    let mut distances = vec![f64::INFINITY; n];
    while chosen.len() < k {
        let last = &chosen[chosen.len() - 1];
        let closer = |(distance, point): (&mut f64, &[f32])| *distance = distance.min(squared(point, last));
        distances.par_iter_mut().with_min_len(CHUNK).zip(points.par_chunks_exact(dim)).for_each(closer);
        let mut left = random.between(0.0, distances.iter().sum());
        let drawn = distances.iter().position(|&distance| {
            left -= distance;
            left < 0.0
        });
        // Rounding may leave a rest beyond the last point: then the farthest one is as good as any.
        chosen.push(row(drawn.unwrap_or_else(|| farthest(&distances))));
    }
    chosen
}

/// Lloyd's steps until no point changes its cluster.
fn refine(points: &[f32], dim: usize, mut rows: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let mut before: Vec<(usize, f64)> = Vec::new();
    for _ in 0..MAX_STEPS {
        rows.sort_by(|a, b| compare(a, b));
        let found = Nearest::new(&rows).all(points, dim);
        if found.iter().map(|f| f.0).eq(before.iter().map(|f| f.0)) {
            break;
        }
        let mut counts = vec![0usize; rows.len()];
        let mut sums = vec![vec![0.0; dim]; rows.len()];
        for (point, &(index, _)) in points.chunks_exact(dim).zip(&found) {
            counts[index] += 1;
            sums[index].iter_mut().zip(point).for_each(|(sum, &v)| *sum += f64::from(v));
        }
        let mut distances: Vec<f64> = found.iter().map(|f| f.1).collect();
        for (index, row) in rows.iter_mut().enumerate() {
            if counts[index] > 0 {
                row.iter_mut().zip(&sums[index]).for_each(|(v, sum)| *v = sum / counts[index] as f64);
            } else {
                let worst = farthest(&distances);
                distances[worst] = 0.0;
                let point = &points[worst * dim..(worst + 1) * dim];
                row.iter_mut().zip(point).for_each(|(v, &p)| *v = f64::from(p));
            }
        }
        before = found;
    }
    rows
}

/// The first of the largest.
fn farthest(distances: &[f64]) -> usize {
    let larger = |best: usize, i: usize| if distances[i] > distances[best] { i } else { best };
    (0..distances.len()).fold(0, larger)
}

fn squared(point: &[f32], row: &[f64]) -> f64 {
    point.iter().zip(row).map(|(&p, &r)| (f64::from(p) - r).powi(2)).sum()
}

/// Finds nearest centroids; the first of equally near ones.
enum Nearest<'a> {
    /// Numbers in ascending order: the two neighbours of a point decide.
    Line(Vec<f64>),
    Space(&'a [Vec<f64>]),
}

impl<'a> Nearest<'a> {
    /// For rows in ascending order.
    fn new(rows: &'a [Vec<f64>]) -> Self {
        match rows.first() {
            Some(row) if row.len() == 1 => Self::Line(rows.iter().map(|row| row[0]).collect()),
            _ => Self::Space(rows),
        }
    }

    /// Index and squared distance for every point.
    fn all(&self, points: &[f32], dim: usize) -> Vec<(usize, f64)> {
        points.par_chunks_exact(dim).with_min_len(CHUNK).map(|point| self.of(point)).collect()
    }

    fn of(&self, point: &[f32]) -> (usize, f64) {
        match self {
            Self::Line(line) => {
                let x = f64::from(point[0]);
                let above = line.partition_point(|&c| c < x);
                let (below, above) = (above.saturating_sub(1), above.min(line.len() - 1));
                let distance = |i: usize| (i, (x - line[i]).powi(2));
                let (below, above) = (distance(below), distance(above));
                if below.1 <= above.1 { below } else { above }
            }
            Self::Space(rows) => {
                let mut best = (0, f64::INFINITY);
                for (i, row) in rows.iter().enumerate() {
                    let distance = squared(point, row);
                    if distance < best.1 {
                        best = (i, distance);
                    }
                }
                best
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, seed: u64) -> Vec<f32> {
        let mut random = Uniform::new(seed);
        (0..n).map(|_| (random.between(-1.0, 1.0).powi(3)) as f32).collect()
    }

    fn error(points: &[f32], dim: usize, clusters: &Clusters) -> f64 {
        let rows = points.chunks_exact(dim).zip(&clusters.indices);
        let row = |i: u16| &clusters.centroids[usize::from(i) * dim..(usize::from(i) + 1) * dim];
        rows.map(|(p, &i)| p.iter().zip(row(i)).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>()).sum()
    }

    /// Seeded random cases: every point gets a nearest centroid, none is unused, and threads do not matter.
    #[test]
    fn the_nearest_centroid_is_chosen() {
        for seed in 0..40u64 {
            let (dim, k) = (1 + seed as usize % 4, 1 + (seed as usize * 7) % 33);
            let points = numbers(dim * (50 + seed as usize * 13), seed);
            let clusters = kmeans(&points, dim, k, seed);
            let rows: Vec<&[f32]> = clusters.centroids.chunks_exact(dim).collect();
            assert!(rows.len() <= k, "seed {seed}");
            for (point, &index) in points.chunks_exact(dim).zip(&clusters.indices) {
                let distance = |row: &[f32]| {
                    point.iter().zip(row).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum::<f64>()
                };
                let chosen = distance(rows[usize::from(index)]);
                assert!(rows.iter().all(|row| chosen <= distance(row)), "seed {seed}");
            }
            let used: BTreeSet<u16> = clusters.indices.iter().copied().collect();
            assert_eq!(used.len(), rows.len(), "seed {seed}: a centroid without points");
            let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            assert_eq!(clusters, single.install(|| kmeans(&points, dim, k, seed)), "seed {seed}");
        }
    }

    #[test]
    fn as_many_centroids_as_values_lose_nothing() {
        for seed in 0..20u64 {
            let dim = 1 + seed as usize % 3;
            let values = numbers(dim * (3 + seed as usize), seed);
            let mut random = Uniform::new(seed + 100);
            let rows: Vec<&[f32]> = values.chunks_exact(dim).collect();
            let points: Vec<f32> = (0..200).flat_map(|_| rows[random.below(rows.len())].to_vec()).collect();
            for k in [rows.len(), rows.len() + 1, 1000] {
                assert_eq!(error(&points, dim, &kmeans(&points, dim, k, seed)), 0.0, "seed {seed}");
            }
        }
    }

    #[test]
    fn more_centroids_lose_less() {
        let points = numbers(4000, 5);
        let errors = [4, 16, 64, 256].map(|k| error(&points, 1, &kmeans(&points, 1, k, 1)));
        assert!(errors.windows(2).all(|pair| pair[1] < pair[0] / 8.0), "{errors:?}");
    }

    #[test]
    fn duplicates_do_not_leave_clusters_empty() {
        let mut points = vec![0.5f32; 1000];
        points.extend([1.0, 2.0, 3.0, 4.0, 5.0, 5.1]);
        let clusters = kmeans(&points, 1, 6, 3);
        assert_eq!(clusters.centroids.len(), 6);
        assert!(error(&points, 1, &clusters) <= 0.0051);
    }
}
