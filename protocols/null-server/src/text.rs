//! The contents of a text column.

/// Text in the format of sysbench's column `c`: groups of eleven digits with a dash between them.
pub fn groups_of_digits(bytes: u32) -> String {
    (0..bytes).map(|at| if at % 12 == 11 { '-' } else { char::from(b'0' + (at.wrapping_mul(7) % 10) as u8) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_the_requested_length() {
        assert_eq!(groups_of_digits(119).len(), 119);
        assert_eq!(groups_of_digits(0), "");
    }
}
