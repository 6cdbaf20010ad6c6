//! Formats read back what was written, refuse what does not fit, and survive damage.

use std::io::Write;
use std::path::Path;

use fhe_bytecode::Preprocessing;
use flate2::Compression;
use flate2::write::GzEncoder;
use image::{ImageFormat, RgbImage};
use npyz::WriterBuilder;
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

use super::*;

const SHAPE: ImageShape = ImageShape::new(3, 2, 4);

/// Reading `data` under `name` gives the tensor 0, 1, 2, … / 255 for the first sample.
fn check_pixels(data: &[u8], name: &str, shape: ImageShape) {
    let samples = decode_samples(data, Path::new(name), shape).unwrap();
    let tensor = samples.tensor(0, &Preprocessing::default()).unwrap();
    let expected: Vec<f64> = (0..shape.n_values()).map(|i| i as f64 / 255.0).collect();
    assert_eq!(tensor, expected, "{name}");
}

fn check_error(data: &[u8], name: &str, shape: ImageShape, expected: &str) {
    let error = decode_samples(data, Path::new(name), shape).unwrap_err().to_string();
    assert!(error.contains(expected), "{name}: {error}");
}

fn png() -> Vec<u8> {
    // Pixel (x, y) of channel c holds c * 8 + y * 4 + x, so that the planes count up.
    let image = RgbImage::from_fn(4, 2, |x, y| image::Rgb([0, 1, 2].map(|c| (c * 8 + y * 4 + x) as u8)));
    let mut data = std::io::Cursor::new(Vec::new());
    image.write_to(&mut data, ImageFormat::Png).unwrap();
    data.into_inner()
}

fn npy<T: npyz::AutoSerialize + Copy>(shape: &[u64], values: &[T]) -> Vec<u8> {
    let mut data = Vec::new();
    let mut writer =
        npyz::WriteOptions::new().default_dtype().shape(shape).writer(&mut data).begin_nd().unwrap();
    writer.extend(values.iter().copied()).unwrap();
    writer.finish().unwrap();
    data
}

fn npz() -> Vec<u8> {
    let values: Vec<u8> = (0..24).collect();
    archive(&[("x.npy", &npy(&[1, 3, 2, 4], &values)), ("y.npy", &npy(&[1], &values[7..8]))], true)
}

/// A zip archive, its files stored or deflated.
fn archive(files: &[(&str, &[u8])], deflates: bool) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in files {
        let mut crc = flate2::Crc::new();
        crc.update(data);
        let mut deflated = flate2::write::DeflateEncoder::new(Vec::new(), Compression::best());
        deflated.write_all(data).unwrap();
        let packed = if deflates { deflated.finish().unwrap() } else { data.to_vec() };
        let mut common = vec![20, 0, 0, 0, if deflates { 8 } else { 0 }, 0, 0, 0, 0, 0];
        for word in [crc.sum(), packed.len() as u32, data.len() as u32] {
            common.extend_from_slice(&word.to_le_bytes());
        }
        common.extend_from_slice(&(name.len() as u16).to_le_bytes());
        common.extend_from_slice(&[0, 0]);
        directory.extend_from_slice(b"PK\x01\x02\x14\x00");
        directory.extend_from_slice(&common);
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&(archive.len() as u32).to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
        for part in [&b"PK\x03\x04"[..], &common, name.as_bytes(), &packed] {
            archive.extend_from_slice(part);
        }
    }
    let (n, offset) = (files.len() as u16, archive.len() as u32);
    archive.extend_from_slice(&directory);
    archive.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    archive.extend_from_slice(&n.to_le_bytes());
    archive.extend_from_slice(&n.to_le_bytes());
    archive.extend_from_slice(&(directory.len() as u32).to_le_bytes());
    archive.extend_from_slice(&offset.to_le_bytes());
    archive.extend_from_slice(&[0, 0]);
    archive
}

fn idx() -> Vec<u8> {
    let mut data = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3];
    data.extend(0..12);
    data
}

fn cifar() -> Vec<u8> {
    (0..2u8).flat_map(|label| std::iter::once(label).chain((0..3072).map(|i| i as u8))).collect()
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn png_gives_planes() {
    check_pixels(&png(), "a.png", SHAPE);
}

#[test]
fn png_of_another_size_is_refused_before_decoding() {
    check_error(&png(), "a.png", ImageShape::new(3, 32, 32), "a picture of 4x2 pixels");
}

/// A picture that is stretched is decoded whole; one that unpacks to more than a hundred times its length is not.
#[test]
fn a_picture_unpacks_to_a_bounded_size() {
    let flat = image::GrayImage::new(7000, 7000);
    let mut data = std::io::Cursor::new(Vec::new());
    flat.write_to(&mut data, ImageFormat::Png).unwrap();
    let data = data.into_inner();
    assert!(data.len() < 400_000, "{} bytes", data.len());
    let wanted = ImageShape::new(1, 28, 28);
    let error = decode_fitted(&data, Path::new("a.png"), wanted, Fit::Resize).unwrap_err();
    assert!(matches!(error, InputErrorKind::TooLarge { .. }), "{error}");
    let small = image::GrayImage::new(2000, 2000);
    let mut data = std::io::Cursor::new(Vec::new());
    small.write_to(&mut data, ImageFormat::Png).unwrap();
    decode_fitted(&data.into_inner(), Path::new("a.png"), wanted, Fit::Resize).unwrap();
}

/// The size that a picture is stretched to is the word of whoever wrote the program.
#[test]
fn a_picture_is_stretched_to_a_bounded_size() {
    let stretched = |height, width| {
        decode_fitted(&png(), Path::new("a.png"), ImageShape::new(3, height, width), Fit::Resize)
    };
    for [height, width] in [[65535, 65535], [1, 1 << 30], [1 << 30, 1]] {
        let error = stretched(height, width).unwrap_err();
        assert!(matches!(error, InputErrorKind::Stretched { .. }), "{error}");
    }
    stretched(224, 224).unwrap();
}

#[test]
fn an_error_repeats_the_begin_of_a_long_word() {
    let error = decode_samples("1".repeat(400_000).as_bytes(), Path::new("a.csv"), SHAPE).unwrap_err();
    assert!(error.to_string().len() < 200, "{} bytes", error.to_string().len());
    let text = format!("1,2\n{}\n", "x".repeat(400_000));
    let error = decode_samples(text.as_bytes(), Path::new("a.csv"), SHAPE).unwrap_err();
    assert!(error.to_string().len() < 200, "{} bytes", error.to_string().len());
}

#[test]
fn lossless_pictures_of_every_format_are_the_same_pixels() {
    let image = image::load_from_memory(&png()).unwrap().to_rgb8();
    for format in [ImageFormat::Bmp, ImageFormat::WebP, ImageFormat::Tiff] {
        let mut data = std::io::Cursor::new(Vec::new());
        image.write_to(&mut data, format).unwrap();
        check_pixels(&data.into_inner(), "a picture", SHAPE);
    }
}

#[test]
fn pictures_of_sixteen_bits_keep_them() {
    let image =
        image::ImageBuffer::<image::Luma<u16>, _>::from_fn(2, 1, |x, _| image::Luma([257 * x as u16 + 1]));
    for format in [ImageFormat::Png, ImageFormat::Tiff] {
        let mut data = std::io::Cursor::new(Vec::new());
        image.write_to(&mut data, format).unwrap();
        let samples = decode_samples(&data.into_inner(), Path::new("a"), ImageShape::new(1, 1, 2)).unwrap();
        let tensor = samples.tensor(0, &Preprocessing::default()).unwrap();
        assert_eq!(tensor, [1.0 / 65535.0, 258.0 / 65535.0]);
    }
}

#[test]
fn a_tiff_of_several_pages_or_of_floats_is_refused_and_not_cut() {
    let image = image::load_from_memory(&png()).unwrap();
    let tiff = |image: &image::DynamicImage| {
        let mut data = std::io::Cursor::new(Vec::new());
        image.write_to(&mut data, ImageFormat::Tiff).unwrap();
        data.into_inner()
    };
    check_error(&tiff(&image.to_rgb32f().into()), "a.tif", SHAPE, "with floating-point pixels");
    let mut pages = tiff(&image.to_rgb8().into());
    check_pixels(&pages, "a.tif", SHAPE);
    // The place of the next page stands behind the entries of the first.
    let at = u32::from_le_bytes(pages[4..8].try_into().unwrap()) as usize;
    let end = at + 2 + 12 * usize::from(u16::from_le_bytes(pages[at..at + 2].try_into().unwrap()));
    pages[end] = 8;
    check_error(&pages, "a.tif", SHAPE, "with several pages");
}

#[test]
fn arrays_of_other_kinds_are_named_and_not_called_damaged() {
    let shape = ImageShape::new(1, 1, 2);
    check_error(&npy(&[2], &[true, false]), "a.npy", shape, "holds booleans, which are neither");
    check_error(&npy(&[2], &[1u16, 2]), "a.npy", shape, "holds uint16 numbers");
    check_error(&npy(&[2], &[1.0, f64::NAN]), "a.npy", shape, "holds NaN");
}

#[test]
fn npy_bytes_are_pixels_in_either_axis_order() {
    let values: Vec<u8> = (0..24).collect();
    check_pixels(&npy(&[3, 2, 4], &values), "a.npy", SHAPE);
    check_pixels(&npy(&[1, 24], &values), "a.npy", SHAPE);
    let last: Vec<u8> = (0..24).map(|i| (i % 3) * 8 + i / 3).collect();
    check_pixels(&npy(&[1, 2, 4, 3], &last), "a.npy", SHAPE);
}

#[test]
fn signals_of_one_row_are_read_in_the_shape_of_their_model() {
    let values: Vec<u8> = (0..24).collect();
    for dims in [&[3, 8][..], &[1, 3, 8], &[1, 3, 1, 8]] {
        check_pixels(&npy(dims, &values), "a.npy", ImageShape::new(3, 1, 8));
    }
}

#[test]
fn npy_floats_are_model_inputs_as_they_are() {
    let values: Vec<f32> = (0..24).map(|i| i as f32 - 7.5).collect();
    let samples = decode_samples(&npy(&[3, 2, 4], &values), Path::new("a.npy"), SHAPE).unwrap();
    let ignored = Preprocessing { mean: vec![1.0; 3], std: vec![2.0; 3] };
    assert_eq!(samples.tensor(0, &ignored).unwrap()[1], -6.5);
}

#[test]
fn npy_that_claims_more_than_it_holds_is_refused() {
    let mut data = npy(&[3, 2, 4], &[0u8; 24]);
    let at = data.windows(7).position(|w| w == b"(3, 2, ").unwrap();
    data[at + 1..at + 5].copy_from_slice(b"9999");
    assert!(decode_samples(&data, Path::new("a.npy"), SHAPE).is_err());
    check_error(&npy(&[3, 2], &[0u8; 6]), "a.npy", SHAPE, "an array of [3, 2]");
}

#[test]
fn npz_gives_samples_and_labels() {
    check_pixels(&npz(), "a.npz", SHAPE);
    assert_eq!(decode_samples(&npz(), Path::new("a.npz"), SHAPE).unwrap().label(0), Some(7));
}

#[test]
fn archives_of_pictures_are_to_be_unpacked() {
    check_error(&archive(&[("a.png", b"no array")], true), "a.zip", SHAPE, "a zip archive without arrays");
    let mut tar = vec![0; 1024];
    tar[257..262].copy_from_slice(b"ustar");
    check_error(&tar, "a.tar", SHAPE, "a tar archive");
    check_error(&gzip(&tar), "a.tgz", SHAPE, "a tar archive");
}

#[test]
fn npz_of_stored_files_is_read_and_strangers_are_passed_over() {
    let values: Vec<u8> = (0..24).collect();
    let strings = b"\x93NUMPY\x01\x00\x3a\x00{'descr': '<U3', 'fortran_order': False, 'shape': (2,), }  \n";
    let files: [(&str, &[u8]); 3] =
        [("readme.txt", b"hello"), ("names.npy", strings), ("x.npy", &npy(&[3, 2, 4], &values))];
    check_pixels(&archive(&files, false), "a.npz", SHAPE);
}

#[test]
fn an_archive_unpacks_to_a_bounded_sum() {
    // Each file is within the limit of one; a thousand of them point to the same bytes.
    let zeros = npy(&[10 << 20], &vec![0u8; 10 << 20]);
    let one = archive(&[("labels.npy", &zeros)], true);
    let directory = one.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    let entry = one[directory..one.len() - 22].to_vec();
    let mut many = one[..directory].to_vec();
    many.extend(entry.repeat(1000));
    let mut end = one[one.len() - 22..].to_vec();
    end[8..12].copy_from_slice(&[0xe8, 0x03, 0xe8, 0x03]);
    many.extend(end);
    let started = std::time::Instant::now();
    check_error(&many, "a.npz", SHAPE, "unpacks to more");
    assert!(started.elapsed().as_secs() < 5);
    let bomb = gzip(&vec![0u8; 200 << 20]);
    check_error(&bomb, "a.gz", SHAPE, "unpacks to more");
}

#[test]
fn an_archive_of_too_many_files_is_refused() {
    let mut data = npz();
    let end = data.len() - 22;
    data[end + 10..end + 12].copy_from_slice(&[0xff, 0xff]);
    check_error(&data, "a.npz", SHAPE, "65535 files, more than 1024");
}

#[test]
fn a_changed_file_of_an_archive_is_noticed() {
    let values: Vec<u8> = (0..24).collect();
    let mut data = archive(&[("x.npy", &npy(&[3, 2, 4], &values))], false);
    let at = data.windows(4).position(|w| w == [20, 21, 22, 23]).unwrap();
    data[at] = 0;
    check_error(&data, "a.npz", SHAPE, "wrong checksum");
}

#[test]
fn labels_that_are_no_classes_are_refused() {
    let values: Vec<u8> = (0..24).collect();
    let files = [("x.npy", npy(&[3, 2, 4], &values)), ("y.npy", npy(&[1], &[-1i64]))];
    let files = files.each_ref().map(|(name, data)| (*name, &data[..]));
    check_error(&archive(&files, true), "a.npz", SHAPE, "-1");
}

#[test]
fn nested_headers_are_refused_at_once() {
    let header = format!("{{'descr': {}, 'fortran_order': False, 'shape': (2,), }}\n", "(".repeat(3000));
    let mut data = b"\x93NUMPY\x01\x00".to_vec();
    data.extend((header.len() as u16).to_le_bytes());
    data.extend(header.as_bytes());
    check_error(&data, "a.npy", SHAPE, "a header that NumPy does not write");
}

#[test]
fn idx_is_read_plain_and_gzipped() {
    let shape = ImageShape::new(1, 2, 3);
    check_pixels(&idx(), "images-idx3-ubyte", shape);
    check_pixels(&gzip(&idx()), "images-idx3-ubyte.gz", shape);
    check_error(&idx()[..20], "images-idx3-ubyte", shape, "need another length");
}

#[test]
fn cifar_batch_gives_images_and_labels() {
    let shape = ImageShape::new(3, 32, 32);
    let samples = decode_samples(&cifar(), Path::new("batch.bin"), shape).unwrap();
    assert_eq!((samples.len(), samples.label(1)), (2, Some(1)));
    let normalization = Preprocessing { mean: vec![0.5; 3], std: vec![0.25; 3] };
    assert_eq!(samples.tensor(1, &normalization).unwrap()[255], 2.0);
    check_error(&cifar()[1..], "batch.bin", shape, "no multiple of 3073");
}

#[test]
fn csv_rows_may_end_in_a_label() {
    let shape = ImageShape::new(1, 1, 3);
    let samples = decode_samples(b"a,b,c,class\n1,2,3,7\n4,5,6.5,8\n", Path::new("a.csv"), shape).unwrap();
    assert_eq!(samples.tensor(1, &Preprocessing::default()).unwrap(), [4.0, 5.0, 6.5]);
    assert_eq!(samples.label(1), Some(8));
    check_error(b"1,2\n3,4\n", "a.csv", shape, "2 rows of 2 numbers");
    check_error(b"1,2,3\n3,x,4\n", "a.csv", shape, "line 2: \"x\"");
    check_error(b"1,2,3\n3,4\n", "a.csv", shape, "line 2: 2 numbers, but 3");
    check_error(b",,,\n;\n", "a.csv", shape, "line 2: no numbers");
}

#[test]
fn sample_beyond_the_end_is_an_error() {
    let samples = decode_samples(&idx(), Path::new("i"), ImageShape::new(1, 2, 3)).unwrap();
    let error = samples.tensor(2, &Preprocessing::default()).unwrap_err().to_string();
    assert_eq!(error, "sample 2 does not exist: the file has 2");
}

#[test]
fn random_damage_never_panics() {
    let numbers: Vec<f64> = (0..24).map(f64::from).collect();
    let files = [
        ("a.png", png()),
        ("a.npy", npy(&[3, 2, 4], &numbers)),
        ("a.npz", npz()),
        ("a-idx3", idx()),
        ("a.gz", gzip(&idx())),
        ("a.bin", cifar()),
        ("a.csv", b"1,2,3,4\n5,6,7,8\n".to_vec()),
    ];
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    for (name, data) in &files {
        for _ in 0..2000 {
            let mut data = data.clone();
            for _ in 0..1 + rng.next_u32() % 4 {
                let at = rng.next_u32() as usize % data.len();
                data[at] = rng.next_u32() as u8;
            }
            data.truncate(data.len() - (rng.next_u32() as usize % 8).min(data.len() - 1));
            let _ = decode_samples(&data, Path::new(name), SHAPE);
        }
    }
}

fn check_labels(data: &[u8], name: &str, expected: &[usize]) {
    assert_eq!(decode_labels(data, Path::new(name)).unwrap(), expected, "{name}");
}

fn check_not_labels(data: &[u8], name: &str, expected: &str) {
    let error = decode_labels(data, Path::new(name)).unwrap_err().to_string();
    assert!(error.contains(expected), "{name}: {error}");
}

#[test]
fn labels_are_read_from_every_format_that_holds_them() {
    let idx = [0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 9];
    check_labels(&idx, "t10k-labels-idx1-ubyte", &[7, 0, 9]);
    check_labels(&gzip(&idx), "t10k-labels-idx1-ubyte.gz", &[7, 0, 9]);
    check_labels(&npy::<u8>(&[3], &[7, 0, 9]), "y.npy", &[7, 0, 9]);
    check_labels(&npy::<i64>(&[3], &[7, 0, 999]), "y.npy", &[7, 0, 999]);
    check_labels(&npy::<i32>(&[3, 1], &[7, 0, 9]), "y.npy", &[7, 0, 9]);
    check_labels(&npy::<f64>(&[3], &[7.0, 0.0, 9.0]), "y.npy", &[7, 0, 9]);
    check_labels(&npz(), "data.npz", &[7]);
    check_labels(b"label\n7\n0\n9\n", "y.csv", &[7, 0, 9]);
    check_labels(b"7\n0\n9", "y.txt", &[7, 0, 9]);
    check_labels(&gzip(b"7\n0\n9"), "y.csv.gz", &[7, 0, 9]);
    check_labels(&cifar(), "test_batch.bin", &[0, 1]);
}

#[test]
fn what_holds_no_labels_is_refused() {
    check_not_labels(&png(), "y.png", "a picture");
    check_not_labels(&idx(), "images-idx3-ubyte", "bytes of [2, 2, 3]");
    check_not_labels(&npy::<u8>(&[2, 2], &[1, 2, 3, 4]), "y.npy", "an array of [2, 2]");
    check_not_labels(&npy::<f64>(&[2], &[1.0, 2.5]), "y.npy", "label 1 is 2.5");
    check_not_labels(&npy::<i64>(&[2], &[1, -1]), "y.npy", "label 1 is -1");
    check_not_labels(b"1,2\n3,4\n", "y.csv", "rows of 2 numbers");
    check_not_labels(b"1\n0.5\n", "y.csv", "label 1 is 0.5");
    check_not_labels(b"1\n2\n", "y", "unknown format");
}

#[test]
fn labels_beside_the_images_are_classes_or_refused() {
    let row = |label: &str| format!("{}{label}\n", "0.5,".repeat(24));
    let read = |label: &str| decode_samples(row(label).as_bytes(), Path::new("x.csv"), SHAPE);
    assert_eq!(read("3").unwrap().label(0), Some(3));
    for wrong in ["-1", "2.5"] {
        let error = read(wrong).unwrap_err().to_string();
        assert!(error.contains(&format!("label 0 is {wrong}")), "{error}");
    }
}

#[test]
fn arrays_in_memory_are_read_as_their_files_are() {
    let values: Vec<f64> = (0..24).map(f64::from).collect();
    for dims in [vec![3, 2, 4], vec![1, 3, 2, 4], vec![24], vec![1, 2, 4, 3]] {
        let written: Vec<u64> = dims.iter().map(|&d: &usize| d as u64).collect();
        let read = decode_samples(&npy(&written, &values), Path::new("a.npy"), SHAPE).unwrap();
        assert_eq!(Samples::from_numbers(&dims, values.clone(), SHAPE).unwrap(), read, "{dims:?}");
    }
    let pixels: Vec<u8> = (0..48).collect();
    let read = decode_samples(&npy(&[2, 3, 2, 4], &pixels), Path::new("a.npy"), SHAPE).unwrap();
    assert_eq!(Samples::from_pixels(&[2, 3, 2, 4], pixels, SHAPE).unwrap(), read);
    let error = Samples::from_pixels(&[2, 4, 2], vec![0; 16], SHAPE).unwrap_err().to_string();
    assert_eq!(error, "holds an array of [2, 4, 2], but the model takes [3,2,4]");
    for (number, said) in [(f64::NAN, "holds NaN"), (f64::INFINITY, "holds inf")] {
        let mut values = values.clone();
        values[5] = number;
        assert_eq!(Samples::from_numbers(&[3, 2, 4], values, SHAPE).unwrap_err().to_string(), said);
    }
}

#[test]
fn what_could_be_both_is_as_the_model_has_it() {
    let shape = ImageShape::new(2, 2, 2);
    let values: Vec<f64> = (0..8).map(f64::from).collect();
    let read = |dims: &[usize], shape: ImageShape| {
        let samples = Samples::from_numbers(dims, values.clone(), shape).unwrap();
        samples.tensor(0, &Preprocessing::default()).unwrap()
    };
    let planes = [0.0, 2.0, 4.0, 6.0, 1.0, 3.0, 5.0, 7.0];
    for dims in [&[2, 2, 2][..], &[1, 2, 2, 2], &[8], &[1, 8]] {
        assert_eq!(read(dims, shape), values, "{dims:?}");
        assert_eq!(read(dims, shape.with_channels_last(true)), planes, "{dims:?}");
    }
    let row =
        decode_samples(b"0,1,2,3,4,5,6,7\n", Path::new("a.csv"), shape.with_channels_last(true)).unwrap();
    assert_eq!(row.tensor(0, &Preprocessing::default()).unwrap(), planes);
}

#[test]
fn several_inputs_come_from_one_archive_by_name() {
    let port = |name: &str, dims: &[u32], channels_last: bool, offset: u32| Port {
        name: name.into(),
        dims: dims.to_vec(),
        channels_last,
        offset,
    };
    let ports = [port("image", &[1, 1, 2, 2], true, 0), port("facts", &[1, 3], false, 4)];
    let shape = ImageShape::new(4, 1, 2);
    let image = npy(&[2, 1, 2, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let facts = npy(&[2, 3], &[10.0, 11.0, 12.0, 20.0, 21.0, 22.0]);
    let both = archive(&[("facts.npy", &facts), ("image.npy", &image)], true);
    let samples = decode_joined(&both, &ports, shape).unwrap();
    assert_eq!(samples.len(), 2);
    let tensor = |i| samples.tensor(i, &Preprocessing::default()).unwrap();
    assert_eq!(tensor(0), [0.0, 2.0, 1.0, 3.0, 10.0, 11.0, 12.0, 0.0]);
    assert_eq!(tensor(1), [4.0, 6.0, 5.0, 7.0, 20.0, 21.0, 22.0, 0.0]);
    for (files, expected) in [
        (vec![("image.npy", &image)], "no array named facts"),
        (vec![("image.npy", &facts), ("facts.npy", &facts)], "an array image of [2, 3]"),
    ] {
        let files: Vec<(&str, &[u8])> = files.iter().map(|(name, data)| (*name, data.as_slice())).collect();
        let error = decode_joined(&archive(&files, true), &ports, shape).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(decode_joined(b"1,2,3", &ports, shape).unwrap_err().to_string().contains("image, facts"));
}

#[test]
fn one_of_several_inputs_comes_alone_and_the_others_are_zero() {
    let port = |name: &str, dims: &[u32], offset: u32| Port {
        name: name.into(),
        dims: dims.to_vec(),
        channels_last: false,
        offset,
    };
    let (image, facts) = (port("image", &[1, 1, 2, 2], 0), port("facts", &[1, 3], 4));
    let shape = ImageShape::new(2, 2, 2);
    let part = |name: &str, data: &[u8], port: &Port| {
        ports::decode_one(data, Path::new(name), port, shape)
            .map(|samples| samples.tensor(0, &Preprocessing::default()).unwrap())
    };
    let numbers = npy(&[1, 3], &[10.0, 11.0, 12.0]);
    let expected = [0.0, 0.0, 0.0, 0.0, 10.0, 11.0, 12.0, 0.0];
    assert_eq!(part("facts.npy", &numbers, &facts).unwrap(), expected);
    assert_eq!(part("facts.csv", b"10,11,12\n", &facts).unwrap(), expected);
    assert_eq!(part("all.npz", &archive(&[("facts.npy", &numbers)], true), &facts).unwrap(), expected);
    for (name, data, port, words) in [
        ("facts.npy", &numbers[..], &image, "an array image of [1, 3]"),
        ("facts.csv", &b"10,11\n"[..], &facts, "1 rows of 2 numbers"),
        (
            "facts.png",
            &b"\x89PNG\r\n\x1a\n"[..],
            &facts,
            "no .npy, .npz or .csv file with the numbers of facts",
        ),
    ] {
        let error = part(name, data, port).unwrap_err().to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
}

#[test]
fn volumes_come_with_their_depth() {
    let shape = ImageShape::new(6, 2, 2);
    let values: Vec<f32> = (0..48).map(|i| i as f32).collect();
    for dims in [&[2, 2, 3, 2, 2][..], &[2, 6, 2, 2], &[2, 24]] {
        let samples = decode_samples(&npy(dims, &values), Path::new("x.npy"), shape).unwrap();
        assert_eq!((samples.len(), samples.tensor(1, &Preprocessing::default()).unwrap()[0]), (2, 24.0));
    }
    let one = decode_samples(&npy(&[2, 3, 2, 2], &values[..24]), Path::new("x.npy"), shape).unwrap();
    assert_eq!(one.len(), 1);
}
