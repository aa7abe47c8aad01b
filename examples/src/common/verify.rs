//! The comparison with a sequential run, to the last bit.

use dsm_lib::{Dsm, Element, Variable};

use crate::error::Result;
use crate::figures::Bits;
use crate::program::wrong;

/// Fails unless the elements of `variable`, row by row, are those of `expected`.
pub(crate) fn same_bits<T: Bits + Element>(
    dsm: &Dsm,
    program: &'static str,
    variable: &Variable<T>,
    expected: &[T],
) -> Result<()> {
    let is = variable.read_all()?;
    let Some(at) = first_difference(&is, expected) else {
        return Ok(());
    };
    let (layout, name) = (variable.layout(), variable.name());
    let place = match layout.rows() {
        1 => format!("{at}"),
        _ => {
            let columns = layout.columns() as usize;
            format!("({}, {})", at / columns, at % columns)
        }
    };
    let (is, should) = (is.get(at), expected.get(at));
    let what = format!("element {place} of {name} is {is:?}, in a sequential run {should:?}");
    Err(wrong(dsm, program, what))
}

/// Position of the first element that differs by a bit, or that only one of them has.
pub(crate) fn first_difference<T: Bits>(is: &[T], expected: &[T]) -> Option<usize> {
    let mut pairs = is.iter().zip(expected);
    pairs
        .position(|(a, b)| a.bits() != b.bits())
        .or_else(|| (is.len() != expected.len()).then(|| is.len().min(expected.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_bit_and_a_missing_element_are_noticed() {
        let right = [1.0, f64::NAN, 0.0];
        assert_eq!(first_difference(&right, &right), None);
        assert_eq!(first_difference(&[1.0, f64::NAN, -0.0], &right), Some(2));
        assert_eq!(first_difference(&right[..2], &right), Some(2));
    }
}
