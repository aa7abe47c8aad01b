//! What neighbours tell each other about the edges of their bands.
//!
//! Nobody reads a whole band for one row: each process writes its first and its last rows into objects of
//! their own, at its own memory process, where exactly one neighbour reads them. Since that one always
//! comes back, their copies should be updated, not invalidated.

use dsm_lib::{Call, CopyPolicy, Dsm, Element, Matrix, Object, View};

use crate::error::Result;

/// The edges of the bands of all processes, in the order of their ranks.
pub(crate) struct Edges<T> {
    /// Row `2 r`: the first edge of process `r`; row `2 r + 1`: its last one.
    rows: Matrix<T>,
    rank: usize,
    processes: usize,
}

impl<T: Element> Edges<T> {
    /// Declares variable `name` of edges of `length` elements each.
    pub(crate) fn declare(
        dsm: &Dsm,
        name: &str,
        length: usize,
        policy: CopyPolicy,
    ) -> Result<Self> {
        let rows = dsm.matrix(name, 2 * dsm.size(), length);
        Ok(Self {
            rows: rows
                .split_rows(2 * dsm.size())
                .owner_ranks((0..dsm.size()).flat_map(|rank| [rank, rank]))
                .policy(policy)
                .declare()?,
            rank: dsm.rank(),
            processes: dsm.size(),
        })
    }

    /// Writes this process's edges, the first and the last elements of its `band`; the neighbours may read them after a barrier.
    pub(crate) fn tell(&self, band: &[T]) -> Result<()> {
        let length = self.rows.columns();
        let (first, last) = (&band[..length], &band[band.len() - length..]);
        self.tell_both(first, last)
    }

    /// As [`tell`](Self::tell), for edges that do not stand in one band.
    pub(crate) fn tell_both(&self, first: &[T], last: &[T]) -> Result<()> {
        let told = self.rows.object(2 * self.rank)?.write_async(first);
        self.rows.object(2 * self.rank + 1)?.write(last)?;
        Ok(told.wait()?)
    }

    /// The last edge of the process before this one and the first of the one after it, where there are such; both
    /// requests are under way at once.
    pub(crate) fn neighbours(&self) -> Result<[Option<Vec<T>>; 2]> {
        let before = self.rank.checked_sub(1).map(|r| 2 * r + 1);
        let after = Some(2 * self.rank + 2).filter(|_| self.rank + 1 < self.processes);
        let [before, after] = [self.ask(before)?, self.ask(after)?];
        let arrived = |call: Option<Call<View<T>>>| call.map(Call::wait).transpose();
        Ok([arrived(before)?, arrived(after)?].map(|edge| edge.map(View::into_vec)))
    }

    fn ask(&self, row: Option<usize>) -> Result<Option<Call<View<T>>>> {
        let object: Option<Object<T>> = row.map(|r| self.rows.object(r)).transpose()?;
        Ok(object.map(|o| o.read_async()))
    }
}
