//! Charts over the layers of a program, one column each: the modulus as a staircase, time, memory, slots and noise.
//!
//! All share one picture and its columns, so that a layer can be followed from top to bottom.

use std::fmt::Write as _;

use fhe_bytecode::{CheckedProgram, Level};

use super::html::with_powers_drawn;
use super::layers::{Layer, LayerKind};
use super::profile::Measured;
use super::{program_drawing, units};

/// Room for the labels of the axes.
const LEFT: f64 = 76.0;
/// Room for the towers.
const RIGHT: f64 = 128.0;
/// Width that few layers share.
const PLOT: f64 = 940.0;
/// Widest column.
const COLUMN: f64 = 120.0;
/// Width that the titles of the panels need.
const TITLES: f64 = 780.0;
/// Height of a panel.
const PANEL: f64 = 92.0;
/// Room between panels, with the title of the lower one.
const GAP: f64 = 48.0;

/// The charts of a program.
pub(super) fn svg(program: &CheckedProgram, layers: &[Layer], measured: Option<&Measured>) -> String {
    let column = (PLOT / layers.len().max(1) as f64).clamp(10.0, COLUMN);
    let mut chart = Chart { out: String::new(), column, n: layers.len(), y: GAP };
    chart.stairs(program, layers);
    chart.time(layers, measured);
    chart.memory(layers, measured, program.spec().prediction.key_bytes);
    chart.slots(layers);
    chart.noise(layers);
    let (width, height) = (LEFT + (chart.plot() + RIGHT).max(TITLES), chart.y - GAP + 18.0);
    let mut hits = String::new();
    for (i, layer) in layers.iter().enumerate() {
        let tip = program_drawing::tip(layer, measured).attribute();
        let x = chart.x(i);
        let _ = writeln!(
            hits,
            "<rect class=\"hit\" x=\"{x:.1}\" y=\"20\" width=\"{column:.1}\" height=\"{:.1}\" {tip}/>",
            height - 44.0
        );
    }
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" \
         aria-label=\"Level, time, memory, slots and noise of every layer\" tabindex=\"0\">\n{}{hits}</svg>\n",
        chart.out
    )
}

struct Chart {
    out: String,
    column: f64,
    n: usize,
    /// Top of the next panel.
    y: f64,
}

impl Chart {
    fn plot(&self) -> f64 {
        self.column * self.n as f64
    }

    /// Left end of a column.
    fn x(&self, layer: usize) -> f64 {
        LEFT + self.column * layer as f64
    }

    /// Room between bars of neighboring columns.
    fn gap(&self) -> f64 {
        (self.column * 0.22).min(5.0)
    }

    fn title(&mut self, text: &str, note: &str) {
        let y = self.y - 16.0;
        let _ = writeln!(
            self.out,
            "<text class=\"panel\" x=\"{LEFT}\" y=\"{y:.1}\">{text}<tspan class=\"note\" dx=\"10\">{note}</tspan></text>"
        );
    }

    /// A line across the panel with its value to the left.
    fn rule(&mut self, y: f64, label: &str, class: &str) {
        let end = LEFT + self.plot();
        let _ = writeln!(self.out, "<path class=\"{class}\" d=\"M{LEFT} {y:.1}H{end:.1}\"/>");
        let _ = writeln!(
            self.out,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT - 8.0,
            y + 3.5,
            with_powers_drawn(label)
        );
    }

    fn bar(&mut self, class: &str, x: f64, width: f64, bottom: f64, height: f64) {
        if height > 0.0 {
            let height = height.max(0.6);
            let y = bottom - height;
            let _ = writeln!(
                self.out,
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
            );
        }
    }

    /// Numbers of the layers below the panel that ends here.
    fn numbers(&mut self) {
        let step = [1, 2, 5, 10, 20, 50].into_iter().find(|s| *s as f64 * self.column >= 34.0).unwrap_or(100);
        let y = self.y + 16.0;
        for layer in (0..self.n).step_by(step) {
            let x = self.x(layer) + self.column / 2.0;
            let _ = writeln!(self.out, "<text class=\"number\" x=\"{x:.1}\" y=\"{y:.1}\">{layer}</text>");
        }
        self.y += GAP + 8.0;
    }

    /// Level against layer: a level is a step, its sublevels are parts of it. To the right the bits that its rescale takes.
    fn stairs(&mut self, program: &CheckedProgram, layers: &[Layer]) {
        let params = program.params();
        let n_levels = usize::from(params.max_level().0) + 1;
        let step = (300.0 / n_levels as f64).clamp(7.0, 26.0);
        let bottom = self.y + step * n_levels as f64;
        let sublevels = f64::from(layers.iter().map(|l| l.sublevel).max().unwrap_or(1).max(1));
        self.title("Modulus", "level after each layer; half steps are sublevels, which share a level; bits of the modulus that each level adds at the right");
        let every = [1, 2, 5, 10].into_iter().find(|e| *e as f64 * step >= 13.0).unwrap_or(20);
        for level in (0..n_levels).step_by(every) {
            self.rule(bottom - step * (level + 1) as f64, &format!("L{level}"), "grid");
        }
        self.rule(bottom, "", "axis");
        let height = |layer: &Layer| {
            step * (f64::from(layer.level.0) + 1.0 - f64::from(layer.sublevel - 1) / sublevels)
        };
        let mut outline = String::new();
        for (i, layer) in layers.iter().enumerate() {
            let class = if layer.sublevel > 1 { "stair sub" } else { "stair" };
            self.bar(class, self.x(i), self.column, bottom, height(layer));
            let y = bottom - height(layer);
            let go = if i == 0 { format!("M{:.1} {y:.1}", self.x(0)) } else { format!("V{y:.1}") };
            let _ = write!(outline, "{go}H{:.1}", self.x(i + 1));
        }
        let _ = writeln!(self.out, "<path class=\"stair-line\" d=\"{outline}\"/>");
        let left = LEFT + self.plot() + 14.0;
        let mut below = 0.0;
        for level in 0..n_levels {
            let modulus = params.log2_q_at(Level(level as u16));
            let bits = modulus - std::mem::replace(&mut below, modulus);
            let y = bottom - step * (level + 1) as f64;
            let _ = writeln!(
                self.out,
                "<rect class=\"tower\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                y + 1.0,
                bits * 1.1,
                step - 2.0
            );
            if level % every == 0 {
                let _ = writeln!(
                    self.out,
                    "<text class=\"bits\" x=\"{:.1}\" y=\"{:.1}\">{bits:.1}</text>",
                    left + bits * 1.1 + 5.0,
                    y + step / 2.0 + 3.5
                );
            }
        }
        let _ = writeln!(
            self.out,
            "<text class=\"tick start\" x=\"{left:.1}\" y=\"{:.1}\">bits of q</text>",
            bottom + 16.0
        );
        self.y = bottom;
        self.numbers();
    }

    fn time(&mut self, layers: &[Layer], measured: Option<&Measured>) {
        let note = match measured {
            Some(_) => "predicted on one core (light), measured on the wall clock (solid)",
            None => "predicted on one core, plaintexts encoded before",
        };
        self.title("Time", note);
        let own = |l: &Layer| measured.map_or(0.0, |m| m.seconds[l.index]);
        let most = layers.iter().map(|l| l.seconds.max(own(l))).fold(f64::MIN_POSITIVE, f64::max);
        let bottom = self.y + PANEL;
        self.rule(self.y, &units::seconds(most), "grid");
        self.rule(bottom, "0", "axis");
        let (gap, parts) = (self.gap(), if measured.is_some() { 2.0 } else { 1.0 });
        for (i, layer) in layers.iter().enumerate() {
            let family = if layer.kind == LayerKind::Product { "p-product" } else { "p-linear" };
            let width = (self.column - gap) / parts;
            let light = if measured.is_some() { " light" } else { "" };
            let x = self.x(i) + gap / 2.0;
            self.bar(&format!("{family}{light}"), x, width, bottom, PANEL * layer.seconds / most);
            self.bar(family, x + width, width, bottom, PANEL * own(layer) / most);
        }
        self.y = bottom;
        self.numbers();
    }

    fn memory(&mut self, layers: &[Layer], measured: Option<&Measured>, key_bytes: u64) {
        let resident = |l: &Layer| measured.and_then(|m| m.resident_bytes[l.index]);
        let has_resident = layers.iter().any(|l| resident(l).is_some());
        let note = if has_resident {
            "predicted: keys, ciphertexts, plaintexts of the layer; measured: the line, everything the process holds"
        } else {
            "predicted: keys (faint), ciphertexts alive, plaintexts of the layer"
        };
        self.title("Memory", note);
        let most = layers
            .iter()
            .map(|l| (key_bytes + l.bytes()).max(resident(l).unwrap_or(0)))
            .max()
            .unwrap_or(1)
            .max(1);
        let bottom = self.y + PANEL;
        let height = |bytes: u64| PANEL * bytes as f64 / most as f64;
        self.rule(self.y, &units::bytes(most), "grid");
        self.rule(bottom, "0", "axis");
        let gap = self.gap();
        for (i, layer) in layers.iter().enumerate() {
            let (x, width) = (self.x(i) + gap / 2.0, self.column - gap);
            let (keys, live) = (height(key_bytes), height(layer.ciphertext_bytes));
            self.bar("m-keys", x, width, bottom, keys);
            self.bar("m-live", x, width, bottom - keys, live);
            self.bar("m-plain", x, width, bottom - keys - live, height(layer.work.plaintext_bytes));
        }
        let mut line = String::new();
        for (i, layer) in layers.iter().enumerate() {
            let Some(bytes) = resident(layer) else { continue };
            let (x, y) = (self.x(i) + self.column / 2.0, bottom - height(bytes));
            let _ = write!(line, "{}{x:.1} {y:.1}", if line.is_empty() { 'M' } else { 'L' });
        }
        if !line.is_empty() {
            let _ = writeln!(self.out, "<path class=\"m-line\" d=\"{line}\"/>");
        }
        self.y = bottom;
        self.numbers();
    }

    fn slots(&mut self, layers: &[Layer]) {
        self.title("Slots", "share of the slots of a layer’s ciphertexts that hold a number of their own");
        let bottom = self.y + PANEL * 0.7;
        self.rule(self.y, "100 %", "grid");
        self.rule(bottom, "0", "axis");
        let gap = self.gap();
        for (i, layer) in layers.iter().enumerate() {
            self.bar(
                "s-used",
                self.x(i) + gap / 2.0,
                self.column - gap,
                bottom,
                PANEL * 0.7 * layer.slots_used,
            );
        }
        self.y = bottom;
        self.numbers();
    }

    fn noise(&mut self, layers: &[Layer]) {
        let bits: Vec<Option<f64>> = layers.iter().map(|l| (l.error > 0.0).then(|| l.error.log2())).collect();
        let known = || bits.iter().flatten().copied();
        self.title(
            "Noise",
            "bits of the noise that a layer adds, as it arrives in the result; the line is all of it",
        );
        let bottom = self.y + PANEL;
        if known().next().is_none() {
            let (x, y) = (LEFT, self.y + PANEL / 2.0);
            let _ = writeln!(
                self.out,
                "<text class=\"note\" x=\"{x:.1}\" y=\"{y:.1}\">the program has no prediction of its noise</text>"
            );
        } else {
            let total = layers.iter().map(|l| l.error * l.error).sum::<f64>().sqrt().log2();
            let floor = known().fold(f64::INFINITY, f64::min).max(total - 24.0).floor() - 1.0;
            let height = |b: f64| PANEL * ((b - floor) / (total - floor)).max(0.0);
            self.rule(bottom, &units::power(floor), "axis");
            let gap = self.gap();
            for (i, bits) in bits.iter().enumerate() {
                self.bar("n-own", self.x(i) + gap / 2.0, self.column - gap, bottom, bits.map_or(0.0, height));
            }
            self.rule(bottom - PANEL, &units::power(total), "n-total");
        }
        self.y = bottom;
        self.numbers();
    }
}
