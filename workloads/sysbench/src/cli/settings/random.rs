//! How random numbers are drawn.

use crate::cli::options::OptionSet;
use crate::cli::refusal::Refusal;

/// The distribution that `--rand-type` names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// All values are equally likely.
    #[default]
    Uniform,
    /// A bell around the middle.
    Gaussian,
    /// A part of the range around its middle is drawn more often; the default of sysbench 1.0.
    Special,
    /// The lower, the more often, by a power.
    Pareto,
    /// The lower, the more often, by rank.
    Zipfian,
}

impl Distribution {
    /// Every distribution, by the name an option gives it.
    pub const NAMES: [(&'static str, Distribution); 5] = [
        ("uniform", Distribution::Uniform),
        ("gaussian", Distribution::Gaussian),
        ("special", Distribution::Special),
        ("pareto", Distribution::Pareto),
        ("zipfian", Distribution::Zipfian),
    ];
}

/// The shapes of the distributions, as options set them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shapes {
    /// The distribution of `sysbench.rand.default`.
    pub default: Distribution,
    /// The number of uniform numbers whose mean is a bell's or a special value.
    pub iterations: u32,
    /// Percent of the range that the special values lie in.
    pub special_pct: f64,
    /// Percent of the numbers that are special.
    pub special_res: f64,
    /// Pareto's `h`: a share `h` of the values has a share `1 - h` of the draws.
    pub pareto_h: f64,
    /// The exponent of Zipf's law.
    pub zipfian_exponent: f64,
}

impl Default for Shapes {
    fn default() -> Self {
        Self {
            default: Distribution::Uniform,
            iterations: 12,
            special_pct: 1.0,
            special_res: 75.0,
            pareto_h: 0.2,
            zipfian_exponent: 0.8,
        }
    }
}

/// Options of the random numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomSettings {
    /// `None` takes the time of day.
    pub seed: Option<i32>,
    /// The distributions.
    pub shapes: Shapes,
}

impl RandomSettings {
    pub(super) fn read(options: &OptionSet) -> Result<Self, Refusal> {
        let seed = options.int("rand-seed")?;
        let name = options.text("rand-type").unwrap_or_default();
        let found = Distribution::NAMES.iter().find(|(known, _)| *known == name).map(|(_, distribution)| *distribution);
        let unknown = || Refusal::fatal(format!("Invalid random numbers distribution: {name}."));
        let distribution = found.ok_or_else(unknown)?;
        let zipfian_exponent = options.double("rand-zipfian-exp");
        if zipfian_exponent < 0.0 {
            return Err(Refusal::fatal("--rand-zipfian-exp must be >= 0"));
        }
        let shapes = Shapes {
            default: distribution,
            iterations: super::whole(options, "rand-spec-iter")?.max(1),
            special_pct: f64::from(super::whole(options, "rand-spec-pct")?),
            special_res: f64::from(super::whole(options, "rand-spec-res")?),
            pareto_h: options.double("rand-pareto-h"),
            zipfian_exponent,
        };
        Ok(Self { seed: (seed != 0).then_some(seed), shapes })
    }
}
