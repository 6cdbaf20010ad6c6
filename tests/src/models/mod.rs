//! The networks of the level tables, generated: VGG-16, ResNet-18/20/32/44/56 on images of any size, and a LeNet.
//!
//! Random weights, measured batch-norm statistics, activations spelled as ordinary ONNX arithmetic. The same spec
//! gives the same bytes.

pub mod activation;
pub mod image;
pub mod layers;
pub mod random;
mod resnet;
pub mod specimen;
pub mod tiny;
mod vgg;

use activation::Polynomial;
use layers::{LayerWriter, Value, Window};

/// Which network to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// 13 convolutions, 5 average pools, 3 dense layers.
    Vgg16,
    /// 64 to 512 channels in four stages of two blocks.
    Resnet18,
    /// 16 to 64 channels in three stages of three blocks.
    Resnet20,
    /// 16 to 64 channels in three stages of five blocks.
    Resnet32,
    /// 16 to 64 channels in three stages of seven blocks.
    Resnet44,
    /// 16 to 64 channels in three stages of nine blocks.
    Resnet56,
    /// Two convolutions and three dense layers on 28x28 gray images.
    Lenet,
}

impl Network {
    /// All networks, in the order of the level table.
    pub const ALL: [Network; 7] = [
        Network::Vgg16,
        Network::Resnet18,
        Network::Resnet20,
        Network::Resnet32,
        Network::Resnet44,
        Network::Resnet56,
        Network::Lenet,
    ];

    /// File stem.
    pub fn name(self) -> &'static str {
        match self {
            Network::Vgg16 => "vgg16",
            Network::Resnet18 => "resnet18",
            Network::Resnet20 => "resnet20",
            Network::Resnet32 => "resnet32",
            Network::Resnet44 => "resnet44",
            Network::Resnet56 => "resnet56",
            Network::Lenet => "lenet",
        }
    }
}

/// What a residual block adds where the shape changes; elsewhere the shortcut is the identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shortcut {
    /// A 1x1 convolution with batch normalization.
    #[default]
    Projection,
    /// Every second pixel, padded with zero channels: no parameters.
    Identity,
}

/// Everything that decides the bytes of a generated model.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The network.
    pub network: Network,
    /// Number of classes.
    pub classes: usize,
    /// Height and width of the images; a LeNet has its own.
    pub size: usize,
    /// Multiplies the number of channels of every hidden layer.
    pub width: f32,
    /// Degree of the activations: two or four.
    pub degree: usize,
    /// Shortcut where the shape changes.
    pub shortcut: Shortcut,
    /// Seed of weights and calibration images.
    pub seed: u64,
}

impl Spec {
    /// The full-width ten-class network of degree two for images of 32x32, with seed zero.
    pub fn new(network: Network) -> Self {
        let shortcut = Shortcut::default();
        Spec { network, classes: 10, size: 32, width: 1.0, degree: 2, shortcut, seed: 0 }
    }

    /// The same with activations of degree `degree`.
    pub fn with_degree(self, degree: usize) -> Self {
        Spec { degree, ..self }
    }

    /// The same with `width` times the channels.
    pub fn with_width(self, width: f32) -> Self {
        Spec { width, ..self }
    }

    /// The same with another shortcut.
    pub fn with_shortcut(self, shortcut: Shortcut) -> Self {
        Spec { shortcut, ..self }
    }

    /// File name, with `-p4` for the degree-four twin.
    pub fn file_name(&self) -> String {
        let suffix = if self.degree == 4 { "-p4" } else { "" };
        format!("{}{suffix}.onnx", self.network.name())
    }

    /// Channels of a layer that has `full` of them at width one.
    fn channels(&self, full: usize) -> usize {
        ((full as f32 * self.width).round() as usize).max(2)
    }
}

/// Writes the model `spec` describes.
///
/// # Panics
/// Panics if the degree is neither two nor four.
pub fn generate(spec: &Spec) -> Vec<u8> {
    let polynomial = match spec.degree {
        2 => Polynomial::quadratic(),
        4 => Polynomial::quartic(),
        other => panic!("activations have degree two or four, not {other}"),
    };
    let mut layers = LayerWriter::new(spec.network.name(), polynomial, spec.seed);
    let scores = match spec.network {
        Network::Vgg16 => vgg::write(&mut layers, spec),
        Network::Resnet18 => resnet::write(&mut layers, spec, &[(64, 2), (128, 2), (256, 2), (512, 2)]),
        Network::Resnet20 => resnet::write(&mut layers, spec, &[(16, 3), (32, 3), (64, 3)]),
        Network::Resnet32 => resnet::write(&mut layers, spec, &[(16, 5), (32, 5), (64, 5)]),
        Network::Resnet44 => resnet::write(&mut layers, spec, &[(16, 7), (32, 7), (64, 7)]),
        Network::Resnet56 => resnet::write(&mut layers, spec, &[(16, 9), (32, 9), (64, 9)]),
        Network::Lenet => lenet(&mut layers, spec),
    };
    layers.finish(&scores)
}

fn lenet(layers: &mut LayerWriter, spec: &Spec) -> Value {
    let mut x = layers.input(1, 28, 28);
    for (full, pad) in [(6, 2), (16, 0)] {
        let window = Window { k: 5, stride: 1, pad };
        x = layers.conv(&x, spec.channels(full), window, false);
        x = layers.batch_norm(&x, None);
        x = layers.activation(&x);
        x = layers.average_pool(&x, 2);
    }
    x = layers.flatten(&x);
    for full in [120, 84] {
        x = layers.linear(&x, spec.channels(full), 0.7);
        x = layers.activation(&x);
    }
    layers.linear(&x, spec.classes, 3.0)
}
