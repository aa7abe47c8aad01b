//! A page as Markdown: the same words and tables; pictures as links.

use std::fmt::Write;

use super::content::{Block, Page, Table};

impl Page {
    /// The same as Markdown. `picture` gets the number (from 1) and the SVG of each chart, keeps it, and returns the link
    /// to write.
    pub fn markdown(&self, mut picture: impl FnMut(usize, &str) -> String) -> String {
        document(self, &mut picture)
    }
}

fn document(page: &Page, picture: &mut dyn FnMut(usize, &str) -> String) -> String {
    let mut out = format!("# {}\n", page.title);
    let mut add = Writer {
        out: &mut out,
        pictures: 0,
        picture,
    };
    add.paragraph(&page.subtitle);
    for section in &page.sections {
        add.paragraph(&format!("## {}", section.heading));
        add.blocks(&section.blocks);
    }
    out
}

struct Writer<'a> {
    out: &'a mut String,
    pictures: usize,
    picture: &'a mut dyn FnMut(usize, &str) -> String,
}

impl Writer<'_> {
    fn paragraph(&mut self, text: &str) {
        if !text.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(self.out, "\n{text}");
        }
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            self.block(block);
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Text(text) => self.paragraph(text),
            Block::Warning(text) => self.paragraph(&format!("> **{text}**")),
            Block::Verbatim(text) => self.paragraph(&format!("```\n{}\n```", text.trim_end())),
            Block::Tiles(tiles) => {
                let lines: Vec<String> = tiles
                    .iter()
                    .map(|(name, value, of)| format!("* {name}: **{value}** {of}"))
                    .collect();
                self.paragraph(&lines.join("\n"));
            }
            Block::Chart(chart, caption) => {
                match chart.svg() {
                    Ok(svg) => {
                        self.pictures += 1;
                        let link = (self.picture)(self.pictures, &svg);
                        self.paragraph(&format!("![{}]({link})", chart.title));
                    }
                    Err(why) => self.paragraph(&format!("*{why}*")),
                }
                self.paragraph(caption);
            }
            Block::Table(table) => self.paragraph(&rows(table)),
            Block::Card {
                heading,
                badge,
                blocks,
                ..
            } => {
                let beside = if badge.is_empty() {
                    String::new()
                } else {
                    format!(" ({badge})")
                };
                self.paragraph(&format!("### {heading}{beside}"));
                self.blocks(blocks);
            }
            Block::Choice { views, .. } => {
                for (label, blocks) in views {
                    self.paragraph(&format!("**{label}**"));
                    self.blocks(blocks);
                }
            }
            Block::Columns(columns) => columns.iter().for_each(|blocks| self.blocks(blocks)),
            Block::Details { summary, blocks } => {
                self.paragraph(&format!("{summary}:"));
                self.blocks(blocks);
            }
        }
    }
}

fn rows(table: &Table) -> String {
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let mut lines = vec![line(table.headers.iter().map(|h| cell(h)).collect())];
    let rules = (0..table.headers.len()).map(|i| {
        let rule = if table.numeric(i) { "---:" } else { "---" };
        rule.to_owned()
    });
    lines.push(line(rules.collect()));
    for row in &table.rows {
        lines.push(line(row.iter().map(|c| cell(&c.text)).collect()));
    }
    lines.join("\n")
}
