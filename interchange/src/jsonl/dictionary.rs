//! From the names in a file to numbers: processes and variables as the lines declare them.

use std::collections::HashMap;

use dosmos_proto::names::check_name;
use dosmos_proto::topology::{
    ApplicationProcess, EventManager, Group, GroupPath, MemoryProcess, Topology, TopologyBuilder,
};
use dosmos_proto::{
    ApId, ElementType, EmpId, GroupId, Layout, Malformed, MpId, Nanos, ObjectId, Placement, VarId,
    Variable, VariableSpec,
};
use dosmos_trace::clock::ProcessClock;
use dosmos_trace::query::BarrierName;
use dosmos_trace::record::{Flags, Op, Origin, Record};

use super::error::BadLine;
use super::line;

/// Numbers of barriers have this bit set, those of variables have not.
const BARRIER: u32 = 1 << 31;
/// Most groups, processes, variables or barriers of a file.
const MOST: usize = 1 << 24;

/// What a line refers to and what is wrong with it; the caller adds the line's number.
type Outcome<T> = Result<T, BadLine>;

/// Names of a file, and their numbers.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    pub(super) topology: TopologyBuilder,
    groups: HashMap<String, GroupId>,
    mps: HashMap<String, MpId>,
    aps: HashMap<String, ApId>,
    variables: HashMap<String, Variable>,
    barriers: HashMap<(String, Option<GroupId>), VarId>,
    /// How often each process has arrived at each barrier, where the file does not say.
    arrivals: HashMap<(VarId, ApId), u32>,
    clocks: Vec<(Option<String>, ProcessClock)>,
    /// No more processes and groups: the store has been begun.
    pub(super) closed: bool,
}

impl Dictionary {
    pub(super) fn group(&mut self, path: &str) -> Outcome<GroupId> {
        if let Some(&id) = self.groups.get(path) {
            return Ok(id);
        }
        let name = path.strip_prefix('/').filter(|p| !p.is_empty());
        let name =
            name.ok_or_else(|| format!("group {path:?} does not begin with / and a name"))?;
        if name.split('/').any(str::is_empty) {
            return Err(format!("group {path:?} has an empty name in its path").into());
        }
        self.open_for(&format!("group {path}"), self.topology.groups.len())?;
        check_name("group", path)?;
        let parent = match path.rsplit_once('/') {
            Some(("", _)) | None => None,
            Some((above, _)) => Some(self.group(above)?),
        };
        let id = GroupId(self.topology.groups.len() as u32);
        self.topology.groups.push(Group {
            path: GroupPath::from(path),
            parent,
        });
        self.groups.insert(path.to_owned(), id);
        Ok(id)
    }

    pub(super) fn mp(&mut self, line: &line::Mp<'_>) -> Outcome<()> {
        let name = self.process("mp", &line.name.0)?;
        let group = self.group(&line.group.0)?;
        let id = MpId(self.topology.memory_processes.len() as u32);
        self.topology.memory_processes.push(MemoryProcess {
            name: name.clone(),
            group,
            event_manager: EmpId(0),
            link: line.link,
        });
        self.mps.insert(name, id);
        if let Some(clock) = &line.clock {
            let to = clock
                .event_manager
                .as_ref()
                .map(|e| e.0.clone().into_owned());
            let its = ProcessClock {
                mp: id,
                offset_ns: clock.offset_ns,
                drift_ppb: clock.drift_ppb,
                error: clock.error_ns.map(Nanos),
            };
            self.clocks.push((to, its));
        }
        Ok(())
    }

    /// What the file says of clocks. An imported store has one event manager: where the times were corrected to the clocks
    /// of several, it is not known how far they are apart.
    pub(super) fn clocks(&self) -> impl Iterator<Item = ProcessClock> {
        let to = |(to, _): &(Option<String>, _)| to.clone();
        let first = self.clocks.first().and_then(to);
        let one = self.clocks.iter().all(|clock| to(clock) == first);
        let its = self.clocks.iter().map(|(_, clock)| *clock);
        its.map(move |clock| ProcessClock {
            error: clock.error.filter(|_| one),
            ..clock
        })
    }

    pub(super) fn ap(&mut self, line: &line::Ap<'_>) -> Outcome<()> {
        let name = self.process("ap", &line.name.0)?;
        let memory_process = self.find_mp(&line.mp.0)?;
        let its = &self.topology.memory_processes[memory_process.index()];
        if its.link {
            return Err(format!("{name} talks to {}, a link process", its.name).into());
        }
        if let Some(group) = &line.group
            && self.groups.get(&*group.0) != Some(&its.group)
        {
            return Err(format!(
                "{name} is in {}, its memory process {} in {}",
                group.0,
                its.name,
                self.topology.groups[its.group.index()].path
            )
            .into());
        }
        let id = ApId(self.topology.application_processes.len() as u32);
        self.topology
            .application_processes
            .push(ApplicationProcess {
                name: name.clone(),
                memory_process,
            });
        self.aps.insert(name, id);
        Ok(())
    }

    /// Checks a new process's name.
    fn process(&self, kind: &str, name: &str) -> Outcome<String> {
        self.open_for(&format!("{kind} {name}"), self.mps.len() + self.aps.len())?;
        check_name("process name", name)?;
        if self.mps.contains_key(name) || self.aps.contains_key(name) {
            return Err(format!("a second process is called {name}").into());
        }
        Ok(name.to_owned())
    }

    fn open_for(&self, what: &str, how_many: usize) -> Outcome<()> {
        if self.closed {
            return Err(format!("{what} comes after the first record; it belongs before").into());
        }
        if how_many >= MOST {
            return Err(format!("{what} is one too many; a file may have {MOST}").into());
        }
        Ok(())
    }

    pub(super) fn variable(&mut self, line: &line::Variable<'_>) -> Outcome<Variable> {
        let name = &*line.name.0;
        if self.variables.contains_key(name) {
            return Err(format!("a second variable is called {name}").into());
        }
        check_name("variable name", name)?;
        if self.variables.len() >= MOST {
            return Err(format!("variable {name} is one too many; a file may have {MOST}").into());
        }
        let owners: Vec<&line::Text<'_>> = match &line.owner {
            line::Owner::One(owner) => vec![owner],
            line::Owner::Each(owners) => owners.iter().collect(),
        };
        let placement = Placement::explicit(owners.iter().map(|o| &*o.0));
        let owners: Vec<MpId> = owners
            .into_iter()
            .map(|o| self.find_mp(&o.0))
            .collect::<Outcome<_>>()?;
        let first = *owners
            .first()
            .ok_or_else(|| format!("variable {name} has no owner"))?;
        let group = match &line.group {
            Some(group) => self.group(&group.0)?,
            None => self.topology.memory_processes[first.index()].group,
        };
        let bad = |e: Malformed| BadLine::from(e).of_variable(name);
        let layout = layout(line).map_err(|e| e.of_variable(name))?;
        let spec = VariableSpec::new(name, layout)
            .map_err(bad)?
            .with_placement(placement.map_err(bad)?)
            .with_policy(line.policy)
            .with_lock(line.lock)
            .with_cache(line.cache)
            .with_replicas(line.replicas)
            .map_err(bad)?;
        let id = VarId(self.variables.len() as u32);
        let variable = Variable::new(id, spec, owners, group).map_err(bad)?;
        self.variables.insert(name.to_owned(), variable.clone());
        Ok(variable)
    }

    /// The number of a barrier; what is to be declared if it is new.
    pub(super) fn barrier(
        &mut self,
        name: &str,
        group: Option<&str>,
    ) -> Outcome<(VarId, Option<BarrierName>)> {
        let group = group.map(|g| self.group(g)).transpose()?;
        // The one look-up that every barrier record makes; a name is short.
        let key = (name.to_owned(), group);
        if let Some(&id) = self.barriers.get(&key) {
            return Ok((id, None));
        }
        if !name.is_empty() {
            check_name("barrier name", name)?;
        }
        if self.barriers.len() >= MOST {
            return Err(format!("barrier {name:?} is one too many; a file may have {MOST}").into());
        }
        let id = VarId(BARRIER | self.barriers.len() as u32);
        self.barriers.insert(key, id);
        let name = name.to_owned();
        Ok((id, Some(BarrierName { id, group, name })))
    }

    /// The record of a line, and the barrier it is the first to name.
    pub(super) fn record(
        &mut self,
        line: &line::Record<'_>,
        start: Nanos,
    ) -> Outcome<(Record, Option<BarrierName>)> {
        // A line that is refused must not have declared a barrier: that comes last.
        let ap = self.aps.get(&*line.ap.0).copied();
        let ap = ap.ok_or_else(|| format!("no ap line declares {:?}", line.ap.0))?;
        let mp = match &line.mp {
            Some(mp) => self.find_mp(&mp.0)?,
            None => self.topology.application_processes[ap.index()].memory_process,
        };
        let at = later(start, line.t_ns).ok_or_else(|| beyond("t_ns"))?;
        later(at, line.dur_ns).ok_or_else(|| beyond("t_ns and dur_ns together"))?;
        if line.count == 0 {
            return Err("count is 0: a record stands for one access at least"
                .to_owned()
                .into());
        }
        let range = line.range.unwrap_or_default();
        if range.0 > range.1 {
            return Err(format!("range {range:?} ends before it begins").into());
        }
        let said = line.owner.as_ref().map(|o| self.find_mp(&o.0));
        let said = said.transpose()?;
        let (object, owner, new) = match line.op {
            Op::Barrier => self.barrier_of(line, ap)?,
            _ => self.object_of(line)?,
        };
        let peer = said.unwrap_or(owner);
        let record = Record {
            start: at,
            duration: Nanos(line.dur_ns),
            wait: Nanos(line.wait_ns),
            service: Nanos(line.service_ns),
            op: line.op,
            side: line.side,
            origin: line.origin.unwrap_or_else(|| self.origin(mp, peer)),
            flags: Flags {
                optimized: line.optimized,
                sampled: line.sampled,
                failed: line.failed,
                waiting: line.waiting || line.pending,
                in_process: line.in_process,
                atomic: line.atomic,
                first: line.first,
                own_clock: line.own_clock,
                ahead: line.ahead,
                posted: line.posted,
            },
            object,
            ap,
            mp,
            peer,
            count: line.count,
            bytes: line.bytes,
            version: line.version,
            range,
        };
        Ok((record, new))
    }

    fn object_of(&self, line: &line::Record<'_>) -> Outcome<(ObjectId, MpId, Option<BarrierName>)> {
        let name = line
            .var
            .as_ref()
            .ok_or_else(|| format!("a {} has no var", line.op))?;
        let variable = self.find_variable(&name.0)?;
        let index = line.object.unwrap_or(0);
        // A refused access may have been to what does not exist.
        if !line.failed {
            check_object(variable, index)?;
        }
        Ok((
            ObjectId::new(variable.id(), index),
            variable.owner(index),
            None,
        ))
    }

    fn barrier_of(
        &mut self,
        line: &line::Record<'_>,
        ap: ApId,
    ) -> Outcome<(ObjectId, MpId, Option<BarrierName>)> {
        let name = line.barrier.as_ref().map_or("", |b| &b.0);
        let group = line.barrier_group.as_ref().map(|g| &*g.0);
        let (id, new) = self.barrier(name, group)?;
        let generation = match line.object {
            Some(generation) => generation,
            None => {
                let count = self.arrivals.entry((id, ap)).or_default();
                let generation = *count;
                *count = count.saturating_add(1);
                generation
            }
        };
        // The coordinator is the lowest-numbered memory process concerned.
        Ok((ObjectId::new(id, generation), MpId(0), new))
    }

    pub(super) fn object(&self, variable: &str, index: u32) -> Outcome<ObjectId> {
        let variable = self.find_variable(variable)?;
        check_object(variable, index)?;
        Ok(ObjectId::new(variable.id(), index))
    }

    pub(super) fn find_mp(&self, name: &str) -> Outcome<MpId> {
        let found = self.mps.get(name).copied();
        Ok(found.ok_or_else(|| format!("no mp line declares {name:?}"))?)
    }

    fn find_variable(&self, name: &str) -> Outcome<&Variable> {
        let found = self.variables.get(name);
        Ok(found.ok_or_else(|| format!("no variable line declares {name:?}"))?)
    }

    /// How far an access from `mp` to an object of `owner` went.
    fn origin(&self, mp: MpId, owner: MpId) -> Origin {
        let processes = &self.topology.memory_processes;
        let group = |mp: MpId| processes.get(mp.index()).map(|p| p.group);
        if mp == owner {
            Origin::Local
        } else if group(mp) == group(owner) {
            Origin::Intra
        } else {
            Origin::Inter
        }
    }

    /// No more processes: the topology, with the one event manager that an imported store has.
    pub(super) fn close(&mut self) -> Outcome<Topology> {
        self.closed = true;
        let mut name = "import".to_owned();
        while self.mps.contains_key(&name) || self.aps.contains_key(&name) {
            name.push('_');
        }
        self.topology.event_managers = vec![EventManager { name }];
        self.topology.clone().build().map_err(BadLine::from)
    }
}

/// The last instant: 2262-04-11, where 63 bits of nanoseconds end.
const LAST: u64 = i64::MAX as u64;

/// An instant after another, if there is one.
pub(super) fn later(start: Nanos, by_ns: u64) -> Option<Nanos> {
    let at = start.0.checked_add(by_ns).filter(|&at| at <= LAST);
    at.map(Nanos)
}

/// What is said of a field that [`later`] refuses.
pub(super) fn beyond(field: &str) -> String {
    format!("{field}: that is beyond the year 2262, after which times have no number")
}

fn check_object(variable: &Variable, index: u32) -> Outcome<()> {
    let objects = variable.spec().layout().objects();
    if index < objects {
        return Ok(());
    }
    let name = variable.spec().name();
    Err(format!(
        "{name} has {objects} objects, 0 to {}; not {index}",
        objects - 1
    )
    .into())
}

fn layout(line: &line::Variable<'_>) -> Outcome<Layout> {
    let layout = match line.layout {
        Some(l) => Layout::new(
            l.element,
            (l.rows, l.columns),
            (l.row_parts, l.column_parts),
        ),
        None => {
            let objects = line.objects.unwrap_or(1);
            // The element type is not given: bytes, at least one per object.
            let bytes = line.bytes.unwrap_or(0).max(objects.into());
            Layout::new(ElementType::U8, (1, bytes), (1, objects))
        }
    };
    let layout = layout?;
    match line.objects {
        Some(objects) if objects != layout.objects() => Err(format!(
            "objects is {objects}, but the layout has {}",
            layout.objects()
        )
        .into()),
        _ => Ok(layout),
    }
}
