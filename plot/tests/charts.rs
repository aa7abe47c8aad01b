//! Charts as a reader of SVG sees them.

#![allow(clippy::unwrap_used)] // a test may

use dosmos_plot::{Axis, Chart, Color, Error, Layer, Mark};

fn every_layer() -> Chart {
    let line = (1..50).map(|i| (f64::from(i), f64::from(i * i))).collect();
    Chart::new(
        "All <layers> & more",
        Axis::new("time (s)"),
        Axis::new("R (µs)").log(),
    )
    .line("curve", Color::Series(0), line)
    .dashed("bound", Color::Series(1), vec![(1.0, 10.0), (49.0, 3000.0)])
    .marks("reads", Color::Local, Mark::Cross, vec![(10.0, 20.0)])
    .marks("writes", Color::Inter, Mark::Star, vec![(12.0, 20.0)])
    .marks("optimized", Color::Local, Mark::Plus, vec![(14.0, 20.0)])
    .marks("", Color::Text, Mark::Dot, vec![(16.0, 20.0)])
    .marks("", Color::Text, Mark::Square, vec![(18.0, 20.0)])
    .with(Layer::Band {
        label: "spread".into(),
        color: Color::Series(2),
        points: vec![(1.0, 5.0, 50.0), (30.0, 100.0, 900.0)],
    })
    .with(Layer::Errors {
        color: Color::Text,
        points: vec![(20.0, 30.0, 60.0)],
    })
    .with(Layer::Boxes {
        label: "wait".into(),
        color: Color::Text,
        boxes: vec![(20.0, 25.0, 0.0, 7.0)],
    })
    .with(Layer::Upright {
        color: Color::Faint,
        x: 40.0,
    })
}

#[test]
fn a_chart_is_one_element_that_needs_nothing_else() {
    let svg = every_layer().svg().unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert_eq!(svg.matches("<svg").count(), 1);
    for label in [
        "curve", "bound", "reads", "spread", "wait", "time (s)", "R (µs)",
    ] {
        assert!(svg.contains(label), "{label}");
    }
    assert!(svg.contains("<title>All &lt;layers&gt; &amp; more</title>"));
    // No colour but by meaning, no address but the namespace.
    assert!(!svg.contains("\"#0102"), "a colour was left as a number");
    assert!(svg.contains("var(--plot-local)") && svg.contains("prefers-color-scheme"));
    assert_eq!(svg.matches("http").count(), 1);
}

#[test]
fn stacked_bars_stand_on_each_other() {
    let bars = [
        ("busy".to_owned(), Color::Series(0), vec![2.0, 1.0]),
        ("fault".to_owned(), Color::Series(1), vec![1.0, 3.0]),
    ];
    let x = Axis::new("").categories(["sor", "is"]);
    let svg = Chart::new("bars", x, Axis::new("s").from_zero())
        .stacked(&bars)
        .svg()
        .unwrap();
    assert!(svg.contains(">\nsor\n") || svg.contains("sor"), "{svg}");
    assert_eq!(
        svg.matches("var(--plot-s0)").count(),
        2 + 1,
        "two bars and a swatch"
    );
}

#[test]
fn what_cannot_be_drawn_is_left_out_or_told() {
    let axes = || (Axis::new("x"), Axis::new("y").log());
    let (x, y) = axes();
    let nothing = Chart::new("nothing", x, y).svg().unwrap_err();
    assert!(matches!(nothing, Error::Empty { .. }));
    assert_eq!(nothing.to_string(), "nothing: there is no point to draw");
    let (x, y) = axes();
    let points = vec![
        (1.0, 0.0),
        (f64::NAN, 1.0),
        (2.0, -3.0),
        (3.0, f64::INFINITY),
    ];
    let odd = Chart::new("odd", x, y).line("l", Color::Text, points.clone());
    assert!(odd.svg().is_err());
    let mut more = points;
    more.push((4.0, 4.0));
    let (x, y) = axes();
    Chart::new("odd", x, y)
        .line("l", Color::Text, more)
        .size(0, 0)
        .svg()
        .unwrap();
}

#[test]
fn words_are_where_their_part_of_the_picture_is() {
    let axis = || Axis::new("").range(0.0, 10.0);
    let plain =
        Chart::new("t", axis(), axis()).line("f", Color::Local, vec![(0.0, 0.0), (10.0, 10.0)]);
    let chart = plain
        .clone()
        .tip(0.0, 5.0, "a < b")
        .tip_at((9.0, 9.0), (2.0, 3.0), "a point");
    let svg = chart.svg().unwrap();
    assert_eq!(plain.svg().unwrap().matches("class=\"tip\"").count(), 0);
    assert!(svg.ends_with("</svg>") && svg.matches("</svg>").count() == 1);
    let number = |rect: &str, name: &str| -> i32 {
        let (_, rest) = rect.split_once(&format!(" {name}=\"")).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    let tips: Vec<&str> = svg.split("<rect class=\"tip\"").skip(1).collect();
    let [wide, point] = tips[..] else {
        panic!("{svg}");
    };
    assert!(wide.contains("<title>a &lt; b</title>") && point.contains("a point"));
    // Half of the width and all of the height; a point can still be pointed at.
    assert!(
        number(wide, "width") > 200 && number(wide, "height") > 200,
        "{wide}"
    );
    assert!((3..10).contains(&number(point, "width")), "{point}");
    assert!(number(point, "x") > number(wide, "x") + number(wide, "width"));
}
