//! A test of trend that keeps its level under autocorrelation.

use super::effective::redness;

/// Student's t of a two-sided interval of 97%, by degrees of freedom from
/// [`FEWEST`]. The 2% beyond 95% are room for the error of the estimated
/// autocorrelation.
const STUDENT: [f64; 9] = [3.298, 3.003, 2.829, 2.715, 2.634, 2.574, 2.527, 2.491, 2.461];
/// The fewest degrees of freedom for the estimate of the noise.
const FEWEST: usize = 4;
/// The fewest independent seconds that separate noise from trend.
pub const FEWEST_INDEPENDENT: f64 = 12.0;

/// A straight line through a time series.
pub struct Trend {
    /// The change from the first second to the last along the line, in the unit of the values.
    pub change: f64,
    /// Half the width of the change's 95% interval; `None` when there are too few independent seconds.
    pub margin: Option<f64>,
}

/// The trend of values at these times, with this number of independent ones and this autocorrelation from one to the
/// next.
///
/// A trend must stand out from the noise of slow waves, which is measured directly. The time series is projected on the
/// straight line and on the slowest cosines orthogonal to it. The mean square of the cosines is the variance of the
/// line's coefficient. Under any noise whose spectrum is flat over those frequencies the ratio is Student's t, with as
/// many degrees of freedom as there are cosines. The number of cosines is a third of the independent seconds, so that
/// the spectrum of autocorrelated noise is still about flat there. [`redness`] corrects for the rest. The simulation in
/// the tests holds the whole to 5%.
///
/// Source: Müller, A theory of robust long-run variance estimation, Journal of Econometrics 141, 2007; Sun, A
/// heteroskedasticity and autocorrelation robust F test using an orthonormal series variance estimator, Econometrics
/// Journal 16, 2013.
pub fn trend(at: &[f64], values: &[f64], independent: f64, phi: f64) -> Trend {
    let line = Line::through(at, values);
    let waves = ((independent / 3.0) as usize).min(FEWEST + STUDENT.len() - 1);
    let margin = (waves >= FEWEST && independent >= FEWEST_INDEPENDENT).then(|| {
        let squares = slow_waves(at, waves).into_iter().map(|wave| dot(&wave, values).powi(2));
        let deviation = (squares.sum::<f64>() / waves as f64 * redness(phi, at.len(), waves)).sqrt();
        STUDENT[waves - FEWEST] * deviation / line.norm * line.span()
    });
    Trend { change: line.slope * line.span(), margin }
}

/// The values less their straight line.
pub fn detrended(at: &[f64], values: &[f64]) -> Vec<f64> {
    let line = Line::through(at, values);
    at.iter().zip(values).map(|(at, value)| value - line.mean - line.slope * (at - line.middle)).collect()
}

/// The straight line of least squares.
struct Line {
    mean: f64,
    slope: f64,
    middle: f64,
    first: f64,
    last: f64,
    /// The root of the sum of the squared distances of the times from their middle.
    norm: f64,
}

impl Line {
    fn through(at: &[f64], values: &[f64]) -> Self {
        let n = at.len() as f64;
        let (middle, mean) = (at.iter().sum::<f64>() / n, values.iter().sum::<f64>() / n);
        let square: f64 = at.iter().map(|at| (at - middle).powi(2)).sum();
        let product: f64 = at.iter().zip(values).map(|(at, value)| (at - middle) * (value - mean)).sum();
        let slope = if square > 0.0 { product / square } else { 0.0 };
        let (first, last) = (at.first().copied().unwrap_or_default(), at.last().copied().unwrap_or_default());
        Self { mean, slope, middle, first, last, norm: square.sqrt() }
    }

    fn span(&self) -> f64 {
        self.last - self.first
    }
}

/// The slowest cosines over these times, made orthonormal, and orthogonal to a constant and a line, by Gram and
/// Schmidt. The slowest of all, of half a period, is nearly the line itself and left out.
fn slow_waves(at: &[f64], count: usize) -> Vec<Vec<f64>> {
    let (first, last) = (at[0], at[at.len() - 1]);
    // Each time is the middle of its second, so the waves extend half a second further.
    let second = (last - first) / (at.len() - 1) as f64;
    let phase = |at: f64| std::f64::consts::PI * (at - first + second / 2.0) / (last - first + second);
    let mut known = vec![unit(vec![1.0; at.len()], &[])];
    known.push(unit(at.to_vec(), &known));
    for number in 2..2 + count {
        known.push(unit(at.iter().map(|at| (number as f64 * phase(*at)).cos()).collect(), &known));
    }
    known.split_off(2)
}

fn unit(mut vector: Vec<f64>, known: &[Vec<f64>]) -> Vec<f64> {
    for known in known {
        let along = dot(&vector, known);
        vector.iter_mut().zip(known).for_each(|(value, known)| *value -= along * known);
    }
    let length = dot(&vector, &vector).sqrt();
    vector.iter_mut().for_each(|value| *value /= length);
    vector
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}
