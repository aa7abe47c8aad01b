//! Figures and names as short text: aligned, with their unit, cut with an ellipsis where too long.

use chrono::{DateTime, Local};
use dosmos_interchange::escape::csv_cell;
pub use dosmos_interchange::escape::{clean, clean_line};
use dosmos_proto::Nanos;
use unicode_width::UnicodeWidthStr;

/// Rows of CSV (RFC 4180). Text that a spreadsheet would take for a formula gets a leading `'`; numbers stay.
pub fn csv<R, C>(rows: R) -> String
where
    R: IntoIterator<Item = C>,
    C: IntoIterator<Item = String>,
{
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .flexible(true)
        .from_writer(Vec::new());
    for row in rows {
        // Writing to memory does not fail.
        let cells = row.into_iter().map(|cell| csv_cell(&cell).into_owned());
        let _ = writer.write_record(cells.collect::<Vec<_>>());
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// What went wrong and why. A cause that the message above it ends with is not said again.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(why) = cause {
        let said = why.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        cause = why.source();
    }
    text
}

/// An instant since the Unix epoch, in local time, to the second.
pub fn local_time(at: Nanos) -> String {
    let at = i64::try_from(at.0).unwrap_or(i64::MAX);
    let at = DateTime::from_timestamp_nanos(at).with_timezone(&Local);
    at.format("%Y-%m-%d %H:%M:%S").to_string()
}

/// `text` on at most `width` columns; `…` stands for what is cut off, `?` for control characters.
pub fn fit(text: &str, width: usize) -> String {
    let clean = clean_line(text);
    if clean.width() <= width {
        return clean;
    }
    if width == 0 {
        return String::new();
    }
    let mut short = String::new();
    for c in clean.chars() {
        short.push(c);
        if short.width() >= width {
            short.pop();
            break;
        }
    }
    short.push('…');
    short
}

/// The end of `text` on at most `width` columns; `…` stands for what is cut off before it.
pub fn fit_end(text: &str, width: usize) -> String {
    let clean = clean_line(text);
    if clean.width() <= width {
        return clean;
    }
    if width == 0 {
        return String::new();
    }
    let mut short = String::new();
    for c in clean.chars().rev() {
        short.insert(0, c);
        if short.width() >= width {
            short.remove(0);
            break;
        }
    }
    format!("…{short}")
}

/// A name on at most `width` columns: the beginning gives way before its last part, the index (`[12]`) or what follows the
/// last `/`.
pub fn fit_name(name: &str, width: usize) -> String {
    let clean = clean_line(name);
    if clean.width() <= width {
        return clean;
    }
    let index = clean.ends_with(']').then(|| clean.rfind('[')).flatten();
    let last = index.or_else(|| clean.rfind('/'));
    match last.map(|at| clean.split_at(at)) {
        Some((_, last)) if last.width() >= width => fit_end(last, width),
        Some((before, last)) => format!("{}{last}", fit(before, width - last.width())),
        None => fit(&clean, width),
    }
}

/// `text` on lines of at most `width` columns, broken between words.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(fit(word, width)),
        }
    }
    lines
}

/// `text` on exactly `width` columns, at the left.
pub fn left(text: &str, width: usize) -> String {
    let mut fitted = fit(text, width);
    let missing = width.saturating_sub(fitted.width());
    fitted.extend(std::iter::repeat_n(' ', missing));
    fitted
}

/// `text` on exactly `width` columns, at the right.
pub fn right(text: &str, width: usize) -> String {
    let fitted = fit(text, width);
    let missing = width.saturating_sub(fitted.width());
    format!("{}{fitted}", " ".repeat(missing))
}

/// The columns `text` takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Three digits and a unit: `999`, `9,999`, `12.3k`, `4.56M`. Five columns at most.
pub fn count(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..10_000 => format!("{},{:03}", n / 1_000, n % 1_000),
        _ => {
            let units = [
                (1e3, 'k'),
                (1e6, 'M'),
                (1e9, 'G'),
                (1e12, 'T'),
                (1e15, 'P'),
                (1e18, 'E'),
            ];
            let x = n as f64;
            let scaled = units.iter().map(|(u, c)| (x / u, c));
            // 999.5k would be written with four digits.
            match scaled.clone().find(|(v, _)| *v < 999.5) {
                Some((v, c)) => format!("{}{c}", three_digits(v)),
                None => format!("{x:.0e}"),
            }
        }
    }
}

/// 1.23, 12.3 or 123.
fn three_digits(v: f64) -> String {
    if v < 9.995 {
        format!("{v:.2}")
    } else if v < 99.95 {
        format!("{v:.1}")
    } else {
        format!("{v:.0}")
    }
}

/// A rate per second, like a count; small ones with a decimal.
pub fn rate(a_second: Option<f64>) -> String {
    match a_second {
        None => "–".into(),
        Some(r) if r > 0.0 && r < 9.95 => format!("{r:.1}"),
        Some(r) => count(r.round() as u64),
    }
}

/// A length of time with its unit: `12.3 µs`. Seven columns below 1,000 s.
pub fn time(t: Nanos) -> String {
    let units = [(1e3, "ns"), (1e6, "µs"), (1e9, "ms")];
    let x = t.0 as f64;
    if t.0 < 1_000 {
        return format!("{} ns", t.0);
    }
    match units.iter().find(|(u, _)| x / u < 0.9995) {
        Some((u, unit)) => format!("{} {unit}", three_digits(x * 1e3 / u)),
        None if x < 999.5e9 => format!("{} s", three_digits(x / 1e9)),
        None => format!("{:.0} s", x / 1e9),
    }
}

/// The same; `–` if there is none.
pub fn time_or_dash(t: Option<Nanos>) -> String {
    t.map_or_else(|| "–".into(), time)
}

/// A size with its unit: `4.5 MiB`.
pub fn bytes(n: u64) -> String {
    let mut x = n as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if x < 999.5 {
            let digits = if unit == "B" {
                format!("{x:.0}")
            } else {
                three_digits(x)
            };
            return format!("{digits} {unit}");
        }
        x /= 1024.0;
    }
    format!("{} PiB", three_digits(x))
}

/// A share in percent; what is not nothing is not written as nothing, what is not all not as all.
pub fn percent(part: u64, all: u64) -> String {
    if all == 0 {
        return "–".into();
    }
    let p = 100.0 * part as f64 / all as f64;
    if part > 0 && p < 0.5 {
        "<1%".into()
    } else if part < all && p >= 99.5 {
        ">99%".into()
    } else {
        format!("{p:.0}%")
    }
}

/// Words for a number of things: `1 object`, `3 objects`, `3 processes`.
pub fn plural(n: u64, thing: &str) -> String {
    let ending = match thing {
        _ if n == 1 => "",
        hissing if hissing.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {thing}{ending}", count(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_take_five_columns_at_most() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (9_999, "9,999"),
            (10_000, "10.0k"),
            (123_456, "123k"),
            (999_499, "999k"),
            (999_999, "1.00M"),
            (12_345_678, "12.3M"),
        ];
        for (n, text) in cases {
            assert_eq!(count(n), text);
        }
        for power in 0..64 {
            assert!(width(&count(1 << power)) <= 5, "{}", count(1 << power));
        }
        assert!(width(&count(u64::MAX)) <= 5);
    }

    #[test]
    fn times_have_a_unit_and_seven_columns() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (12_345, "12.3 µs"),
            (999_960, "1.00 ms"),
            (1_234_000_000, "1.23 s"),
            (3_600_000_000_000, "3600 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(time(Nanos(ns)), text);
        }
        for power in 0..39 {
            assert!(width(&time(Nanos(1 << power))) <= 7);
        }
    }

    #[test]
    fn names_are_cut_by_their_width_on_screen() {
        assert_eq!(fit("温度場", 6), "温度場");
        assert_eq!(fit("温度場", 5), "温度…");
        assert_eq!(fit("温度場", 4), "温…");
        assert_eq!(fit("abc", 0), "");
        assert_eq!(fit("a\tb", 9), "a?b");
        assert_eq!(left("ab", 4), "ab  ");
        assert_eq!(right("abcdef", 4), "abc…");
        for w in 0..9 {
            assert_eq!(width(&left("e\u{301}温👨‍👩‍👧x", w)), w);
        }
    }

    #[test]
    fn the_end_of_a_name_is_not_cut() {
        assert_eq!(fit_name("grid[12]", 8), "grid[12]");
        assert_eq!(fit_name("residual[12]", 8), "res…[12]");
        assert_eq!(fit_name("/ocean/north", 9), "/o…/north");
        assert_eq!(fit_name("table/north[3]", 8), "tabl…[3]");
        assert_eq!(fit_name("/a/northern", 5), "…hern");
        assert_eq!(fit_name("abcdefgh", 5), "abcd…");
        assert_eq!(fit_end("a › b › c", 5), "… › c");
        for width in 0..20 {
            for name in ["温度[3]", "/温度/場", "e\u{301}e[9]", "plain"] {
                assert!(width_of(&fit_name(name, width)) <= width, "{name} {width}");
                assert!(width_of(&fit_end(name, width)) <= width, "{name} {width}");
            }
        }
    }

    fn width_of(text: &str) -> usize {
        super::width(text)
    }

    #[test]
    fn words_stay_whole_where_they_fit() {
        assert_eq!(wrap("a bc  def\ng", 4), ["a bc", "def", "g"]);
        assert_eq!(wrap("abcdefgh i", 4), ["abc…", "i"]);
        assert_eq!(wrap("", 4), Vec::<String>::new());
    }

    #[test]
    fn shares_and_sizes() {
        assert_eq!(percent(0, 10), "0%");
        assert_eq!(percent(1, 1_000), "<1%");
        assert_eq!(percent(999, 1_000), ">99%");
        assert_eq!(percent(10, 10), "100%");
        assert_eq!(percent(0, 0), "–");
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(4_718_592), "4.50 MiB");
        assert_eq!(rate(Some(0.25)), "0.2");
        assert_eq!(rate(None), "–");
    }
}
