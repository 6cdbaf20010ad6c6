//! The curve as an SVG: accuracy over time, one line per method and ensemble size.

use std::fmt::Write;

use super::{Point, Series};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 52.0;
/// Lines of the grid along each axis.
const TICKS: usize = 5;

/// Draws the points.
pub(super) fn svg(points: &[Point]) -> String {
    let measured = points.iter().all(|p| p.measured.is_some());
    let x = Axis::around(points.iter().map(Point::seconds), LEFT, WIDTH - RIGHT);
    let y = Axis::around(points.iter().map(|p| 100.0 * p.accuracy), HEIGHT - BOTTOM, TOP);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    for i in 0..=TICKS {
        let (value, at) = x.tick(i);
        let _ = writeln!(
            out,
            "<path d=\"M{at:.1} {TOP}V{}\" stroke=\"#ddd\"/><text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{value:.2}</text>",
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 18.0
        );
        let (value, at) = y.tick(i);
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {at:.1}H{}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value:.2}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0
        );
    }
    let time = if measured { "measured seconds" } else { "predicted core-seconds" };
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{time} of one image</text>\n\
         <text transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=\"middle\">accuracy, %</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 12.0,
        (TOP + HEIGHT - BOTTOM) / 2.0
    );
    let mut legend = TOP + 8.0;
    for line in points.chunk_by(|a, b| (a.members, a.series) == (b.members, b.series)) {
        let color = color(line[0].series);
        let dash = ["", "6 3", "2 3", "8 3 2 3"][(line[0].members - 1) % 4];
        let at = |p: &Point| format!("{:.1},{:.1}", x.at(p.seconds()), y.at(100.0 * p.accuracy));
        let path: Vec<String> = line.iter().map(at).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-dasharray=\"{dash}\" stroke-width=\"1.5\"/>",
            path.join(" ")
        );
        for point in line {
            let (px, py) = (x.at(point.seconds()), y.at(100.0 * point.accuracy));
            let label = point.centroids.map_or(String::new(), |k| k.to_string());
            let _ = writeln!(
                out,
                "<circle cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"3\" fill=\"{color}\"/><text x=\"{:.1}\" y=\"{:.1}\" font-size=\"9\" fill=\"#555\">{label}</text>",
                px + 5.0,
                py - 4.0
            );
        }
        let from = WIDTH - RIGHT + 12.0;
        let _ = writeln!(
            out,
            "<path d=\"M{from} {legend}h24\" stroke=\"{color}\" stroke-dasharray=\"{dash}\" stroke-width=\"1.5\"/><text x=\"{}\" y=\"{}\">{}, M = {}</text>",
            from + 30.0,
            legend + 4.0,
            line[0].series.name(),
            line[0].members
        );
        legend += 18.0;
    }
    out.push_str("</svg>\n");
    out
}

fn color(series: Series) -> &'static str {
    match series {
        Series::None => "#333333",
        Series::Full => "#c0504d",
        Series::Slice => "#1f6fb4",
    }
}

/// Values on a stretch of the picture.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis that shows all values with a margin.
    fn around(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        let margin = if high > low { 0.06 * (high - low) } else { 0.5 };
        Self { low: low - margin, high: high + margin, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    fn tick(&self, i: usize) -> (f64, f64) {
        let value = self.low + (self.high - self.low) * i as f64 / TICKS as f64;
        (value, self.at(value))
    }
}
