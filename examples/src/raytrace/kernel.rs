//! A small recursive ray tracer: balls, a floor, one light far away, shadows and mirrors.
//!
//! A pixel depends on the scene and its place alone, so it is the same whoever computes it.

use super::geometry::{Vec3, add, dot, scale, subtract, unit};
use super::scene::Ball;

/// How often light is mirrored at most.
const BOUNCES: u32 = 4;
/// Height of the floor.
const FLOOR: f64 = -2.0;
/// What is nearer than this is where the ray starts.
const NEAR: f64 = 1e-6;

/// A scene, and from where it is seen.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) balls: Vec<Ball>,
    pub(crate) eye: Vec3,
    /// Pixels of the picture: rows and columns.
    pub(crate) size: (usize, usize),
    /// Where the light comes from: a direction of length 1.
    light: Vec3,
}

struct Ray {
    from: Vec3,
    /// Of length 1.
    to: Vec3,
}

/// Where a ray meets something.
struct Hit {
    at: Vec3,
    /// Away from the surface, of length 1.
    normal: Vec3,
    colour: Vec3,
    mirror: f64,
}

/// From where the scene is seen in frame number `frame`: round about it.
fn eye(frame: u64) -> Vec3 {
    let angle = 0.6 + 0.1 * frame as f64;
    [5.5 * angle.sin(), 2.0, -5.5 * angle.cos()]
}

impl World {
    /// A scene seen from the place of the first frame.
    pub(crate) fn new(balls: Vec<Ball>, size: (usize, usize)) -> Self {
        Self {
            balls,
            eye: eye(0),
            size,
            light: unit([1.0, 2.0, -1.5]),
        }
    }

    /// Sees the scene from the place of another frame.
    pub(crate) fn see(&mut self, frame: usize) {
        self.eye = eye(frame as u64);
    }

    /// Some rows of some columns of the picture, row by row: `0x00RRGGBB`.
    pub(crate) fn render(&self, first: (usize, usize), size: (usize, usize)) -> Vec<u32> {
        let camera = Camera::new(self);
        let rows = first.0..first.0 + size.0;
        let pixel = |i| (first.1..first.1 + size.1).map(move |j| (i, j));
        rows.flat_map(pixel)
            .map(|(i, j)| self.pixel(&camera, i, j))
            .collect()
    }

    /// The mean of four places in a pixel.
    fn pixel(&self, camera: &Camera, row: usize, column: usize) -> u32 {
        let mut sum = [0.0; 3];
        for (down, right) in [(0.25, 0.25), (0.25, 0.75), (0.75, 0.25), (0.75, 0.75)] {
            let ray = camera.ray(row as f64 + down, column as f64 + right);
            let seen = self.trace(&ray, BOUNCES);
            sum = add(sum, seen.map(|c| c.clamp(0.0, 1.0)));
        }
        let [r, g, b] = sum.map(|c| (c / 4.0 * 255.0) as u32);
        r << 16 | g << 8 | b
    }

    /// The colour that comes along a ray.
    fn trace(&self, ray: &Ray, bounces: u32) -> Vec3 {
        let Some(hit) = self.first_hit(ray) else {
            return sky(ray.to);
        };
        let lit = dot(hit.normal, self.light).max(0.0);
        let shadow = lit > 0.0 && {
            let to_light = Ray {
                from: hit.at,
                to: self.light,
            };
            self.balls.iter().any(|ball| to_light.meets(ball).is_some())
        };
        let brightness = 0.15 + if shadow { 0.0 } else { 0.85 * lit };
        let own = scale(brightness, hit.colour);
        if bounces == 0 || hit.mirror == 0.0 {
            return own;
        }
        let back = 2.0 * dot(ray.to, hit.normal);
        let mirrored = Ray {
            from: hit.at,
            to: unit(subtract(ray.to, scale(back, hit.normal))),
        };
        let mirrored = self.trace(&mirrored, bounces - 1);
        add(scale(1.0 - hit.mirror, own), scale(hit.mirror, mirrored))
    }

    fn first_hit(&self, ray: &Ray) -> Option<Hit> {
        let (mut nearest, mut met) = (f64::INFINITY, None);
        for ball in &self.balls {
            if let Some(distance) = ray.meets(ball)
                && distance < nearest
            {
                (nearest, met) = (distance, Some(ball));
            }
        }
        match (met, ray.meets_floor()) {
            (Some(ball), floor) if floor.is_none_or(|f| nearest < f) => {
                let at = ray.at(nearest);
                Some(Hit {
                    at,
                    normal: unit(subtract(at, ball.centre)),
                    colour: ball.colour,
                    mirror: ball.mirror,
                })
            }
            (_, Some(distance)) => Some(floor_at(ray.at(distance), distance)),
            _ => None,
        }
    }
}

/// Where the scene is seen from, and the directions of its picture.
struct Camera {
    eye: Vec3,
    forward: Vec3,
    right: Vec3,
    up: Vec3,
    rows: f64,
    columns: f64,
}

impl Camera {
    fn new(world: &World) -> Self {
        let forward = unit(scale(-1.0, world.eye));
        let right = unit([forward[2], 0.0, -forward[0]]);
        Self {
            eye: world.eye,
            forward,
            right,
            up: cross(forward, right),
            rows: world.size.0 as f64,
            columns: world.size.1 as f64,
        }
    }

    /// To a place of the picture, in pixels from its upper left corner.
    fn ray(&self, down: f64, right_of: f64) -> Ray {
        let x = (right_of - self.columns / 2.0) / self.rows;
        let y = (self.rows / 2.0 - down) / self.rows;
        let aside = add(scale(x, self.right), scale(y, self.up));
        Ray {
            from: self.eye,
            to: unit(add(self.forward, aside)),
        }
    }
}

impl Ray {
    fn at(&self, distance: f64) -> Vec3 {
        add(self.from, scale(distance, self.to))
    }

    /// How far away it enters or leaves a ball.
    fn meets(&self, ball: &Ball) -> Option<f64> {
        let towards = subtract(ball.centre, self.from);
        let along = dot(towards, self.to);
        let away = dot(towards, towards) - ball.radius * ball.radius;
        let inside = along * along - away;
        // It passes by, or the ball is behind it.
        if inside < 0.0 || (along < 0.0 && away > 0.0) {
            return None;
        }
        let half = inside.sqrt();
        [along - half, along + half].into_iter().find(|d| *d > NEAR)
    }

    fn meets_floor(&self) -> Option<f64> {
        let distance = (FLOOR - self.from[1]) / self.to[1];
        // As far as one can see.
        (distance > NEAR && distance < 1e3).then_some(distance)
    }
}

/// Far away the squares become one, like the horizon, as they do for the eye.
fn floor_at(at: Vec3, distance: f64) -> Hit {
    let dark = (at[0].floor() + at[2].floor()).rem_euclid(2.0) == 0.0;
    let near = 1.0 / (1.0 + (distance / 20.0).powi(2));
    let square = scale(near, if dark { [0.25; 3] } else { [0.85; 3] });
    Hit {
        at,
        normal: [0.0, 1.0, 0.0],
        colour: add(square, scale(1.0 - near, HORIZON)),
        mirror: 0.1,
    }
}

/// The sky where it meets the floor.
const HORIZON: Vec3 = [0.8, 0.85, 0.9];

fn sky(direction: Vec3) -> Vec3 {
    let height = direction[1].max(0.0);
    add(scale(1.0 - height, HORIZON), scale(height, [0.2, 0.4, 0.8]))
}

fn cross(a: Vec3, b: Vec3) -> Vec3 {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raytrace::scene::balls;

    fn ball(centre: Vec3, mirror: f64) -> Ball {
        Ball {
            centre,
            radius: 1.0,
            colour: [1.0, 0.0, 0.0],
            mirror,
        }
    }

    fn ray(from: Vec3, to: Vec3) -> Ray {
        Ray { from, to: unit(to) }
    }

    #[test]
    fn a_ray_meets_a_ball_where_it_must() {
        let b = ball([0.0, 0.0, 5.0], 0.0);
        assert_eq!(ray([0.0; 3], [0.0, 0.0, 1.0]).meets(&b), Some(4.0));
        assert_eq!(ray([0.0, 0.0, 5.0], [0.0, 0.0, 1.0]).meets(&b), Some(1.0));
        assert_eq!(ray([0.0; 3], [0.0, 0.0, -1.0]).meets(&b), None);
        assert_eq!(ray([0.0, 1.5, 0.0], [0.0, 0.0, 1.0]).meets(&b), None);
        assert_eq!(ray([0.0; 3], [0.0, -1.0, 0.0]).meets_floor(), Some(2.0));
    }

    #[test]
    fn known_pixels() {
        let mut world = World::new(vec![ball([0.0; 3], 0.0)], (31, 31));
        world.eye = [0.0, 0.0, -5.0];
        let camera = Camera::new(&world);
        // Straight ahead is the ball, lit at an angle: 1.5 / |(1, 2, -1.5)|.
        let brightness = 0.15 + 0.85 * 1.5 / 7.25_f64.sqrt();
        let red = (brightness * 255.0) as u32;
        let centre = world.pixel(&camera, 15, 15);
        assert!((centre >> 16).abs_diff(red) <= 1, "{centre:x}");
        assert_eq!(centre & 0xffff, 0);
        // The upper corner is sky, the lower one floor.
        let corner = world.pixel(&camera, 0, 0);
        world.balls.clear();
        assert_eq!(world.pixel(&camera, 0, 0), corner);
        assert!(corner & 0xff > corner >> 16, "{corner:x} is not blue");
        let floor = world.pixel(&camera, 30, 15);
        assert_ne!(floor, world.pixel(&camera, 15, 15));
    }

    #[test]
    fn there_is_shadow_behind_a_ball_and_an_image_in_a_mirror() {
        let light = unit([1.0, 2.0, -1.5]);
        let mut world = World::new(vec![ball(scale(4.0, light), 0.0)], (1, 1));
        world.eye = [0.0; 3];
        let below = |w: &World| {
            let spot = [0.0, FLOOR + 1.0, 0.0];
            let shift = scale(-1.0 / light[1], light);
            w.trace(&ray(spot, shift), 0)
        };
        let dark = below(&world);
        world.balls.clear();
        assert!(below(&world)[0] > 2.0 * dark[0]);

        // A mirror straight ahead shows the sky behind the eye.
        world.balls = vec![ball([0.0, 0.0, 5.0], 1.0)];
        let seen = world.trace(&ray([0.0; 3], [0.0, 0.0, 1.0]), 1);
        assert_eq!(seen, sky([0.0, 0.0, -1.0]));
    }

    #[test]
    fn tiles_make_the_picture() {
        let world = World::new(balls(1), (6, 8));
        let whole = world.render((0, 0), (6, 8));
        let tile = world.render((2, 3), (3, 4));
        for (i, row) in tile.chunks_exact(4).enumerate() {
            let at = (2 + i) * 8 + 3;
            assert_eq!(row, &whole[at..at + 4]);
        }
    }
}
