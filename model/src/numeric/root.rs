//! Root of a continuous function within a bracket.
//!
//! Chandrupatla's method (Adv. Eng. Software 28, 1997): inverse quadratic interpolation where it is
//! safe, bisection otherwise. The root never leaves the bracket, and the number of evaluations is
//! bounded by about twice that of bisection.

/// A point between `lo` and `hi` where `f` changes sign, to about one unit in the last place.
///
/// `f(lo)` and `f(hi)` must not have the same strict sign; if they do, the end with the smaller
/// `|f|` is returned, which for the monotone functions of this crate is the rounded root at an end.
pub(crate) fn bracketed_root(f: impl Fn(f64) -> f64, lo: f64, hi: f64) -> f64 {
    let (mut a, mut b) = (hi, lo);
    let (mut fa, mut fb) = (f(a), f(b));
    if fa == 0.0 || (fa * fb > 0.0 && fa.abs() < fb.abs()) {
        return a;
    }
    if fb == 0.0 || fa * fb > 0.0 {
        return b;
    }
    let mut t = 0.5;
    for _ in 0..200 {
        let x = a + t * (b - a);
        let fx = f(x);
        let (c, fc);
        if (fx > 0.0) == (fa > 0.0) {
            (c, fc) = (a, fa);
        } else {
            (c, fc) = (b, fb);
            (b, fb) = (a, fa);
        }
        (a, fa) = (x, fx);
        let (best, fbest) = if fa.abs() < fb.abs() {
            (a, fa)
        } else {
            (b, fb)
        };
        let tolerance = 2.0 * f64::EPSILON * best.abs() + f64::MIN_POSITIVE;
        let limit = tolerance / (b - a).abs();
        if limit > 0.5 || fbest == 0.0 {
            return best;
        }
        let xi = (a - b) / (c - b);
        let phi = (fa - fb) / (fc - fb);
        t = if phi * phi < xi && (1.0 - phi) * (1.0 - phi) < 1.0 - xi {
            fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        } else {
            0.5
        };
        // Values too far apart for the interpolation.
        t = if t.is_nan() {
            0.5
        } else {
            t.clamp(limit, 1.0 - limit)
        };
    }
    if fa.abs() < fb.abs() { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::bracketed_root;

    #[test]
    fn finds_roots_of_easy_and_flat_functions() {
        let cube = bracketed_root(|x| x * x * x - 2.0, 0.0, 2.0);
        assert!((cube - 2f64.cbrt()).abs() < 1e-15);
        let flat = bracketed_root(|x| (x - 1.0).powi(9), 0.0, 3.0);
        assert!((flat - 1.0).abs() < 1e-8);
    }

    #[test]
    fn a_root_at_an_end_is_that_end() {
        assert_eq!(bracketed_root(|x| x - 1.0, 1.0, 2.0), 1.0);
        assert_eq!(bracketed_root(|x| x - 2.0, 1.0, 2.0), 2.0);
    }

    #[test]
    fn without_a_change_of_sign_the_nearer_end_is_returned() {
        assert_eq!(bracketed_root(|x| x, 1.0, 2.0), 1.0);
        assert_eq!(bracketed_root(|x| -x, -2.0, -1.0), -1.0);
    }
}
