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

/// A field on some rows of the grid. There is a row more on each side: the neighbours', or what stands for the wall; and a
/// column more on each side, which repeats the column that follows it round the earth.
type Field = Vec<f64>;

/// Row `r` of a field whose rows are `width` long, with what is around it.
fn line(field: &[f64], width: usize, r: usize) -> &[f64] {
    &field[r * width..][..width]
}

fn line_mut(field: &mut [f64], width: usize, r: usize) -> &mut [f64] {
    &mut field[r * width..][..width]
}

/// Makes the columns around a row those that follow it round the earth.
fn close(line: &mut [f64]) {
    let n = line.len() - 2;
    line[0] = line[n];
    line[n + 1] = line[1];
}

/// Some rows of the grid.
#[derive(Clone, Debug)]
pub(crate) struct Band {
    grid: Grid,
    first_row: usize,
    rows: usize,
    /// Of a row with what is around it.
    width: usize,
    depth: Field,
    east: Field,
    north: Field,
    /// What drives the velocities eastward and northward: in the last step, and in this one.
    driven: [Field; 2],
    drive: [Field; 2],
    /// Whether there was a last step.
    started: bool,
    /// Vorticity at the north-eastern corners of the cells, and kinetic energy at their centres.
    spin: Field,
    energy: Field,
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
        let width = grid.columns + 2;
        let zero = vec![0.0; (rows + 2) * width];
        let mut depth = zero.clone();
        for (r, line) in depth.chunks_exact_mut(width).enumerate() {
            let row = (first_row + r).saturating_sub(1).min(grid.rows - 1);
            for (column, h) in line[1..=grid.columns].iter_mut().enumerate() {
                *h = grid.initial_depth(row, column);
            }
            close(line);
        }
        Self {
            grid,
            first_row,
            rows,
            width,
            depth,
            east: zero.clone(),
            north: zero.clone(),
            driven: [zero.clone(), zero.clone()],
            drive: [zero.clone(), zero.clone()],
            started: false,
            spin: zero.clone(),
            energy: zero,
        }
    }

    /// The depth of the band's own rows, row by row.
    pub(crate) fn depth(&self) -> Vec<f64> {
        self.own(&self.depth)
    }
    /// The eastward velocity, likewise.
    pub(crate) fn east(&self) -> Vec<f64> {
        self.own(&self.east)
    }
    /// The northward velocity, likewise.
    pub(crate) fn north(&self) -> Vec<f64> {
        self.own(&self.north)
    }

    fn own(&self, field: &[f64]) -> Vec<f64> {
        let rows = 1..=self.rows;
        rows.flat_map(|r| self.inside(field, r)).copied().collect()
    }

    fn inside<'a>(&self, field: &'a [f64], r: usize) -> &'a [f64] {
        &line(field, self.width, r)[1..=self.grid.columns]
    }

    /// The depth in the band's own row at a side.
    pub(crate) fn edge_depth(&self, side: Side) -> &[f64] {
        self.inside(&self.depth, self.around(side).1)
    }

    /// The velocities in the band's own row at a side, eastward, then northward.
    pub(crate) fn edge_velocities(&self, side: Side) -> Vec<f64> {
        let (_, row) = self.around(side);
        [self.inside(&self.east, row), self.inside(&self.north, row)].concat()
    }

    /// Takes the depth of the neighbour's nearest row; without a neighbour there is a wall.
    pub(crate) fn set_depth(&mut self, side: Side, neighbour: Option<&[f64]>) {
        let (beyond, inside) = self.around(side);
        beside(&mut self.depth, self.width, (beyond, inside), neighbour);
    }

    /// Takes the velocities in the neighbour's nearest row, eastward and northward. Along a wall
    /// water slides; through it goes none.
    pub(crate) fn set_velocities(&mut self, side: Side, neighbour: Option<(&[f64], &[f64])>) {
        let (rows, width) = (self.around(side), self.width);
        beside(&mut self.east, width, rows, neighbour.map(|n| n.0));
        match neighbour {
            Some((_, north)) => beside(&mut self.north, width, rows, Some(north)),
            None => line_mut(&mut self.north, width, rows.0).fill(0.0),
        }
    }

    /// The row beyond a side, and the row inside it.
    fn around(&self, side: Side) -> (usize, usize) {
        match side {
            Side::South => (0, 1),
            Side::North => (self.rows + 1, self.rows),
        }
    }

    /// Latitude of the centre of row `r` here, where row 0 is the one beyond the southern side.
    fn latitude(&self, r: f64) -> f64 {
        self.grid.latitude(self.first_row as f64 + r - 1.0)
    }

    /// First half of a step: the water moves.
    pub(crate) fn move_water(&mut self, dt: f64) {
        let (n, width) = (self.grid.columns, self.width);
        let (dlambda, dtheta) = self.grid.spacing();
        // From south to north, and each row needs what the row south of it was.
        let mut south = line(&self.depth, width, 0).to_vec();
        let mut here = vec![0.0; width];
        for r in 1..=self.rows {
            let area = RADIUS * self.latitude(r as f64).cos();
            let below = self.latitude(r as f64 - 0.5).cos() * 0.5 * dt / (area * dtheta);
            let above = self.latitude(r as f64 + 0.5).cos() * 0.5 * dt / (area * dtheta);
            let along = 0.5 * dt / (area * dlambda);
            let (before, after) = self.depth.split_at_mut((r + 1) * width);
            let moved = &mut before[r * width..][..width];
            here.copy_from_slice(moved);
            let (h, hs, hn) = (&here[..width], &south[..width], &after[..width]);
            let u = line(&self.east, width, r);
            let (v, vs) = (line(&self.north, width, r), line(&self.north, width, r - 1));
            for i in 1..=n {
                let eastward = u[i] * (h[i] + h[i + 1]) - u[i - 1] * (h[i - 1] + h[i]);
                let northward = above * v[i] * (h[i] + hn[i]) - below * vs[i] * (hs[i] + h[i]);
                moved[i] = h[i] - along * eastward - northward;
            }
            close(moved);
            std::mem::swap(&mut south, &mut here);
        }
    }

    /// Second half of a step: the velocities follow.
    pub(crate) fn accelerate(&mut self, dt: f64) {
        let (n, width) = (self.grid.columns, self.width);
        let (dlambda, dtheta) = self.grid.spacing();
        std::mem::swap(&mut self.drive, &mut self.driven);
        self.find_drive(dt);
        if !self.started {
            self.driven.clone_from(&self.drive);
            self.started = true;
        }
        let [drive_east, drive_north] = &self.drive;
        let [last_east, last_north] = &self.driven;
        for r in 1..=self.rows {
            let downhill = GRAVITY / (RADIUS * self.latitude(r as f64).cos() * dlambda);
            let h = line(&self.depth, width, r);
            let (now, last) = (line(drive_east, width, r), line(last_east, width, r));
            let u = line_mut(&mut self.east, width, r);
            for i in 1..=n {
                let slope = downhill * (h[i + 1] - h[i]);
                u[i] += dt * (1.5 * now[i] - 0.5 * last[i] - slope);
            }
            close(u);
            if self.first_row + r == self.grid.rows {
                continue;
            }
            let downhill = GRAVITY / (RADIUS * dtheta);
            let above = line(&self.depth, width, r + 1);
            let (now, last) = (line(drive_north, width, r), line(last_north, width, r));
            let v = line_mut(&mut self.north, width, r);
            for i in 1..=n {
                let slope = downhill * (above[i] - h[i]);
                v[i] += dt * (1.5 * now[i] - 0.5 * last[i] - slope);
            }
            close(v);
        }
    }

    /// All that accelerates but the slope of the surface: rotation, kinetic energy, diffusion.
    fn find_drive(&mut self, dt: f64) {
        let (n, width) = (self.grid.columns, self.width);
        let (dlambda, dtheta) = self.grid.spacing();
        self.find_spin();
        self.find_energy();
        let (smooth, per_dy) = (DIFFUSION / dt, 1.0 / (RADIUS * dtheta));
        for r in 1..=self.rows {
            let per_dx = 1.0 / (RADIUS * self.latitude(r as f64).cos() * dlambda);
            let [us, u, un] = [r - 1, r, r + 1].map(|r| line(&self.east, width, r));
            let [vs, v, vn] = [r - 1, r, r + 1].map(|r| line(&self.north, width, r));
            let [spin_south, spin] = [r - 1, r].map(|r| line(&self.spin, width, r));
            let [energy, energy_north] = [r, r + 1].map(|r| line(&self.energy, width, r));
            let drive = line_mut(&mut self.drive[0], width, r);
            for i in 1..=n {
                let v_there = 0.25 * (v[i] + v[i + 1] + vs[i] + vs[i + 1]);
                let spin_there = 0.5 * (spin[i] + spin_south[i]);
                let uphill = (energy[i + 1] - energy[i]) * per_dx;
                let rough = u[i + 1] + u[i - 1] + un[i] + us[i] - 4.0 * u[i];
                drive[i] = spin_there * v_there - uphill + smooth * rough;
            }
            let drive = line_mut(&mut self.drive[1], width, r);
            for i in 1..=n {
                let u_there = 0.25 * (u[i] + u[i - 1] + un[i] + un[i - 1]);
                let spin_there = 0.5 * (spin[i] + spin[i - 1]);
                let uphill = (energy_north[i] - energy[i]) * per_dy;
                let rough = v[i + 1] + v[i - 1] + vn[i] + vs[i] - 4.0 * v[i];
                drive[i] = -spin_there * u_there - uphill + smooth * rough;
            }
        }
    }

    /// f + ζ at the north-eastern corners of the cells of all rows but the northernmost.
    fn find_spin(&mut self) {
        let (n, width) = (self.grid.columns, self.width);
        let (dlambda, dtheta) = self.grid.spacing();
        for r in 0..=self.rows {
            let corner = self.latitude(r as f64 + 0.5);
            let rotation = 2.0 * OMEGA * corner.sin();
            let along = 1.0 / (dlambda * RADIUS * corner.cos());
            let across = 1.0 / (dtheta * RADIUS * corner.cos());
            let here = self.latitude(r as f64).cos() * across;
            let above = self.latitude(r as f64 + 1.0).cos() * across;
            let (u, un) = (line(&self.east, width, r), line(&self.east, width, r + 1));
            let v = line(&self.north, width, r);
            let spin = line_mut(&mut self.spin, width, r);
            for i in 1..=n {
                spin[i] = rotation + along * (v[i + 1] - v[i]) - (above * un[i] - here * u[i]);
            }
            close(spin);
        }
    }

    /// Kinetic energy at the centres of the cells of all rows but the southernmost.
    fn find_energy(&mut self) {
        let (n, width) = (self.grid.columns, self.width);
        for r in 1..self.rows + 2 {
            let u = line(&self.east, width, r);
            let (v, vs) = (line(&self.north, width, r), line(&self.north, width, r - 1));
            let energy = line_mut(&mut self.energy, width, r);
            for i in 1..=n {
                let (east, north) = (u[i] + u[i - 1], v[i] + vs[i]);
                energy[i] = 0.125 * (east * east + north * north);
            }
            close(energy);
        }
    }

    /// Mass and energy of the band's own rows, per radius² and density.
    pub(crate) fn totals(&mut self) -> (f64, f64) {
        self.find_energy();
        let (dlambda, dtheta) = self.grid.spacing();
        let (mut mass, mut energy) = (0.0, 0.0);
        for r in 1..=self.rows {
            let area = self.latitude(r as f64).cos() * dlambda * dtheta;
            let kinetic = self.inside(&self.energy, r);
            for (h, kinetic) in self.inside(&self.depth, r).iter().zip(kinetic) {
                mass += area * h;
                energy += area * h * (0.5 * GRAVITY * h + kinetic);
            }
        }
        (mass, energy)
    }

    /// A step of a band that is the whole grid.
    pub(crate) fn step(&mut self, dt: f64) {
        for side in [Side::South, Side::North] {
            self.set_velocities(side, None);
        }
        self.move_water(dt);
        for side in [Side::South, Side::North] {
            self.set_depth(side, None);
        }
        self.accelerate(dt);
    }
}

/// Makes row `beyond` of a field that of a neighbour; without one, as row `inside` is.
fn beside(
    field: &mut [f64],
    width: usize,
    (beyond, inside): (usize, usize),
    neighbour: Option<&[f64]>,
) {
    match neighbour {
        Some(row) => {
            let beyond = line_mut(field, width, beyond);
            beyond[1..=row.len()].copy_from_slice(row);
            close(beyond);
        }
        None => field.copy_within(inside * width..(inside + 1) * width, beyond * width),
    }
}

/// The whole computation by one process.
pub(crate) fn sequential(grid: Grid, steps: usize) -> Band {
    let mut band = Band::new(grid, 0, grid.rows);
    let dt = grid.time_step();
    for _ in 0..steps {
        band.step(dt);
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
        assert!(band.east().iter().chain(&band.north()).all(|s| *s == 0.0));
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
            for _ in 0..steps {
                let before = bands.clone();
                for (k, band) in bands.iter_mut().enumerate() {
                    for (side, from, other) in [
                        (Side::South, k.checked_sub(1), Side::North),
                        (Side::North, Some(k + 1), Side::South),
                    ] {
                        let from = from.and_then(|k| before.get(k));
                        let rows = from.map(|b| b.edge_velocities(other));
                        let rows = rows.as_deref().map(|r| r.split_at(GRID.columns));
                        band.set_velocities(side, rows);
                    }
                    band.move_water(dt);
                }
                let before = bands.clone();
                for (k, band) in bands.iter_mut().enumerate() {
                    for (side, from, other) in [
                        (Side::South, k.checked_sub(1), Side::North),
                        (Side::North, Some(k + 1), Side::South),
                    ] {
                        let from = from.and_then(|k| before.get(k));
                        band.set_depth(side, from.map(|b| b.edge_depth(other)));
                    }
                    band.accelerate(dt);
                }
            }
            let all =
                |field: fn(&Band) -> Vec<f64>| bands.iter().flat_map(field).collect::<Vec<_>>();
            assert_eq!(all(Band::depth), expected.depth());
            assert_eq!(all(Band::east), expected.east());
            assert_eq!(all(Band::north), expected.north());
        }
    }
}
