//! Drawing with `plotters`.

use std::error::Error as StdError;

use plotters::chart::ChartContext;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::series::DashedLineSeries;
use plotters::style::Color as _;

use crate::chart::{Chart, Error, Layer, Mark};
use crate::{Color, theme};

type Plane<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn = Result<(), Box<dyn StdError>>;

const FONT: &str = "sans-serif";

impl Chart {
    /// Draws the chart.
    ///
    /// # Errors
    /// [`Error::Empty`] if no layer has a point that the axes can place.
    pub fn svg(&self) -> Result<String, Error> {
        let placed: Vec<(f64, f64)> = self
            .layers
            .iter()
            .flat_map(Layer::extremes)
            .filter_map(|p| place(self, p))
            .collect();
        let x = self.x.span(placed.iter().map(|p| p.0));
        let y = self.y.span(placed.iter().map(|p| p.1));
        let (Some(x), Some(y), false) = (x, y, placed.is_empty()) else {
            return Err(Error::Empty {
                title: self.title.clone(),
            });
        };
        let mut text = String::new();
        let tips = draw(self, x, y, &mut text).map_err(|e| Error::Drawing {
            title: self.title.clone(),
            why: e.to_string(),
        })?;
        Ok(finished(self, &text, &tips))
    }
}

/// Fits any width, follows the page's colours, and says what it is to those who cannot see it.
fn finished(chart: &Chart, drawn: &str, tips: &str) -> String {
    let (width, height) = chart.size;
    let title = escaped(&chart.title);
    let body = drawn.split_once('>').map_or("", |(_, body)| body);
    let body = body.trim_end();
    let body = body.strip_suffix("</svg>").unwrap_or(body);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         style=\"width:100%;max-width:{width}px;height:auto\"><title>{title}</title>{}{}{tips}</svg>",
        theme::style(),
        theme::with_variables(body)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn place(chart: &Chart, (x, y): (f64, f64)) -> Option<(f64, f64)> {
    Some((chart.x.place(x)?, chart.y.place(y)?))
}

/// Draws into `text`; returns what shows words where the pointer is.
fn draw(
    chart: &Chart,
    x: (f64, f64),
    y: (f64, f64),
    text: &mut String,
) -> Result<String, Box<dyn StdError>> {
    let root = SVGBackend::with_string(text, chart.size).into_drawing_area();
    let ink = Color::Text.rgb();
    let faint = Color::Faint.rgb();
    let style = |size: u32| (FONT, size).into_font().color(&ink);
    let legend: Vec<(&str, Color)> = chart.layers.iter().filter_map(Layer::legend).collect();
    let small = chart.size.1 < 200;
    let area = heading(&root, chart, &legend)?;
    let mut builder = ChartBuilder::on(&area);
    builder
        .margin(8)
        .margin_right(14)
        .x_label_area_size(if chart.x.label.is_empty() { 24 } else { 40 })
        .y_label_area_size(if chart.y.label.is_empty() { 44 } else { 62 });
    let mut plane = builder.build_cartesian_2d(x.0..x.1, y.0..y.1)?;
    let (tick_x, tick_y) = (|v: &f64| chart.x.tick(*v), |v: &f64| chart.y.tick(*v));
    let named = chart.x.categories.len();
    plane
        .configure_mesh()
        .x_desc(&chart.x.label)
        .y_desc(&chart.y.label)
        .x_labels(if named > 0 { named + 1 } else { 10 })
        .y_labels(match chart.y.categories.len() {
            0 if small => 4,
            0 => 8,
            n => n + 1,
        })
        .x_label_formatter(&tick_x)
        .y_label_formatter(&tick_y)
        .label_style(style(12))
        .axis_desc_style(style(13))
        .axis_style(ink)
        .bold_line_style(faint)
        .light_line_style(TRANSPARENT)
        .draw()?;
    for layer in &chart.layers {
        layer_on(&mut plane, chart, layer, y)?;
    }
    let tips = tips(&plane, chart, x, y);
    drop(plane);
    root.present()?;
    Ok(tips)
}

/// A part of the picture is at least this wide for a pointer, in pixels.
const POINTED: i32 = 5;

/// Rectangles that nobody sees, with their words.
fn tips(plane: &Plane<'_, '_>, chart: &Chart, x: (f64, f64), y: (f64, f64)) -> String {
    let pixel = |at: f64, height: f64| {
        let at = chart.x.place(at)?.clamp(x.0, x.1);
        let height = chart.y.place(height)?.clamp(y.0, y.1);
        Some(plane.backend_coord(&(at, height)))
    };
    let one = |tip: &crate::chart::Tip| {
        let (low, high) = tip.y.unwrap_or(y);
        let (left, top) = pixel(tip.x.0, high)?;
        let (right, bottom) = pixel(tip.x.1, low)?;
        let more = (POINTED - (right - left)).max(0);
        let (left, width) = (left - more / 2, right - left + more);
        let height = (bottom - top).max(POINTED);
        let words = escaped(&tip.text);
        Some(format!(
            "<rect class=\"tip\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" \
             fill-opacity=\"0\"><title>{words}</title></rect>"
        ))
    };
    chart.tips.iter().filter_map(one).collect()
}

/// Writes the title, and below it the legend, over as many lines as it takes; returns what is left.
fn heading<'a>(
    root: &DrawingArea<SVGBackend<'a>, Shift>,
    chart: &Chart,
    legend: &[(&str, Color)],
) -> Result<DrawingArea<SVGBackend<'a>, Shift>, Box<dyn StdError>> {
    let ink = Color::Text.rgb();
    let mut area = root.clone();
    if !chart.title.is_empty() {
        area = area.titled(&chart.title, (FONT, 15).into_font().color(&ink))?;
    }
    let places = legend_places(legend, chart.size.0 as i32 - LEGEND_LEFT);
    let Some(&(_, last)) = places.last() else {
        return Ok(area);
    };
    let (strip, rest) = area.split_vertically(last + LEGEND_LINE);
    for ((label, color), (x, y)) in legend.iter().zip(places) {
        let x = x + LEGEND_LEFT;
        let swatch = [(x, y + 4), (x + 12, y + 12)];
        strip.draw(&Rectangle::new(swatch, color.rgb().filled()))?;
        let font = (FONT, 12).into_font().color(&ink);
        strip.draw(&Text::new((*label).to_owned(), (x + 18, y + 2), font))?;
    }
    Ok(rest)
}

const LEGEND_LEFT: i32 = 62;
const LEGEND_LINE: i32 = 17;

/// Where each entry of a legend begins if lines are `width` wide. Letters are taken to be 7 wide.
fn legend_places(legend: &[(&str, Color)], width: i32) -> Vec<(i32, i32)> {
    let (mut x, mut y) = (0, 0);
    let mut places = Vec::new();
    for (label, _) in legend {
        let takes = 34 + 7 * label.chars().count() as i32;
        if x > 0 && x + takes > width {
            (x, y) = (0, y + LEGEND_LINE);
        }
        places.push((x, y));
        x += takes;
    }
    places
}

fn layer_on(plane: &mut Plane<'_, '_>, chart: &Chart, layer: &Layer, y: (f64, f64)) -> Drawn {
    let at = |p: (f64, f64)| place(chart, p);
    match layer {
        Layer::Line {
            color,
            points,
            dashed,
            ..
        } => {
            let points: Vec<_> = points.iter().filter_map(|p| at(*p)).collect();
            let style = color.rgb().stroke_width(2);
            if *dashed {
                let series = DashedLineSeries::new(points, 6, 4, style);
                plane.draw_series(series)?;
            } else {
                let series = LineSeries::new(points, style);
                plane.draw_series(series)?;
            }
        }
        Layer::Band { color, points, .. } => {
            let upper = points.iter().filter_map(|p| at((p.0, p.2)));
            let lower = points.iter().rev().filter_map(|p| at((p.0, p.1)));
            let outline: Vec<_> = upper.chain(lower).collect();
            let area = Polygon::new(outline, color.rgb().mix(0.25));
            plane.draw_series([area])?;
        }
        Layer::Marks {
            color,
            mark,
            points,
            ..
        } => {
            let points: Vec<_> = points.iter().filter_map(|p| at(*p)).collect();
            marks_on(plane, *mark, *color, points)?;
        }
        Layer::Errors { color, points } => {
            for &(x, low, high) in points {
                if let (Some(low), Some(high)) = (at((x, low)), at((x, high))) {
                    let whisker = PathElement::new(vec![low, high], color.rgb());
                    plane.draw_series([whisker])?;
                }
            }
        }
        Layer::Boxes { color, boxes, .. } => {
            let corners = boxes.iter().filter_map(|&(a, b, low, high)| {
                // A bar on a logarithmic axis stands on the bottom of the picture.
                let (bottom, top) = (at((a, low)), at((b, high))?);
                let bottom = bottom.unwrap_or((chart.x.place(a)?, y.0));
                Some(Rectangle::new([bottom, top], color.rgb().filled()))
            });
            plane.draw_series(corners)?;
        }
        Layer::Upright { color, x } => {
            if let Some(x) = chart.x.place(*x) {
                let line = PathElement::new(vec![(x, y.0), (x, y.1)], color.rgb().stroke_width(1));
                plane.draw_series([line])?;
            }
        }
    }
    Ok(())
}

fn marks_on(plane: &mut Plane<'_, '_>, mark: Mark, color: Color, points: Vec<(f64, f64)>) -> Drawn {
    let style = color.rgb();
    let strokes: &'static [[(i32, i32); 2]] = match mark {
        Mark::Cross => &[[(-3, -3), (3, 3)], [(-3, 3), (3, -3)]],
        Mark::Plus => &[[(-4, 0), (4, 0)], [(0, -4), (0, 4)]],
        Mark::Star => &[[(-4, 0), (4, 0)], [(-2, -3), (2, 3)], [(-2, 3), (2, -3)]],
        Mark::Dot => {
            let dots = points
                .into_iter()
                .map(|p| Circle::new(p, 3, style.filled()));
            plane.draw_series(dots)?;
            return Ok(());
        }
        Mark::Square => {
            let squares = points
                .into_iter()
                .map(|p| EmptyElement::at(p) + Rectangle::new([(-3, -3), (3, 3)], style.filled()));
            plane.draw_series(squares)?;
            return Ok(());
        }
    };
    for stroke in strokes {
        let lines = points
            .iter()
            .map(|p| EmptyElement::at(*p) + PathElement::new(stroke.to_vec(), style));
        plane.draw_series(lines)?;
    }
    Ok(())
}
