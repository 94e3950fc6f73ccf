//! Effective sample size: the number of independent seconds that an autocorrelated time series is worth.

/// The largest assumed autocorrelation; above it no run is long enough.
pub const MOST_DEPENDENT: f64 = 0.99;

/// The effective sample size of residuals, n / (1 + 2 Σ ρ). The autocorrelations are summed by Geyer's initial monotone
/// positive sequence (Practical Markov chain Monte Carlo, Statistical Science 7, 1992, section 3.3). Sums of
/// neighbouring lags are taken while they are above zero, and none may be larger than the one before. The result is at
/// most n, so that a time series that alternates from second to second gets no bonus.
pub fn effective(residuals: &[f64]) -> f64 {
    let n = residuals.len();
    let mean = residuals.iter().sum::<f64>() / n as f64;
    let centred: Vec<f64> = residuals.iter().map(|value| value - mean).collect();
    let covariance = |lag: usize| {
        let products = centred.iter().zip(centred.iter().skip(lag)).map(|(now, later)| now * later);
        products.sum::<f64>() / n as f64
    };
    let variance = covariance(0);
    if variance <= 0.0 {
        return n as f64;
    }
    let (mut sum, mut before) = (0.0, f64::INFINITY);
    for lag in (0..n.saturating_sub(1)).step_by(2) {
        let pair = (covariance(lag) + covariance(lag + 1)).min(before);
        if pair <= 0.0 {
            break;
        }
        sum += pair;
        before = pair;
    }
    let inefficiency = (2.0 * sum / variance - 1.0).max(1.0);
    let phi = autocorrelation(residuals);
    (n as f64 / inefficiency).min(n as f64 * (1.0 - phi) / (1.0 + phi))
}

/// The autocorrelation from one second to the next, of residuals from a fit of two parameters.
///
/// A fit makes residuals look less dependent than the noise was. For an AR(1) series the estimate is low by about (2 +
/// 4φ) / n, which is added (Kendall, Note on bias in the estimation of autocorrelation, Biometrika 41, 1954). If no
/// autocorrelation is visible, none is assumed.
pub fn autocorrelation(residuals: &[f64]) -> f64 {
    let n = residuals.len() as f64;
    let square: f64 = residuals.iter().map(|value| value * value).sum();
    let product: f64 = residuals.iter().zip(residuals.iter().skip(1)).map(|(now, next)| now * next).sum();
    let seen = if square > 0.0 { product / square } else { 0.0 };
    let phi = (seen + 2.0 / n) / (1.0 - 4.0 / n);
    phi.clamp(0.0, MOST_DEPENDENT)
}

/// How much more a time series with this autocorrelation moves in its slowest wave than in the `waves` that follow. It
/// is the ratio of an AR(1) spectrum at half a period to its mean over those.
pub fn redness(phi: f64, n: usize, waves: usize) -> f64 {
    let density = |number: usize| {
        let frequency = std::f64::consts::PI * number as f64 / n as f64;
        1.0 / (1.0 + phi * phi - 2.0 * phi * frequency.cos())
    };
    density(1) * waves as f64 / (2..2 + waves).map(density).sum::<f64>()
}
