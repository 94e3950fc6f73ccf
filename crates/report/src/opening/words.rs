//! Metrics and ratios in words.

use crate::format::{percent, ratio};

/// The type of operation of a metric that is a 99th percentile.
pub fn operation(metric: &str) -> Option<&str> {
    metric.strip_suffix(".p99_ms")
}

/// The metric as the subject of a sentence.
pub fn quantity(metric: &str) -> String {
    if let Some(op) = operation(metric) {
        return format!("the p99 of {op}");
    }
    match metric {
        "ops_per_s" => "operations per second",
        "wkb_per_op_with_drain" => "KB written per operation",
        "reads_per_op" => "reads per operation",
        "host_cpu_us_per_op_with_drain" => "CPU of the host per operation",
        "cpu_us_per_op_with_drain" => "CPU of clients and engine per operation",
        _ => "size on disk",
    }
    .to_owned()
}

/// `writes 1/33 as much per operation as innodb`.
pub fn predicate(metric: &str, over: f64, baseline: &str) -> String {
    if let Some(op) = operation(metric) {
        return match amount(over) {
            Amount::Times(times) => format!("has {times} as long a p99 of {op} as {baseline}"),
            Amount::More(share) => format!("has a {share} longer p99 of {op} than {baseline}"),
            Amount::Less(share) => format!("has a {share} shorter p99 of {op} than {baseline}"),
        };
    }
    let (verb, much, less, what) = match metric {
        "ops_per_s" => ("does", "many", "fewer", " operations per second"),
        "wkb_per_op_with_drain" => ("writes", "much", "less", " per operation"),
        "reads_per_op" => ("makes", "many", "fewer", " reads per operation"),
        "host_cpu_us_per_op_with_drain" => ("uses", "much", "less", " CPU of the host per operation"),
        "cpu_us_per_op_with_drain" => ("uses", "much", "less", " CPU per operation"),
        _ => ("takes", "much", "less", " space on disk"),
    };
    match amount(over) {
        Amount::Times(times) => format!("{verb} {times} as {much}{what} as {baseline}"),
        Amount::More(share) => format!("{verb} {share} more{what} than {baseline}"),
        Amount::Less(share) => format!("{verb} {share} {less}{what} than {baseline}"),
    }
}

enum Amount {
    /// `2.50 times`, `1/28`.
    Times(String),
    More(String),
    Less(String),
}

/// A percentage below twofold in either direction; above it a factor, or a fraction for a smaller amount.
fn amount(over: f64) -> Amount {
    match over {
        over if over >= 2.0 => Amount::Times(format!("{} times", ratio(over))),
        over if over > 1.0 => Amount::More(percent(over - 1.0)),
        over if over > 0.5 => Amount::Less(percent(1.0 - over)),
        over => {
            let (parts, decimals) = (1.0 / over, usize::from(over > 0.1));
            let parts = format!("{parts:.decimals$}");
            Amount::Times(format!("1/{}", parts.strip_suffix(".0").unwrap_or(&parts)))
        }
    }
}

/// `a, b and c`.
pub fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// With an upper-case first letter.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_read_as_shares_below_twofold_and_as_factors_beyond() {
        let said = |over| predicate("wkb_per_op_with_drain", over, "innodb");
        assert_eq!(said(2.5), "writes 2.50 times as much per operation as innodb");
        assert_eq!(said(1.25), "writes 25% more per operation than innodb");
        assert_eq!(said(0.75), "writes 25% less per operation than innodb");
        assert_eq!(said(0.4), "writes 1/2.5 as much per operation as innodb");
        assert_eq!(said(0.5), "writes 1/2 as much per operation as innodb");
        assert_eq!(said(1.0 / 28.2), "writes 1/28 as much per operation as innodb");
    }
}
