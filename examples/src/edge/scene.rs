//! A picture to find edges in: a disc, a frame and a wedge on a slope of greys, and noise on all.

use std::ops::Range;

use rand::RngExt;

use crate::common::dice;

/// Greys that noise adds at most, plus one.
const NOISE: u8 = 16;

/// The pixels of the picture of `seed` in some of its rows.
pub(crate) fn generate((height, width): (usize, usize), rows: Range<usize>, seed: u64) -> Vec<u8> {
    let mut pixels = Vec::with_capacity(rows.len() * width);
    for row in rows {
        // The noise of a row does not depend on those before it, so each process can make its own rows.
        let mut dice = dice(seed, row);
        pixels.extend((0..width).map(|column| {
            let noise: u8 = dice.random_range(0..NOISE);
            // One pixel in 256 is a speck.
            match dice.random::<u8>() {
                0 => 255,
                _ => clean((row, height), (column, width)) + noise,
            }
        }));
    }
    pixels
}

/// A pixel without noise, where a camera would see it: the mean of 4 x 4 places in it. (Between pixels that differ in a
/// whole step, it would be for the noise to say on which side the edge is.)
fn clean((row, rows): (usize, usize), (column, columns): (usize, usize)) -> u8 {
    let place =
        |at: usize, part: usize, all: usize| (1000 * (8 * at + 2 * part + 1) / (8 * all)) as i64;
    let parts = (0..16).map(|part| {
        let (y, x) = (place(row, part / 4, rows), place(column, part % 4, columns));
        u32::from(shade(y, x))
    });
    (parts.sum::<u32>() / 16) as u8
}

/// How light it is at a place, in thousandths of height and width; leaves room for noise.
fn shade(y: i64, x: i64) -> u8 {
    let disc = (y - 350).pow(2) + (x - 330).pow(2) < 230_i64.pow(2);
    let inside = |low: i64, high: i64| (low..high).contains(&y) && (low..high).contains(&x);
    let frame = inside(520, 930) && !inside(600, 850);
    let wedge = (80..400).contains(&x) && y - 650 > x - 80;
    match (disc, frame, wedge) {
        (true, ..) => 200,
        (_, true, _) => 10,
        (.., true) => 230,
        _ => (70 + x / 20) as u8,
    }
}
