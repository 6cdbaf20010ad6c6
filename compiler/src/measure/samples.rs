//! Inputs for when no calibration images are given: pictures made up to look like the data the model was trained on.
//!
//! Photographs, scans and drawings have a spectrum that falls with the frequency, which a sum of smooth noise over grids of
//! growing cells has as well. The stored preprocessing tells the mean and deviation of the training pixels: the noise is
//! scaled, moved and clipped to [0, 1] so that its pixels have them too. Dark pictures with few bright strokes (mean 0.13,
//! deviation 0.31) come out as dark pictures with few bright strokes.

use fhe_bytecode::Preprocessing;
use fhec_ir::Shape;
use fhec_ir::spec::Uniform;

/// Share of the variance that the channels of a picture have in common.
const COMMON: f64 = 0.8;

/// Inputs of a model with this preprocessing. Without one nothing is known but that inputs tend to be normalized: then
/// slow waves and white noise take turns, both with mean zero and deviation one.
#[must_use]
pub fn made_up_inputs(shape: Shape, preprocessing: &Preprocessing, count: usize) -> Vec<Vec<f64>> {
    let Preprocessing { mean, std } = preprocessing;
    let known = mean.len() == shape.c && std.len() == shape.c && std.iter().all(|s| *s > 0.0);
    let tones: Vec<Tone> = if known {
        mean.iter().zip(std).map(|(&m, &s)| Tone::of_clipped(m, s)).collect()
    } else {
        Vec::new()
    };
    let input = |seed: usize| {
        let mut stream = Uniform::new(0x5eed + seed as u64);
        if known {
            let mut image = picture(shape, &mut stream);
            let planes = image.chunks_mut(shape.area().max(1));
            for ((plane, tone), (m, s)) in planes.zip(&tones).zip(mean.iter().zip(std)) {
                plane.iter_mut().for_each(|v| *v = (tone.pixel(*v) - m) / s);
            }
            image
        } else if seed.is_multiple_of(2) {
            waves(shape, &mut stream)
        } else {
            (0..shape.len()).map(|_| normal(&mut stream)).collect()
        }
    };
    (0..count).map(input).collect()
}

/// How noise becomes pixels: value times `spread` plus `center`, clipped to [0, 1].
#[derive(Clone, Copy, Debug)]
struct Tone {
    center: f64,
    spread: f64,
}

impl Tone {
    /// The tone whose pixels have a mean and deviation, as closely as pixels can.
    fn of_clipped(mean: f64, deviation: f64) -> Self {
        let mut tone = Self { center: mean, spread: deviation };
        for _ in 0..200 {
            let (m, d) = tone.moments();
            // Clipping weakens both corrections; larger steps would overshoot.
            tone.center += 0.5 * (mean - m) * (tone.spread / d.max(1e-9)).min(8.0);
            tone.spread = (tone.spread * (deviation / d.max(1e-9)).sqrt()).clamp(1e-6, 8.0);
        }
        tone
    }

    fn pixel(self, value: f64) -> f64 {
        (self.center + self.spread * value).clamp(0.0, 1.0)
    }

    /// Mean and deviation of the pixels of normal noise.
    fn moments(self) -> (f64, f64) {
        let (mut weight, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for step in -300..=300 {
            let z = f64::from(step) / 50.0;
            let (w, v) = ((-0.5 * z * z).exp(), self.pixel(z));
            weight += w;
            sum += w * v;
            squares += w * v * v;
        }
        let mean = sum / weight;
        (mean, (squares / weight - mean * mean).max(0.0).sqrt())
    }
}

/// Sums of a few slow waves.
fn waves(shape: Shape, stream: &mut Uniform) -> Vec<f64> {
    let mut image = vec![0.0; shape.len()];
    for plane in image.chunks_mut(shape.area().max(1)) {
        for _ in 0..4 {
            let (fy, fx) = (stream.between(-0.5, 0.5), stream.between(-0.5, 0.5));
            let phase = stream.between(0.0, std::f64::consts::TAU);
            for (i, value) in plane.iter_mut().enumerate() {
                let (y, x) = ((i / shape.w) as f64, (i % shape.w) as f64);
                *value += std::f64::consts::FRAC_1_SQRT_2 * (fy * y + fx * x + phase).cos();
            }
        }
    }
    image
}

/// A picture of mean zero and deviation one per channel; channels have most of it in common.
fn picture(shape: Shape, stream: &mut Uniform) -> Vec<f64> {
    let common = plane(shape, stream);
    let mut image = Vec::with_capacity(shape.len());
    for _ in 0..shape.c {
        if shape.c == 1 {
            image.extend(&common);
        } else {
            let own = plane(shape, stream);
            let mixed = common.iter().zip(own).map(|(c, o)| COMMON.sqrt() * c + (1.0 - COMMON).sqrt() * o);
            image.extend(mixed);
        }
    }
    image
}

/// Smooth noise of all sizes from two pixels to the whole picture, amplitudes in proportion to the size.
fn plane(shape: Shape, stream: &mut Uniform) -> Vec<f64> {
    let mut plane: Vec<f64> = (0..shape.area()).map(|_| normal(stream)).collect();
    let mut cell = 2;
    while cell <= shape.h.max(shape.w) {
        let columns = shape.w / cell + 2;
        let grid: Vec<f64> = (0..(shape.h / cell + 2) * columns).map(|_| normal(stream)).collect();
        for (i, value) in plane.iter_mut().enumerate() {
            let ((y, fy), (x, fx)) = (between(i / shape.w, cell), between(i % shape.w, cell));
            let row = |y: usize| (1.0 - fx) * grid[y * columns + x] + fx * grid[y * columns + x + 1];
            *value += cell as f64 * ((1.0 - fy) * row(y) + fy * row(y + 1));
        }
        cell *= 2;
    }
    normalize(&mut plane);
    plane
}

/// The grid point before a position, and how far the way to the next one is gone, eased at both ends.
fn between(position: usize, cell: usize) -> (usize, f64) {
    let t = (position % cell) as f64 / cell as f64;
    (position / cell, t * t * (3.0 - 2.0 * t))
}

fn normalize(values: &mut [f64]) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let deviation = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
    // One pixel alone has no deviation.
    let scale = if deviation > 0.0 { deviation.recip() } else { 1.0 };
    values.iter_mut().for_each(|v| *v = (*v - mean) * scale);
}

/// The sum of twelve uniform numbers is close to normal and the same on every machine.
fn normal(stream: &mut Uniform) -> f64 {
    (0..12).map(|_| stream.between(0.0, 1.0)).sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt())
    }

    #[test]
    fn clipped_pixels_have_the_wanted_mean_and_deviation() {
        for (mean, deviation) in [(0.1307, 0.3081), (0.5719, 0.1684), (0.4914, 0.247), (0.9, 0.2)] {
            let (m, d) = Tone::of_clipped(mean, deviation).moments();
            assert!(
                (m - mean).abs() < 0.01 && (d - deviation).abs() < 0.01,
                "{m} {d} for {mean} {deviation}"
            );
        }
    }

    #[test]
    fn inputs_stay_within_what_pixels_can_become() {
        let preprocessing = Preprocessing { mean: vec![0.1307], std: vec![0.3081] };
        for input in made_up_inputs(Shape::new(1, 28, 28), &preprocessing, 8) {
            let range = (-0.1307 / 0.3081 - 1e-9)..=(0.8693 / 0.3081 + 1e-9);
            assert!(input.iter().all(|v| range.contains(v)));
        }
    }

    #[test]
    fn neighbors_in_a_picture_are_alike() {
        let image = picture(Shape::new(3, 32, 32), &mut Uniform::new(1));
        let pairs = image.chunks(32).flat_map(|row| row.windows(2).map(|w| w[0] * w[1]));
        let correlation = pairs.sum::<f64>() / (3 * 32 * 31) as f64;
        assert!(correlation > 0.8, "{correlation}");
    }

    #[test]
    fn unknown_preprocessing_gives_normalized_inputs() {
        for input in made_up_inputs(Shape::new(1, 16, 16), &Preprocessing::default(), 4) {
            let (mean, deviation) = moments(&input);
            assert!(mean.abs() < 0.5 && (deviation - 1.0).abs() < 0.5, "{mean} {deviation}");
        }
    }

    #[test]
    fn degenerate_statistics_give_finite_inputs() {
        for (mean, std) in [(0.0, 1e-3), (2.0, 0.1), (0.5, 5.0)] {
            let preprocessing = Preprocessing { mean: vec![mean], std: vec![std] };
            let inputs = made_up_inputs(Shape::new(1, 4, 4), &preprocessing, 2);
            assert!(inputs.iter().flatten().all(|v| v.is_finite()), "{mean} {std}");
        }
    }
}
