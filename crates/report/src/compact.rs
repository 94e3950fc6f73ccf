//! JSON with only as many digits as readers can use, because most of a page is figures.

use std::io;

use serde::Serialize;
use serde::ser::Error as _;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// The number of significant digits. A percentile of 99.99999 needs seven, a size of many gigabytes is shown with
/// three.
const DIGITS: i32 = 8;

/// A value as JSON, its numbers rounded to [`DIGITS`].
pub fn compact(value: &impl Serialize) -> serde_json::Result<String> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, Rounding))?;
    String::from_utf8(bytes).map_err(serde_json::Error::custom)
}

struct Rounding;

impl Formatter for Rounding {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        CompactFormatter.write_f64(writer, rounded(value))
    }
}

/// The nearest number with [`DIGITS`] digits.
fn rounded(value: f64) -> f64 {
    // Powers of ten are exact up to here, so that the nearest number prints without additional digits.
    const EXACT: i32 = 22;
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let power = DIGITS - 1 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(power.abs());
    if power.abs() > EXACT {
        value
    } else if power >= 0 {
        (value * scale).round() / scale
    } else {
        (value / scale).round() * scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_eight_digits_and_texts_and_counts_all() {
        let value = serde_json::json!({
            "third": 1.0 / 3.0, "tail": 99.999_991_234_5, "size": 2_317_352_961.7, "small": -1.234_567_891e-9, "none": null,
            "count": 1_234_567_890_123u64, "text": "0.123456789012", "zero": 0.0,
        });
        let text = compact(&value).unwrap();
        for kept in [
            r#""third":0.33333333"#,
            r#""tail":99.999991"#,
            r#""size":2317353000.0"#,
            r#""small":-1.2345679e-9"#,
            r#""count":1234567890123"#,
            r#""text":"0.123456789012""#,
            r#""zero":0.0"#,
        ] {
            assert!(text.contains(kept), "{kept} in {text}");
        }
    }
}
