//! The depth of the water as a map, north up.

/// The map is at least this wide; a point of the grid is a square of pixels.
const WIDTH: usize = 480;

/// Width and pixels (`0x00RRGGBB`) of a map: white where the depth is that of the water at rest, red above,
/// blue below. The
/// colour grows with the root of the difference, so that the many small waves are seen beside the few large.
pub(super) fn of_depth(columns: usize, depth: &[f64], rest: f64) -> (usize, Vec<u32>) {
    let most = depth.iter().map(|h| (h - rest).abs()).fold(0.0, f64::max);
    let point = |h: &f64| colour((h - rest) / most.max(f64::MIN_POSITIVE));
    let side = WIDTH.div_ceil(columns);
    let mut pixels = Vec::with_capacity(depth.len() * side * side);
    for row in depth.chunks_exact(columns).rev() {
        let row: Vec<u32> = row
            .iter()
            .flat_map(|h| std::iter::repeat_n(point(h), side))
            .collect();
        pixels.extend(row.repeat(side));
    }
    (columns * side, pixels)
}

/// From -1, blue, over 0, white, to 1, red.
fn colour(difference: f64) -> u32 {
    let strength = difference.abs().sqrt().min(1.0);
    let end = if difference < 0.0 {
        [0x0b, 0x3c, 0x8c]
    } else {
        [0xa8, 0x12, 0x1e]
    };
    let mixed = end.map(|c: u32| (255.0 + strength * (f64::from(c) - 255.0)).round() as u32);
    mixed[0] << 16 | mixed[1] << 8 | mixed[2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deep_is_red_the_shallow_blue_and_north_is_up() {
        // South: 1, 2; north: 3, 2.
        let (width, pixels) = of_depth(2, &[1.0, 2.0, 3.0, 2.0], 2.0);
        assert_eq!((width, pixels.len()), (480, 480 * 480));
        let corner =
            |row: usize, column: usize| pixels[row * (width - 1) * width + column * (width - 1)];
        assert_eq!(corner(0, 0), 0xa8121e);
        assert_eq!(corner(1, 0), 0x0b3c8c);
        assert_eq!([corner(0, 1), corner(1, 1)], [0xffffff; 2]);
    }
}
