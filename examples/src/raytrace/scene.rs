//! What there is to see: balls on balls above a chequered floor, and how it travels through shared memory.

use super::geometry::{Vec3, add, scale};

/// A ball.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ball {
    pub(crate) centre: Vec3,
    pub(crate) radius: f64,
    /// Red, green and blue, from 0 to 1.
    pub(crate) colour: Vec3,
    /// How much of the light comes from what it mirrors, from 0 to 1.
    pub(crate) mirror: f64,
}

/// Numbers that a ball is in shared memory.
pub(crate) const NUMBERS: usize = 8;

impl Ball {
    pub(crate) fn to_numbers(self) -> [f64; NUMBERS] {
        let ([x, y, z], [r, g, b]) = (self.centre, self.colour);
        [x, y, z, self.radius, r, g, b, self.mirror]
    }

    /// The ball of a row of [`NUMBERS`]; none if it has another length.
    pub(crate) fn from_numbers(numbers: &[f64]) -> Option<Self> {
        let [x, y, z, radius, r, g, b, mirror] = *<&[f64; NUMBERS]>::try_from(numbers).ok()?;
        Some(Self {
            centre: [x, y, z],
            radius,
            colour: [r, g, b],
            mirror,
        })
    }
}

/// One ball with six half as large around it, each with five around it (none back), and so on: as many
/// generations as `depth` says.
pub(crate) fn balls(depth: u32) -> Vec<Ball> {
    let mut all = Vec::new();
    grow(&mut all, [0.0, 0.0, 0.0], 1.0, None, depth);
    all
}

/// How many those are.
pub(crate) fn count(depth: u32) -> usize {
    1 + (0..depth).map(|d| 6 * 5_usize.pow(d)).sum::<usize>()
}

fn grow(all: &mut Vec<Ball>, centre: Vec3, radius: f64, from: Option<Vec3>, depth: u32) {
    const COLOURS: [Vec3; 4] = [
        [0.9, 0.85, 0.8],
        [0.9, 0.3, 0.2],
        [0.2, 0.5, 0.9],
        [0.9, 0.75, 0.2],
    ];
    all.push(Ball {
        centre,
        radius,
        colour: COLOURS[depth as usize % COLOURS.len()],
        mirror: 0.35,
    });
    if depth == 0 {
        return;
    }
    for axis in 0..3 {
        for sign in [1.0, -1.0] {
            let mut direction = [0.0; 3];
            direction[axis] = sign;
            if from != Some(direction) {
                let next = add(centre, scale(1.5 * radius, direction));
                grow(
                    all,
                    next,
                    radius / 2.0,
                    Some(scale(-1.0, direction)),
                    depth - 1,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_balls_as_counted_and_they_touch() {
        for depth in 0..4 {
            let all = balls(depth);
            assert_eq!(all.len(), count(depth));
        }
        let [a, b] = [balls(1)[0], balls(1)[1]];
        assert_eq!(b.centre[0] - a.centre[0], a.radius + b.radius);
    }

    #[test]
    fn a_ball_survives_the_journey() {
        for ball in balls(2) {
            assert_eq!(Ball::from_numbers(&ball.to_numbers()), Some(ball));
        }
        assert_eq!(Ball::from_numbers(&[0.0; 7]), None);
    }
}
