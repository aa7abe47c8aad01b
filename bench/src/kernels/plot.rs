//! Curves of a sweep.

use dosmos_plot::{Axis, Chart, Color, Layer, Mark};

use super::figure::Figure;
use crate::statistics::spread;

/// What stands on the y axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Y {
    /// ξ, T_0 over T_N.
    Efficiency,
    /// θ, (T_N − T_0) over T_0.
    Interference,
    /// Words accessed a second, all processes together.
    Words,
    /// T, microseconds a grain.
    Time,
}

/// A line for each series and, unless `over_n`, each number of competitors; medians with their spread.
pub(crate) fn curves(title: &str, x: Axis, y: Y, over_n: bool, figures: &[Figure]) -> Chart {
    // Alone, efficiency is 1 and interference 0 by definition.
    let defined = matches!(y, Y::Efficiency | Y::Interference) && !over_n;
    let figures = || figures.iter().filter(|f| !defined || f.outcome.n > 0);
    let label = |f: &Figure| {
        if over_n || matches!(y, Y::Time) {
            f.series.clone()
        } else {
            format!("{}, N = {}", f.series, f.outcome.n)
        }
    };
    let mut names: Vec<String> = Vec::new();
    for name in figures().map(label) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let axis = match y {
        Y::Efficiency => Axis::new("efficiency ξ").from_zero(),
        Y::Interference => Axis::new("interference θ").from_zero(),
        Y::Words => Axis::new("words/s").from_zero(),
        Y::Time => Axis::new("µs").from_zero(),
    };
    let mut chart = Chart::new(title, x, axis);
    for (i, name) in names.into_iter().enumerate() {
        let (mut line, mut whiskers) = (Vec::new(), Vec::new());
        for f in figures().filter(|f| label(f) == name) {
            let at = if over_n { f.outcome.n as f64 } else { f.x };
            let [low, median, high] = spread(values(f, y));
            line.push((at, median));
            whiskers.push((at, low, high));
        }
        let color = Color::Series(i);
        chart = chart
            .line(name, color, line.clone())
            .marks("", color, Mark::Dot, line)
            .with(Layer::Errors {
                color,
                points: whiskers,
            });
    }
    chart
}

fn values(f: &Figure, y: Y) -> Vec<f64> {
    match y {
        Y::Efficiency => f.outcome.efficiency.clone(),
        Y::Interference => f.outcome.interference.clone(),
        Y::Words => f.outcome.words_per_second.clone(),
        Y::Time => f.outcome.t_ns.iter().map(|t| t / 1e3).collect(),
    }
}

/// The picture of a sweep as `--plot` writes it.
pub(super) fn of_sweep(name: &str, about: &str, varied: &str, figures: &[Figure]) -> Chart {
    let over_n = varied.starts_with('N');
    let wide = figures.iter().any(|f| f.x > 1000.0);
    let x = match (over_n, wide) {
        (true, _) => Axis::new("N (competitors)"),
        (_, true) => Axis::new(varied).log(),
        _ => Axis::new(varied),
    };
    let y = match name {
        "mad-warps" => Y::Words,
        "sad-latency" => Y::Time,
        _ if over_n => Y::Interference,
        _ => Y::Efficiency,
    };
    curves(&format!("{name}: {about}"), x, y, over_n, figures)
}
