//! Types of one wire version: they never change once released, whatever becomes of the live types.
//!
//! A frozen type has the fields that its version writes, in the order of the bytes. [`Frozen`] leads from and to the live
//! type; numbers, texts, ids, levels, scales and rotations are primitives of the format and stand for themselves.

use super::DecodeError;
use super::wire::{Reader, Wire};

/// A type of the wire and the live type that it stands for.
pub(super) trait Frozen: Wire {
    /// What the rest of the crate works with.
    type Live;
    /// The live value; fields that this version does not know get their defaults.
    fn thaw(self) -> Self::Live;
    /// What this version can say of a live value.
    fn freeze(live: &Self::Live) -> Self;
}

/// Types that are the same on the wire and alive.
macro_rules! primitives {
    ($($type:ty)*) => {$(
        impl $crate::codec::frozen::Frozen for $type {
            type Live = Self;

            fn thaw(self) -> Self {
                self
            }

            fn freeze(live: &Self) -> Self {
                live.clone()
            }
        }
    )*};
}
pub(super) use primitives;

primitives! { bool u8 u16 u32 u64 usize i32 f32 f64 String }

impl<T: Frozen> Frozen for Vec<T> {
    type Live = Vec<T::Live>;

    fn thaw(self) -> Self::Live {
        self.into_iter().map(T::thaw).collect()
    }

    fn freeze(live: &Self::Live) -> Self {
        live.iter().map(T::freeze).collect()
    }
}

impl<T: Frozen> Frozen for Option<T> {
    type Live = Option<T::Live>;

    fn thaw(self) -> Self::Live {
        self.map(T::thaw)
    }

    fn freeze(live: &Self::Live) -> Self {
        live.as_ref().map(T::freeze)
    }
}

impl<T: Frozen + Copy> Frozen for [T; 2] {
    type Live = [T::Live; 2];

    fn thaw(self) -> Self::Live {
        self.map(T::thaw)
    }

    fn freeze(live: &Self::Live) -> Self {
        live.each_ref().map(T::freeze)
    }
}

/// Frozen structs: name, live type, fields in the order of the bytes; after `+` the live fields that this version lacks.
macro_rules! structs {
    ($($(#[$attr:meta])* $name:ident for $live:ty { $($field:ident: $type:ty),* $(,)? } $(+ { $($extra:ident: $value:expr),* })?)*) => {$(
        $(#[$attr])*
        pub(in crate::codec) struct $name {
            $(pub(in crate::codec) $field: $type,)*
        }

        impl $crate::codec::wire::Wire for $name {
            const MIN_BYTES: usize = 0 $(+ <$type as $crate::codec::wire::Wire>::MIN_BYTES)*;

            fn put(&self, w: &mut $crate::codec::wire::Writer) {
                $(self.$field.put(w);)*
            }

            fn get(r: &mut $crate::codec::wire::Reader<'_>) -> Result<Self, $crate::codec::DecodeError> {
                Ok($name { $($field: $crate::codec::wire::Wire::get(r)?,)* })
            }
        }

        impl $crate::codec::frozen::Frozen for $name {
            type Live = $live;

            fn thaw(self) -> Self::Live {
                type Live = $live;
                Live {
                    $($field: $crate::codec::frozen::Frozen::thaw(self.$field),)*
                    $($($extra: $value,)*)?
                }
            }

            fn freeze(live: &Self::Live) -> Self {
                $name { $($field: $crate::codec::frozen::Frozen::freeze(&live.$field),)* }
            }
        }
    )*};
}
pub(super) use structs;

/// Frozen enums: name, live type, and for each variant its tag and its fields in the order of the bytes.
macro_rules! enums {
    ($($(#[$attr:meta])* $name:ident for $live:ty { $($tag:literal $variant:ident { $($field:ident: $type:ty),* })* })*) => {$(
        $(#[$attr])*
        pub(in crate::codec) enum $name {
            $($variant { $($field: $type,)* },)*
        }

        impl $crate::codec::wire::Wire for $name {
            const MIN_BYTES: usize = {
                let all = [$(1 $(+ <$type as $crate::codec::wire::Wire>::MIN_BYTES)*),*];
                let (mut least, mut i) = (all[0], 1);
                while i < all.len() {
                    if all[i] < least {
                        least = all[i];
                    }
                    i += 1;
                }
                least
            };

            fn put(&self, w: &mut $crate::codec::wire::Writer) {
                match self {
                    $($name::$variant { $($field),* } => {
                        w.raw(&[$tag]);
                        $($field.put(w);)*
                    })*
                }
            }

            fn get(r: &mut $crate::codec::wire::Reader<'_>) -> Result<Self, $crate::codec::DecodeError> {
                match r.byte()? {
                    $($tag => Ok($name::$variant { $($field: $crate::codec::wire::Wire::get(r)?),* }),)*
                    _ => Err(r.error("unknown tag")),
                }
            }
        }

        impl $crate::codec::frozen::Frozen for $name {
            type Live = $live;

            fn thaw(self) -> Self::Live {
                type Live = $live;
                match self {
                    $($name::$variant { $($field),* } => {
                        Live::$variant { $($field: $crate::codec::frozen::Frozen::thaw($field)),* }
                    })*
                }
            }

            fn freeze(live: &Self::Live) -> Self {
                type Live = $live;
                match live {
                    $(Live::$variant { $($field),* } => {
                        $name::$variant { $($field: $crate::codec::frozen::Frozen::freeze($field)),* }
                    })*
                }
            }
        }
    )*};
}
pub(super) use enums;

/// Sections with their tags, in the order of the file.
macro_rules! sections {
    ($(#[$attr:meta])* $name:ident { $($tag:literal $field:ident: $type:ty),* $(,)? }) => {
        $(#[$attr])*
        pub(in crate::codec) struct $name {
            $(pub(in crate::codec) $field: $type,)*
        }

        impl $name {
            /// How many sections.
            #[allow(dead_code)]
            pub(in crate::codec) const N_SECTIONS: usize = [$($tag),*].len();

            /// Reads the sections in order.
            pub(in crate::codec) fn read(
                r: &mut $crate::codec::wire::Reader<'_>,
            ) -> Result<Self, $crate::codec::DecodeError> {
                Ok($name { $($field: r.section($tag, $crate::codec::wire::Wire::get)?,)* })
            }

            /// Writes the sections in order.
            #[allow(dead_code)]
            pub(in crate::codec) fn write<W: std::io::Write + ?Sized>(
                &self,
                w: &mut $crate::codec::stream::SectionWriter<'_, W>,
            ) -> std::io::Result<()> {
                $(w.section($tag, &|w| $crate::codec::wire::Wire::put(&self.$field, w))?;)*
                Ok(())
            }
        }
    };
}
pub(super) use sections;

/// Fails if anything follows the last section.
pub(super) fn finished(r: &Reader<'_>) -> Result<(), DecodeError> {
    match r.remaining() {
        0 => Ok(()),
        _ => Err(r.error("bytes after the last section")),
    }
}
