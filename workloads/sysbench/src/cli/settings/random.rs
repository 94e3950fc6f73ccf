//! How random numbers are drawn.

use crate::cli::options::OptionSet;
use crate::cli::refusal::Refusal;

/// The distribution of the numbers of `sysbench.rand.default`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// All values are equally likely.
    Uniform,
    /// The mean of several uniform ones.
    Gaussian,
    /// Mostly a few values. This is 1.0's default, which 1.1 has removed.
    Special,
    /// By the Pareto principle.
    Pareto,
    /// By Zipf's law.
    Zipfian,
}

/// Options of the random numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomSettings {
    /// The default if a script does not choose.
    pub distribution: Distribution,
    /// `None` takes the time of day.
    pub seed: Option<i32>,
    /// Uniform numbers that make a gaussian one.
    pub special_iterations: u32,
    /// The percentage of the range.
    pub special_percent: u32,
    /// The percentage of the numbers.
    pub special_results_percent: u32,
    /// h.
    pub pareto_h: f64,
    /// theta.
    pub zipfian_exponent: f64,
}

impl RandomSettings {
    pub(super) fn read(options: &OptionSet) -> Result<Self, Refusal> {
        let seed = options.int("rand-seed")?;
        let distribution = match options.text("rand-type").unwrap_or_default() {
            "uniform" => Distribution::Uniform,
            "gaussian" => Distribution::Gaussian,
            "special" => Distribution::Special,
            "pareto" => Distribution::Pareto,
            "zipfian" => Distribution::Zipfian,
            other => return Err(Refusal::fatal(format!("Invalid random numbers distribution: {other}."))),
        };
        let zipfian_exponent = options.double("rand-zipfian-exp");
        if zipfian_exponent < 0.0 {
            return Err(Refusal::fatal("--rand-zipfian-exp must be >= 0"));
        }
        Ok(Self {
            distribution,
            seed: (seed != 0).then_some(seed),
            special_iterations: super::whole(options, "rand-spec-iter")?.max(1),
            special_percent: super::whole(options, "rand-spec-pct")?,
            special_results_percent: super::whole(options, "rand-spec-res")?,
            pareto_h: options.double("rand-pareto-h"),
            zipfian_exponent,
        })
    }
}
