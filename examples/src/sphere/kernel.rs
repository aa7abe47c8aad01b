//! The shallow water equations on a sphere, by finite differences, on a band of circles of latitude.
//!
//! Depth h lies at the centres of the cells of a grid of longitudes and latitudes, the eastward velocity
//! u on their eastern sides, the northward velocity v on their northern sides (Arakawa's C grid):
//!
//! ```text
//! ∂h/∂t = −∇·(h u)      ∂u/∂t =  (f + ζ) v − ∂/∂x (g h + K) + diffusion
//!                       ∂v/∂t = −(f + ζ) u − ∂/∂y (g h + K) + diffusion
//! ```
//!
//! with f the Coriolis parameter, ζ the vorticity, K the kinetic energy. Depth is in flux form, so mass is
//! conserved to rounding. The sphere ends in walls at 75° north and south, short of the poles, where the
//! circles shrink to nothing. A step has two halves: the depth by the old velocities, then the velocities
//! by the new depth (forward-backward for the waves; Adams–Bashforth for the rest).
//!
//! A value depends on the row above and the row below only, and always by the same operations: bands
//! give the result of the whole bit for bit.

use std::f64::consts::PI;

/// Radius of the earth in metres.
const RADIUS: f64 = 6.371e6;
/// Gravity in m/s².
const GRAVITY: f64 = 9.81;
/// Rotation of the earth in 1/s.
const OMEGA: f64 = 7.292e-5;
/// Depth of the water at rest in metres, and height of the hump to start with.
pub(crate) const DEPTH: f64 = 1000.0;
const HUMP: f64 = 100.0;
/// Latitude of the walls.
const WALL: f64 = 75.0 * PI / 180.0;
/// Part of the difference to the neighbours that is smoothed away in a step.
const DIFFUSION: f64 = 0.01;

/// The grid: rows from south to north, columns to the east.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Grid {
    /// Distance of columns and rows in radians.
    fn spacing(&self) -> (f64, f64) {
        (
            2.0 * PI / self.columns as f64,
            2.0 * WALL / self.rows as f64,
        )
    }

    /// Latitude of the centre of a row; of its northern side half a row further.
    fn latitude(&self, row: f64) -> f64 {
        -WALL + (row + 0.5) * self.spacing().1
    }

    /// Half of what the fastest wave allows on the smallest cell, in seconds; and on coarse grids, a fifth of
    /// a radian of the fastest rotation, since Adams-Bashforth steps must not be large for what turns.
    pub(crate) fn time_step(&self) -> f64 {
        let (dlambda, dtheta) = self.spacing();
        let smallest = self.latitude(0.0).cos();
        let (dx, dy) = (RADIUS * smallest * dlambda, RADIUS * dtheta);
        let speed = (GRAVITY * (DEPTH + HUMP)).sqrt();
        let wave = 0.5 / (speed * (1.0 / (dx * dx) + 1.0 / (dy * dy)).sqrt());
        wave.min(0.2 / (2.0 * OMEGA))
    }

    /// Water at rest, with a hump at 30° north.
    fn initial_depth(&self, row: usize, column: usize) -> f64 {
        let north = self.latitude(row as f64) - PI / 6.0;
        let east = column as f64 * self.spacing().0 - PI;
        DEPTH + HUMP * (-8.0 * (north * north + east * east)).exp()
    }
}

/// Some rows of the grid, and one more on each side: the neighbours', or what stands for the wall.
#[derive(Clone, Debug)]
pub(crate) struct Band {
    grid: Grid,
    first_row: usize,
    rows: usize,
    depth: Vec<f64>,
    east: Vec<f64>,
    north: Vec<f64>,
    /// What drove the velocities in the last step.
    driven: Option<(Vec<f64>, Vec<f64>)>,
}

/// The two sides of a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    South,
    North,
}

impl Band {
    /// Rows `first_row` and so on, at the start; what is around it, too.
    pub(crate) fn new(grid: Grid, first_row: usize, rows: usize) -> Self {
        let around = (0..rows + 2).map(|r| (first_row + r).saturating_sub(1).min(grid.rows - 1));
        let depth =
            around.flat_map(|row| (0..grid.columns).map(move |i| grid.initial_depth(row, i)));
        let depth: Vec<f64> = depth.collect();
        Self {
            grid,
            first_row,
            rows,
            east: vec![0.0; depth.len()],
            north: vec![0.0; depth.len()],
            depth,
            driven: None,
        }
    }

    /// The depth of the band's own rows, row by row.
    pub(crate) fn depth(&self) -> &[f64] {
        own(&self.depth, self.grid.columns)
    }
    /// The eastward velocity, likewise.
    pub(crate) fn east(&self) -> &[f64] {
        own(&self.east, self.grid.columns)
    }
    /// The northward velocity, likewise.
    pub(crate) fn north(&self) -> &[f64] {
        own(&self.north, self.grid.columns)
    }

    /// Takes the depth of the neighbour's nearest row; without a neighbour there is a wall.
    pub(crate) fn set_depth(&mut self, side: Side, neighbour: Option<&[f64]>) {
        let (beyond, inside) = self.around(side);
        match neighbour {
            Some(row) => self.depth[beyond].copy_from_slice(row),
            None => self.depth.copy_within(inside, beyond.start),
        }
    }

    /// Takes the velocities in the neighbour's nearest row, eastward and northward. Along a wall
    /// water slides; through it goes none.
    pub(crate) fn set_velocities(&mut self, side: Side, neighbour: Option<(&[f64], &[f64])>) {
        let (beyond, inside) = self.around(side);
        match neighbour {
            Some((east, north)) => {
                self.east[beyond.clone()].copy_from_slice(east);
                self.north[beyond].copy_from_slice(north);
            }
            None => {
                self.east.copy_within(inside, beyond.start);
                self.north[beyond].fill(0.0);
            }
        }
    }

    /// The row beyond a side, and the row inside it.
    fn around(&self, side: Side) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let row = |r: usize| r * self.grid.columns..(r + 1) * self.grid.columns;
        match side {
            Side::South => (row(0), row(1)),
            Side::North => (row(self.rows + 1), row(self.rows)),
        }
    }

    /// Latitude of the centre of row `r` here, where row 0 is the one beyond the southern side.
    fn latitude(&self, r: f64) -> f64 {
        self.grid.latitude(self.first_row as f64 + r - 1.0)
    }

    /// First half of a step: the water moves.
    pub(crate) fn move_water(&mut self, dt: f64) {
        let n = self.grid.columns;
        let (dlambda, dtheta) = self.grid.spacing();
        let (h, u, v) = (&self.depth, &self.east, &self.north);
        let eastward = |r: usize, i: usize| {
            let e = (i + 1) % n;
            u[r * n + i] * 0.5 * (h[r * n + i] + h[r * n + e])
        };
        let northward = |r: usize, i: usize| {
            let side = self.latitude(r as f64 + 0.5).cos();
            side * v[r * n + i] * 0.5 * (h[r * n + i] + h[(r + 1) * n + i])
        };
        let mut moved = Vec::with_capacity(self.rows * n);
        for r in 1..=self.rows {
            let area = RADIUS * self.latitude(r as f64).cos();
            for i in 0..n {
                let w = (i + n - 1) % n;
                let out = (eastward(r, i) - eastward(r, w)) / dlambda
                    + (northward(r, i) - northward(r - 1, i)) / dtheta;
                moved.push(h[r * n + i] - dt / area * out);
            }
        }
        self.depth[n..n + moved.len()].copy_from_slice(&moved);
    }

    /// Second half of a step: the velocities follow.
    pub(crate) fn accelerate(&mut self, dt: f64) {
        let n = self.grid.columns;
        let (dlambda, dtheta) = self.grid.spacing();
        let drive = self.drive(dt);
        let last = self.driven.take();
        let (last_east, last_north) = last.as_ref().unwrap_or(&drive);
        for r in 1..=self.rows {
            let dx = RADIUS * self.latitude(r as f64).cos() * dlambda;
            let at_wall = self.first_row + r == self.grid.rows;
            for i in 0..n {
                let (at, k) = (r * n + i, (r - 1) * n + i);
                let h = self.depth[at];
                let slope = GRAVITY * (self.depth[r * n + (i + 1) % n] - h) / dx;
                self.east[at] += dt * (1.5 * drive.0[k] - 0.5 * last_east[k] - slope);
                if !at_wall {
                    let slope = GRAVITY * (self.depth[at + n] - h) / (RADIUS * dtheta);
                    self.north[at] += dt * (1.5 * drive.1[k] - 0.5 * last_north[k] - slope);
                }
            }
        }
        self.driven = Some(drive);
    }

    /// All that accelerates but the slope of the surface: rotation, kinetic energy, diffusion.
    fn drive(&self, dt: f64) -> (Vec<f64>, Vec<f64>) {
        let n = self.grid.columns;
        let (dlambda, dtheta) = self.grid.spacing();
        let (u, v) = (&self.east, &self.north);
        let (spin, energy) = (self.absolute_vorticity(), self.kinetic_energy());
        let smooth = |field: &[f64], r: usize, i: usize| {
            let (e, w) = (field[r * n + (i + 1) % n], field[r * n + (i + n - 1) % n]);
            let (north, south) = (field[(r + 1) * n + i], field[(r - 1) * n + i]);
            DIFFUSION / dt * (e + w + north + south - 4.0 * field[r * n + i])
        };
        let (mut eastward, mut northward) = (Vec::new(), Vec::new());
        for r in 1..=self.rows {
            let dx = RADIUS * self.latitude(r as f64).cos() * dlambda;
            for i in 0..n {
                let (e, w) = ((i + 1) % n, (i + n - 1) % n);
                let (here, below) = (r * n, (r - 1) * n);
                let v_there = 0.25 * (v[here + i] + v[here + e] + v[below + i] + v[below + e]);
                let spin_there = 0.5 * (spin[here + i] + spin[below + i]);
                let uphill = (energy[here + e] - energy[here + i]) / dx;
                eastward.push(spin_there * v_there - uphill + smooth(u, r, i));
                let above = here + n;
                let u_there = 0.25 * (u[here + i] + u[here + w] + u[above + i] + u[above + w]);
                let spin_there = 0.5 * (spin[here + i] + spin[here + w]);
                let uphill = (energy[above + i] - energy[here + i]) / (RADIUS * dtheta);
                northward.push(-spin_there * u_there - uphill + smooth(v, r, i));
            }
        }
        (eastward, northward)
    }

    /// f + ζ at the north-eastern corners of the cells of all rows but the northernmost.
    fn absolute_vorticity(&self) -> Vec<f64> {
        let n = self.grid.columns;
        let (dlambda, dtheta) = self.grid.spacing();
        let (u, v) = (&self.east, &self.north);
        let mut spin = Vec::with_capacity((self.rows + 1) * n);
        for r in 0..=self.rows {
            let corner = self.latitude(r as f64 + 0.5);
            let here = self.latitude(r as f64).cos();
            let above = self.latitude(r as f64 + 1.0).cos();
            for i in 0..n {
                let along = (v[r * n + (i + 1) % n] - v[r * n + i]) / dlambda;
                let across = (above * u[(r + 1) * n + i] - here * u[r * n + i]) / dtheta;
                let vorticity = (along - across) / (RADIUS * corner.cos());
                spin.push(2.0 * OMEGA * corner.sin() + vorticity);
            }
        }
        spin
    }

    /// Kinetic energy at the centres of the cells; nothing in the row beyond the southern side.
    fn kinetic_energy(&self) -> Vec<f64> {
        let n = self.grid.columns;
        let (u, v) = (&self.east, &self.north);
        let mut energy = vec![0.0; n];
        for r in 1..self.rows + 2 {
            for i in 0..n {
                let east = 0.5 * (u[r * n + i] + u[r * n + (i + n - 1) % n]);
                let north = 0.5 * (v[r * n + i] + v[(r - 1) * n + i]);
                energy.push(0.5 * (east * east + north * north));
            }
        }
        energy
    }

    /// Mass and energy of the band's own rows, per radius² and density.
    pub(crate) fn totals(&self) -> (f64, f64) {
        let n = self.grid.columns;
        let (dlambda, dtheta) = self.grid.spacing();
        let kinetic = self.kinetic_energy();
        let (mut mass, mut energy) = (0.0, 0.0);
        for r in 1..=self.rows {
            let area = self.latitude(r as f64).cos() * dlambda * dtheta;
            for i in 0..n {
                let h = self.depth[r * n + i];
                mass += area * h;
                energy += area * h * (0.5 * GRAVITY * h + kinetic[r * n + i]);
            }
        }
        (mass, energy)
    }
}

fn own(field: &[f64], columns: usize) -> &[f64] {
    &field[columns..field.len() - columns]
}

/// The whole computation by one process.
pub(crate) fn sequential(grid: Grid, steps: usize) -> Band {
    let mut band = Band::new(grid, 0, grid.rows);
    let dt = grid.time_step();
    for _ in 0..steps {
        for side in [Side::South, Side::North] {
            band.set_velocities(side, None);
        }
        band.move_water(dt);
        for side in [Side::South, Side::North] {
            band.set_depth(side, None);
        }
        band.accelerate(dt);
    }
    band
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Grid = Grid {
        rows: 17,
        columns: 24,
    };

    #[test]
    fn no_water_is_lost_and_no_energy_won() {
        let (mass, energy) = sequential(GRID, 0).totals();
        let (later_mass, later_energy) = sequential(GRID, 2000).totals();
        assert!(
            (later_mass / mass - 1.0).abs() < 1e-12,
            "{mass} {later_mass}"
        );
        assert!(
            later_energy <= energy * (1.0 + 1e-9),
            "{energy} {later_energy}"
        );
    }

    #[test]
    fn coarse_grids_are_stable() {
        for (rows, columns) in [(2, 3), (4, 5), (3, 40), (40, 3)] {
            let grid = Grid { rows, columns };
            let (_, energy) = sequential(grid, 0).totals();
            let (_, later) = sequential(grid, 3000).totals();
            assert!(later <= energy * (1.0 + 1e-9), "{grid:?}: {energy} {later}");
        }
    }

    #[test]
    fn waves_run_and_the_walls_hold() {
        let later = sequential(GRID, 40);
        assert!(later.east().iter().any(|u| u.abs() > 0.1));
        let last = &later.north()[(GRID.rows - 1) * GRID.columns..];
        assert!(last.iter().all(|v| *v == 0.0));
    }

    #[test]
    fn a_flat_ocean_stays_flat_and_at_rest() {
        let mut band = Band::new(GRID, 0, GRID.rows);
        band.depth.fill(DEPTH);
        for _ in 0..10 {
            band.move_water(100.0);
            band.accelerate(100.0);
        }
        assert!(band.depth().iter().all(|h| *h == DEPTH));
        assert!(band.east().iter().chain(band.north()).all(|s| *s == 0.0));
    }

    #[test]
    fn bands_give_the_sequential_result_bit_for_bit() {
        let (steps, dt) = (30, GRID.time_step());
        let expected = sequential(GRID, steps);
        for cuts in [vec![0, 1, 17], vec![0, 6, 11, 17], (0..=17).collect()] {
            let mut bands: Vec<Band> = cuts
                .windows(2)
                .map(|w| Band::new(GRID, w[0], w[1] - w[0]))
                .collect();
            let edge = |field: &[f64], side| match side {
                Side::South => field[..GRID.columns].to_vec(),
                Side::North => field[field.len() - GRID.columns..].to_vec(),
            };
            for _ in 0..steps {
                let before = bands.clone();
                for (k, band) in bands.iter_mut().enumerate() {
                    for (side, from, other) in [
                        (Side::South, k.checked_sub(1), Side::North),
                        (Side::North, Some(k + 1), Side::South),
                    ] {
                        let from = from.and_then(|k| before.get(k));
                        let rows = from.map(|b| (edge(b.east(), other), edge(b.north(), other)));
                        band.set_velocities(side, rows.as_ref().map(|(u, v)| (&u[..], &v[..])));
                    }
                    band.move_water(dt);
                }
                let before = bands.clone();
                for (k, band) in bands.iter_mut().enumerate() {
                    for (side, from, other) in [
                        (Side::South, k.checked_sub(1), Side::North),
                        (Side::North, Some(k + 1), Side::South),
                    ] {
                        let row = from
                            .and_then(|k| before.get(k))
                            .map(|b| edge(b.depth(), other));
                        band.set_depth(side, row.as_deref());
                    }
                    band.accelerate(dt);
                }
            }
            let all = |field: fn(&Band) -> &[f64]| {
                bands.iter().flat_map(field).copied().collect::<Vec<_>>()
            };
            assert_eq!(all(Band::depth), expected.depth());
            assert_eq!(all(Band::east), expected.east());
            assert_eq!(all(Band::north), expected.north());
        }
    }
}
