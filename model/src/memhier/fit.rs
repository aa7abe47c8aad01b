//! α and β of a program, from the hit rates of its trace.
//!
//! Least squares in (ln(α−1), ln β) by Levenberg and Marquardt's method. With two parameters the
//! normal equations are two lines; a general package would bring a linear algebra library for them.

use serde::{Deserialize, Serialize};

use super::locality::Locality;
use super::stack::StackDistances;
use crate::error::{ModelError, finite_result, fraction, invalid, positive};

/// Hit rates to fit, or a trace to take them from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FitInput {
    /// (x, P(x)): the share P of references that a store of size x > 0 hits. At least three points
    /// with 0 < P < 1 … or, without points,
    pub points: Vec<(f64, f64)>,
    /// … the items referenced, in order.
    pub trace: Vec<u64>,
    /// Where the data end, in the unit of x: fits the law that is cut there
    /// ([`Locality::cut_tail`]). A trace is always cut, at its number of distinct items.
    pub x_max: Option<f64>,
    /// Bytes of an item of the trace, 1 if absent: β is in bytes then.
    pub item_bytes: Option<f64>,
}

/// The law that fits best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitOutput {
    /// α.
    pub alpha: f64,
    /// β, in the unit of x.
    pub beta: f64,
    /// Where the law is cut, in the unit of x; `None` (null) for the law without end.
    pub x_max: Option<f64>,
    /// Root of the mean squared error of P over the points.
    pub rms_error: f64,
    /// Largest error of P over the points.
    pub max_error: f64,
    /// Points used.
    pub points: usize,
    /// The largest size of the data, in the unit of x: what the law says of larger ones is extrapolated.
    pub largest_x: f64,
    /// What the data do not determine, and what that means; null if they determine α and β.
    pub note: Option<String>,
    /// References of the trace that had been made before, and so have a distance; 0 without a trace.
    pub reuses: u64,
    /// First references of the trace, left out as cold misses; 0 without a trace.
    pub cold: u64,
}

/// Sizes at which the hit rate of a trace is taken, evenly spaced in log x.
const SIZES: usize = 64;

/// Fits points or a trace, whichever is given.
///
/// # Errors
/// [`ModelError::TooLittle`] of either, [`ModelError::Invalid`] naming the entry that is
/// out of range, or `points` if no law with finite α and β fits best.
pub fn fit(input: &FitInput) -> Result<FitOutput, ModelError> {
    let item_bytes = input.item_bytes.unwrap_or(1.0);
    positive("item_bytes", item_bytes)?;
    if input.points.is_empty() && !input.trace.is_empty() {
        let mut distances = StackDistances::default();
        let mut histogram = Histogram::default();
        for &item in &input.trace {
            histogram.add(distances.push(item));
        }
        return fit_trace(&histogram, distances.distinct(), item_bytes);
    }
    for (i, &(x, p)) in input.points.iter().enumerate() {
        positive(&format!("points[{i}][0]"), x)?;
        fraction(&format!("points[{i}][1]"), p)?;
    }
    if let Some(x_max) = input.x_max {
        positive("x_max", x_max)?;
    }
    check_order(&input.points)?;
    fit_points("points", &input.points, input.x_max)
}

/// Refuses hit rates that fall with the size, or that differ at one size: no cache of least recently used items has such.
fn check_order(points: &[(f64, f64)]) -> Result<(), ModelError> {
    let mut by_size: Vec<usize> = (0..points.len()).collect();
    by_size.sort_by(|a, b| points[*a].0.total_cmp(&points[*b].0));
    for pair in by_size.windows(2) {
        let ((smaller, less), (larger, more)) = (points[pair[0]], points[pair[1]]);
        let field = format!("points[{}][1]", pair[1]);
        if smaller == larger && less != more {
            return Err(invalid(field, more, "the other hit rate of the same size"));
        }
        if more < less {
            return Err(invalid(
                field,
                more,
                "at least that of the next smaller size",
            ));
        }
    }
    Ok(())
}

/// Stack distances counted.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    /// References at each distance.
    counts: Vec<u64>,
    cold: u64,
}

impl Histogram {
    /// Counts one reference.
    pub fn add(&mut self, distance: Option<u64>) {
        // A distance is less than the number of distinct items, which are in memory already.
        match distance.and_then(|d| usize::try_from(d).ok()) {
            None => self.cold += 1,
            Some(d) => {
                if self.counts.len() <= d {
                    self.counts.resize(d + 1, 0);
                }
                self.counts[d] += 1;
            }
        }
    }

    /// (x, P(x)) at sizes evenly spaced in log x from 1 up, cold misses left out.
    #[must_use]
    pub fn hit_rates(&self) -> Vec<(f64, f64)> {
        let reuses: u64 = self.counts.iter().sum();
        let largest = self.counts.len() as f64;
        let mut sizes: Vec<usize> = (0..SIZES)
            .map(|i| largest.powf(i as f64 / (SIZES - 1) as f64).round() as usize)
            .collect();
        sizes.dedup();
        let (mut hits, mut from) = (0, 0);
        sizes
            .into_iter()
            .map(|size| {
                let to = size.min(self.counts.len());
                hits += self.counts[from..to].iter().sum::<u64>();
                from = to;
                (size as f64, hits as f64 / reuses.max(1) as f64)
            })
            .collect()
    }
}

/// Fits the stack distances of a trace with `distinct` items of `item_bytes` each.
///
/// The law is cut at the number of distinct items and cold misses are left out: a plain fit takes the
/// end of the data for locality (α 1.61 instead of 1.21 with a cut at 20,000 items).
///
/// # Errors
/// [`ModelError::TooLittle`] under `trace` if too few references repeat at different distances,
/// [`ModelError::Invalid`] as [`fit`].
pub fn fit_trace(
    histogram: &Histogram,
    distinct: u64,
    item_bytes: f64,
) -> Result<FitOutput, ModelError> {
    positive("item_bytes", item_bytes)?;
    let points = histogram.hit_rates();
    let mut output = fit_points("trace", &points, Some(distinct as f64))?;
    output.beta *= item_bytes;
    output.x_max = output.x_max.map(|x| x * item_bytes);
    output.largest_x *= item_bytes;
    output.note = undetermined(output.beta, output.largest_x);
    output.reuses = histogram.counts.iter().sum();
    output.cold = histogram.cold;
    Ok(output)
}

fn fit_points(
    field: &str,
    points: &[(f64, f64)],
    x_max: Option<f64>,
) -> Result<FitOutput, ModelError> {
    let telling = points.iter().filter(|(_, p)| *p > 0.0 && *p < 1.0).count();
    if telling < 3 {
        return Err(ModelError::TooLittle {
            field: field.to_owned(),
            found: telling,
            what: "sizes with a hit rate between 0 and 1",
            needed: 3,
        });
    }
    let best = [1.0, 10.0, 100.0, 1_000.0, 1e5, 1e7]
        .into_iter()
        .map(|beta| descend(start(points, beta), points, x_max))
        .min_by(|a, b| a.squares.total_cmp(&b.squares));
    let locality = best.map_or(
        Locality {
            alpha: f64::INFINITY,
            beta: f64::INFINITY,
        },
        |point| point.locality(),
    );
    // On data that fall faster than any power, α and β run away together.
    if !(locality.alpha < 1e6 && locality.beta.is_finite() && locality.validate("").is_ok()) {
        let why = "of data whose tail falls like a power of x: the fit ran away";
        return Err(invalid(field, locality.alpha, why));
    }
    let errors: Vec<f64> = points
        .iter()
        .map(|&(x, p)| (hit_rate(&locality, x, x_max) - p).abs())
        .collect();
    let squares: f64 = errors.iter().map(|e| e * e).sum();
    finite_result("the sum of squares", squares)?;
    let largest_x = points.iter().map(|(x, _)| *x).fold(0.0, f64::max);
    Ok(FitOutput {
        alpha: locality.alpha,
        beta: locality.beta,
        x_max,
        rms_error: (squares / errors.len() as f64).sqrt(),
        max_error: errors.into_iter().fold(0.0, f64::max),
        points: points.len(),
        largest_x,
        note: undetermined(locality.beta, largest_x),
        reuses: 0,
        cold: 0,
    })
}

/// Far below β the law is a straight line: (α−1)·x/β. Data that end there determine the quotient only.
fn undetermined(beta: f64, largest_x: f64) -> Option<String> {
    (beta > 10.0 * largest_x).then(|| {
        format!(
            "extrapolated: beta {beta:.3e} is far beyond the largest size of the data ({largest_x:.3e}), where only \
             (alpha-1)/beta is determined; do not use alpha and beta for larger sizes"
        )
    })
}

fn hit_rate(locality: &Locality, x: f64, x_max: Option<f64>) -> f64 {
    match x_max {
        Some(x_max) => 1.0 - locality.cut_tail(x, 1.0, x_max),
        None => locality.cdf(x, 1.0),
    }
}

/// A point of the search, with the sum of squared errors there.
#[derive(Debug, Clone, Copy)]
struct Point {
    /// (ln(α−1), ln β).
    at: [f64; 2],
    squares: f64,
}

impl Point {
    fn locality(&self) -> Locality {
        locality(self.at)
    }
}

fn locality([log_a, log_beta]: [f64; 2]) -> Locality {
    Locality {
        alpha: 1.0 + log_a.exp(),
        beta: log_beta.exp(),
    }
}

/// For a given β, α−1 is the slope of −ln t over ln(1 + x/β) through the origin.
fn start(points: &[(f64, f64)], beta: f64) -> [f64; 2] {
    let (mut above, mut below) = (0.0, 0.0);
    for &(x, p) in points.iter().filter(|(_, p)| *p < 1.0) {
        let log = (x / beta).ln_1p();
        above -= log * (-p).ln_1p();
        below += log * log;
    }
    let slope = if above > 0.0 && below > 0.0 {
        above / below
    } else {
        1.0
    };
    [slope.ln(), beta.ln()]
}

/// Levenberg and Marquardt's descent.
fn descend(from: [f64; 2], points: &[(f64, f64)], x_max: Option<f64>) -> Point {
    let mut damping = 1e-3;
    let mut here = Point {
        at: from,
        squares: squares(from, points, x_max),
    };
    for _ in 0..500 {
        let [[a, b], [_, d], gradient] = normal_equations(here.at, points, x_max);
        let (a, d) = (a * (1.0 + damping), d * (1.0 + damping));
        let determinant = a * d - b * b;
        if determinant <= 0.0 || !determinant.is_finite() {
            damping *= 10.0;
            if damping > 1e12 {
                break;
            }
            continue;
        }
        let step = [
            (d * gradient[0] - b * gradient[1]) / determinant,
            (a * gradient[1] - b * gradient[0]) / determinant,
        ];
        let at = [here.at[0] - step[0], here.at[1] - step[1]];
        let squares = squares(at, points, x_max);
        if squares < here.squares {
            here = Point { at, squares };
            damping = (damping / 10.0).max(1e-12);
        } else {
            damping *= 10.0;
        }
        let moved = step[0].abs().max(step[1].abs());
        if moved < 1e-15 || damping > 1e12 {
            break;
        }
    }
    here
}

fn squares(at: [f64; 2], points: &[(f64, f64)], x_max: Option<f64>) -> f64 {
    let locality = locality(at);
    points
        .iter()
        .map(|&(x, p)| (hit_rate(&locality, x, x_max) - p).powi(2))
        .sum()
}

/// JᵀJ and Jᵀr.
fn normal_equations(at: [f64; 2], points: &[(f64, f64)], x_max: Option<f64>) -> [[f64; 2]; 3] {
    let locality = locality(at);
    let end = x_max.map(|x_max| Tail::new(&locality, x_max));
    let (mut a, mut b, mut d, mut gradient) = (0.0, 0.0, 0.0, [0.0; 2]);
    for &(x, p) in points {
        if x_max.is_some_and(|x_max| x >= x_max) {
            continue;
        }
        let tail = Tail::new(&locality, x);
        let slope = [tail.slope(&end, 0), tail.slope(&end, 1)];
        let error = hit_rate(&locality, x, x_max) - p;
        a += slope[0] * slope[0];
        b += slope[0] * slope[1];
        d += slope[1] * slope[1];
        gradient[0] += slope[0] * error;
        gradient[1] += slope[1] * error;
    }
    [[a, b], [b, d], gradient]
}

/// t(x) and its derivatives by ln(α−1) and ln β.
struct Tail {
    hit: f64,
    by: [f64; 2],
}

impl Tail {
    fn new(locality: &Locality, x: f64) -> Self {
        let t = locality.tail(x, 1.0);
        let a = locality.alpha - 1.0;
        Self {
            hit: locality.cdf(x, 1.0),
            by: [
                -a * (x / locality.beta).ln_1p() * t,
                a * t * x / (locality.beta + x),
            ],
        }
    }

    /// Derivative of P: of 1 − t, or of (1 − t)/(1 − t_end).
    fn slope(&self, end: &Option<Tail>, i: usize) -> f64 {
        match end {
            None => -self.by[i],
            Some(end) => (-self.by[i] * end.hit + self.hit * end.by[i]) / (end.hit * end.hit),
        }
    }
}
