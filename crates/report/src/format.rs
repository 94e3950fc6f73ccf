//! Numbers as people read them.

pub use rumba_core::units::counted;

/// Figures below this lie below what a short run can measure: no winner, no ratio to them.
pub const RESOLUTION: f64 = 0.01;

/// Fixed decimals; what would round to zero without being zero says so: `<0.01`.
pub fn fixed(value: f64, decimals: usize) -> String {
    let least = 10f64.powi(-(decimals as i32));
    if value > 0.0 && value < least / 2.0 {
        return format!("<{least:.decimals$}");
    }
    format!("{value:.decimals$}")
}

/// Two to three significant digits, for numbers of unknown size.
pub fn significant(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.01 => format!("{value:.2}"),
        size if size >= 0.0001 => format!("{value:.4}"),
        _ => format!("{value:.1e}"),
    }
}

/// Milliseconds with the two digits that a percentile deserves: `0.0046`, `0.62`, `2.1`, `13`.
pub fn milliseconds(value: f64) -> String {
    let decimals = match value {
        ms if ms >= 10.0 => 0,
        ms if ms >= 1.0 => 1,
        ms if ms >= 0.1 => 2,
        ms if ms >= 0.01 => 3,
        _ => 4,
    };
    fixed(value, decimals)
}

/// A ratio: two decimals, three digits when it is far from one.
pub fn ratio(value: f64) -> String {
    match value {
        ratio if ratio >= 100.0 => format!("{ratio:.0}"),
        ratio if ratio >= 10.0 => format!("{ratio:.1}"),
        ratio => fixed(ratio, 2),
    }
}

/// A share in percent: `3.1%`; beyond tenfold only that it is.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 10.0 => format!("{percent:.1}%"),
        percent if percent <= 1000.0 => format!("{percent:.0}%"),
        _ => ">1000%".to_owned(),
    }
}

/// `1, 4`.
pub fn several(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// The unit of a column of sizes, and what to divide bytes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeUnit {
    /// `MB` or `GB`, 1024 KB or MB.
    pub name: &'static str,
    bytes: f64,
}

impl SizeUnit {
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
        fixed(value, usize::from(value < 100.0))
    }

    /// Bytes in this unit, with its name.
    pub fn show_with_unit(self, bytes: f64) -> String {
        format!("{} {}", self.show(bytes), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_number_is_never_shown_as_zero() {
        assert_eq!(fixed(0.001, 2), "<0.01");
        assert_eq!(fixed(0.0, 2), "0.00");
        assert_eq!(fixed(0.006, 2), "0.01");
        assert_eq!(significant(0.000_012), "1.2e-5");
        assert_eq!(milliseconds(0.0046), "0.0046");
        assert_eq!(milliseconds(0.00001), "<0.0001");
    }

    #[test]
    fn sizes_are_gb_as_published_and_mb_when_small() {
        let large = SizeUnit::for_largest(948.0 * 1024f64.powi(3));
        assert_eq!((large.name, large.show(948.0 * 1024f64.powi(3)).as_str()), ("GB", "948"));
        let small = SizeUnit::for_largest(3.17 * 1024f64.powi(3));
        assert_eq!((small.name, small.show(3.17 * 1024f64.powi(3)).as_str()), ("MB", "3246"));
    }
}
