//! Pictures of the formats that are read.

use fhe_input::{ImageShape, Samples};
use fhec_tests::models::random::Random;
use flate2::Crc;
use image::{DynamicImage, ImageFormat};

use super::samples;
use crate::mutate;
use crate::run::Target;

const SHAPE: ImageShape = ImageShape::new(3, 6, 5);
/// Bytes before the first chunk of a PNG.
const PNG_MAGIC: usize = 8;

/// Small pictures of several kinds.
pub(super) struct Pictures {
    seeds: Vec<Vec<u8>>,
}

impl Pictures {
    pub(super) fn new() -> Self {
        let (width, height) = (SHAPE.width as u32, SHAPE.height as u32);
        let rgb = DynamicImage::ImageRgb8(image::RgbImage::from_fn(width, height, |x, y| {
            image::Rgb([40 * x as u8, 30 * y as u8, 7 * (x * y) as u8])
        }));
        let kinds = [
            (rgb.clone(), ImageFormat::Png),
            (DynamicImage::ImageLuma8(rgb.to_luma8()), ImageFormat::Png),
            (DynamicImage::ImageRgba16(rgb.to_rgba16()), ImageFormat::Png),
            (rgb.clone(), ImageFormat::Jpeg),
            (DynamicImage::ImageLuma8(rgb.to_luma8()), ImageFormat::Jpeg),
            (rgb.clone(), ImageFormat::Tiff),
            (DynamicImage::ImageLuma16(rgb.to_luma16()), ImageFormat::Tiff),
            (rgb.clone(), ImageFormat::Bmp),
            (rgb.clone(), ImageFormat::WebP),
        ];
        let encode = |(picture, format): &(DynamicImage, ImageFormat)| {
            let mut data = std::io::Cursor::new(Vec::new());
            picture.write_to(&mut data, *format).expect("a small picture");
            data.into_inner()
        };
        Self { seeds: kinds.iter().map(encode).collect() }
    }
}

impl Target for Pictures {
    type Read = Samples;
    const NAME: &'static str = "pictures";

    fn input(&self, random: &mut Random) -> Vec<u8> {
        let seed = &self.seeds[random.below(self.seeds.len())];
        let other = &self.seeds[random.below(self.seeds.len())];
        let data = mutate::bytes(seed, other, random);
        if random.below(2) == 0 { with_right_sums(data) } else { data }
    }

    fn read(&self, input: &[u8]) -> Option<Samples> {
        samples::read(input, "picture", SHAPE)
    }

    fn memory_bound(&self, len: usize) -> usize {
        // The decoders have buffers of a fixed size.
        64 * len + (1 << 20)
    }

    fn exercise(&self, read: Samples, _random: &mut Random) -> Result<(), String> {
        samples::exercise(&read, SHAPE)
    }
}

/// A PNG with the checksums of its chunks made right, as far as its chunks can be told apart.
fn with_right_sums(mut data: Vec<u8>) -> Vec<u8> {
    let mut at = PNG_MAGIC;
    while let Some(header) = data.get(at..at + 8) {
        let len = u32::from_be_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let Some(body) = data.get(at + 4..at.saturating_add(8).saturating_add(len)) else { break };
        let mut sum = Crc::new();
        sum.update(body);
        let sum_at = at + 8 + len;
        let Some(place) = data.get_mut(sum_at..sum_at + 4) else { break };
        place.copy_from_slice(&sum.sum().to_be_bytes());
        at = sum_at + 4;
    }
    data
}
