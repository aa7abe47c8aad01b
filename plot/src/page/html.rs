//! The document.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::content::{Block, CHOICES, Cell, Page, Table};
use crate::{Chart, theme};

const STYLE: &str = include_str!("page.css");

impl Page {
    /// The whole document. A chart that cannot be drawn is replaced by a line that says why.
    pub fn html(&self) -> String {
        visible(&document(self).into_string())
    }
}

/// Without marks that reorder text or are not seen, which names from outside may have: they become `?`.
fn visible(html: &str) -> String {
    let hidden = |c: char| match c {
        '\n' | '\t' => false,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    };
    html.replace(hidden, "?")
}

fn document(page: &Page) -> Markup {
    let mut writer = Writer { choices: 0 };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (page.title) }
                (PreEscaped(theme::style()))
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (page.title) }
                    p.subtitle { (page.subtitle) }
                    @if page.sections.len() > 2 {
                        nav {
                            @for (i, section) in page.sections.iter().enumerate() {
                                a href={ "#s" (i) } { (section.heading) }
                            }
                        }
                    }
                }
                main {
                    @for (i, section) in page.sections.iter().enumerate() {
                        section id={ "s" (i) } {
                            h2 { (section.heading) }
                            (writer.blocks(&section.blocks))
                        }
                    }
                }
            }
        }
    }
}

struct Writer {
    /// Choices so far, for their names.
    choices: usize,
}

impl Writer {
    fn blocks(&mut self, all: &[Block]) -> Markup {
        html! { @for block in all { (self.one(block)) } }
    }

    fn one(&mut self, block: &Block) -> Markup {
        match block {
            // No line begins with a unit.
            Block::Text(text) => html! { p { (text.replace(" %", "\u{a0}%")) } },
            Block::Warning(text) => html! { p.warning role="note" { (text) } },
            Block::Verbatim(text) => html! { pre { (text) } },
            Block::Tiles(tiles) => html! {
                dl.tiles {
                    @for (name, value, of) in tiles {
                        div { dt { (name) } dd { (value) } dd.of { (of) } }
                    }
                }
            },
            Block::Chart(chart, caption) => picture(chart, caption),
            Block::Table(table) => rows(table),
            Block::Card {
                heading,
                badge,
                color,
                blocks: inside,
            } => html! {
                article style={ "border-left-color:" (color.variable()) } {
                    h3 { (heading) @if !badge.is_empty() { span.badge { (badge) } } }
                    (self.blocks(inside))
                }
            },
            Block::Columns(columns) => html! {
                div.columns { @for blocks in columns { div { (self.blocks(blocks)) } } }
            },
            Block::Choice { name, views } => self.choice(name, views),
            Block::Details {
                summary,
                blocks: inside,
            } => html! {
                details { summary { (summary) } (self.blocks(inside)) }
            },
        }
    }

    /// Radio buttons that show a view each: no script.
    fn choice(&mut self, name: &str, views: &[(String, Vec<Block>)]) -> Markup {
        let views = &views[..views.len().min(CHOICES)];
        self.choices += 1;
        let group = format!("c{}", self.choices);
        html! {
            div.choice role="group" aria-label=(name) {
                @for (i, (label, _)) in views.iter().enumerate() {
                    input type="radio" name=(group) id={ (group) "-" (i) } checked[i == 0];
                    label for={ (group) "-" (i) } { (label) }
                }
                @for (_, inside) in views { div.view { (self.blocks(inside)) } }
            }
        }
    }
}

fn picture(chart: &Chart, caption: &str) -> Markup {
    html! {
        figure {
            @match chart.svg() {
                Ok(svg) => (PreEscaped(svg)),
                Err(why) => p.nothing { (why) },
            }
            @if !caption.is_empty() { figcaption { (caption) } }
        }
    }
}

fn rows(table: &Table) -> Markup {
    let class = |i: usize| table.numeric(i).then_some("n");
    html! {
        div.table {
            table {
                thead {
                    tr { @for (i, h) in table.headers.iter().enumerate() { th class=[class(i)] { (h) } } }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (i, cell) in row.iter().enumerate() {
                                td class=[class(i)] style=[ground(cell)] { (cell.text) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn ground(cell: &Cell) -> Option<String> {
    let (color, share) = cell.shade?;
    let percent = (share.clamp(0.0, 1.0) * 60.0).round();
    (percent > 0.0).then(|| {
        format!(
            "background:color-mix(in srgb,{} {percent}%,transparent)",
            color.variable()
        )
    })
}
