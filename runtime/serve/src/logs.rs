//! The log: ids, sizes and times on standard error, as text or as JSON. Bodies and tokens never reach it.

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;

/// How the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// What the log says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// What went wrong
    Error,
    /// And what looks wrong
    Warn,
    /// And every request and job
    Info,
}

/// Starts the log of this process.
pub(crate) fn start(format: Format, level: Level) {
    let level = match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
    };
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_target(false);
    // A second server in one process, as in tests, shares the log of the first.
    let _ = match format {
        Format::Text => tracing::subscriber::set_global_default(log.finish()),
        Format::Json => tracing::subscriber::set_global_default(log.json().finish()),
    };
}
