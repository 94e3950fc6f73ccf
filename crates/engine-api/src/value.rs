//! Values: parameters of statements, and columns of rows.

use std::fmt;
use std::io::Write;

pub use jiff::civil::DateTime;

/// A value of SQL. If a statement is sent as text, its rows hold text regardless of the type of the column, and the
/// conversions below parse it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SqlValue<'a> {
    /// SQL NULL.
    Null,
    /// A whole number of up to 64 bits.
    Int(i64),
    /// An unsigned whole number.
    Unsigned(u64),
    /// A floating-point number.
    Double(f64),
    /// An exact decimal number.
    Decimal(Decimal),
    /// Characters, in the character set of the connection.
    Text(&'a [u8]),
    /// Bytes without a character set.
    Bytes(&'a [u8]),
    /// A date and time of day without a time zone, truncated to microseconds.
    Timestamp(DateTime),
}

impl<'a> SqlValue<'a> {
    /// Whether it is NULL.
    pub fn is_null(self) -> bool {
        matches!(self, SqlValue::Null)
    }

    /// The value as a whole number: decimals are truncated, NULL and other values are 0. A number above `i64::MAX`
    /// keeps its bits and so becomes negative.
    pub fn int(self) -> i64 {
        match self {
            SqlValue::Int(number) => number,
            SqlValue::Unsigned(number) => number.cast_signed(),
            SqlValue::Double(number) => number as i64,
            SqlValue::Decimal(number) => number.whole() as i64,
            SqlValue::Text(text) | SqlValue::Bytes(text) => leading_int(text),
            SqlValue::Null | SqlValue::Timestamp(_) => 0,
        }
    }

    /// The value as a floating-point number; `None` for NULL and values that are not numbers.
    pub fn double(self) -> Option<f64> {
        match self {
            SqlValue::Int(number) => Some(number as f64),
            SqlValue::Unsigned(number) => Some(number as f64),
            SqlValue::Double(number) => Some(number),
            SqlValue::Decimal(number) => Some(number.unscaled as f64 / 10_f64.powi(i32::from(number.scale))),
            SqlValue::Text(text) | SqlValue::Bytes(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
            SqlValue::Null | SqlValue::Timestamp(_) => None,
        }
    }

    /// The value as an exact number; `None` for NULL, for values that are not numbers, and for floating-point numbers,
    /// which are not exact.
    pub fn decimal(self) -> Option<Decimal> {
        match self {
            SqlValue::Int(number) => Some(Decimal::new(i128::from(number), 0)),
            SqlValue::Unsigned(number) => Some(Decimal::new(i128::from(number), 0)),
            SqlValue::Decimal(number) => Some(number),
            SqlValue::Text(text) | SqlValue::Bytes(text) => Decimal::parse(text),
            SqlValue::Null | SqlValue::Double(_) | SqlValue::Timestamp(_) => None,
        }
    }

    /// The value as a date and time; text is parsed in SQL's form: `2026-11-23 06:40:46.5`.
    pub fn timestamp(self) -> Option<DateTime> {
        match self {
            SqlValue::Timestamp(time) => Some(time),
            SqlValue::Text(text) | SqlValue::Bytes(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// The bytes of text and bytes; empty for all other values.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            SqlValue::Text(bytes) | SqlValue::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// Appends the value in SQL's text form, without quotes; empty for NULL. It allocates only in `out`.
    pub fn write_text(self, out: &mut Vec<u8>) {
        let written = match self {
            SqlValue::Null => Ok(()),
            SqlValue::Int(number) => {
                put_int(out, number);
                Ok(())
            }
            SqlValue::Unsigned(number) => write!(out, "{number}"),
            // With an exponent it is a floating-point number in every SQL dialect, and is read back bit by bit.
            SqlValue::Double(number) => write!(out, "{number:e}"),
            SqlValue::Decimal(number) => number.put(out),
            SqlValue::Text(bytes) | SqlValue::Bytes(bytes) => out.write_all(bytes),
            SqlValue::Timestamp(time) => SqlTime(time).put(out),
        };
        debug_assert!(written.is_ok(), "writing to a vector cannot fail");
    }
}

/// A date and time as SQL writes it, to the microsecond: `2026-11-23 06:40:46.000000`.
#[derive(Clone, Copy, Debug)]
pub struct SqlTime(pub DateTime);

impl SqlTime {
    /// Writes the displayed form at a fraction of the cost of formatting, because a load writes millions of values.
    fn put(self, out: &mut Vec<u8>) -> std::io::Result<()> {
        let time = self.0;
        let Ok(year) = u32::try_from(time.year()) else { return write!(out, "{self}") };
        let mut text = *b"0000-00-00 00:00:00.000000";
        let mut put = |end: usize, mut number: u32| {
            let mut place = end;
            while number > 0 {
                place -= 1;
                text[place] = b'0' + (number % 10) as u8;
                number /= 10;
            }
        };
        put(4, year);
        let parts = [time.month(), time.day(), time.hour(), time.minute(), time.second()];
        [7, 10, 13, 16, 19].into_iter().zip(parts).for_each(|(end, part)| put(end, part.unsigned_abs().into()));
        put(26, time.subsec_nanosecond().unsigned_abs() / 1000);
        out.extend_from_slice(&text);
        Ok(())
    }
}

impl fmt::Display for SqlTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.0;
        write!(f, "{:04}-{:02}-{:02} ", time.year(), time.month(), time.day())?;
        write!(f, "{:02}:{:02}:{:02}.{:06}", time.hour(), time.minute(), time.second(), time.subsec_nanosecond() / 1000)
    }
}

/// An exact decimal number: a whole number of its smallest unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    unscaled: i128,
    scale: u8,
}

/// The most decimals: 10 to this power fits 128 bits.
const MOST_SCALE: u8 = 38;

impl Decimal {
    /// `unscaled` divided by 10 to the power of `scale`, at most 38: 1790 with 2 is 17.90.
    pub const fn new(unscaled: i128, scale: u8) -> Self {
        assert!(scale <= MOST_SCALE, "more than 38 digits behind the point");
        Self { unscaled, scale }
    }

    /// Parses a number without an exponent; `None` if it is not a number, or has more digits than 128 bits hold.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (negative, digits) = match text.trim_ascii() {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] | digits => (false, digits),
        };
        let (mut unscaled, mut scale, mut point, mut any) = (0_i128, 0_u8, false, false);
        for &byte in digits {
            match byte {
                b'0'..=b'9' => {
                    unscaled = unscaled.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                    scale += u8::from(point);
                    any = true;
                }
                b'.' if !point => point = true,
                _ => return None,
            }
        }
        any.then_some(Self { unscaled: if negative { -unscaled } else { unscaled }, scale })
    }

    /// The number in units of 10 to the power of minus `scale`; `None` if that is not exact, or too large.
    pub fn in_units(self, scale: u8) -> Option<i128> {
        match scale.checked_sub(self.scale) {
            Some(more) => self.unscaled.checked_mul(10_i128.checked_pow(u32::from(more))?),
            None => {
                let divisor = 10_i128.pow(u32::from(self.scale - scale));
                (self.unscaled % divisor == 0).then_some(self.unscaled / divisor)
            }
        }
    }

    /// Writes the displayed form. Values that fit in 64 bits are divided by machine instructions instead of being
    /// formatted, because a load writes millions of amounts.
    fn put(self, out: &mut Vec<u8>) -> std::io::Result<()> {
        let Ok(mut left) = u64::try_from(self.unscaled.unsigned_abs()) else { return write!(out, "{self}") };
        // The point, the most decimals and one digit before the point, which are more than 64 bits have.
        let mut text = [0_u8; MOST_SCALE as usize + 2];
        let (mut start, mut digits) = (text.len(), 0);
        while left > 0 || digits <= self.scale {
            if digits == self.scale && digits > 0 {
                start -= 1;
                text[start] = b'.';
            }
            start -= 1;
            text[start] = b'0' + (left % 10) as u8;
            left /= 10;
            digits += 1;
        }
        if self.unscaled < 0 {
            out.push(b'-');
        }
        out.extend_from_slice(&text[start..]);
        Ok(())
    }

    /// The part before the decimal point.
    fn whole(self) -> i128 {
        self.unscaled / 10_i128.pow(u32::from(self.scale))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scale == 0 {
            return write!(f, "{}", self.unscaled);
        }
        let unit = 10_u128.pow(u32::from(self.scale));
        let size = self.unscaled.unsigned_abs();
        let sign = if self.unscaled < 0 { "-" } else { "" };
        write!(f, "{sign}{}.{:0width$}", size / unit, size % unit, width = usize::from(self.scale))
    }
}

/// Appends an integer in decimal.
pub fn put_int(out: &mut Vec<u8>, number: i64) {
    // 2^64 has twenty digits.
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    let mut left = number.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
}

/// The integer that a text starts with; 0 without one. Beyond 64 bits it wraps.
pub fn leading_int(text: &[u8]) -> i64 {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let number = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0_i64, |number, digit| number.wrapping_mul(10).wrapping_add(i64::from(digit - b'0')));
    if negative { number.wrapping_neg() } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    fn text(value: SqlValue<'_>) -> String {
        let mut out = Vec::new();
        value.write_text(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimals_keep_every_digit() {
        for written in ["0", "-17.90", "0.07", "-0.01", "300000.00", "12345678901234567890.123456789"] {
            let decimal = Decimal::parse(written.as_bytes()).unwrap();
            assert_eq!(decimal.to_string(), written);
            assert_eq!(text(SqlValue::Decimal(decimal)), written);
        }
        for wrong in ["", "-", ".", "1e3", "1.2.3", "abc", "99999999999999999999999999999999999999999"] {
            assert_eq!(Decimal::parse(wrong.as_bytes()), None, "{wrong}");
        }
        let price = Decimal::parse(b"-17.90").unwrap();
        assert_eq!(
            (price.in_units(2), price.in_units(1), price.in_units(4), price.in_units(0)),
            (Some(-1790), Some(-179), Some(-179_000), None)
        );
        assert_eq!(SqlValue::Decimal(price).int(), -17);
    }

    #[test]
    fn decimals_and_times_are_written_as_they_are_displayed() {
        let most = i128::from(u64::MAX);
        let numbers = [0, 1, 9, 10, 99, 100, 101, 29_999_900, most - 1, most, most + 1, i128::MAX];
        for scale in [0, 1, 2, 4, 19, 20, 21, MOST_SCALE] {
            for number in numbers.into_iter().flat_map(|number| [number, -number]) {
                let decimal = Decimal::new(number, scale);
                assert_eq!(text(SqlValue::Decimal(decimal)), decimal.to_string(), "{number}, {scale}");
            }
        }
        for (year, nanosecond) in [(0, 0), (7, 999), (1970, 1000), (2026, 123_456_789), (9999, 999_999_999), (-9, 5)] {
            for time in [date(year, 1, 2).at(0, 0, 0, nanosecond), date(year, 12, 31).at(23, 59, 59, nanosecond)] {
                assert_eq!(text(SqlValue::Timestamp(time)), SqlTime(time).to_string());
            }
        }
    }

    #[test]
    fn text_is_parsed_as_the_requested_type() {
        let value = SqlValue::Text(b"-17.90");
        assert_eq!((value.int(), value.double(), value.decimal()), (-17, Some(-17.9), Decimal::parse(b"-17.90")));
        let time = date(2026, 11, 23).at(6, 40, 46, 500_000_000);
        assert_eq!(SqlValue::Text(b"2026-11-23 06:40:46.5").timestamp(), Some(time));
        assert_eq!(text(SqlValue::Timestamp(time)), "2026-11-23 06:40:46.500000");
        assert_eq!((SqlValue::Null.int(), SqlValue::Null.double(), SqlValue::Null.bytes()), (0, None, &b""[..]));
        assert_eq!(SqlValue::Unsigned(u64::MAX).int(), -1);
    }

    #[test]
    fn doubles_come_back_bit_by_bit() {
        for number in [0.1, -1.5e300, f64::MIN_POSITIVE, 3.0] {
            assert_eq!(text(SqlValue::Double(number)).parse::<f64>().unwrap(), number);
        }
    }
}
