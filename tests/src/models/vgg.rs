//! VGG-16 with batch normalization, average pools and three dense layers.

use super::Spec;
use super::layers::{LayerWriter, Value, Window};

/// Channels of the convolutions before each of the five pools.
const STAGES: [&[usize]; 5] = [&[64, 64], &[128, 128], &[256, 256, 256], &[512, 512, 512], &[512, 512, 512]];

pub(super) fn write(layers: &mut LayerWriter, spec: &Spec) -> Value {
    let window = Window { k: 3, stride: 1, pad: 1 };
    let mut x = layers.input(3, spec.size, spec.size);
    for stage in STAGES {
        for &full in stage {
            x = layers.conv(&x, spec.channels(full), window, true);
            x = layers.batch_norm(&x, None);
            x = layers.activation(&x);
        }
        x = layers.average_pool(&x, 2);
    }
    x = layers.flatten(&x);
    for _ in 0..2 {
        x = layers.linear(&x, spec.channels(512), 0.7);
        x = layers.activation(&x);
    }
    layers.linear(&x, spec.classes, 3.0)
}
