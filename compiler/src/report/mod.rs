//! Reports about a build: figures for programs ([`BuildReport`]) and a page for people ([`Page`]).
//!
//! The page is one file without any reference to another: styles and script are embedded, charts are inline SVG, and
//! everything that comes from a model is escaped where it is written ([`html`]).

mod build;
mod chart;
mod columns;
mod drawing;
mod edges;
mod estimate;
mod figures;
mod graph_svg;
mod html;
mod lanes;
mod layers;
mod page;
mod profile;
mod program_drawing;
mod program_text;
mod recorder;
mod stages;
mod tables;
mod tensor_drawing;
mod units;

pub use build::{BuildReport, ClusterReport, LayerReport, SaturationReport, SegmentReport, precision_bits};
pub use estimate::{Estimate, cores};
pub use layers::{Layer, LayerKind, layers};
pub use page::Page;
pub use profile::{Measured, ProfileError};
pub use program_text::program_text;
pub use recorder::Recorder;
pub use stages::{Stage, Stages};
