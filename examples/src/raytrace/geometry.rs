//! Vectors of three numbers.

/// A point, a direction or a colour.
pub(crate) type Vec3 = [f64; 3];

pub(crate) fn add(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(crate) fn subtract(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(crate) fn scale(factor: f64, a: Vec3) -> Vec3 {
    [factor * a[0], factor * a[1], factor * a[2]]
}

pub(crate) fn dot(a: Vec3, b: Vec3) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The same direction, of length 1.
pub(crate) fn unit(a: Vec3) -> Vec3 {
    scale(1.0 / dot(a, a).sqrt(), a)
}
