//! What choices of the library are called on the command line.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::cluster::{Method, Order};
use crate::levels::Format;
use crate::pipeline::{LayoutChoice, RingChoice, SpecialChoice, TowerChoice};
use crate::stages::StageKind;

/// Names and one line of help for every variant of a type.
macro_rules! choices {
    ($type:ty { $($variant:ident = $name:literal: $help:literal,)* }) => {
        impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [Self] {
                &[$(Self::$variant),*]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                Some(match self {
                    $(Self::$variant => PossibleValue::new($name).help($help),)*
                })
            }
        }
    };
}

choices!(LayoutChoice {
    Hw = "hw": "One channel per ciphertext (paper §5.1)",
    Packed = "packed": "Several channels per ciphertext",
    Auto = "auto": "Whichever is predicted to be faster within the memory",
});

choices!(TowerChoice {
    Pool = "pool": "Sets of large towers and a few small ones, or a prime per level where that is faster",
    PrimePerLevel = "prime-per-level": "A prime of its own for every rescale",
});

choices!(RingChoice {
    Smaller = "smaller": "Smaller ones for lower levels, where bound and slots allow it and it is faster",
    One = "one": "One for all levels",
});

choices!(SpecialChoice {
    ByLevel = "by-level": "Special primes and digits of their own, where it is faster",
    Fixed = "fixed": "The same special primes and towers per digit for all levels",
});

choices!(Method {
    Full = "full": "One codebook for all convolutions",
    Slice = "slice": "One codebook for every convolution and kernel column",
});

choices!(Order {
    Before = "before": "On the weights of the model, before they are fused (the order of the paper)",
    After = "after": "On the weights that are encoded, after fusing and redistribution",
});

choices!(StageKind {
    Circuit = "circuit": "Sums of linear maps, and products",
    Timed = "timed": "When values are computed: levels, and which values share a scale",
    Placed = "placed": "Where values live: layouts, and maps as diagonals",
    Scheduled = "scheduled": "Moduli, exact scales, and how every map is evaluated",
    Program = "program": "The instructions",
});

choices!(Format {
    Table = "table": "For people",
    Json = "json": "For scripts: a list with one object per model",
    Ron = "ron": "The same in Rusty Object Notation",
    Markdown = "markdown": "For documents",
});
