//! Pages: headings, words, tables and charts as one HTML file that needs nothing else.
//!
//! A [`Page`] says what stands on it, not how it looks. [`Page::html`] makes one document with its styles and
//! pictures inside: no script, no font, no network. It follows the reader's preference for light or dark,
//! and prints. All text is escaped.
//! [`Page::markdown`] gives the same to documents.

mod content;
mod html;
mod markdown;

pub use content::{Block, CHOICES, Cell, Page, Table};
