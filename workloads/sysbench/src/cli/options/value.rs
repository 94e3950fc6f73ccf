//! Values of options, parsed like sysbench parses them.

/// A value as scripts get it in `sysbench.opt`.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// The value of a flag.
    Flag(bool),
    /// The value of any number: scripts have one type of number.
    Number(f64),
    /// Empty where none is given.
    Text(String),
    /// The values of a list.
    List(Vec<String>),
    /// A value that scripts do not see: nil.
    Nothing,
}

/// A flag; `None` if the text is not one. The argument `None` means `--name` without a value.
pub(super) fn flag(text: Option<&str>) -> Option<bool> {
    match text {
        None | Some("on" | "true" | "1") => Some(true),
        Some("off" | "false" | "0") => Some(false),
        Some(_) => None,
    }
}

/// An integer that fills the whole text; C's `strtol` rules apply to leading blanks and the sign.
pub(super) fn int(text: &str) -> Option<i32> {
    if text.is_empty() {
        return Some(0);
    }
    let number = after_blanks(text);
    let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { number.parse().ok() } else { None }
}

/// A size in bytes. A text that is not a number is 0, and so is one with a letter other than K, M, G or T. Text after
/// the letter is ignored.
pub(super) fn size_bytes(text: &str) -> u64 {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let number =
        digits.bytes().fold(0_u64, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
    if digits.is_empty() {
        return 0;
    }
    let power = match unit.bytes().next().map(|letter| letter.to_ascii_uppercase()) {
        None => 0,
        Some(b'K') => 1,
        Some(b'M') => 2,
        Some(b'G') => 3,
        Some(b'T') => 4,
        Some(_) => return 0,
    };
    number.wrapping_mul(1024_u64.pow(power))
}

/// The longest numeric prefix of a text, by the rules of C's `strtod` without hexadecimal digits; 0 if there is none.
pub(super) fn double(text: &str) -> f64 {
    let text = after_blanks(text);
    // No numeric prefix ends after the last character that may be in a number.
    let may_end =
        text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.')).unwrap_or(text.len());
    (1..=may_end).rev().find_map(|end| text[..end].parse().ok()).unwrap_or(0.0)
}

/// Numbers separated by commas; `None` if one of them is not a plain decimal number.
pub(super) fn numbers(text: &str) -> Option<Vec<f64>> {
    let parts = text.split(',').map(after_blanks);
    parts.filter(|part| !part.is_empty()).map(decimal).collect()
}

fn decimal(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_plain { text.parse().ok() } else { None }
}

fn after_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_three_words_each() {
        for yes in [None, Some("on"), Some("true"), Some("1")] {
            assert_eq!(flag(yes), Some(true));
        }
        for no in ["off", "false", "0"] {
            assert_eq!(flag(Some(no)), Some(false));
        }
        // From cmdline.t; and upper case, which sysbench does not accept.
        for neither in ["5", "foo", "", "ON"] {
            assert_eq!(flag(Some(neither)), None);
        }
    }

    #[test]
    fn whole_numbers_are_whole() {
        for (text, expected) in [
            ("4", Some(4)),
            (" +4", Some(4)),
            ("-1", Some(-1)),
            ("", Some(0)),
            ("2147483647", Some(i32::MAX)),
            ("2147483648", None),
            ("4 ", None),
            ("4x", None),
            ("-", None),
            (" ", None),
            ("0x10", None),
        ] {
            assert_eq!(int(text), expected, "{text:?}");
        }
    }

    #[test]
    fn sizes_have_letters_for_powers_of_1024() {
        for (text, expected) in [
            ("64K", 65_536),
            ("1k", 1024),
            ("2G", 2 << 30),
            ("100G", 100 << 30),
            ("1T", 1 << 40),
            ("16384", 16_384),
            ("1Kjunk", 1024),
            ("1X", 0),
            ("-1", 0),
            ("K", 0),
            ("", 0),
        ] {
            assert_eq!(size_bytes(text), expected, "{text:?}");
        }
    }

    #[test]
    fn floating_point_numbers_end_where_they_end() {
        for (text, expected) in [
            ("0.8", 0.8),
            (" 1e3x", 1000.0),
            ("1e", 1.0),
            (".5", 0.5),
            ("-2", -2.0),
            ("x", 0.0),
            ("", 0.0),
            ("1.5é", 1.5),
        ] {
            assert_eq!(double(text), expected, "{text:?}");
        }
    }

    #[test]
    fn percentiles_are_decimal_numbers() {
        assert_eq!(numbers("50,95, 99.9"), Some(vec![50.0, 95.0, 99.9]));
        assert_eq!(numbers(""), Some(vec![]));
        assert_eq!(numbers("95,x"), None);
        assert_eq!(numbers("1e2"), None);
        assert_eq!(numbers("nan"), None);
    }
}
