//! Figures as C prints them.

use std::fmt::Write;

use serde::Serializer;

/// The rate per second of a count over this time. For no time it is 0: sysbench prints `-nan`, which is not valid JSON.
pub(super) fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// Nanoseconds as milliseconds, computed through seconds, so that the last digit equals sysbench's.
pub(super) fn ms(ns: u64) -> f64 {
    seconds(ns) * 1000.0
}

/// Writes nanoseconds as milliseconds. A single division, so that 1.5 ms is exactly 1.5; a detour through seconds may
/// differ.
pub(super) fn write_ms<S: Serializer>(ns: &u64, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(*ns as f64 / 1e6)
}

/// Nanoseconds as seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The rank of a percentile, without a decimal point if it is an integer.
pub(super) fn rank(percent: f64) -> String {
    percent.to_string()
}

/// Bytes with at most five digits and a binary prefix: `16Ki`, `1.5Mi`, `512`.
pub(super) fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut prefix = "";
    for next in ["Ki", "Mi", "Gi", "Ti"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        prefix = next;
    }
    let mut text = String::new();
    let whole_digits = value.max(1.0).log10().floor() as usize + 1;
    // Writing to a string does not fail.
    let _ = write!(text, "{value:.*}", 5_usize.saturating_sub(whole_digits));
    let shown = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{shown}{prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From test_fileio.t.
    #[test]
    fn sizes_have_a_prefix() {
        for (bytes, expected) in [
            (0, "0"),
            (512, "512"),
            (16_384, "16Ki"),
            (8_388_608, "8Mi"),
            (262_144, "256Ki"),
            (33_554_432, "32Mi"),
            (163_840, "160Ki"),
            (1_572_864, "1.5Mi"),
            (1_000_000, "976.56Ki"),
            (2 << 30, "2Gi"),
            (3 << 40, "3Ti"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
