//! Where in a file the changes are: the operands of an operator, the guard of an arm.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Context, Result};
use proc_macro2::LineColumn;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Arm, Expr, ExprBinary, ExprStruct, ExprUnary};

use crate::list::{Genre, Position};

/// What a change of some place needs to know, in bytes of the file.
#[derive(Clone, Debug)]
pub enum Site {
    /// An operator with two operands.
    Binary {
        left: Range<usize>,
        operator: Range<usize>,
        right: Range<usize>,
        /// An operand has `let`, which only a condition may have.
        binds: bool,
    },
    /// An operator with one.
    Unary {
        operator: Range<usize>,
        operand: Range<usize>,
    },
    /// An arm of a `match`.
    Arm {
        pattern: Range<usize>,
        guard: Option<Range<usize>>,
    },
    /// A field of a struct that takes others from a base.
    Field {
        value: Range<usize>,
        member: Range<usize>,
        of: Range<usize>,
        base: Range<usize>,
    },
}

/// All places of a file, by where the text that would be changed begins.
#[derive(Default)]
pub struct Sites {
    lines: Vec<usize>,
    text: String,
    found: BTreeMap<(Genre, usize), Site>,
}

impl Sites {
    /// Reads a file.
    ///
    /// # Errors
    /// If it is not Rust.
    pub fn of(text: &str) -> Result<Self> {
        let file = syn::parse_file(text).context("cannot be parsed")?;
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        let mut sites = Self {
            lines: std::iter::once(0).chain(starts).collect(),
            text: text.to_owned(),
            found: BTreeMap::new(),
        };
        sites.visit_file(&file);
        Ok(sites)
    }

    /// The byte at a position of cargo-mutants, whose columns count characters from 1.
    pub fn byte(&self, at: Position) -> usize {
        self.offset(at.line, at.column - 1)
    }

    pub fn at(&self, genre: Genre, byte: usize) -> Option<&Site> {
        self.found.get(&(genre, byte))
    }

    fn offset(&self, line: usize, characters: usize) -> usize {
        let start = self.lines[line - 1];
        let mut rest = self.text[start..].char_indices();
        start
            + rest
                .nth(characters)
                .map_or(self.text.len() - start, |(i, _)| i)
    }

    fn range(&self, of: &impl Spanned) -> Range<usize> {
        let byte = |at: LineColumn| self.offset(at.line, at.column);
        let span = of.span();
        byte(span.start())..byte(span.end())
    }
}

/// Whether a condition binds names.
fn binds(e: &Expr) -> bool {
    match e {
        Expr::Let(_) => true,
        Expr::Binary(b) => binds(&b.left) || binds(&b.right),
        _ => false,
    }
}

impl<'a> Visit<'a> for Sites {
    fn visit_expr_binary(&mut self, e: &'a ExprBinary) {
        let operator = self.range(&e.op);
        let site = Site::Binary {
            left: self.range(&e.left),
            operator: operator.clone(),
            right: self.range(&e.right),
            binds: binds(&e.left) || binds(&e.right),
        };
        self.found
            .insert((Genre::BinaryOperator, operator.start), site);
        visit::visit_expr_binary(self, e);
    }

    fn visit_expr_unary(&mut self, e: &'a ExprUnary) {
        let operator = self.range(&e.op);
        let operand = self.range(&e.expr);
        self.found.insert(
            (Genre::UnaryOperator, operator.start),
            Site::Unary { operator, operand },
        );
        visit::visit_expr_unary(self, e);
    }

    fn visit_arm(&mut self, arm: &'a Arm) {
        let guard = arm.guard.as_ref().map(|(_, guard)| guard);
        if guard.is_none_or(|g| !binds(g)) {
            let pattern = self.range(&arm.pat);
            let guard = guard.map(|g| self.range(g));
            let start = arm
                .attrs
                .first()
                .map_or(pattern.start, |a| self.range(a).start);
            if let Some(guard) = &guard {
                let site = Site::Arm {
                    pattern: pattern.clone(),
                    guard: Some(guard.clone()),
                };
                self.found.insert((Genre::MatchArmGuard, guard.start), site);
            }
            self.found
                .insert((Genre::MatchArm, start), Site::Arm { pattern, guard });
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, e: &'a ExprStruct) {
        if let Some(base) = &e.rest {
            for field in &e.fields {
                let site = Site::Field {
                    value: self.range(&field.expr),
                    member: self.range(&field.member),
                    of: self.range(&e.path),
                    base: self.range(base),
                };
                self.found
                    .insert((Genre::StructField, self.range(field).start), site);
            }
        }
        visit::visit_expr_struct(self, e);
    }
}
