//! The programs: what application processes do with the real library, by the plan and random numbers of their own.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dsm_lib::{
    Address, Cache, Counts, Dsm, Error, LockKind, Object, ObjectId, Reader, ReleaseFailed, Section,
    Settings, Vector, hosted,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::coroutine::Seat;
use crate::history::{History, Place, Use};
use crate::plan::{ELEMENTS, Kind, Plan};

type Result<T, E = Error> = std::result::Result<T, E>;

/// What the programs of a run share.
pub(crate) struct Common {
    pub(crate) plan: Plan,
    pub(crate) history: Mutex<History>,
    /// What each process counted that ended well; and what of those that did not is unknown.
    pub(crate) counts: Mutex<Vec<(usize, Counts)>>,
    /// What was read at the end.
    pub(crate) end: Mutex<BTreeMap<ObjectId, Vec<(usize, u64)>>>,
}

impl Common {
    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a program is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Rounds of random operations.
    Rounds,
    /// When all is well again: everybody can do everything.
    Last,
    /// A second process of one name, which is not let in.
    Intruder,
}

/// One run of a program.
pub(crate) struct Program {
    common: Arc<Common>,
    seat: Arc<Seat>,
    rng: StdRng,
    me: usize,
    part: Part,
}

struct Handle {
    object: Object<u64>,
    /// Every second read of all of it is by this one.
    reader: RefCell<Reader<u64>>,
    by_reader: Cell<bool>,
    usage: Use,
    /// It has replicas.
    kept: bool,
    /// Owned by the memory process of this program, when it was declared.
    at_home: bool,
}

impl Program {
    /// Runs until it is over.
    pub(crate) fn run(common: Arc<Common>, seat: Arc<Seat>, me: usize, seed: u64, part: Part) {
        let rng = StdRng::seed_from_u64(seed);
        let mut program = Self {
            common,
            seat,
            rng,
            me,
            part,
        };
        let ended = match part {
            Part::Rounds => program.rounds(),
            Part::Last => program.last(),
            Part::Intruder => program.intrude(),
        };
        if let Err(error) = ended
            && !program.seat.is_dead()
        {
            program.refused(&error);
        }
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.common.history()
    }

    fn now(&self) -> u64 {
        self.seat.true_time()
    }

    fn refused(&self, error: &Error) {
        if !self.seat.is_dead() {
            self.history().refused(self.me, &error.to_string());
        }
    }

    /// Whether the process is alive and its session lasts, after this error.
    fn goes_on(&self, error: Error) -> Result<()> {
        if self.seat.is_dead() {
            return Err(error);
        }
        match error {
            Error::Lost { .. } | Error::Closed { .. } | Error::NotConnected { .. } => Err(error),
            other => {
                self.refused(&other);
                Ok(())
            }
        }
    }

    fn connect(&self) -> Result<Dsm> {
        let mut settings =
            Settings::new(Address::Unix(Default::default()), format!("ap{}", self.me));
        settings.deadline = Duration::from_millis(self.common.plan.deadline_ms);
        hosted::connect(&settings, self.seat.clone(), |line| self.seat.carry(line))
    }

    /// A second process of one name: it is let in only if the first is gone.
    fn intrude(&mut self) -> Result<()> {
        self.connect()?.close()
    }

    /// Declares all variables, in an order of its own: whoever comes first makes them.
    fn declare(&mut self, dsm: &Dsm) -> Result<Vec<Handle>> {
        let plan = self.common.plan.clone();
        let mut order: Vec<usize> = (0..plan.variables.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, self.rng.random_range(0..=i));
        }
        let mut found = BTreeMap::new();
        for i in order {
            let v = &plan.variables[i];
            let declared = dsm
                .vector::<u64>(&v.name, ELEMENTS * v.owners.len())
                .split(v.owners.len())
                .owners(v.owners.clone())
                .policy(v.policy)
                .lock(v.lock)
                .cache(v.cache)
                .replicas(v.replicas)
                .declare();
            match declared {
                Ok(vector) => drop(found.insert(i, vector)),
                Err(error) => {
                    self.may_be_refused(&v.name, &error);
                    self.goes_on(error)?;
                }
            }
        }
        let mut handles = Vec::new();
        for (i, vector) in found {
            self.note(&vector, i, &mut handles)?;
        }
        Ok(handles)
    }

    /// Where somebody always knows a name, it can be declared again when all is well.
    fn may_be_refused(&self, name: &str, error: &Error) {
        if self.common.plan.kind == Kind::Losses && self.part == Part::Last && !self.seat.is_dead()
        {
            let me = self.me;
            self.history().must(false, || {
                format!("ap{me} cannot declare {name} at the end: {error}")
            });
        }
    }

    fn note(&self, vector: &Vector<u64>, i: usize, handles: &mut Vec<Handle>) -> Result<()> {
        let v = &self.common.plan.variables[i];
        for part in 0..v.owners.len() {
            let object = vector.object(part)?;
            let usage = match v.lock {
                LockKind::Queue => v.usage,
                _ => Use::Words,
            };
            let name = format!("{}[{part}]", v.name);
            let place = Place {
                owner: object.owner().to_owned(),
                group: self.common.plan.group_of(object.owner()),
                // What has replicas is kept in no application process.
                near: v.cache == Cache::Ap && v.replicas == 0,
                may_lose: v.replicas.min(self.common.plan.minority_of(object.owner())),
            };
            if !self.seat.is_dead() {
                self.history().declared(object.id(), &name, usage, place);
            }
            let ap = &self.common.plan.topology.application_processes()[self.me];
            let home = self.common.plan.topology.mp_name(ap.memory_process);
            handles.push(Handle {
                at_home: object.owner() == home,
                reader: RefCell::new(object.reader()),
                by_reader: Cell::new(false),
                object,
                usage,
                kept: v.replicas > 0,
            });
        }
        Ok(())
    }

    fn rounds(&mut self) -> Result<()> {
        let dsm = self.connect()?;
        let handles = self.declare(&dsm)?;
        let plan = self.common.plan.clone();
        self.barrier(&dsm, "begin")?;
        for round in 0..plan.rounds {
            for _ in 0..self.rng.random_range(1..=plan.actions) {
                if handles.is_empty() || self.seat.is_dead() {
                    break;
                }
                let handle = self.choose(&handles);
                self.act(&dsm, handle)?;
                let compute = self.rng.random_range(1_000..plan.pace_ns);
                self.seat.pause(compute);
            }
            if let Some(quiet) = plan.quiet_ms.filter(|_| round == 0) {
                self.seat.pause(quiet * 1_000_000);
            }
            let within = match self.rng.random_bool(plan.habits.overlaps) {
                true if self.may_overlap() => self.rng.random_range(1..4),
                _ => 0,
            };
            self.overlapped(&dsm, "round", &handles, within)?;
            if self.rng.random_bool(plan.habits.passes_on) {
                self.pass_on(&handles)?;
            }
        }
        self.close(dsm)
    }

    /// Whether it may go on with calls while it waits at a barrier: of reads in the process `verify` cannot tell whether they were before
    /// or after it, and of plain runs it has to decide.
    fn may_overlap(&self) -> bool {
        let plan = &self.common.plan;
        let near = plan.variables.iter().any(|v| v.cache == Cache::Ap);
        plan.kind != Kind::Plain || !near
    }

    fn close(&self, dsm: Dsm) -> Result<()> {
        // What was posted is settled.
        let published = dsm.publish();
        let counts = dsm.counts();
        if self.seat.is_dead() {
            return Ok(());
        }
        if let Err(error) = published {
            self.goes_on(error)?;
        }
        dsm.close()?;
        if !self.seat.is_dead() {
            let mut all = self.common.counts.lock();
            let all = all.as_deref_mut().map(|all| all.push((self.me, counts)));
            debug_assert!(all.is_ok());
        }
        Ok(())
    }

    /// Whether a barrier opened.
    fn barrier(&mut self, dsm: &Dsm, name: &str) -> Result<bool> {
        self.overlapped(dsm, name, &[], 0)
    }

    /// The same; before it waits it goes on with other calls, as many times.
    fn overlapped(
        &mut self,
        dsm: &Dsm,
        name: &str,
        handles: &[Handle],
        calls: usize,
    ) -> Result<bool> {
        if self.seat.is_dead() {
            return Ok(false);
        }
        let arrival = self.history().arrives(self.me, name, self.now());
        let barrier = dsm.barrier_named_async(name);
        for _ in 0..calls {
            if handles.is_empty() || self.seat.is_dead() {
                break;
            }
            let done = match self.rng.random_bool(0.5) {
                true => self.pass_on(handles),
                false => {
                    let handle = self.choose(handles);
                    self.act(dsm, handle)
                }
            };
            if let Err(error) = done {
                self.gave_up(name, arrival);
                return Err(error);
            }
        }
        let passed = barrier.wait();
        if self.seat.is_dead() {
            return Ok(false);
        }
        match passed {
            Ok(()) => {
                let now = self.now();
                self.history().passed(self.me, name, arrival, now);
                Ok(true)
            }
            Err(error) => {
                self.gave_up(name, arrival);
                // Nobody waits for it any more: the others may have gone on and left.
                let opened = error
                    .to_string()
                    .contains("it opened when the time was over");
                self.goes_on(error)?;
                Ok(opened)
            }
        }
    }

    /// It does not pass a barrier that it came to.
    fn gave_up(&self, name: &str, arrival: usize) {
        if self.seat.is_dead() {
            return;
        }
        let now = self.now();
        let mut history = self.history();
        history.gave_up(self.me, name, arrival, now);
        history.not_published(self.me);
    }

    /// What it knows comes to others by a section, what they know to it; then it looks at all objects.
    fn pass_on(&mut self, handles: &[Handle]) -> Result<()> {
        let queues: Vec<&Handle> = handles.iter().filter(|h| h.usage == Use::Queue).collect();
        if self.seat.is_dead() || queues.is_empty() {
            return Ok(());
        }
        let at = self.rng.random_range(0..queues.len());
        self.section(queues[at])?;
        for handle in handles.iter().filter(|h| h.usage != Use::Words) {
            if self.seat.is_dead() {
                break;
            }
            self.read(handle)?;
        }
        Ok(())
    }

    /// What it accesses next.
    fn choose<'a>(&mut self, handles: &'a [Handle]) -> &'a Handle {
        let near: Vec<&Handle> = handles.iter().filter(|handle| handle.at_home).collect();
        if !near.is_empty() && self.rng.random_bool(self.common.plan.habits.at_home) {
            return near[self.rng.random_range(0..near.len())];
        }
        &handles[self.rng.random_range(0..handles.len())]
    }

    fn act(&mut self, dsm: &Dsm, handle: &Handle) -> Result<()> {
        let habits = self.common.plan.habits;
        let writes = self.rng.random_bool(habits.writes);
        match handle.usage {
            Use::Queue if writes => self.section(handle).map(drop),
            Use::Words => self.section(handle).map(drop),
            Use::Owned(by) if by == self.me && writes => self.write(handle),
            Use::Counter if writes => self.add(&handle.object),
            _ if self.rng.random_bool(habits.publishes) => self.publish(dsm),
            _ => self.read(handle),
        }
    }

    fn publish(&mut self, dsm: &Dsm) -> Result<()> {
        match dsm.publish() {
            Ok(()) => Ok(()),
            Err(error) => {
                if !self.seat.is_dead() {
                    self.history().not_published(self.me);
                }
                self.goes_on(error)
            }
        }
    }

    fn read(&mut self, handle: &Handle) -> Result<()> {
        let (asked, object) = (self.now(), &handle.object);
        let read = match self.rng.random_range(0..4) {
            0 => object.read_range(0..ELEMENTS / 2),
            1 => object.read_range(0..1),
            _ if handle.by_reader.replace(!handle.by_reader.get()) => {
                handle.reader.borrow_mut().read().cloned()
            }
            _ => object.read(),
        };
        if self.seat.is_dead() {
            return Ok(());
        }
        match read {
            Ok(view) => {
                self.history()
                    .read(self.me, object.id(), view.as_slice(), asked);
                Ok(())
            }
            Err(error) => self.goes_on(error),
        }
    }

    fn write(&mut self, handle: &Handle) -> Result<()> {
        let object = &handle.object;
        let (asked, id) = (self.now(), object.id());
        let number = self.history().next_write(id);
        let values = [number; ELEMENTS];
        let how = self.rng.random_range(0..4);
        let written = match how {
            0 => object.edit().and_then(|mut edit| {
                edit.copy_from_slice(&values);
                edit.finish()
            }),
            // Whatever fails is said by what synchronises next; until then nobody knows whether it took effect.
            1 if !handle.kept => object.write_async(&values).post(),
            _ => object.write(&values),
        };
        if self.seat.is_dead() {
            return Ok(());
        }
        match written {
            Ok(()) => {
                let known = (how != 1 || handle.kept).then_some(asked);
                self.history().written(self.me, id, number, known);
                Ok(())
            }
            Err(error) => self.goes_on(error),
        }
    }

    fn add(&mut self, object: &Object<u64>) -> Result<()> {
        let (asked, id) = (self.now(), object.id());
        self.history().next_write(id);
        let added = object.fetch_add(0, 1);
        if self.seat.is_dead() {
            return Ok(());
        }
        match added {
            Ok(previous) => {
                self.history().added(self.me, id, previous, asked);
                Ok(())
            }
            Err(error) => self.goes_on(error),
        }
    }

    /// One section, perhaps asked for with a timeout that is too short; whether it ended well.
    fn section(&mut self, handle: &Handle) -> Result<bool> {
        let short = self.common.plan.short_deadlines && self.rng.random_bool(0.2);
        let object = match short {
            true => {
                let millis = self.rng.random_range(1..3_000);
                handle.object.with_deadline(Duration::from_millis(millis))
            }
            false => handle.object.clone(),
        };
        self.section_of(&object)
    }

    /// One section; whether it ended well.
    fn section_of(&mut self, object: &Object<u64>) -> Result<bool> {
        let asked = self.now();
        let section = match object.acquire() {
            Ok(section) => section,
            Err(error) => return self.goes_on(error).map(|()| false),
        };
        if self.seat.is_dead() {
            return Ok(false);
        }
        let granted = self.now();
        let id = object.id();
        let found = match section.read() {
            Ok(view) => view.as_slice()[0],
            Err(error) => {
                self.goes_on(error)?;
                self.leave(section, id, None)?;
                return Ok(false);
            }
        };
        if self.seat.is_dead() {
            return Ok(false);
        }
        let times = (asked, granted);
        let number = self
            .history()
            .granted(self.me, id, section.epoch(), found, times);
        match self.inside(section, id, number) {
            Ok(released) => Ok(released),
            Err(error) => {
                if !self.seat.is_dead() {
                    self.history().in_doubt(id, number);
                }
                self.goes_on(error).map(|()| false)
            }
        }
    }

    fn inside(&mut self, mut section: Section<u64>, id: ObjectId, number: usize) -> Result<bool> {
        if self.rng.random_bool(0.8)
            && let Err(error) = self.write_in(&mut section, id, number)
        {
            // It is released when it is dropped, which takes time.
            if !self.seat.is_dead() {
                self.history().in_doubt(id, number);
            }
            drop(section);
            return Err(error);
        }
        self.leave(section, id, Some(number))
    }

    fn write_in(&mut self, section: &mut Section<u64>, id: ObjectId, number: usize) -> Result<()> {
        let value = self.history().next_number(id, number);
        let half = [value; ELEMENTS / 2];
        section.write_at(0, &half)?;
        self.seat.pause(self.rng.random_range(1_000..1_000_000));
        if self.rng.random_bool(0.3) {
            let seen = section.get(0)?;
            let me = self.me;
            if !self.seat.is_dead() {
                self.history().must(seen == value, || {
                    format!("ap{me} wrote {value} in its section and reads {seen}")
                });
            }
        }
        section.write_at(ELEMENTS / 2, &half)
    }

    /// Releases, again and again if that may help.
    fn leave(
        &mut self,
        mut section: Section<u64>,
        id: ObjectId,
        number: Option<usize>,
    ) -> Result<bool> {
        for _ in 0..3 {
            if self.seat.is_dead() {
                return Ok(false);
            }
            if let Some(number) = number {
                let now = self.now();
                self.history().releasing(self.me, id, number, now);
            }
            match section.release() {
                Ok(_) => {
                    if let Some(number) = number.filter(|_| !self.seat.is_dead()) {
                        self.history().released(self.me, id, number);
                    }
                    return Ok(true);
                }
                Err(ReleaseFailed {
                    error,
                    section: again,
                    ..
                }) => {
                    if self.seat.is_dead() {
                        return Ok(false);
                    }
                    let mut history = self.history();
                    history.not_published(self.me);
                    if let Some(number) = number {
                        history.in_doubt(id, number);
                    }
                    drop(history);
                    self.goes_on(error)?;
                    section = *again;
                    self.seat.pause(1_000_000_000);
                }
            }
        }
        Ok(false)
    }

    /// Comes to a barrier until it opens: what was written before things went wrong may fail it once, and the others come late
    /// whose accesses to objects that nobody kept wait for their timeouts.
    fn meet(&mut self, dsm: &Dsm, name: &str) -> Result<()> {
        let mut passed = false;
        for _ in 0..4 + 3 * self.common.plan.variables.len() {
            passed = passed || self.barrier(dsm, name)?;
        }
        let me = self.me;
        self.history().must(passed, || {
            format!("ap{me}: the barrier {name} does not open")
        });
        Ok(())
    }

    /// When all is well again: barriers open, everybody can have every lock, and all read the same.
    fn last(&mut self) -> Result<()> {
        let dsm = self.connect()?;
        let handles = self.declare(&dsm)?;
        let me = self.me;
        // Until everybody is back and known to be.
        self.seat.pause(3_000_000_000);
        self.meet(&dsm, "last")?;
        for handle in &handles {
            let id = handle.object.id();
            let lost = self.history().is_lost(id);
            match handle.usage {
                Use::Queue => {
                    // The timeout may be too short at first: others may keep it, each for a second whose release fails once.
                    let mut had = self.section(handle)?;
                    for _ in 0..2 {
                        had = had || !lost && self.section_of(&handle.object)?;
                    }
                    self.history().must(had || lost, || {
                        format!("ap{me} cannot have {id:?} at the end")
                    });
                }
                Use::Words if !self.history().is_weak(id) => drop(self.section(handle)?),
                Use::Counter => self.add(&handle.object)?,
                _ => {}
            }
        }
        self.meet(&dsm, "done")?;
        for handle in handles.iter().filter(|h| h.usage != Use::Words) {
            let (asked, id) = (self.now(), handle.object.id());
            match handle.object.read() {
                Ok(view) => {
                    self.history().read(me, id, view.as_slice(), asked);
                    let mut end = self.common.end.lock();
                    if let Ok(end) = &mut end {
                        end.entry(id).or_default().push((me, view.as_slice()[0]));
                    }
                }
                Err(error) => {
                    let lost = self.history().is_lost(id);
                    self.history()
                        .must(lost, || format!("ap{me} cannot read {id:?} at the end"));
                    self.goes_on(error)?;
                }
            }
        }
        self.close(dsm)
    }
}
