//! What neighbours tell each other about the edges of their bands.
//!
//! Nobody reads a whole band for one row: each process writes its first and its last rows into objects of
//! their own, at its own memory process, where exactly one neighbour reads them. Since that one always
//! comes back, their copies should be updated, not invalidated. An edge that has no neighbour is not written.

use dsm_lib::{Cache, Call, CopyPolicy, Dsm, Element, Matrix, View};

use crate::error::Result;

/// The edges of the bands of all processes, in the order of their ranks.
pub(crate) struct Edges<T> {
    /// Row `2 r`: the first edge of process `r`; row `2 r + 1`: its last one.
    rows: Matrix<T>,
    rank: usize,
    processes: usize,
}

/// The nearest edges of the processes before and after this one, where there are such.
pub(crate) type Neighbours<T> = [Option<View<T>>; 2];

/// Requests for edges, under way.
pub(crate) struct Asked<T>([Option<Call<View<T>>>; 2]);

impl<T: Element> Asked<T> {
    /// The last edge of the process before this one and the first of the one after it.
    pub(crate) fn wait(self) -> Result<Neighbours<T>> {
        let [before, after] = self.0.map(|call| call.map(Call::wait).transpose());
        Ok([before?, after?])
    }
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
        // What is updated goes down to the neighbour itself.
        let cache = match policy {
            CopyPolicy::Update => Cache::Ap,
            CopyPolicy::Invalidate => Cache::Mp,
        };
        Ok(Self {
            rows: rows
                .split_rows(2 * dsm.size())
                .owner_ranks((0..dsm.size()).flat_map(|rank| [rank, rank]))
                .policy(policy)
                .cache(cache)
                .declare()?,
            rank: dsm.rank(),
            processes: dsm.size(),
        })
    }

    /// Writes this process's edges, the first and the last elements of its `band`. The neighbours may read them after
    /// the next barrier.
    pub(crate) fn tell(&self, band: &[T]) -> Result<()> {
        let length = self.rows.columns();
        self.tell_both(&band[..length], &band[band.len() - length..])
    }

    /// As [`tell`](Self::tell), for edges that do not stand in one band.
    pub(crate) fn tell_both(&self, first: &[T], last: &[T]) -> Result<()> {
        let row = |row: usize| self.rows.object(row);
        if self.rank > 0 {
            row(2 * self.rank)?.write_async(first).post()?;
        }
        if self.rank + 1 < self.processes {
            row(2 * self.rank + 1)?.write_async(last).post()?;
        }
        Ok(())
    }

    /// Asks for the neighbours' edges; both requests are under way at once.
    pub(crate) fn ask(&self) -> Result<Asked<T>> {
        let before = self.rank.checked_sub(1).map(|r| 2 * r + 1);
        let after = Some(2 * self.rank + 2).filter(|_| self.rank + 1 < self.processes);
        let read = |row: usize| -> Result<_> { Ok(self.rows.object(row)?.read_async()) };
        Ok(Asked([
            before.map(read).transpose()?,
            after.map(read).transpose()?,
        ]))
    }

    /// The neighbours' edges.
    pub(crate) fn neighbours(&self) -> Result<Neighbours<T>> {
        self.ask()?.wait()
    }
}
