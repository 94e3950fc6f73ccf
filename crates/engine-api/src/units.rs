//! Sizes and durations as people write them in an experiment: `64MiB`, `30s`.
//!
//! Sizes are powers of 1024 in any spelling (`4k`, `4K`, `4KiB`), as in every engine's own configuration; durations
//! must carry their unit.

use std::time::Duration;

/// Parses a size in bytes: a number with an optional unit. The unit is `B`, or one of k, M, G, T in any case, which may be
/// followed by `B` or `iB`. All units are powers of 1024.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let number: f64 = number
        .replace('_', "")
        .parse()
        .map_err(|_| format!("`{text}` is not a size; write for example 64MiB, 1GiB or 4096"))?;
    let unit = suffix.trim().to_ascii_lowercase();
    let power = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" if unit.is_empty() || unit == "b" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(format!("`{suffix}` is not a unit of size; use B, KiB, MiB, GiB or TiB (powers of 1024)")),
    };
    let bytes = number * 1024f64.powi(power);
    if bytes > u64::MAX as f64 {
        return Err(format!("`{text}` is larger than any disk"));
    }
    Ok(bytes as u64)
}

/// Parses a duration: a number and one of `us`, `ms`, `s`, `m`, `h`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number
        .replace('_', "")
        .parse()
        .map_err(|_| format!("`{text}` is not a duration; write for example 30s, 2m or 1h"))?;
    let seconds = match unit.trim() {
        "us" | "µs" => number / 1e6,
        "ms" => number / 1e3,
        "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        "" => return Err(format!("`{text}` has no unit; did you mean {text}s?")),
        other => return Err(format!("`{other}` is not a unit of time; use us, ms, s, m or h")),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is too long"))
}

/// Writes a size with the largest binary unit that leaves at least one: `1.5 GiB`.
pub fn show_bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{value:.0} B"),
        _ if value < 10.0 => format!("{value:.2} {}", UNITS[unit]),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

/// Writes a duration in its natural unit: `250ms`, `20s`, `2m30s`.
pub fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1.0 {
        return format!("{:.0}ms", seconds * 1e3);
    }
    if seconds < 120.0 {
        return if seconds.fract() == 0.0 { format!("{seconds}s") } else { format!("{seconds:.1}s") };
    }
    let (minutes, rest) = (seconds as u64 / 60, seconds as u64 % 60);
    if rest == 0 { format!("{minutes}m") } else { format!("{minutes}m{rest}s") }
}

/// `1 repeat`, `3 repeats`.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024_in_every_spelling() {
        for text in ["4k", "4K", "4KB", "4KiB", "4 kib", "4096", "4096B", "4_096"] {
            assert_eq!(parse_bytes(text), Ok(4096), "{text}");
        }
        assert_eq!(parse_bytes("1.5GiB"), Ok(1_610_612_736));
        assert!(parse_bytes("64x").is_err());
        assert!(parse_bytes("").is_err());
        assert!(parse_bytes("4i").is_err());
    }

    #[test]
    fn a_duration_without_a_unit_is_refused_with_a_suggestion() {
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert!(parse_duration("30").unwrap_err().contains("30s"));
        assert!(parse_duration("30 parsecs").is_err());
    }
}
