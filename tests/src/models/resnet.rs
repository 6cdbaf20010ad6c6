//! Residual networks for small images: one convolution, stages of two-convolution blocks, a pool, a dense layer.

use super::layers::{LayerWriter, Value, Window};
use super::{Shortcut, Spec};

/// `stages` gives channels at width one and number of blocks; every stage but the first halves the plane.
pub(super) fn write(layers: &mut LayerWriter, spec: &Spec, stages: &[(usize, usize)]) -> Value {
    let mut x = layers.input(3, spec.size, spec.size);
    x = layers.conv(&x, spec.channels(stages[0].0), Window { k: 3, stride: 1, pad: 1 }, false);
    x = layers.batch_norm(&x, None);
    x = layers.activation(&x);
    for (stage, &(full, blocks)) in stages.iter().enumerate() {
        for block in 0..blocks {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            x = residual_block(layers, &x, spec.channels(full), stride, spec.shortcut);
        }
    }
    x = layers.global_average_pool(&x);
    x = layers.flatten(&x);
    layers.linear(&x, spec.classes, 3.0)
}

fn residual_block(
    layers: &mut LayerWriter,
    x: &Value,
    channels: usize,
    stride: usize,
    shortcut: Shortcut,
) -> Value {
    let mut branch = layers.conv(x, channels, Window { k: 3, stride, pad: 1 }, false);
    branch = layers.batch_norm(&branch, None);
    branch = layers.activation(&branch);
    branch = layers.conv(&branch, channels, Window { k: 3, stride: 1, pad: 1 }, false);
    let skip = if stride == 1 && channels == x.channels() {
        x.clone()
    } else {
        match shortcut {
            Shortcut::Projection => {
                let skip = layers.conv(x, channels, Window { k: 1, stride, pad: 0 }, false);
                layers.batch_norm(&skip, None)
            }
            Shortcut::Identity => layers.subsample_and_pad(x, channels),
        }
    };
    branch = layers.batch_norm(&branch, Some(&skip));
    let sum = layers.add(&branch, &skip);
    layers.activation(&sum)
}
