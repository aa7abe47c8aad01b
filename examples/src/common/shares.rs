//! Whose part is whose.

use std::ops::Range;

use dsm_lib::Dsm;

use crate::error::{Error, Result};

/// The items of process `rank` when `processes` share `items`: the same split as that of a variable of
/// as many elements into as many objects.
pub(crate) fn share(items: usize, processes: usize, rank: usize) -> Range<usize> {
    let (each, more) = (items / processes, items % processes);
    let first = rank * each + rank.min(more);
    first..first + each + usize::from(rank < more)
}

/// Fails unless there is an item for each process.
pub(crate) fn enough(
    dsm: &Dsm,
    program: &'static str,
    argument: &str,
    items: usize,
    at_least: usize,
) -> Result<()> {
    let needed = dsm.size().max(at_least);
    if items >= needed {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{program}: {argument} {items} is too small for {} processes; give {needed} at least",
        dsm.size()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_objects_of_a_vector() {
        use dsm_lib::{ElementType, Layout};
        for (items, processes) in [(10, 1), (10, 3), (11, 4), (7, 7)] {
            let layout =
                Layout::new(ElementType::U8, (1, items as u64), (1, processes as u32)).unwrap();
            for rank in 0..processes {
                let region = layout.region(rank as u32).unwrap();
                let first = region.column as usize;
                let expected = first..first + region.columns as usize;
                assert_eq!(share(items, processes, rank), expected);
            }
        }
    }
}
