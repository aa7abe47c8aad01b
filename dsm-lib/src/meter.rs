//! Where this process's time goes: a stopwatch that always runs for exactly one component, so that
//! the components add up to the wall time. No I/O, no clock: times come in.
//!
//! A call counts from the moment the program waits for it, plus what sending it took; what the
//! program computes between sending and waiting is its own. While several calls are waited for at
//! once, the time up to each completion goes to the call that completes.

use std::collections::HashSet;

use dosmos_proto::{Component, Nanos, ObjectId, PhaseTimes, Spent};

use crate::operation::{Op, Operation};

/// A program that calls reports at least so often, so that it can be watched.
const REPORT_EVERY: Nanos = Nanos::from_millis(500);
/// Most pieces kept for reporting; more than that become one.
const MOST_PIECES: usize = 1024;

/// A thread that was seen running so shortly before has run since: to be taken from a processor and get one again takes about as long.
/// To ask the system would take a tenth of this, in each call.
const MOMENT: Nanos = Nanos(5_000);

/// The stopwatch of one session.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Begin of the current piece.
    start: Nanos,
    /// Up to here the time is accounted for.
    mark: Nanos,
    phase: u64,
    spent: Spent,
    /// Time outside calls in this piece, to be divided into busy and service.
    outside: Nanos,
    waiting: u32,
    fetched: HashSet<ObjectId>,
    pieces: Vec<PhaseTimes>,
    cpu: CpuMark,
    /// As of the begin of the current wait, whose thread may carry the session meanwhile.
    cpu_at_wait: CpuMark,
    /// As of the end of the wait before, and when that was.
    cpu_after_wait: (CpuMark, Nanos),
    /// Processor time used while waiting in this piece.
    cpu_waiting: Nanos,
}

/// Processor time of the thread that makes the calls, as of the begin of the current piece. With
/// calls from several threads it cannot be told and all time outside calls counts as busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CpuMark {
    /// One thread, and what it had used.
    Of(std::thread::ThreadId, Nanos),
    /// Several threads, or a system that does not tell.
    Mixed,
}

impl CpuMark {
    /// What was used between this mark and a later one; none if it cannot be told.
    fn until(self, later: Self) -> Option<Nanos> {
        match (self, later) {
            (Self::Of(then, from), Self::Of(now, to)) if then == now => Some(to - from),
            _ => None,
        }
    }

    /// What it is `time` later, if this thread has run since.
    fn after(self, time: Nanos) -> Option<Self> {
        match self {
            Self::Of(thread, used) if thread == std::thread::current().id() => {
                Some(Self::Of(thread, used + time))
            }
            _ => None,
        }
    }
}

impl Meter {
    pub(crate) fn new(now: Nanos, cpu: CpuMark) -> Self {
        Self {
            start: now,
            mark: now,
            phase: 0,
            spent: Spent::default(),
            outside: Nanos::ZERO,
            waiting: 0,
            fetched: HashSet::new(),
            pieces: Vec::new(),
            cpu,
            cpu_at_wait: cpu,
            cpu_after_wait: (cpu, now),
            cpu_waiting: Nanos::ZERO,
        }
    }

    /// The program begins to wait for a call.
    pub(crate) fn enter(&mut self, now: Nanos, cpu: impl FnOnce() -> CpuMark) {
        if self.waiting == 0 {
            self.outside += now - self.mark;
            self.mark = self.mark.max(now);
            let (before, at) = self.cpu_after_wait;
            let since = now - at;
            let known = before.after(since).filter(|_| since <= MOMENT);
            self.cpu_at_wait = known.unwrap_or_else(cpu);
        }
        self.waiting += 1;
    }

    /// A call that was waited for (`entered`) or was over at once is over. `sending` is what sending
    /// it took, outside calls until now. `cpu` is looked at only if it was waited for.
    pub(crate) fn leave(
        &mut self,
        now: Nanos,
        cpu: CpuMark,
        of: Component,
        sending: Nanos,
        entered: bool,
    ) {
        let mut time = Nanos::ZERO;
        if entered {
            time = now - self.mark;
            self.mark = self.mark.max(now);
            self.waited(cpu);
            self.cpu_after_wait = (cpu, now);
            self.waiting = self.waiting.saturating_sub(1);
        } else if self.waiting == 0 {
            self.outside += now - self.mark;
            self.mark = self.mark.max(now);
        }
        // What was sent in an earlier piece is accounted for there.
        let sending = sending.min(self.outside);
        self.outside = self.outside - sending;
        self.spent.add(of, time + sending, 1);
    }

    /// What the thread has used of the processor since the wait began is not the program's.
    fn waited(&mut self, cpu: CpuMark) {
        self.cpu_waiting += self.cpu_at_wait.until(cpu).unwrap_or_default();
        self.cpu_at_wait = cpu;
    }

    /// A barrier was passed: the next phase begins.
    pub(crate) fn next_phase(&mut self, cpu: CpuMark) {
        self.cut(cpu);
        self.phase += 1;
    }

    /// What is to be reported: finished phases, and the current one if it has lasted.
    pub(crate) fn report(
        &mut self,
        now: Nanos,
        last: bool,
        cpu: impl Fn() -> CpuMark,
    ) -> Vec<PhaseTimes> {
        if last || now - self.start >= REPORT_EVERY {
            if self.waiting == 0 {
                self.outside += now - self.mark;
                self.mark = self.mark.max(now);
            }
            self.cut(cpu());
        }
        std::mem::take(&mut self.pieces)
    }

    /// Ends the current piece where the account ends.
    fn cut(&mut self, cpu: CpuMark) {
        if self.waiting > 0 {
            self.waited(cpu);
        }
        let used = self.cpu.until(cpu);
        self.cpu = used.map_or(CpuMark::Mixed, |_| cpu);
        let waiting = std::mem::take(&mut self.cpu_waiting);
        let service = used.map_or(Nanos::ZERO, |used| self.outside - (used - waiting));
        self.spent.add(Component::Service, service, 0);
        self.spent.add(Component::Busy, self.outside - service, 0);
        let piece = PhaseTimes {
            phase: self.phase,
            start: self.start,
            wall: self.mark - self.start,
            spent: std::mem::take(&mut self.spent),
            ..PhaseTimes::default()
        };
        self.outside = Nanos::ZERO;
        self.start = self.mark;
        let full = self.pieces.len() >= MOST_PIECES;
        match self.pieces.last_mut() {
            Some(tail) if full || tail.phase == piece.phase => tail.join(&piece),
            _ => self.pieces.push(piece),
        }
    }

    /// Which component a call belongs to.
    pub(crate) fn component(&mut self, operation: &Operation, remote: bool) -> Component {
        match (operation.op, operation.target.object) {
            (Op::Read | Op::Write | Op::Atomic, Some(object)) if remote => {
                if self.fetched.insert(object) {
                    Component::Cold
                } else {
                    Component::Fault
                }
            }
            (Op::Read | Op::Write | Op::Atomic, _) => Component::Local,
            (Op::Acquire | Op::Release, _) => Component::Lock,
            (Op::Barrier, _) => Component::Barrier,
            _ => Component::Other,
        }
    }
}

/// Processor time used by this thread so far.
pub(crate) fn thread_cpu() -> CpuMark {
    let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
    match nix::time::clock_gettime(clock) {
        Ok(time) => CpuMark::Of(
            std::thread::current().id(),
            std::time::Duration::from(time).into(),
        ),
        Err(_) => CpuMark::Mixed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Target;
    use dosmos_proto::VarId;
    use proptest::prelude::*;

    fn cpu(used: u64) -> CpuMark {
        CpuMark::Of(std::thread::current().id(), Nanos(used))
    }

    #[test]
    fn what_was_computed_before_a_call_that_is_not_waited_for_is_busy() {
        let mut m = Meter::new(Nanos(1_000), cpu(0));
        m.leave(Nanos(2_000), cpu(900), Component::Barrier, Nanos(10), false);
        m.next_phase(cpu(900));
        let all = m.report(Nanos(3_000), true, || cpu(1_900));
        let times = |p: &PhaseTimes| {
            [Component::Busy, Component::Service, Component::Barrier].map(|c| p.spent.time(c).0)
        };
        let times: Vec<_> = all.iter().map(times).collect();
        assert_eq!(times, [[900, 90, 10], [1_000, 0, 0]]);
    }

    #[test]
    fn who_ran_a_moment_ago_is_not_asked_what_it_used_since() {
        let asked = |after: u64| {
            let mut m = Meter::new(Nanos(0), cpu(0));
            m.enter(Nanos(10_000), || cpu(8_000));
            m.leave(Nanos(20_000), cpu(9_000), Component::Local, Nanos(0), true);
            let mut asked = false;
            m.enter(Nanos(20_000 + after), || {
                asked = true;
                cpu(9_000 + after)
            });
            let (now, used) = (Nanos(30_000 + after), cpu(9_500 + after));
            m.leave(now, used, Component::Local, Nanos(0), true);
            let all = m.report(now, true, || used);
            let of = |c| all[0].spent.time(c).0;
            assert_eq!(
                (of(Component::Busy), of(Component::Service)),
                (8_000 + after, 2_000)
            );
            asked
        };
        assert!(!asked(MOMENT.0));
        assert!(asked(MOMENT.0 + 1));
        let mut other = Meter::new(Nanos(0), cpu(0));
        let elsewhere = std::thread::spawn(move || {
            other.enter(Nanos(1), || CpuMark::Mixed);
            other.cpu_at_wait
        });
        let mark = elsewhere.join().unwrap();
        assert_eq!(mark, CpuMark::Mixed, "it is another thread");
    }

    #[test]
    fn each_instant_goes_to_one_component() {
        let mut m = Meter::new(Nanos(100_000), cpu(0));
        m.enter(Nanos(110_000), || cpu(7_000)); // 10 µs outside, of which 1 sent the call
        m.leave(
            Nanos(140_000),
            cpu(9_000),
            Component::Fault,
            Nanos(1_000),
            true,
        );
        m.enter(Nanos(150_000), || cpu(15_000));
        m.leave(
            Nanos(250_000),
            cpu(17_000),
            Component::Barrier,
            Nanos(0),
            true,
        );
        m.next_phase(cpu(17_000)); // 4 µs of it while waiting
        let all = m.report(Nanos(270_000), true, || cpu(37_000));
        assert_eq!(all.len(), 2);
        let of = |i: usize, c| all[i].spent.time(c).0;
        assert_eq!(
            (of(0, Component::Fault), of(0, Component::Barrier)),
            (31_000, 100_000)
        );
        assert_eq!(
            (of(0, Component::Busy), of(0, Component::Service)),
            (13_000, 6_000)
        );
        assert_eq!(
            (of(1, Component::Busy), of(1, Component::Service)),
            (20_000, 0)
        );
        assert_eq!((all[0].phase, all[1].phase), (0, 1));
        assert_eq!(all[0].end(), all[1].start);
        assert!(all.iter().all(|p| p.wall == p.spent.total()));
    }

    #[test]
    fn computing_between_sending_and_waiting_is_busy() {
        let mut m = Meter::new(Nanos(0), CpuMark::Mixed);
        m.enter(Nanos(900), || CpuMark::Mixed); // sent at 100 within 5, computed until 900
        m.leave(
            Nanos(1_000),
            CpuMark::Mixed,
            Component::Local,
            Nanos(5),
            true,
        );
        let all = m.report(Nanos(1_000), true, || CpuMark::Mixed);
        assert_eq!(all[0].spent.time(Component::Busy), Nanos(895));
        assert_eq!(all[0].spent.time(Component::Local), Nanos(105));
    }

    #[test]
    fn the_first_fetch_of_an_object_is_cold() {
        let mut m = Meter::new(Nanos(0), CpuMark::Mixed);
        let target = Target {
            object: Some(ObjectId::new(VarId(1), 2)),
            ..Target::named("x")
        };
        let read = Op::Read.on(&target);
        let kinds = [false, true, true].map(|remote| m.component(&read, remote));
        assert_eq!(kinds, [Component::Local, Component::Cold, Component::Fault]);
    }

    proptest! {
        #![proptest_config(dosmos_testseeds::config(256))]

        /// Whatever overlaps, whatever the clock does: the components add up to the wall time.
        #[test]
        fn components_add_up(steps in prop::collection::vec((0u8..5, 0u64..2_000_000, 0u64..100), 1..200)) {
            let mut m = Meter::new(Nanos(5), cpu(2));
            let (mut now, mut waits, mut wall) = (5u64, 0u32, Nanos::ZERO);
            let mut check = |pieces: Vec<PhaseTimes>| {
                for p in pieces {
                    assert_eq!(p.wall, p.spent.total());
                    wall += p.wall;
                }
            };
            for (what, step, extra) in steps {
                now += step;
                match what {
                    0 | 1 => { m.enter(Nanos(now), || cpu(now / 2)); waits += 1; }
                    2 if waits > 0 => {
                        m.leave(Nanos(now), cpu(now / 2), Component::Fault, Nanos(extra), true);
                        waits -= 1;
                    }
                    3 => m.next_phase(cpu(now / 2)),
                    _ => check(m.report(Nanos(now), extra > 50, || cpu(now / 2))),
                }
            }
            while waits > 0 {
                m.leave(Nanos(now), cpu(now / 2), Component::Lock, Nanos(0), true);
                waits -= 1;
            }
            check(m.report(Nanos(now), true, || cpu(now / 2)));
            prop_assert_eq!(wall, Nanos(now - 5));
        }
    }
}
