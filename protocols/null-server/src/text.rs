//! The contents of a text column.

/// Text in the format of sysbench's column `c`: groups of eleven digits with a dash between them.
pub fn groups_of_digits(bytes: u32) -> String {
    (0..bytes).map(|at| if at % 12 == 11 { '-' } else { char::from(b'0' + (at.wrapping_mul(7) % 10) as u8) }).collect()
}
