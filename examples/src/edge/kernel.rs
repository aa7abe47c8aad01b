//! Multi-scale edge detection: blur, register, match. In integers, so that every result is exact.
//!
//! After each blur the edges that are still there are registered: where the gradient is steepest
//! across its direction, and steep enough. An edge survives if it has a counterpart at most one pixel
//! away at the coarser scale. So edges keep the place they have in the sharp picture, and noise, which
//! the blur removes, does not survive.
//!
//! All steps look one pixel around. Beyond the picture's border lies the border's pixel again.

use std::ops::Range;

/// Rows that a level needs beyond those of its result: one each to blur, for the gradient, to see
/// whether it is the steepest, and to match.
pub(crate) const HALO: usize = 4;

/// Some rows of something as large as the picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rows<T> {
    /// Rows of the whole.
    pub(crate) height: usize,
    pub(crate) width: usize,
    /// Row in the whole of the first row here.
    pub(crate) first: usize,
    pub(crate) values: Vec<T>,
}

impl<T: Copy> Rows<T> {
    fn end(&self) -> usize {
        self.first + self.values.len() / self.width
    }

    /// Rows `range` of the whole.
    pub(crate) fn rows(&self, range: Range<usize>) -> &[T] {
        &self.values[(range.start - self.first) * self.width..(range.end - self.first) * self.width]
    }

    /// Something new, made of what is around each pixel: all rows whose neighbours are here. `make` makes a row of the three
    /// around it, which have a pixel more at each end.
    fn map<U: Copy + Default>(&self, make: impl Fn([&[T]; 3], &mut [U])) -> Rows<U> {
        let first = self.first + usize::from(self.first > 0);
        let end = self.end() - usize::from(self.end() < self.height);
        let bordered = Bordered::new(self);
        let mut values = vec![U::default(); (end - first) * self.width];
        for (row, line) in values.chunks_exact_mut(self.width).enumerate() {
            make(bordered.around(first + row), line);
        }
        Rows {
            height: self.height,
            width: self.width,
            first,
            values,
        }
    }
}

/// Rows with the pixel at each end repeated.
struct Bordered<T> {
    height: usize,
    width: usize,
    first: usize,
    values: Vec<T>,
}

impl<T: Copy> Bordered<T> {
    fn new(rows: &Rows<T>) -> Self {
        let width = rows.width;
        let mut values = Vec::with_capacity(rows.values.len() / width * (width + 2));
        for row in rows.values.chunks_exact(width) {
            values.push(row[0]);
            values.extend_from_slice(row);
            values.push(row[width - 1]);
        }
        Self {
            height: rows.height,
            width: width + 2,
            first: rows.first,
            values,
        }
    }

    /// The rows around row `row` of the whole; beyond the border lies the border's row again.
    fn around(&self, row: usize) -> [&[T]; 3] {
        [row.saturating_sub(1), row, (row + 1).min(self.height - 1)]
            .map(|row| &self.values[(row - self.first) * self.width..][..self.width])
    }
}

/// Weighted mean of 3 × 3 pixels, weights 1 2 1 in both directions.
fn blur(picture: &Rows<u8>) -> Rows<u8> {
    picture.map(|[above, here, below], blurred| {
        let down = above.iter().zip(here).zip(below);
        let down = down.map(|((a, h), b)| u16::from(*a) + 2 * u16::from(*h) + u16::from(*b));
        let down: Vec<u16> = down.collect();
        let around = down.iter().zip(&down[1..]).zip(&down[2..]);
        for (pixel, ((left, middle), right)) in blurred.iter_mut().zip(around) {
            *pixel = ((left + 2 * middle + right + 8) / 16) as u8;
        }
    })
}

/// A gradient: down, and to the right.
type Gradient = [i16; 2];

/// The gradient after Sobel.
fn gradient(picture: &Rows<u8>) -> Rows<Gradient> {
    picture.map(|[above, here, below], gradients| {
        let lines = above.iter().zip(here).zip(below);
        let wide = lines.map(|((a, h), b)| [*a, *h, *b].map(i16::from));
        let (change, sum): (Vec<i16>, Vec<i16>) =
            wide.map(|[a, h, b]| (b - a, a + 2 * h + b)).unzip();
        let change = change.iter().zip(&change[1..]).zip(&change[2..]);
        let sums = sum.iter().zip(&sum[2..]);
        for ((gradient, ((left, middle), right)), (before, after)) in
            gradients.iter_mut().zip(change).zip(sums)
        {
            *gradient = [left + 2 * middle + right, after - before];
        }
    })
}

/// Where the gradient is at least `threshold` long and not shorter than before and after it in its
/// direction (one of four); of two equal ones the first counts.
fn register(gradient: &Rows<Gradient>, threshold: i32) -> Rows<bool> {
    let length = |gradient: Gradient| {
        let [down, right] = gradient.map(i32::from);
        down * down + right * right
    };
    gradient.map(|[above, here, below], edges| {
        let lines = above.windows(3).zip(here.windows(3).zip(below.windows(3)));
        for (edge, (above, (here, below))) in edges.iter_mut().zip(lines) {
            let this = length(here[1]);
            if this < threshold * threshold {
                continue;
            }
            let [down, right] = here[1].map(|part| i32::from(part).abs());
            // tan 22.5° is about 5 / 12.
            let (before, after) = if 12 * down < 5 * right {
                (here[0], here[2])
            } else if 12 * right < 5 * down {
                (above[1], below[1])
            } else if (here[1][0] > 0) == (here[1][1] > 0) {
                (above[0], below[2])
            } else {
                (above[2], below[0])
            };
            *edge = this > length(before) && this >= length(after);
        }
    })
}

/// One level. In: the picture, [`HALO`] rows more than `edges` on each side as far as there are any. Out:
/// the picture of the next level, one row less on each side, and how many edges changed: at level 0
/// all that are registered are new, at others those without a counterpart are taken out.
pub(crate) fn refine(
    picture: &Rows<u8>,
    edges: &mut Rows<bool>,
    level: usize,
    threshold: i32,
) -> (Rows<u8>, u64) {
    let next = blur(picture);
    let registered = register(&gradient(&next), threshold);
    if level == 0 {
        let own = edges.first..edges.end();
        edges.values = registered.rows(own).to_vec();
        return (next, edges.values.iter().filter(|e| **e).count() as u64);
    }
    let mut lost = 0;
    let registered = Bordered::new(&registered);
    for (row, line) in edges.values.chunks_exact_mut(edges.width).enumerate() {
        let around = registered.around(edges.first + row);
        for (at, edge) in line.iter_mut().enumerate().filter(|(_, edge)| **edge) {
            if !around.iter().any(|line| line[at..at + 3].contains(&true)) {
                *edge = false;
                lost += 1;
            }
        }
    }
    (next, lost)
}

/// Repeat or halt: all halt when there are no edges at all, or when [`QUIET`] levels in a row lost none.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    quiet: usize,
}

/// Levels without a loss after which nothing more is expected: noise takes some levels to be blurred away.
const QUIET: usize = 3;

impl Decision {
    /// Whether this level was the last one; `changed` is what [`refine`] says of the whole picture.
    pub(crate) fn halts(&mut self, level: usize, changed: u64) -> bool {
        self.quiet = if changed == 0 { self.quiet + 1 } else { 0 };
        self.quiet == QUIET || level == 0 && changed == 0
    }
}

/// The whole computation by one process: the edges (255) of a picture, and the levels it took.
pub(crate) fn sequential(
    width: usize,
    picture: &[u8],
    threshold: i32,
    levels: usize,
) -> (Vec<u8>, usize) {
    let height = picture.len() / width;
    let mut edges = Rows {
        height,
        width,
        first: 0,
        values: vec![false; picture.len()],
    };
    let mut picture = Rows {
        height,
        width,
        first: 0,
        values: picture.to_vec(),
    };
    let mut decision = Decision::default();
    for level in 0..levels {
        let (next, changed) = refine(&picture, &mut edges, level, threshold);
        if decision.halts(level, changed) {
            return (shown(&edges.values), level + 1);
        }
        picture = next;
    }
    (shown(&edges.values), levels)
}

/// Edges as pixels: white on black.
pub(crate) fn shown(edges: &[bool]) -> Vec<u8> {
    edges.iter().map(|e| if *e { 255 } else { 0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(width: usize, height: usize, at: usize) -> Vec<u8> {
        let pixel = |i: usize| if i % width < at { 20 } else { 220 };
        (0..width * height).map(pixel).collect()
    }

    #[test]
    fn a_step_has_one_edge_where_it_is() {
        let (edges, _) = sequential(16, &step(16, 9, 7), 100, 5);
        for row in edges.chunks_exact(16) {
            let white: Vec<usize> = (0..16).filter(|j| row[*j] == 255).collect();
            assert_eq!(white, [6]);
        }
    }

    #[test]
    fn what_is_all_the_same_has_no_edge_and_takes_one_level() {
        let (edges, levels) = sequential(8, &[77; 64], 1, 5);
        assert_eq!((edges, levels), (vec![0; 64], 1));
    }

    #[test]
    fn a_speck_of_noise_is_gone_when_the_step_is_still_there() {
        let mut picture = step(32, 32, 20);
        picture[16 * 32 + 8] = 200;
        let near_speck = |edges: &[u8]| {
            let mut places = (13..20).flat_map(|i| (5..12).map(move |j| i * 32 + j));
            places.any(|at| edges[at] == 255)
        };
        assert!(near_speck(&sequential(32, &picture, 60, 1).0));
        let (edges, levels) = sequential(32, &picture, 60, 12);
        assert!(!near_speck(&edges) && levels < 12);
        assert_eq!(edges.iter().filter(|e| **e == 255).count(), 32);
    }

    #[test]
    fn bands_with_halos_find_the_same_edges() {
        let (width, height) = (24, 22);
        let pixel = |at: usize| ((at * at / 7) % 251) as u8;
        let picture: Vec<u8> = (0..width * height).map(pixel).collect();
        let (expected, levels) = sequential(width, &picture, 60, 4);
        for cuts in [vec![0, 22], vec![0, 4, 22], vec![0, 7, 14, 22]] {
            let mut whole = picture.clone();
            let bands: Vec<Range<usize>> = cuts.windows(2).map(|w| w[0]..w[1]).collect();
            let none = |b: &Range<usize>| Rows {
                height,
                width,
                first: b.start,
                values: vec![false; b.len() * width],
            };
            let mut edges: Vec<Rows<bool>> = bands.iter().map(none).collect();
            for level in 0..levels {
                let before = whole.clone();
                for (band, edges) in bands.iter().zip(&mut edges) {
                    let first = band.start.saturating_sub(HALO);
                    let end = (band.end + HALO).min(height);
                    let seen = Rows {
                        height,
                        width,
                        first,
                        values: before[first * width..end * width].to_vec(),
                    };
                    let (next, _) = refine(&seen, edges, level, 60);
                    whole[band.start * width..band.end * width]
                        .copy_from_slice(next.rows(band.clone()));
                }
            }
            let found: Vec<bool> = edges.into_iter().flat_map(|e| e.values).collect();
            assert_eq!(shown(&found), expected);
        }
    }
}
