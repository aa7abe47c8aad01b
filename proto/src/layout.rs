//! The shape of a variable and its split into objects.
//!
//! A variable is a matrix of `rows × columns` elements (a scalar is 1 × 1, a vector 1 × n), cut into
//! `row_parts × column_parts` rectangular objects, numbered row-major. Part sizes along a dimension
//! differ by one at most; the first parts are the larger ones. Within an object elements lie row-major,
//! little-endian.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Malformed, wire};

/// Largest object, in bytes: a message holds one object and a little more.
pub const MAX_OBJECT_BYTES: u64 = 64 << 20;

/// The type of a variable's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // each is the Rust type of its name; `U8` is "bytes"
pub enum ElementType {
    Bool,
    U8,
    I32,
    I64,
    U32,
    U64,
    F32,
    F64,
}

impl ElementType {
    /// Size of one element in bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Bool | Self::U8 => 1,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// The Rust name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "u8",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<ElementType> for wire::ElementType {
    fn from(t: ElementType) -> Self {
        match t {
            ElementType::Bool => Self::Bool,
            ElementType::U8 => Self::U8,
            ElementType::I32 => Self::I32,
            ElementType::I64 => Self::I64,
            ElementType::U32 => Self::U32,
            ElementType::U64 => Self::U64,
            ElementType::F32 => Self::F32,
            ElementType::F64 => Self::F64,
        }
    }
}

impl TryFrom<wire::ElementType> for ElementType {
    type Error = Malformed;
    fn try_from(t: wire::ElementType) -> Result<Self, Malformed> {
        Ok(match t {
            wire::ElementType::Bool => Self::Bool,
            wire::ElementType::U8 => Self::U8,
            wire::ElementType::I32 => Self::I32,
            wire::ElementType::I64 => Self::I64,
            wire::ElementType::U32 => Self::U32,
            wire::ElementType::U64 => Self::U64,
            wire::ElementType::F32 => Self::F32,
            wire::ElementType::F64 => Self::F64,
            wire::ElementType::Unspecified => return Err(Malformed::missing("element type")),
        })
    }
}

/// Shape and split of a variable. Always valid: see [`Layout::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Layout {
    element: ElementType,
    rows: u64,
    columns: u64,
    row_parts: u32,
    column_parts: u32,
}

/// The rectangle of a variable that one object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First row.
    pub row: u64,
    /// First column.
    pub column: u64,
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub columns: u64,
}

impl Region {
    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.rows * self.columns
    }
}

impl Layout {
    /// A matrix of `rows × columns` elements in `row_parts × column_parts` objects.
    ///
    /// # Errors
    /// If a dimension is zero, has more parts than elements, or an object would be larger than
    /// [`MAX_OBJECT_BYTES`].
    pub fn new(
        element: ElementType,
        (rows, columns): (u64, u64),
        (row_parts, column_parts): (u32, u32),
    ) -> Result<Self, Malformed> {
        for (what, length, parts) in [
            ("rows", rows, row_parts),
            ("columns", columns, column_parts),
        ] {
            if length == 0 {
                return Err(Malformed::new(
                    "layout",
                    format!("0 {what}; at least 1 is needed"),
                ));
            }
            if parts == 0 || u64::from(parts) > length {
                return Err(Malformed::new(
                    "layout",
                    format!("{length} {what} cannot be split into {parts} parts"),
                ));
            }
        }
        if u64::from(row_parts) * u64::from(column_parts) > u64::from(u32::MAX) {
            return Err(Malformed::new("layout", "more than 2^32 objects"));
        }
        let layout = Self {
            element,
            rows,
            columns,
            row_parts,
            column_parts,
        };
        // Object 0 is the largest one.
        let largest = rows
            .div_ceil(u64::from(row_parts))
            .checked_mul(columns.div_ceil(u64::from(column_parts)))
            .and_then(|n| n.checked_mul(u64::from(element.bytes())));
        match largest {
            Some(bytes) if bytes <= MAX_OBJECT_BYTES => Ok(layout),
            _ => Err(Malformed::new(
                "layout",
                format!(
                    "an object of {layout} is larger than {MAX_OBJECT_BYTES} bytes; split it into more parts"
                ),
            )),
        }
    }

    /// Type of the elements.
    pub fn element(&self) -> ElementType {
        self.element
    }
    /// Number of rows (1 for scalars and vectors).
    pub fn rows(&self) -> u64 {
        self.rows
    }
    /// Number of columns (the length of a vector).
    pub fn columns(&self) -> u64 {
        self.columns
    }
    /// Parts along the rows and along the columns.
    pub fn parts(&self) -> (u32, u32) {
        (self.row_parts, self.column_parts)
    }
    /// Number of objects.
    pub fn objects(&self) -> u32 {
        self.row_parts * self.column_parts
    }
    /// Size of all objects together, in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.rows
            .saturating_mul(self.columns)
            .saturating_mul(u64::from(self.element.bytes()))
    }

    /// The rectangle that object `index` holds; none if there is no such object.
    pub fn region(&self, index: u32) -> Option<Region> {
        if index >= self.objects() {
            return None;
        }
        let (row, rows) = part(self.rows, self.row_parts, index / self.column_parts);
        let (column, columns) = part(self.columns, self.column_parts, index % self.column_parts);
        Some(Region {
            row,
            column,
            rows,
            columns,
        })
    }

    /// Number of elements of object `index`; none if there is no such object.
    pub fn elements_of(&self, index: u32) -> Option<u32> {
        // Fits: an object has at most MAX_OBJECT_BYTES.
        self.region(index).map(|r| r.elements() as u32)
    }

    /// Size of object `index` in bytes; none if there is no such object.
    pub fn bytes_of(&self, index: u32) -> Option<u32> {
        self.elements_of(index).map(|n| n * self.element.bytes())
    }

    /// The object that holds element (`row`, `column`) and the element's position in it; none if it
    /// is outside the variable.
    pub fn locate(&self, row: u64, column: u64) -> Option<(u32, u32)> {
        if row >= self.rows || column >= self.columns {
            return None;
        }
        let row_part = part_of(self.rows, self.row_parts, row);
        let column_part = part_of(self.columns, self.column_parts, column);
        let (first_row, _) = part(self.rows, self.row_parts, row_part);
        let (first_column, width) = part(self.columns, self.column_parts, column_part);
        let within = (row - first_row) * width + (column - first_column);
        Some((row_part * self.column_parts + column_part, within as u32))
    }
}

/// First index and length of part `i` of `parts`.
fn part(length: u64, parts: u32, i: u32) -> (u64, u64) {
    let (parts, i) = (u64::from(parts), u64::from(i));
    let (base, longer) = (length / parts, length % parts);
    (i * base + i.min(longer), base + u64::from(i < longer))
}

/// The part that holds index `at`.
fn part_of(length: u64, parts: u32, at: u64) -> u32 {
    let parts = u64::from(parts);
    let (base, longer) = (length / parts, length % parts);
    let in_longer = longer * (base + 1);
    let i = if at < in_longer {
        at / (base + 1)
    } else {
        longer + (at - in_longer) / base
    };
    i as u32
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rows, self.columns) {
            (1, 1) => write!(f, "{}", self.element),
            (1, n) => write!(f, "{}[{n}]", self.element),
            (r, c) => write!(f, "{}[{r}][{c}]", self.element),
        }?;
        match (self.row_parts, self.column_parts) {
            (1, 1) => Ok(()),
            (1, c) if self.rows == 1 => write!(f, " in {c} parts"),
            (r, 1) => write!(f, " in {r} row parts"),
            (1, c) => write!(f, " in {c} column parts"),
            (r, c) => write!(f, " in {r} x {c} blocks"),
        }
    }
}

impl From<Layout> for wire::Layout {
    fn from(l: Layout) -> Self {
        Self {
            element: wire::ElementType::from(l.element).into(),
            rows: l.rows,
            columns: l.columns,
            row_parts: l.row_parts,
            column_parts: l.column_parts,
        }
    }
}

impl TryFrom<wire::Layout> for Layout {
    type Error = Malformed;
    fn try_from(l: wire::Layout) -> Result<Self, Malformed> {
        Self::new(
            l.element().try_into()?,
            (l.rows, l.columns),
            (l.row_parts, l.column_parts),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(dosmos_testseeds::config(256))]

        /// Every element lies in exactly the object `locate` names, at the place it names.
        #[test]
        fn objects_tile_the_variable(
            rows in 1u64..40, columns in 1u64..40, rp in 1u32..8, cp in 1u32..8,
        ) {
            let rp = rp.min(rows as u32);
            let cp = cp.min(columns as u32);
            let l = Layout::new(ElementType::F64, (rows, columns), (rp, cp)).unwrap();
            let mut seen = vec![false; (rows * columns) as usize];
            for index in 0..l.objects() {
                let r = l.region(index).unwrap();
                for i in 0..r.rows {
                    for j in 0..r.columns {
                        let (row, column) = (r.row + i, r.column + j);
                        prop_assert_eq!(
                            l.locate(row, column),
                            Some((index, (i * r.columns + j) as u32))
                        );
                        let slot = &mut seen[(row * columns + column) as usize];
                        prop_assert!(!*slot);
                        *slot = true;
                    }
                }
            }
            prop_assert!(seen.into_iter().all(|s| s));
            prop_assert_eq!(l.locate(rows, 0), None);
            prop_assert_eq!(l.region(l.objects()), None);
        }
    }

    #[test]
    fn impossible_layouts_are_refused_by_name() {
        let e = Layout::new(ElementType::F64, (3, 4), (5, 1)).unwrap_err();
        assert!(
            e.to_string()
                .contains("3 rows cannot be split into 5 parts"),
            "{e}"
        );
        let e = Layout::new(ElementType::U8, (0, 4), (1, 1)).unwrap_err();
        assert!(e.to_string().contains("0 rows"), "{e}");
        let e = Layout::new(ElementType::F64, (1, 1 << 30), (1, 2)).unwrap_err();
        assert!(e.to_string().contains("split it into more parts"), "{e}");
        let e = Layout::new(ElementType::F64, (u64::MAX, u64::MAX), (1, 1)).unwrap_err();
        assert!(e.to_string().contains("larger than"), "{e}");
    }
}
