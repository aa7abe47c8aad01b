//! Random programs on a memory that keeps the contract, judged by another way than the verifier's: what comes before what is
//! the reachability in a graph of events, what has to be seen and what races follow from all pairs. Their runs are accepted but for
//! exactly those races; with one record changed they are refuted.

#![allow(clippy::unwrap_used)] // a test may

mod common;

use std::cell::Cell;
use std::collections::BTreeMap;

use common::{Made, X, Y, acquire, barrier, catalog, in_order, read, release, write};
use dosmos_proto::{MpId, Nanos};
use dosmos_testseeds::Random;
use dosmos_trace::Record;
use dosmos_trace::query::Completeness;
use dosmos_trace::record::{Origin, Side};
use dosmos_verify::{Kind, Options, State, Verdict, Verifier};

const PROCESSES: usize = 3;
const VARIABLES: [u32; 2] = [X, Y];
const EVENTS: usize = 110;
/// When the first event takes place, by the clock of nobody.
const BEGIN: u64 = 50_000_000;

/// What comes before an event, as bits; it itself too.
#[derive(Clone, Copy, Default)]
struct Before {
    /// By acquires, releases and barriers.
    strict: u128,
    /// By atomic operations too.
    loose: u128,
}

impl Before {
    fn join(&mut self, other: Self) {
        self.strict |= other.strict;
        self.loose |= other.loose;
    }
}

/// What an access does if nothing orders it with another.
#[derive(Clone, Copy, PartialEq)]
enum Touch {
    Read,
    Write,
    /// Of one element, outside sections.
    Store,
    Atomic,
}

impl Touch {
    fn conflicts(self, other: Self) -> bool {
        use Touch::{Atomic, Read, Store};
        let harmless = matches!(
            (self, other),
            (Read | Atomic, Read | Atomic) | (Atomic, Store) | (Store, Atomic)
        );
        !harmless
    }
}

struct Access {
    event: usize,
    before: Before,
    ap: usize,
    variable: usize,
    touch: Touch,
    range: (u32, u32),
    in_section: bool,
}

/// A version that everybody has to see who comes after an event.
struct Published {
    event: usize,
    version: u64,
}

#[derive(Default)]
struct Object {
    version: u64,
    holder: Option<usize>,
    published: Vec<Published>,
    /// Its last release.
    released: Before,
    atomics: Before,
}

#[derive(Clone, Copy, Default)]
struct Process {
    before: Before,
    /// From which version its section of each variable starts, and whether it wrote in it.
    sections: [Option<(u64, bool)>; 2],
    /// Its last write outside sections of each variable, not published.
    unpublished: [Option<u64>; 2],
    /// The newest version of each that it saw or wrote to.
    seen: [u64; 2],
    /// Since when it is at the barrier.
    waits: Option<u64>,
}

/// A record, its owner's, and what it had to show.
struct Step {
    made: Made,
    served: Option<Made>,
    /// The lowest version that it may have.
    least: u64,
    in_section: bool,
}

/// What a program does.
#[derive(Clone, Copy, PartialEq)]
enum Sort {
    /// It writes in sections only.
    Sections,
    /// Outside them too.
    Writes,
    /// And it has atomic operations.
    Atomics,
}

struct Run {
    random: Random,
    now: u64,
    events: usize,
    objects: [Object; 2],
    processes: [Process; PROCESSES],
    opening: u32,
    steps: Vec<Step>,
    accesses: Vec<Access>,
    sort: Sort,
}

impl Run {
    fn of(seed: u64, sort: Sort) -> Self {
        let mut run = Self {
            sort,
            random: Random::new(seed),
            now: BEGIN,
            events: 0,
            objects: Default::default(),
            processes: Default::default(),
            opening: 1,
            steps: Vec::new(),
            accesses: Vec::new(),
        };
        while run.events + 2 * PROCESSES < EVENTS {
            run.now += 10;
            let ap = run.below(PROCESSES);
            let variable = run.below(2);
            match run.below(12) {
                _ if run.processes[ap].waits.is_some() => {}
                0..4 => run.read(ap, variable),
                4..7 => run.write(ap, variable),
                7 if run.sort == Sort::Atomics => run.atomic(ap, variable),
                7 => {}
                8 => run.arrive(ap),
                _ => match run.processes[ap].sections[variable] {
                    Some(section) => run.release(ap, variable, section),
                    None if run.objects[variable].holder.is_none() => run.acquire(ap, variable),
                    None => {}
                },
            }
        }
        // Everybody comes to a barrier that somebody is at.
        if run.processes.iter().any(|p| p.waits.is_some()) {
            for ap in 0..PROCESSES {
                if run.processes[ap].waits.is_none() {
                    run.now += 10;
                    run.arrive(ap);
                }
            }
        }
        run
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    /// The next event of a process.
    fn event(&mut self, ap: usize) -> usize {
        let event = self.events;
        self.events += 1;
        let before = &mut self.processes[ap].before;
        before.strict |= 1 << event;
        before.loose |= 1 << event;
        event
    }

    fn push(&mut self, made: Made, least: u64, in_section: bool) {
        let remote = made.0.origin != Origin::Local;
        let served = remote.then(|| made.at_owner().took(3).set(|r| r.start += Nanos(1)));
        self.steps.push(Step {
            made,
            served,
            least,
            in_section,
        });
    }

    /// What a process has to see of a variable.
    fn least(&self, ap: usize, variable: usize) -> u64 {
        let known = self.processes[ap].before.strict;
        let published = self.objects[variable].published.iter();
        let known = published.filter(|p| known & 1 << p.event != 0);
        known.map(|p| p.version).max().unwrap_or(0)
    }

    fn access(
        &mut self,
        event: usize,
        ap: usize,
        variable: usize,
        touch: Touch,
        range: (u32, u32),
    ) {
        let before = self.processes[ap].before;
        let in_section = self.processes[ap].sections[variable].is_some();
        self.accesses.push(Access {
            event,
            before,
            ap,
            variable,
            touch,
            range,
            in_section,
        });
    }

    fn range(&mut self) -> (u32, u32) {
        let first = self.below(8) as u32;
        (first, first + 1 + self.below(8 - first as usize) as u32)
    }

    fn read(&mut self, ap: usize, variable: usize) {
        let event = self.event(ap);
        let atomics = self.objects[variable].atomics;
        self.processes[ap].before.loose |= atomics.loose;
        let (range, newest) = (self.range(), self.objects[variable].version);
        let section = self.processes[ap].sections[variable];
        let must = match section {
            Some((from, _)) => from,
            None => self.least(ap, variable),
        };
        let least = must.max(self.processes[ap].seen[variable]);
        // Copies are in the owner's group.
        let may_copy = variable == 0 && ap < 2;
        let made = read(ap as u32, VARIABLES[variable], self.now).range(range.0, range.1);
        let made = match may_copy && self.below(2) == 0 {
            true => {
                let version = least + self.random.below(newest - least + 1);
                made.cached().version(version)
            }
            false => made.version(newest),
        };
        let seen = &mut self.processes[ap].seen[variable];
        *seen = made.0.version.max(*seen);
        self.access(event, ap, variable, Touch::Read, range);
        self.push(made, must, section.is_some());
    }

    fn write(&mut self, ap: usize, variable: usize) {
        if self.sort == Sort::Sections && self.processes[ap].sections[variable].is_none() {
            return;
        }
        let event = self.event(ap);
        let (range, version) = (self.range(), self.objects[variable].version);
        let process = &mut self.processes[ap];
        let in_section = match &mut process.sections[variable] {
            Some((_, wrote)) => {
                *wrote = true;
                true
            }
            None => {
                process.unpublished[variable] = Some(version);
                process.seen[variable] = version;
                false
            }
        };
        let touch = match range.1 - range.0 {
            1 if !in_section => Touch::Store,
            _ => Touch::Write,
        };
        self.access(event, ap, variable, touch, range);
        let made = write(ap as u32, VARIABLES[variable], self.now);
        self.push(made.range(range.0, range.1).version(version), 0, in_section);
    }

    fn atomic(&mut self, ap: usize, variable: usize) {
        if self.processes[ap].sections[variable].is_some() {
            return;
        }
        let event = self.event(ap);
        let (element, version) = (self.below(8) as u32, self.objects[variable].version);
        let process = &mut self.processes[ap];
        process.unpublished[variable] = Some(version);
        process.seen[variable] = version;
        let range = (element, element + 1);
        self.access(event, ap, variable, Touch::Atomic, range);
        let process = &mut self.processes[ap];
        let atomics = &mut self.objects[variable].atomics;
        process.before.loose |= atomics.loose;
        atomics.loose |= process.before.loose;
        let made = write(ap as u32, VARIABLES[variable], self.now);
        self.push(
            made.range(range.0, range.1).version(version).atomic(),
            0,
            false,
        );
    }

    /// What a process wrote outside sections is published.
    fn flush(&mut self, ap: usize, event: usize) {
        for (variable, object) in self.objects.iter_mut().enumerate() {
            if let Some(version) = self.processes[ap].unpublished[variable].take() {
                object.version += 1;
                let version = version + 1;
                object.published.push(Published { event, version });
            }
        }
    }

    fn acquire(&mut self, ap: usize, variable: usize) {
        self.event(ap);
        let least = self.least(ap, variable);
        let object = &mut self.objects[variable];
        object.holder = Some(ap);
        let process = &mut self.processes[ap];
        process.before.join(object.released);
        process.sections[variable] = Some((object.version, false));
        let version = object.version;
        let made = acquire(ap as u32, VARIABLES[variable], self.now).version(version);
        self.push(made, least, false);
    }

    fn release(&mut self, ap: usize, variable: usize, (_, wrote): (u64, bool)) {
        let event = self.event(ap);
        self.flush(ap, event);
        let object = &mut self.objects[variable];
        object.version += 1;
        object.holder = None;
        let version = object.version;
        if wrote {
            object.published.push(Published { event, version });
        }
        object.released = self.processes[ap].before;
        self.processes[ap].sections[variable] = None;
        let made = release(ap as u32, VARIABLES[variable], self.now).version(version);
        self.push(made, 0, false);
    }

    fn arrive(&mut self, ap: usize) {
        let event = self.event(ap);
        self.flush(ap, event);
        self.processes[ap].waits = Some(self.now);
        if self.processes.iter().any(|p| p.waits.is_none()) {
            return;
        }
        let mut all = Before::default();
        self.processes.iter().for_each(|p| all.join(p.before));
        for ap in 0..PROCESSES {
            let process = &mut self.processes[ap];
            process.before = all;
            let since = process.waits.take().unwrap();
            let made = barrier(ap as u32, self.opening, (since, self.now + 5));
            self.steps.push(Step {
                made,
                served: None,
                least: 0,
                in_section: false,
            });
        }
        self.opening += 1;
    }

    /// Its records, in order of their start by clocks that are ahead by so much.
    fn records(&self, ahead: [u64; PROCESSES]) -> Vec<Record> {
        let both = self.steps.iter().flat_map(|s| [Some(s.made), s.served]);
        in_order(both.flatten().map(|made| {
            let by = match made.0.side {
                Side::Owner => made.0.peer,
                Side::Requester => made.0.mp,
            };
            made.set(|r| r.start += Nanos(ahead[by.index()]))
        }))
    }

    /// How many accesses of each variable race with an earlier one.
    fn races(&self, unlocked_reads: bool) -> BTreeMap<&'static str, u64> {
        let mut races = BTreeMap::new();
        for (i, later) in self.accesses.iter().enumerate() {
            let with = |earlier: &&Access| {
                let outside = |a: &Access, b: &Access| {
                    a.touch == Touch::Read
                        && !a.in_section
                        && b.touch != Touch::Read
                        && b.in_section
                };
                let counts = unlocked_reads || !outside(earlier, later) && !outside(later, earlier);
                let conflict = earlier.touch.conflicts(later.touch);
                let meet = earlier.range.0.max(later.range.0) < earlier.range.1.min(later.range.1);
                let ordered = later.before.loose & 1 << earlier.event != 0;
                earlier.variable == later.variable
                    && earlier.ap != later.ap
                    && counts
                    && conflict
                    && meet
                    && !ordered
            };
            if self.accesses[..i].iter().any(|earlier| with(&earlier)) {
                *races.entry(["x", "y"][later.variable]).or_default() += 1;
            }
        }
        races
    }
}

fn judge(records: &[Record], unlocked_reads: bool) -> Verdict {
    let options = Options {
        unlocked_reads,
        ..Options::default()
    };
    let mut verifier = Verifier::new(catalog(), options);
    records.iter().for_each(|r| verifier.add(r));
    verifier.finish(&Completeness::default(), false, &[])
}

/// How many races of each variable a verdict counts.
fn counted(verdict: &Verdict) -> BTreeMap<String, u64> {
    let mut races = BTreeMap::new();
    for v in &verdict.violations {
        *races.entry(v.target.clone()).or_default() += 1 + v.more;
    }
    races
}

fn each_run(sort: Sort, test: impl Fn(u64, Run)) {
    let first = dosmos_testseeds::seed();
    for seed in first..first + u64::from(dosmos_testseeds::cases(400)) {
        test(seed, Run::of(seed, sort));
    }
}

#[test]
fn runs_that_keep_the_contract_are_accused_of_exactly_their_races() {
    each_run(Sort::Atomics, |seed, run| {
        for unlocked_reads in [true, false] {
            let verdict = judge(&run.records([0; PROCESSES]), unlocked_reads);
            let others = verdict
                .violations
                .iter()
                .filter(|v| v.kind != Kind::DataRace);
            assert_eq!(others.count(), 0, "seed {seed}: {verdict:#?}");
            assert!(verdict.doubts.is_empty(), "seed {seed}: {verdict:#?}");
            let expected = run.races(unlocked_reads);
            let expected: BTreeMap<String, u64> = expected
                .into_iter()
                .map(|(name, n)| (name.to_owned(), n))
                .collect();
            assert_eq!(counted(&verdict), expected, "seed {seed}");
            let state = match expected.is_empty() {
                true => State::Consistent,
                false => State::Violated,
            };
            assert_eq!(verdict.state, state, "seed {seed}");
        }
    });
}

/// By clocks that differ by much more than an operation takes, and less than is waited for.
fn judge_with_other_clocks(run: &mut Run) -> Verdict {
    let ahead = [0; PROCESSES].map(|_: u64| run.random.below(4_000_000));
    judge(&run.records(ahead), true)
}

/// The variables that races were found of are those that have some, and nothing else was found.
#[track_caller]
fn assert_races(seed: u64, run: &Run, verdict: &Verdict) {
    let mut violations = verdict.violations.iter();
    assert!(
        violations.all(|v| v.kind == Kind::DataRace),
        "seed {seed}: {verdict:#?}"
    );
    let names: Vec<String> = counted(verdict).into_keys().collect();
    let expected: Vec<&str> = run.races(true).into_keys().collect();
    assert_eq!(names, expected, "seed {seed}");
}

#[test]
fn clocks_that_differ_change_nothing() {
    each_run(Sort::Sections, |seed, mut run| {
        let verdict = judge_with_other_clocks(&mut run);
        assert!(verdict.doubts.is_empty(), "seed {seed}: {verdict:#?}");
        assert_races(seed, &run, &verdict);
    });
}

/// Which write outside sections made a version is told by the time alone. So a run may be undecided, but it is accused of nothing.
#[test]
fn who_writes_outside_sections_is_not_accused_because_of_clocks_that_differ() {
    let decided = Cell::new(0);
    each_run(Sort::Writes, |seed, mut run| {
        let verdict = judge_with_other_clocks(&mut run);
        if verdict.doubts.is_empty() {
            assert_races(seed, &run, &verdict);
            decided.set(decided.get() + 1);
        } else {
            assert!(verdict.violations.is_empty(), "seed {seed}: {verdict:#?}");
        }
    });
    // Most are decided.
    assert!(
        2 * decided.get() > dosmos_testseeds::cases(400),
        "{decided:?}"
    );
}

/// Accused of one of these kinds.
#[track_caller]
fn accused(seed: u64, run: &Run, kinds: &[Kind]) {
    let verdict = judge(&run.records([0; PROCESSES]), true);
    let found = verdict.violations.iter().any(|v| kinds.contains(&v.kind));
    assert!(found, "seed {seed}, {kinds:?}: {verdict:#?}");
}

/// Those steps of a run that `of` is true for.
fn steps(run: &Run, of: impl Fn(&Step) -> bool) -> Vec<usize> {
    (0..run.steps.len())
        .filter(|i| of(&run.steps[*i]))
        .collect()
}

fn is(step: &Step, op: dosmos_trace::Op) -> bool {
    step.made.0.op == op && !step.made.0.flags.atomic
}

#[test]
fn a_read_or_grant_that_is_one_version_too_old_is_found() {
    use dosmos_trace::Op;
    each_run(Sort::Atomics, |seed, _| {
        let count = steps(&Run::of(seed, Sort::Atomics), |s| s.least > 0);
        for i in count.into_iter().step_by(3) {
            let mut run = Run::of(seed, Sort::Atomics);
            let step = &mut run.steps[i];
            let older = step.least - 1;
            step.made = step.made.version(older);
            step.served = step.served.map(|s| s.version(older));
            let kinds: &[Kind] = match step.made.0.op {
                Op::Acquire => &[Kind::StaleGrant],
                _ if step.in_section => &[Kind::StaleSection],
                _ if step.made.0.flags.optimized => &[Kind::StaleCopy, Kind::OwnWriteMissed],
                _ => &[Kind::LostWrite, Kind::OwnWriteMissed],
            };
            accused(seed, &run, kinds);
        }
    });
}

#[test]
fn a_process_that_was_not_at_a_barrier_is_missed() {
    use dosmos_trace::Op;
    each_run(Sort::Atomics, |seed, mut run| {
        if let Some(i) = steps(&run, |s| is(s, Op::Barrier)).first() {
            run.steps.remove(i + (seed % 3) as usize);
            accused(seed, &run, &[Kind::BarrierMissed]);
        }
    });
}

#[test]
fn what_owners_served_is_compared_with_what_was_asked_for() {
    use dosmos_trace::Op;
    each_run(Sort::Atomics, |seed, _| {
        let remote = steps(&Run::of(seed, Sort::Atomics), |s| s.served.is_some());
        for i in remote.into_iter().step_by(4) {
            let mut run = Run::of(seed, Sort::Atomics);
            run.steps[i].served = None;
            accused(seed, &run, &[Kind::NeverServed]);

            let mut run = Run::of(seed, Sort::Atomics);
            let served = run.steps[i].served.unwrap();
            run.steps.push(Step {
                made: served,
                served: None,
                least: 0,
                in_section: false,
            });
            accused(seed, &run, &[Kind::ServedTwice]);

            let mut run = Run::of(seed, Sort::Atomics);
            if run.steps[i].made.0.op != Op::Write {
                run.steps[i].served = Some(served.version(served.0.version + 1_000));
                accused(seed, &run, &[Kind::AnswerDiffers]);
            }

            let mut run = Run::of(seed, Sort::Atomics);
            let elsewhere = MpId((served.0.peer.0 + 1) % 3);
            run.steps[i].made = run.steps[i].made.set(|r| r.peer = elsewhere);
            accused(seed, &run, &[Kind::WrongOwner]);
        }
    });
}
