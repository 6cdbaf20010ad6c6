//! `cargo xtask models OUT_DIR`: writes the networks of the level tables as ONNX files.

use std::path::PathBuf;
use std::{fs, io};

use clap::ValueEnum;
use fhec_tests::models::{self, Network, Shortcut, Spec};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder for the files; made if missing
    out_dir: PathBuf,
    /// Only this network (may be repeated)
    #[arg(long, value_parser = parse_network)]
    only: Vec<Network>,
    /// Degree of the activations; both by default, the quartic ones named `*-p4.onnx`
    #[arg(long, value_parser = parse_degree)]
    degree: Option<usize>,
    /// Number of classes
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(2..=1000))]
    classes: u16,
    /// Height and width of the images, a multiple of 32; a LeNet has its own
    #[arg(long, default_value_t = 32, value_parser = parse_size)]
    size: usize,
    /// Multiplies the channels of every hidden layer
    #[arg(long, default_value_t = 1.0, value_parser = parse_width)]
    width: f32,
    /// Shortcut of residual blocks that change the shape
    #[arg(long, value_enum, default_value_t = ShortcutArg::Projection)]
    shortcut: ShortcutArg,
    /// Seed of the weights
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShortcutArg {
    Projection,
    Identity,
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    fs::create_dir_all(&args.out_dir)?;
    let networks = if args.only.is_empty() { Network::ALL.to_vec() } else { args.only.clone() };
    for network in networks {
        for degree in args.degree.map_or_else(|| vec![2, 4], |d| vec![d]) {
            let spec = Spec {
                network,
                classes: usize::from(args.classes),
                size: args.size,
                width: args.width,
                degree,
                shortcut: match args.shortcut {
                    ShortcutArg::Projection => Shortcut::Projection,
                    ShortcutArg::Identity => Shortcut::Identity,
                },
                seed: args.seed,
            };
            let path = args.out_dir.join(spec.file_name());
            let bytes = models::generate(&spec);
            fs::write(&path, &bytes)?;
            println!("{} ({:.1} MB)", path.display(), bytes.len() as f64 / 1e6);
        }
    }
    Ok(())
}

fn parse_network(name: &str) -> Result<Network, String> {
    let names = || Network::ALL.map(Network::name).join(", ");
    Network::ALL.into_iter().find(|n| n.name() == name).ok_or_else(|| format!("one of {}", names()))
}

fn parse_degree(text: &str) -> Result<usize, String> {
    match text {
        "2" => Ok(2),
        "4" => Ok(4),
        _ => Err("2 or 4".into()),
    }
}

fn parse_size(text: &str) -> Result<usize, String> {
    let fits = |size: &usize| size.is_multiple_of(32) && (32..=256).contains(size);
    text.parse().ok().filter(fits).ok_or_else(|| "a multiple of 32 up to 256".into())
}

fn parse_width(text: &str) -> Result<f32, String> {
    text.parse().ok().filter(|w| (0.01..=8.0).contains(w)).ok_or_else(|| "a number from 0.01 to 8".into())
}
