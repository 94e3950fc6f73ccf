//! The histogram that scripts make: so many steps of equal ratio between two bounds.

use std::fmt;

/// A histogram.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    least: f64,
    most: f64,
    /// Steps per unit of the natural logarithm.
    steps: f64,
}

impl Histogram {
    /// `size` steps from `least` to `most`, both above 0.
    pub fn new(size: usize, least: f64, most: f64) -> Self {
        let size = size.max(2);
        let steps = (size - 1) as f64 / (most.ln() - least.ln());
        Self { counts: vec![0; size], least, most, steps }
    }

    /// Counts a value; what is out of bounds counts as the bound.
    pub fn update(&mut self, value: f64) {
        let value = value.clamp(self.least, self.most);
        let step = ((value.ln() - self.least.ln()) * self.steps + 0.5).floor() as usize;
        let last = self.counts.len() - 1;
        self.counts[step.min(last)] += 1;
    }

    /// The value that a step stands for.
    fn value(&self, step: usize) -> f64 {
        (step as f64 / self.steps + self.least.ln()).exp()
    }
}

/// A line for each value that came, its bar 40 wide where it came most.
impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = self.counts.iter().copied().max().unwrap_or_default();
        if most == 0 {
            return Ok(());
        }
        writeln!(f, "       value  ------------- distribution ------------- count")?;
        for (step, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let width = (count as f64 * 40.0 / most as f64 + 0.5).floor() as usize;
            writeln!(f, "{:12.3} |{:<40} {count}", self.value(step), "*".repeat(width))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_steps_of_equal_ratio() {
        let mut histogram = Histogram::new(4, 1.0, 1000.0);
        for value in [0.5, 1.0, 9.0, 11.0, 100.0, 5000.0] {
            histogram.update(value);
        }
        assert_eq!(histogram.counts, [2, 2, 1, 1]);
        let printed = histogram.to_string();
        assert!(printed.contains("      10.000 |**************************************** 2"), "{printed}");
        assert!(printed.contains("    1000.000 |********************                     1"), "{printed}");
    }
}
