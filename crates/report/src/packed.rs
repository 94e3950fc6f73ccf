//! Encodes series of numbers for the page: four digits each, in two bytes, as base64. They are most of a long run's
//! page.
//!
//! The text is `EXPONENT:BASE64`. The bytes are codes of 16 bits, the lower byte first.
//!
//! - 0 means no number.
//! - A code up to 10,000 is one more than a count of units; a unit is ten to the power of the exponent.
//! - Each further 9,000 codes are the four digits from 1000 to 9999 of the next decade.
//!
//! The largest seven decades therefore have four digits, and smaller numbers have fewer. `web/src/packed.ts` decodes
//! it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Serialize, Serializer};

/// The most points of the load and of the run in a timeline, which are drawn separately.
pub const POINTS: usize = 600;
/// Codes below the first decade that has four digits.
const UNITS: f64 = 10_000.0;
/// Codes of each decade.
const DECADE: f64 = 9_000.0;
/// The number of powers of ten between the unit and the largest number.
const BELOW: i32 = 9;

/// Numbers with gaps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packed(pub Vec<Option<f64>>);

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, serializer)
    }
}

/// The numbers after decoding by the page.
pub fn serialize<S: Serializer>(values: &[Option<f64>], serializer: S) -> Result<S::Ok, S::Error> {
    match packed(values) {
        Some(text) => serializer.serialize_str(&text),
        // Values below zero are rare, and are written unpacked.
        None => values.serialize(serializer),
    }
}

/// The text; `None` if a number is below zero.
fn packed(values: &[Option<f64>]) -> Option<String> {
    let largest = values.iter().flatten().copied().fold(0.0, f64::max);
    let exponent = if largest > 0.0 { largest.log10().floor() as i32 - BELOW } else { 0 };
    let codes: Option<Vec<u16>> =
        values.iter().map(|value| value.map_or(Some(0), |value| code(value, exponent))).collect();
    let bytes: Vec<u8> = codes?.into_iter().flat_map(u16::to_le_bytes).collect();
    Some(format!("{exponent}:{}", STANDARD_NO_PAD.encode(bytes)))
}

/// A number's code; `None` below zero.
fn code(value: f64, exponent: i32) -> Option<u16> {
    if value < 0.0 || !value.is_finite() {
        return None;
    }
    let units = scaled(value, -exponent);
    if units.round() < UNITS {
        return Some(1 + units.round() as u16);
    }
    let mut decade = units.log10().floor() as i32 - 3;
    let mut digits = scaled(value, -exponent - decade).round();
    if digits >= UNITS {
        (decade, digits) = (decade + 1, digits / 10.0);
    }
    Some((1.0 + UNITS + f64::from(decade - 1) * DECADE + (digits - 1000.0)) as u16)
}

/// A number times a power of ten, exact if the power of ten is.
fn scaled(value: f64, power: i32) -> f64 {
    if power >= 0 { value * 10f64.powi(power) } else { value / 10f64.powi(-power) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the page reads it.
    fn unpacked(text: &str) -> Vec<Option<f64>> {
        let (exponent, encoded) = text.split_once(':').unwrap();
        let exponent: i32 = exponent.parse().unwrap();
        let bytes = STANDARD_NO_PAD.decode(encoded).unwrap();
        let number = |code: u16| match f64::from(code) - 1.0 {
            none if none < 0.0 => None,
            units if units < UNITS => Some(scaled(units, exponent)),
            beyond => {
                let decade = ((beyond - UNITS) / DECADE).floor();
                Some(scaled(1000.0 + beyond - UNITS - decade * DECADE, exponent + 1 + decade as i32))
            }
        };
        bytes.chunks(2).map(|pair| number(u16::from_le_bytes([pair[0], pair[1]]))).collect()
    }

    #[test]
    fn four_digits_and_absences_round_trip() {
        for values in [
            vec![Some(0.0), None, Some(1.0), Some(9999.0), Some(1000.0), Some(999.9)],
            vec![Some(0.001_235), Some(12.34), Some(1235.0), None, Some(0.0)],
            vec![Some(123_400_000_000.0), Some(9_999_000_000.0), Some(1.235e9), Some(100_000.0)],
            vec![Some(9.999e-7), Some(1e-9)],
            vec![None, None],
            vec![Some(0.0)],
            vec![],
        ] {
            let text = packed(&values).unwrap();
            assert_eq!(unpacked(&text), values, "{text}");
            let encoded = text.split_once(':').unwrap().1.len();
            assert_eq!(encoded, (2 * values.len() * 4).div_ceil(3));
        }
    }

    #[test]
    fn packing_rounds_and_small_numbers_lose_digits_next_to_large() {
        let near = |value: f64, adjacent: f64| {
            let back = unpacked(&packed(&[Some(value), Some(adjacent)]).unwrap())[0].unwrap();
            (back - value).abs() / value
        };
        for value in [1.0, 1.234_567, 99.996, 0.999_95, 3.261_59] {
            for adjacent in [1.0, 1e3, 1e6] {
                assert!(near(value, adjacent) < 6e-4, "{value} next to {adjacent}: {}", near(value, adjacent));
            }
        }
        assert!(near(1.234, 1e9) < 0.5 && near(1.234, 1e8) < 0.1, "three decades more, with fewer digits");
    }

    #[test]
    fn lists_with_negative_values_are_not_packed() {
        let list = Packed(vec![Some(-1.5), None, Some(2.0)]);
        assert_eq!(serde_json::to_string(&list).unwrap(), "[-1.5,null,2.0]");
        assert_eq!(serde_json::to_string(&Packed(vec![Some(1.0), None])).unwrap(), r#""-9:2dYAAA""#);
    }
}
