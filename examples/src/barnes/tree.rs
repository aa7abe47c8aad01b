//! The octree of Barnes and Hut, and the pull of what is in it.
//!
//! A cell that is small compared to its distance pulls as one body in its centre of mass would. The tree
//! depends on the bodies only, and the pull is summed in the order of the tree: whoever computes the
//! pull on a body gets the same, to the last bit.

use std::ops::Range;

/// A place, a velocity, a pull.
pub(crate) type Vector = [f64; 3];

/// A body: where it is, and its mass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Body {
    pub(crate) at: Vector,
    pub(crate) mass: f64,
}

/// As many bodies at most are in a cell that is not divided.
const LEAF: usize = 8;
/// Cells this deep are not divided, however many bodies meet there.
const DEPTH: usize = 48;
/// Bodies nearer than this pull no harder: close encounters would need shorter steps.
const SOFTENING: f64 = 0.05;

/// A cube of space with bodies in it.
#[derive(Debug)]
struct Cell {
    width_squared: f64,
    /// All its bodies as one: centre and sum of mass.
    whole: Body,
    /// Its bodies in the tree's, if it is not divided; empty otherwise.
    bodies: Range<usize>,
    /// The cell after it and all that it is divided into.
    next: usize,
}

/// The octree of some bodies: each cell is followed by those that it is divided into.
#[derive(Debug)]
pub(crate) struct Tree {
    cells: Vec<Cell>,
    bodies: Vec<Body>,
}

impl Tree {
    pub(crate) fn new(bodies: Vec<Body>) -> Self {
        let coordinates = || bodies.iter().flat_map(|b| b.at);
        let low = coordinates().fold(f64::INFINITY, f64::min);
        let high = coordinates().fold(f64::NEG_INFINITY, f64::max);
        let (count, mut room) = (bodies.len(), bodies.clone());
        let mut tree = Self {
            cells: Vec::with_capacity(bodies.len()),
            bodies,
        };
        if count > 0 {
            tree.grow([low; 3], high - low, 0..count, 0, &mut room);
        }
        tree
    }

    /// Adds the cell from `low` on with bodies `bodies`; there is `room` to sort them by octant.
    fn grow(
        &mut self,
        low: Vector,
        width: f64,
        bodies: Range<usize>,
        depth: usize,
        room: &mut [Body],
    ) {
        let this = self.cells.len();
        let here = &mut self.bodies[bodies.clone()];
        let divided = here.len() > LEAF && depth < DEPTH;
        self.cells.push(Cell {
            width_squared: width * width,
            whole: together(here),
            bodies: if divided { 0..0 } else { bodies.clone() },
            next: 0,
        });
        if divided {
            let half = width / 2.0;
            let middle = low.map(|x| x + half);
            let octant = |body: &Body| {
                let bits = (0..3).map(|k| usize::from(body.at[k] >= middle[k]) << k);
                bits.sum::<usize>()
            };
            let mut ends = [0; 8];
            here.iter().for_each(|body| ends[octant(body)] += 1);
            let mut start = 0;
            for end in &mut ends {
                (*end, start) = (start, start + *end);
            }
            // The end of each octant is where its next body goes.
            for body in here.iter() {
                let end = &mut ends[octant(body)];
                room[*end] = *body;
                *end += 1;
            }
            here.copy_from_slice(&room[..here.len()]);
            let mut start = bodies.start;
            for (octant, end) in ends.into_iter().enumerate() {
                let end = bodies.start + end;
                if start < end {
                    let upper = |k: usize| octant >> k & 1 == 1;
                    let low = std::array::from_fn(|k| if upper(k) { middle[k] } else { low[k] });
                    self.grow(low, half, start..end, depth + 1, room);
                }
                start = end;
            }
        }
        self.cells[this].next = self.cells.len();
    }

    /// The pull on a body at `at`. Cells seen under an angle (width by distance) less than `theta` are not
    /// opened. A body does not pull itself: its distance is zero.
    pub(crate) fn pull(&self, at: &Vector, theta: f64) -> Vector {
        let (theta_squared, mut sum) = (theta * theta, [0.0; 3]);
        let mut this = 0;
        while let Some(cell) = self.cells.get(this) {
            let (_, square) = towards(at, &cell.whole.at);
            if cell.width_squared < theta_squared * square {
                add_pull(at, &cell.whole, &mut sum);
                this = cell.next;
            } else {
                let bodies = &self.bodies[cell.bodies.clone()];
                bodies.iter().for_each(|b| add_pull(at, b, &mut sum));
                this += 1;
            }
        }
        sum
    }
}

/// Some bodies as one.
fn together(bodies: &[Body]) -> Body {
    let mass = bodies.iter().map(|b| b.mass).sum::<f64>();
    let at = |k: usize| bodies.iter().map(|b| b.mass * b.at[k]).sum::<f64>() / mass;
    Body {
        at: [at(0), at(1), at(2)],
        mass,
    }
}

/// The way from one place to another, and the square of its length.
fn towards(from: &Vector, to: &Vector) -> (Vector, f64) {
    let way: Vector = std::array::from_fn(|k| to[k] - from[k]);
    (way, way.iter().map(|x| x * x).sum())
}

fn add_pull(at: &Vector, body: &Body, sum: &mut Vector) {
    let (way, square) = towards(at, &body.at);
    let near = square + SOFTENING * SOFTENING;
    let strength = body.mass / (near * near.sqrt());
    for k in 0..3 {
        sum[k] += strength * way[k];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::{dice, unit};

    fn bodies(n: usize) -> Vec<Body> {
        let body = |i| {
            let mut dice = dice(9, i);
            Body {
                at: [(); 3].map(|()| unit(&mut dice)),
                mass: 0.5 + unit(&mut dice),
            }
        };
        (0..n).map(body).collect()
    }

    fn direct(at: &Vector, bodies: &[Body]) -> Vector {
        let mut sum = [0.0; 3];
        bodies.iter().for_each(|b| add_pull(at, b, &mut sum));
        sum
    }

    fn error(theta: f64) -> f64 {
        let bodies = bodies(500);
        let tree = Tree::new(bodies.clone());
        let errors = bodies.iter().map(|b| {
            let (near, exact) = (tree.pull(&b.at, theta), direct(&b.at, &bodies));
            let (_, off) = towards(&near, &exact);
            off.sqrt() / towards(&exact, &[0.0; 3]).1.sqrt()
        });
        errors.sum::<f64>() / bodies.len() as f64
    }

    #[test]
    fn it_is_the_sum_over_all_pairs_and_coarser_with_a_wider_angle() {
        assert!(error(0.0) < 1e-12, "{}", error(0.0));
        assert!(error(0.5) > 1e-6 && error(0.5) < 0.01, "{}", error(0.5));
        assert!(error(1.0) > error(0.5), "{}", error(1.0));
    }

    #[test]
    fn two_bodies_pull_each_other_by_newtons_law() {
        let sun = Body {
            at: [0.0; 3],
            mass: 4.0,
        };
        let [x, y, z] = Tree::new(vec![sun]).pull(&[0.0, 10.0, 0.0], 0.5);
        assert!((y + 4.0 / 100.0).abs() < 1e-5 && x == 0.0 && z == 0.0);
        assert_eq!(Tree::new(vec![sun]).pull(&sun.at, 0.5), [0.0; 3]);
    }

    #[test]
    fn bodies_in_one_place_and_none_at_all_are_borne() {
        let many = vec![bodies(1)[0]; 100];
        assert_eq!(Tree::new(many.clone()).pull(&many[0].at, 0.5), [0.0; 3]);
        let mut all = bodies(20);
        all.extend(&many);
        assert!(Tree::new(all).pull(&[0.0; 3], 0.5).iter().all(|x| *x > 0.0));
        assert_eq!(Tree::new(Vec::new()).pull(&[0.0; 3], 0.5), [0.0; 3]);
    }
}
