//! Parses numbers with units, as in the server's settings.

/// Parses a number into bytes, milliseconds, or a bare number. `unit` is the setting's own unit, used if the text has
/// none.
pub fn quantity(text: &str, unit: Option<&str>) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let number: f64 = text[..end].trim().parse().ok()?;
    let written = text[end..].trim();
    let scale = if written.is_empty() { unit.map_or(Some(1.0), of_own_unit)? } else { of_unit(written)? };
    Some(number * scale)
}

/// A setting's own unit may include a factor: `8kB`.
fn of_own_unit(unit: &str) -> Option<f64> {
    let begin = unit.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(unit.len());
    let count: f64 = if begin == 0 { 1.0 } else { unit[..begin].parse().ok()? };
    Some(count * of_unit(&unit[begin..])?)
}

fn of_unit(unit: &str) -> Option<f64> {
    const KIB: f64 = 1024.0;
    Some(match unit {
        "B" => 1.0,
        "kB" => KIB,
        "MB" => KIB * KIB,
        "GB" => KIB * KIB * KIB,
        "TB" => KIB * KIB * KIB * KIB,
        "us" => 0.001,
        "ms" => 1.0,
        "s" => 1000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_counts_in_its_unit_or_else_in_the_settings_own() {
        assert_eq!(quantity("128MB", Some("8kB")), Some(134_217_728.0));
        assert_eq!(quantity("16384", Some("8kB")), Some(134_217_728.0));
        assert_eq!(quantity("15min", Some("s")), quantity("900", Some("s")));
        assert_eq!(quantity("0.9", None), Some(0.9));
        assert_eq!((quantity("on", None), quantity("64MiB", Some("kB"))), (None, None));
    }
}
