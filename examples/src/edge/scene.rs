//! A picture to find edges in: a disc, a frame and a wedge on a slope of greys, and noise on all.

use rand::RngExt;

use crate::common::dice;
use crate::picture::Grey;

/// Greys that noise adds at most, plus one.
const NOISE: u8 = 16;

/// The picture of `seed`.
pub(crate) fn generate(rows: usize, columns: usize, seed: u64) -> Grey {
    let mut dice = dice(seed, 0);
    let places = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
    let pixels = places.map(|(i, j)| {
        let (y, x) = (1000 * i / rows, 1000 * j / columns);
        let noise: u8 = dice.random_range(0..NOISE);
        // One pixel in 256 is a speck.
        match dice.random::<u8>() {
            0 => 255,
            _ => clean(y as i64, x as i64) + noise,
        }
    });
    Grey {
        width: columns,
        pixels: pixels.collect(),
    }
}

/// The picture without noise; leaves room for it. Places are in thousandths of height and width.
fn clean(y: i64, x: i64) -> u8 {
    let disc = (y - 350).pow(2) + (x - 330).pow(2) < 230_i64.pow(2);
    let inside = |low: i64, high: i64| (low..high).contains(&y) && (low..high).contains(&x);
    let frame = inside(520, 930) && !inside(600, 850);
    let wedge = (80..400).contains(&x) && y - 650 > x - 80;
    match (disc, frame, wedge) {
        (true, ..) => 200,
        (_, true, _) => 230,
        (.., true) => 10,
        _ => (60 + x / 25) as u8,
    }
}
