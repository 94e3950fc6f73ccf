//! Formats numbers for people.

pub use rumba_engine_api::units::counted;
use rumba_results::ratio::Ratio;

/// Figures below this are too small for a short run to measure: they have no winner and no ratio.
pub const RESOLUTION: f64 = 0.01;

/// Rounds to this number of decimals, with ties away from zero as in the page; `format!` alone would make 12 of 12.5
/// and 14 of 13.5.
fn decimals(value: f64, decimals: usize) -> String {
    let scale = 10f64.powi(decimals as i32);
    // Only halves of the last digit that are exact binary numbers are ties.
    let can_be_tie = (value * 2f64.powi(decimals as i32 + 1)).fract() == 0.0;
    let value = if can_be_tie { (value * scale).round() / scale } else { value };
    format!("{value:.decimals$}")
}

/// Fixed decimals. A value that would round to zero is shown as `<0.01`, or as `>-0.01` if it is negative.
pub fn fixed(value: f64, digits: usize) -> String {
    let least = 10f64.powi(-(digits as i32));
    if value != 0.0 && value.abs() < least / 2.0 {
        return format!("{}{least:.digits$}", if value > 0.0 { "<" } else { ">-" });
    }
    decimals(value, digits)
}

/// A price with three significant digits and at least two decimals, never in scientific notation.
pub fn price(value: f64) -> String {
    let decimals = if value > 0.0 { (2.0 - value.log10().floor()).clamp(2.0, 12.0) as usize } else { 2 };
    format!("{value:.decimals$}")
}

/// Two to three significant digits, for numbers of unknown size.
pub fn significant(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => decimals(value, 0),
        size if size >= 10.0 => decimals(value, 1),
        size if size >= 0.01 => decimals(value, 2),
        size if size >= 0.0001 => decimals(value, 4),
        _ => format!("{value:.1e}"),
    }
}

/// Milliseconds with two significant digits, which suits a percentile: `0.0046`, `0.62`, `2.1`, `13`.
pub fn milliseconds(value: f64) -> String {
    let digits = match value {
        ms if ms >= 10.0 => 0,
        ms if ms >= 1.0 => 1,
        ms if ms >= 0.1 => 2,
        ms if ms >= 0.01 => 3,
        _ => 4,
    };
    fixed(value, digits)
}

/// A ratio: two decimals, or three digits when it is far from one.
pub fn ratio(value: f64) -> String {
    match value {
        ratio if ratio >= 100.0 => decimals(ratio, 0),
        ratio if ratio >= 10.0 => decimals(ratio, 1),
        ratio => fixed(ratio, 2),
    }
}

/// The interval of a ratio: `1.18–1.22`; `None` if an end is unknown.
pub fn interval(tested: &Ratio) -> Option<String> {
    Some(format!("{}–{}", ratio(tested.low.value()?), ratio(tested.high.value()?)))
}

/// A share in percent: `3.1%`; above tenfold only a bound.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 10.0 => format!("{}%", decimals(percent, 1)),
        percent if percent <= 1000.0 => format!("{}%", decimals(percent, 0)),
        _ => ">1000%".to_owned(),
    }
}

/// `1, 4`.
pub fn several(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// The unit of a column of sizes, and its divisor for bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeUnit {
    /// `MB` or `GB`, 1024 KB or MB.
    pub name: &'static str,
    bytes: f64,
}

impl SizeUnit {
    /// The unit of the largest of these sizes, by absolute value.
    pub fn for_sizes(bytes: impl Iterator<Item = f64>) -> Self {
        Self::for_largest(bytes.map(f64::abs).fold(0.0, f64::max))
    }

    /// GB as published, MB while the largest is below 10 GB.
    pub fn for_largest(bytes: f64) -> Self {
        const GB: f64 = (1u64 << 30) as f64;
        if bytes >= 10.0 * GB {
            SizeUnit { name: "GB", bytes: GB }
        } else {
            SizeUnit { name: "MB", bytes: GB / 1024.0 }
        }
    }

    /// Bytes in this unit.
    pub fn show(self, bytes: f64) -> String {
        let value = bytes / self.bytes;
        fixed(value, usize::from(value.abs() < 100.0))
    }

    /// Bytes in this unit, with its name.
    pub fn show_with_unit(self, bytes: f64) -> String {
        format!("{} {}", self.show(bytes), self.name)
    }
}

/// The unit and the format of figures; bytes as MB or GB by the largest of these.
pub fn shown_in(unit: &str, figures: impl Iterator<Item = f64>) -> (String, Box<dyn Fn(f64) -> String>) {
    if unit != "B" {
        return (unit.to_owned(), Box::new(significant));
    }
    let unit = SizeUnit::for_sizes(figures);
    (unit.name.to_owned(), Box::new(move |bytes| unit.show(bytes)))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The expected text of numbers, shared with the page's tests: `web/test/format.test.mjs` reads the same file. The
    /// page puts thin spaces between thousands, which are left out there.
    const CASES: &str = include_str!("../../../web/test/formats.json");

    fn check(cases: &Value, what: &str, show: impl Fn(f64) -> String) {
        let cases = cases[what].as_array().unwrap();
        assert!(!cases.is_empty(), "{what}");
        for case in cases {
            assert_eq!(show(case[0].as_f64().unwrap()), case[1].as_str().unwrap(), "{what} of {}", case[0]);
        }
    }

    #[test]
    fn tables_and_page_show_the_same_numbers_alike() {
        let cases: Value = serde_json::from_str(CASES).unwrap();
        check(&cases, "significant", significant);
        check(&cases, "price", price);
        check(&cases, "milliseconds", milliseconds);
        check(&cases, "ratio", ratio);
        check(&cases, "percent", percent);
        check(&cases, "repeats", |count| counted(count as usize, "repeat"));
        check(&cases, "size_unit", |largest| SizeUnit::for_largest(largest).name.to_owned());
        assert_eq!(cases["resolution"].as_f64(), Some(RESOLUTION));
    }

    #[test]
    fn a_small_number_is_never_shown_as_zero() {
        assert_eq!(fixed(0.001, 2), "<0.01");
        assert_eq!(fixed(0.0, 2), "0.00");
        assert_eq!(fixed(0.006, 2), "0.01");
        assert_eq!([fixed(-0.001, 2), fixed(-0.3, 0), fixed(-0.006, 2)], [">-0.01", ">-1", "-0.01"]);
    }

    #[test]
    fn sizes_below_zero_have_the_unit_and_the_digits_of_those_above() {
        for (gb, name, shown) in [(-948.0, "GB", "-948"), (-12.34, "GB", "-12.3"), (-3.17, "MB", "-3246")] {
            let bytes = gb * 1024f64.powi(3);
            let unit = SizeUnit::for_sizes([0.0, bytes, 1e9].into_iter());
            assert_eq!((unit.name, unit.show(bytes).as_str()), (name, shown));
        }
    }
}
