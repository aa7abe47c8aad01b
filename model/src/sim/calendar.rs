//! The pending events, at most one per thread, in a tournament tree.
//!
//! Because a thread is at one place at a time, an event is rescheduled or cancelled in place; there
//! is no garbage, and both cost log₂ n comparisons. Events at equal times come in the order in which
//! they were scheduled.

/// Sorts after every event: no event pending.
const IDLE: u128 = u128::MAX;

/// Pending events by thread.
pub(super) struct Calendar {
    leaves: usize,
    /// Time, then order of scheduling, as one integer: the bits of non-negative doubles sort as the
    /// doubles do.
    keys: Vec<u128>,
    /// Winner of each subtree; node 1 is the root, children of i are 2i and 2i+1.
    winners: Vec<u32>,
    scheduled: u64,
}

impl Calendar {
    pub(super) fn new(threads: usize) -> Self {
        let leaves = threads.next_power_of_two();
        let mut winners = vec![0; 2 * leaves];
        for (i, winner) in winners[leaves..].iter_mut().enumerate() {
            *winner = i as u32;
        }
        for node in (1..leaves).rev() {
            winners[node] = winners[2 * node];
        }
        Self {
            leaves,
            keys: vec![IDLE; leaves],
            winners,
            scheduled: 0,
        }
    }

    /// Sets the thread's event to `time` ≥ 0, replacing any.
    pub(super) fn schedule(&mut self, thread: usize, time: f64) {
        self.scheduled += 1;
        self.update(
            thread,
            u128::from(time.to_bits()) << 64 | u128::from(self.scheduled),
        );
    }

    /// Removes the thread's event and returns its time.
    pub(super) fn cancel(&mut self, thread: usize) -> f64 {
        let time = Self::time_of(self.keys[thread]);
        self.update(thread, IDLE);
        time
    }

    /// The next event: its time and thread. The event stays until rescheduled or cancelled.
    pub(super) fn next(&self) -> Option<(f64, usize)> {
        let thread = self.winners[1] as usize;
        let key = self.keys[thread];
        (key != IDLE).then(|| (Self::time_of(key), thread))
    }

    fn time_of(key: u128) -> f64 {
        f64::from_bits((key >> 64) as u64)
    }

    fn update(&mut self, thread: usize, key: u128) {
        self.keys[thread] = key;
        let mut node = (self.leaves + thread) / 2;
        while node > 0 {
            let (a, b) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let first = self.keys[a as usize] <= self.keys[b as usize];
            self.winners[node] = if first { a } else { b };
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Calendar;

    #[test]
    fn events_come_by_time_then_by_order_of_scheduling() {
        let mut calendar = Calendar::new(5);
        assert_eq!(calendar.next(), None);
        for (thread, time) in [(3, 2.0), (0, 1.0), (4, 1.0), (1, 9.0)] {
            calendar.schedule(thread, time);
        }
        calendar.schedule(1, 0.5);
        let mut order = Vec::new();
        while let Some((time, thread)) = calendar.next() {
            assert_eq!(calendar.cancel(thread), time);
            order.push((thread, time));
        }
        assert_eq!(order, [(1, 0.5), (0, 1.0), (4, 1.0), (3, 2.0)]);
    }

    #[test]
    fn one_thread_is_enough() {
        let mut calendar = Calendar::new(1);
        calendar.schedule(0, 0.0);
        assert_eq!(calendar.next(), Some((0.0, 0)));
    }
}
