//! The names of a workload's numbers.

/// Defines a workload's numbers once: a struct of their sums, an enum of their positions, and their names. The sums are
/// stored under these names with a copy of the data.
#[macro_export]
macro_rules! counters {
    ($(#[$about:meta])* $sums:ident at $of:ident { $($(#[$doc:meta])* $field:ident: $name:ident),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $sums { $($(#[$doc])* pub $field: i64),+ }

        /// The positions of the numbers.
        #[derive(Clone, Copy, Debug)]
        enum $of { $($name),+ }

        impl $sums {
            /// The names of the numbers, in order.
            pub const NAMES: [&'static str; [$(stringify!($field)),+].len()] = [$(stringify!($field)),+];
        }

        impl From<[i64; $sums::NAMES.len()]> for $sums {
            fn from([$($field),+]: [i64; $sums::NAMES.len()]) -> Self {
                Self { $($field),+ }
            }
        }

        impl From<$sums> for [i64; $sums::NAMES.len()] {
            fn from($sums { $($field),+ }: $sums) -> Self {
                [$($field),+]
            }
        }
    };
}
