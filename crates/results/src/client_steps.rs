//! Numbers of active clients that change within one trial.

use std::fmt;

use rumba_engine_api::units::counted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number of active clients as a function of the time since the start of the loops. All clients of the largest step
/// are connected throughout. The first step also applies before the loops, in the warmup, and the last one continues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientSteps {
    /// Seconds since the loops' start, ascending from 0, and the number of active clients from there on.
    pub points: Vec<(f64, u32)>,
}

impl ClientSteps {
    /// The largest number of active clients: that of the connections.
    pub fn most(&self) -> u32 {
        self.points.iter().map(|(_, clients)| *clients).max().unwrap_or_default()
    }

    /// The number of active clients until the loops begin.
    pub fn first(&self) -> u32 {
        self.points.first().map_or(0, |(_, clients)| *clients)
    }

    /// The mean number of active clients between two times, in seconds since the loops' start.
    pub fn mean(&self, from_s: f64, until_s: f64) -> f64 {
        let active = self
            .steps()
            .map(|(start_s, end_s, clients)| f64::from(clients) * (end_s.min(until_s) - start_s.max(from_s)).max(0.0));
        active.sum::<f64>() / (until_s - from_s)
    }

    /// The periods in which a client, by its number from 0, is active: seconds since the loops' start, infinite at an
    /// open end.
    pub fn active(&self, client: u32) -> Vec<(f64, f64)> {
        let mut periods: Vec<(f64, f64)> = Vec::new();
        for (start_s, end_s, _) in self.steps().filter(|(_, _, clients)| client < *clients) {
            match periods.last_mut() {
                Some((_, end)) if *end == start_s => *end = end_s,
                _ => periods.push((start_s, end_s)),
            }
        }
        periods
    }

    /// The steps: start, end and number of clients. The first one has no start, the last one no end.
    fn steps(&self) -> impl Iterator<Item = (f64, f64, u32)> + '_ {
        self.points.iter().enumerate().map(|(number, &(at_s, clients))| {
            let start_s = if number == 0 { f64::NEG_INFINITY } else { at_s };
            let end_s = self.points.get(number + 1).map_or(f64::INFINITY, |(next_s, _)| *next_s);
            (start_s, end_s, clients)
        })
    }

    /// The numbers in short, `1→4`: the first, the largest, and the last if it is smaller.
    pub fn short(&self) -> String {
        let last = self.points.last().map_or(0, |(_, last)| *last);
        let mut numbers = vec![self.first(), self.most(), last];
        numbers.dedup();
        numbers.iter().map(u32::to_string).collect::<Vec<_>>().join("→")
    }
}

/// `4 clients`, or `1→4 clients` if their number changes.
pub fn in_words(clients: u32, steps: Option<&ClientSteps>) -> String {
    steps.map_or_else(|| counted(clients as usize, "client"), |steps| format!("{} clients", steps.short()))
}

impl fmt::Display for ClientSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points: Vec<String> =
            self.points.iter().map(|(at_s, clients)| format!("{clients} from {at_s} s")).collect();
        f.write_str(&points.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(points: &[(f64, u32)]) -> ClientSteps {
        ClientSteps { points: points.to_vec() }
    }

    #[test]
    fn a_client_is_active_while_the_step_exceeds_its_number() {
        let up_and_down = steps(&[(0.0, 1), (10.0, 3), (20.0, 4), (30.0, 2)]);
        let (never, ever) = (f64::NEG_INFINITY, f64::INFINITY);
        assert_eq!(up_and_down.active(0), [(never, ever)]);
        assert_eq!(up_and_down.active(1), [(10.0, ever)]);
        assert_eq!(up_and_down.active(2), [(10.0, 30.0)]);
        assert_eq!(up_and_down.active(3), [(20.0, 30.0)]);
        assert_eq!(up_and_down.active(4), []);
        assert_eq!(steps(&[(0.0, 2), (1.0, 1), (2.0, 2)]).active(1), [(never, 1.0), (2.0, ever)]);
    }

    #[test]
    fn mean_is_the_integral_over_time() {
        let ladder = steps(&[(0.0, 1), (10.0, 2), (20.0, 4)]);
        assert_eq!((ladder.mean(-5.0, 10.0), ladder.mean(9.0, 11.0), ladder.mean(0.0, 40.0)), (1.0, 1.5, 2.75));
    }

    #[test]
    fn short_form_names_the_first_the_largest_and_a_smaller_last() {
        let short = |points: &[(f64, u32)]| steps(points).short();
        assert_eq!(short(&[(0.0, 1), (1.0, 2), (2.0, 4)]), "1→4");
        assert_eq!(short(&[(0.0, 1), (1.0, 8), (2.0, 2)]), "1→8→2");
        assert_eq!(short(&[(0.0, 8), (1.0, 2)]), "8→2");
        assert_eq!(steps(&[(0.0, 1), (1.5, 2)]).to_string(), "1 from 0 s, 2 from 1.5 s");
    }
}
