//! Pages as a browser gets them.

use dosmos_plot::{Axis, Block, Cell, Chart, Color, Page, Table};

#[test]
fn a_page_holds_everything_and_escapes_words() {
    let mut table = Table::new(["name", "n"]);
    table.row([Cell::from("a<b"), Cell::shaded("12", Color::Inter, 0.5)]);
    let line = Chart::new("curve", Axis::new("x"), Axis::new("y")).line(
        "f",
        Color::Series(0),
        vec![(0.0, 1.0), (1.0, 2.0)],
    );
    let nothing = Chart::new("empty", Axis::new("x"), Axis::new("y"));
    let mut page = Page::new("T & T", "sub");
    page.section(
        "One",
        vec![Block::Table(table), Block::chart(line, "words")],
    );
    page.section(
        "Two",
        vec![Block::chart(nothing, ""), Block::Verbatim("<p>".into())],
    );
    page.section("Nothing", Vec::new());
    let html = page.html();
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>"));
    assert!(
        html.contains("T &amp; T")
            && html.contains("a&lt;b")
            && html.contains("<pre>&lt;p&gt;</pre>")
    );
    assert!(html.contains("color-mix(in srgb,var(--plot-inter) 30%,transparent)"));
    assert_eq!(html.matches("<svg").count(), 1);
    assert!(html.contains("empty: there is no point to draw"));
    assert!(!html.contains("Nothing"), "a section without a block");
    // Numbers to the right, words to the left.
    assert!(html.contains("<th>name</th><th class=\"n\">n</th>"));
}

#[test]
fn a_choice_shows_its_first_view_and_markdown_shows_all() {
    let view = |label: &str| {
        (
            label.to_owned(),
            vec![Block::text(format!("words of {label}"))],
        )
    };
    let choice = |name: &str| Block::Choice {
        name: name.to_owned(),
        views: vec![view("reads"), view("writes")],
    };
    let mut page = Page::new("T", "");
    page.section("One", vec![choice("a"), choice("b")]);
    let html = page.html();
    // Each choice by itself: its buttons have a name of their own, the first is chosen.
    for group in ["c1", "c2"] {
        assert_eq!(
            html.matches(&format!("name=\"{group}\"")).count(),
            2,
            "{html}"
        );
        assert!(
            html.contains(&format!("id=\"{group}-0\" checked>")),
            "{html}"
        );
    }
    assert_eq!(html.matches(" checked>").count(), 2);
    for k in 1..=dosmos_plot::CHOICES {
        let rule = format!(".choice > input:nth-of-type({k}):checked ~ .view:nth-of-type({k})");
        assert!(html.contains(&rule), "{rule}");
    }
    let markdown = page.markdown(|_, _| String::new());
    assert!(markdown.contains("words of reads") && markdown.contains("words of writes"));
}

/// Names come from files and sockets that others wrote.
#[test]
fn names_are_text_wherever_they_stand_on_a_page() {
    let evil = "<script>alert(1)</script>\"'&\u{202e}gnp\u{1b}[2J";
    let mut table = Table::new([evil]);
    table.row([Cell::from(evil), Cell::shaded(evil, Color::Inter, 0.5)]);
    let points = vec![(0.0, 1.0), (1.0, 2.0)];
    let chart =
        Chart::new(evil, Axis::new(evil), Axis::new(evil)).line(evil, Color::Series(0), points);
    let empty = Chart::new(evil, Axis::new(evil), Axis::new(evil));
    let mut page = Page::new(evil, evil);
    let blocks = vec![
        Block::Table(table),
        Block::chart(chart, evil),
        Block::chart(empty, evil),
        Block::text(evil),
        Block::Warning(evil.to_owned()),
        Block::Verbatim(evil.to_owned()),
        Block::Tiles(vec![(evil.to_owned(), evil.to_owned(), evil.to_owned())]),
        Block::Choice {
            name: evil.to_owned(),
            views: vec![(evil.to_owned(), vec![Block::text(evil)])],
        },
    ];
    page.section(evil, blocks);
    let html = page.html();
    assert!(!html.contains("<script"), "{html}");
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!html.contains('\u{202e}') && !html.contains('\u{1b}'));
    // Within attributes too: a quotation mark ends none.
    let attributes = html
        .split('<')
        .skip(1)
        .filter_map(|tag| tag.split('>').next());
    for tag in attributes {
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
    }
}
