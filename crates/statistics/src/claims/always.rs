//! Finds expressions that no data could refute or satisfy, and that therefore assert nothing.
//!
//! It uses interval arithmetic: each figure may have any possible value of its metric. Only conclusions from the signs
//! of figures and from equal terms are found; an expression that is merely unlikely to fail is not.

use rumba_results::comparison::metric_info;
use rumba_results::metric::Class;
use rumba_results::ratio::SAME_MARGIN;

use super::language::{Number, Operator, Relation, Truth};
use super::names::MetricRef;

/// The possible values of a number; an end that is never reached is open.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    low: f64,
    high: f64,
    is_low_open: bool,
}

const ANY: Range = Range { low: f64::NEG_INFINITY, high: f64::INFINITY, is_low_open: true };

impl Range {
    fn from(low: f64, is_low_open: bool) -> Self {
        Self { low, high: f64::INFINITY, is_low_open }
    }

    fn point(value: f64) -> Self {
        Self { low: value, high: value, is_low_open: false }
    }

    fn is_below_zero_possible(self) -> bool {
        self.low < 0.0
    }

    /// Whether every value is above every value of the other; with `or_equal`, none is below.
    fn is_above(self, other: Self, or_equal: bool) -> bool {
        self.low > other.high || (self.low == other.high && (or_equal || self.is_low_open))
    }

    fn plus(self, other: Self) -> Self {
        let is_low_open = self.is_low_open || other.is_low_open;
        Self { low: self.low + other.low, high: self.high + other.high, is_low_open }
    }

    fn negative(self) -> Self {
        // Upper ends are those of plain numbers or infinite.
        Self { low: -self.high, high: -self.low, is_low_open: self.high.is_infinite() }
    }

    fn times(self, other: Self) -> Self {
        if self.is_below_zero_possible() || other.is_below_zero_possible() {
            return ANY;
        }
        let product = |a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
        let low = product(self.low, other.low);
        let reaches = |end: Self| !end.is_low_open;
        // Zero is reached if one of both is zero.
        let is_low_open = match low == 0.0 {
            true => !((self.low == 0.0 && reaches(self)) || (other.low == 0.0 && reaches(other))),
            false => self.is_low_open || other.is_low_open,
        };
        Self { low, high: product(self.high, other.high), is_low_open }
    }

    fn over(self, other: Self) -> Self {
        if self.is_below_zero_possible() || other.is_below_zero_possible() {
            return ANY;
        }
        let low = if other.high.is_infinite() { 0.0 } else { self.low / other.high };
        let high = if other.low == 0.0 { f64::INFINITY } else { self.high / other.low };
        let is_zero_possible = self.low == 0.0 && !self.is_low_open;
        let is_low_open = if low == 0.0 { !is_zero_possible } else { self.is_low_open };
        Self { low, high, is_low_open }
    }
}

/// The possible range of a figure. Data can shrink. Counts, bytes and reads can be zero; time, CPU, throughput and
/// sizes of a run cannot.
fn figure(requested: &MetricRef) -> Range {
    if requested.metric.contains("growth_bytes") {
        return ANY;
    }
    let is_never_zero = match metric_info(&requested.metric).map(|info| info.class) {
        // A percentile.
        None => true,
        Some(Class::Rate) => requested.metric == "ops_per_s" || requested.metric.starts_with("tpm"),
        Some(Class::Cpu) => requested.metric.starts_with("cpu_us_") || requested.metric == "host_cpu_us_per_op",
        Some(Class::Size) => requested.metric != "log_bytes",
        Some(Class::Memory) => true,
        Some(Class::Time | Class::Io | Class::Count) => false,
    };
    Range::from(0.0, is_never_zero)
}

fn range(number: &Number) -> Range {
    match number {
        Number::Plain(value) => Range::point(*value),
        Number::Figure(requested) => figure(requested),
        Number::Minus(inner) => range(inner).negative(),
        Number::Two(Operator::Less, left, right) if left == right => Range::point(0.0),
        Number::Two(Operator::Over, left, right) if left == right => Range::point(1.0),
        Number::Two(operator, left, right) => {
            let (left, right) = (range(left), range(right));
            match operator {
                Operator::Plus => left.plus(right),
                Operator::Less => left.plus(right.negative()),
                Operator::Times => left.times(right),
                Operator::Over => left.over(right),
            }
        }
    }
}

/// Whether an inequality is always true or always false, for all measured values.
fn inequality(relation: Relation, left: &Number, right: &Number) -> Option<bool> {
    if left == right {
        return Some(matches!(relation, Relation::AtMost | Relation::AtLeast | Relation::Equal));
    }
    let (left, right) = (range(left), range(right));
    let apart = |one: Range, other: Range| one.low > other.high * (1.0 + 2.0 * SAME_MARGIN) && other.high >= 0.0;
    let (so, never) = match relation {
        Relation::Greater => (left.is_above(right, false), right.is_above(left, true)),
        Relation::AtLeast => (left.is_above(right, true), right.is_above(left, false)),
        Relation::Less => (right.is_above(left, false), left.is_above(right, true)),
        Relation::AtMost => (right.is_above(left, true), left.is_above(right, false)),
        Relation::Equal => (false, apart(left, right) || apart(right, left)),
        Relation::Unequal => (apart(left, right) || apart(right, left), false),
    };
    match (so, never) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Whether an expression, or a part of it that is joined with others, is always true or always false.
pub fn always(truth: &Truth) -> Option<bool> {
    match truth {
        Truth::Is(relation, left, right) => inequality(*relation, left, right),
        Truth::Not(inner) => always(inner).map(|so| !so),
        Truth::All(parts) | Truth::Any(parts) => parts.iter().find_map(always),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scope;
    use super::super::language;
    use super::*;

    fn of(text: &str) -> Option<bool> {
        let mut scope = Scope::default();
        ["a", "b"].iter().for_each(|engine| scope.add(engine, 8));
        always(&language::truth(text, &scope).unwrap())
    }

    #[test]
    fn an_expression_that_no_data_refutes_is_found() {
        for text in [
            r#"ops_per_s("a") > 0"#,
            r#"wkb_per_op("a") >= 0"#,
            r#"0 <= wkb_per_op("a")"#,
            r#"ops_per_s("a") >= ops_per_s("a")"#,
            r#"wkb_per_op("a") + size_bytes("a") > 0"#,
            r#"ops_per_s("a") / ops_per_s("b") > 0"#,
            r#"2 * p99_ms("a", "get_node") > -1"#,
            r#"1 < 2"#,
            r#"wkb_per_op("a") > wkb_per_op("b") && cpu_us_per_op("a") > 0"#,
            r#"!(ops_per_s("a") < 0)"#,
        ] {
            assert_eq!(of(text), Some(true), "{text}");
        }
    }

    #[test]
    fn an_expression_that_no_data_satisfies_is_found() {
        for text in [
            r#"wkb_per_op("a") < 0"#,
            r#"ops_per_s("a") > ops_per_s("a")"#,
            r#"ops_per_s("a") <= 0"#,
            r#"-ops_per_s("a") > 0"#,
            r#"size_bytes("a") / size_bytes("a") > 2"#,
        ] {
            assert_eq!(of(text), Some(false), "{text}");
        }
    }

    #[test]
    fn claims_that_data_can_decide_are_accepted() {
        for text in [
            r#"retries_per_op("a") > 0"#,
            r#"reads_per_op("a") > 0"#,
            r#"growth_bytes_per_op("a") >= 0"#,
            r#"ops_per_s("a") > ops_per_s("b")"#,
            r#"ops_per_s("a") - ops_per_s("b") > 0"#,
            r#"wkb_per_op("a") >= 5 * wkb_per_op("b")"#,
            r#"wkb_per_op("a") / wkb_per_op("b") >= 0.01"#,
            r#"retries_per_op("a") == 0"#,
            r#"ops_per_s("a") == ops_per_s("b")"#,
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
