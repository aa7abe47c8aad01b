//! The place a labelled run happens in: groups, processes, variables, and how fast it all is.

use dosmos_analysis::Kind;
use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
use dosmos_proto::{
    CopyPolicy, ElementType, EmpId, GroupId, GroupPath, Layout, MpId, ObjectId, Topology,
    TopologyBuilder, VarId, Variable, VariableSpec,
};
use rand::RngExt;
use rand::rngs::StdRng;

use super::machine::Speed;

/// Elements of every object.
pub(super) const ELEMENTS: u32 = 64;

/// Groups, processes and variables.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) topology: Topology,
    pub(super) variables: Vec<Variable>,
    pub(super) speed: Speed,
}

impl World {
    /// 1 to 3 groups of 3 to 5 memory processes, an application process each; latencies of a fast or slow network.
    pub(super) fn new(random: &mut StdRng) -> Self {
        let groups = random.random_range(1..=3_u32);
        let sizes = (0..groups).map(|_| random.random_range(3..=5_i32) as usize);
        let sizes: Vec<usize> = sizes.collect();
        Self::of(&sizes, random)
    }

    /// Groups of these sizes.
    pub(super) fn of(sizes: &[usize], random: &mut StdRng) -> Self {
        let mut topology = TopologyBuilder {
            name: "labelled".into(),
            event_managers: vec![EventManager {
                name: "emp0".into(),
            }],
            ..TopologyBuilder::default()
        };
        for (g, size) in (0..).zip(sizes) {
            topology.groups.push(Group {
                path: GroupPath::from(format!("g{g}").as_str()),
                parent: None,
            });
            for _ in 0..*size {
                let n = topology.memory_processes.len();
                topology.memory_processes.push(MemoryProcess {
                    name: format!("mp{n}"),
                    group: GroupId(g),
                    event_manager: EmpId(0),
                    link: false,
                });
                topology.application_processes.push(ApplicationProcess {
                    name: format!("ap{n}"),
                    memory_process: MpId(n as u32),
                });
            }
        }
        // What goes from one group to another goes over the link process of each.
        for g in (0..sizes.len()).filter(|_| sizes.len() > 1) {
            topology.memory_processes.push(MemoryProcess {
                name: format!("lp{g}"),
                group: GroupId(g as u32),
                event_manager: EmpId(0),
                link: true,
            });
        }
        let local = random.random_range(2e3..20e3);
        let intra = local * random.random_range(3.0..8.0);
        let inter = intra * random.random_range(1.6..4.0);
        let speed = Speed {
            trip: [local, intra, inter],
            noise: (
                random.random_range(0.05..0.4),
                random.random_range(0.01..0.08),
            ),
            hiccup: (
                random.random_range(0.0..0.002),
                random.random_range(0.1e6..2e6),
            ),
            skew: random.random_range(0..10_000),
        };
        Self {
            // Its numbers all name something: the detectors' tests would find nothing without.
            topology: topology.build().unwrap_or_default(),
            variables: Vec::new(),
            speed,
        }
    }

    /// The same place; nobody is interrupted there if it is without slow processes.
    pub(super) fn without(&self, kind: Option<Kind>) -> Self {
        let mut world = self.clone();
        if kind == Some(Kind::SlowProcess) {
            world.speed.hiccup.0 = 0.0;
        }
        world
    }

    /// These variables have the other policy.
    pub(super) fn change_policy(&mut self, of: &[VarId]) {
        for variable in self.variables.iter_mut().filter(|v| of.contains(&v.id())) {
            let spec = variable.spec().clone();
            let other = match spec.policy() {
                CopyPolicy::Update => CopyPolicy::Invalidate,
                CopyPolicy::Invalidate => CopyPolicy::Update,
            };
            let objects = spec.layout().objects();
            let owners = (0..objects).map(|i| variable.owner(i)).collect();
            let changed = Variable::new(variable.id(), spec.with_policy(other), owners, GroupId(0));
            if let Ok(changed) = changed {
                *variable = changed;
            }
        }
    }

    /// Number of application processes; process `i` talks to memory process `i`.
    pub(super) fn size(&self) -> usize {
        self.topology.application_processes().len()
    }

    /// The processes of group `g`.
    pub(super) fn members(&self, g: usize) -> Vec<usize> {
        let of = |ap: &usize| self.topology.memory_processes()[*ap].group.index() == g;
        (0..self.size()).filter(of).collect()
    }

    /// Processes that belong together: those of one group with at least this many, otherwise all.
    pub(super) fn team(&self, at_least: usize, random: &mut StdRng) -> Vec<usize> {
        let groups = (0..self.topology.groups().len()).map(|g| self.members(g));
        let mut fit: Vec<Vec<usize>> = groups.filter(|m| m.len() >= at_least).collect();
        match fit.len() {
            0 => (0..self.size()).collect(),
            n => fit.swap_remove(random.random_range(0..n)),
        }
    }

    /// A process of the largest group: the best place for what all use.
    pub(super) fn middle(&self) -> usize {
        let groups = (0..self.topology.groups().len()).map(|g| self.members(g));
        groups.max_by_key(Vec::len).map_or(0, |m| m[0])
    }

    /// Declares a variable of one object an owner.
    pub(super) fn declare(&mut self, name: &str, owners: &[usize], policy: CopyPolicy) -> VarId {
        let id = VarId(self.variables.len() as u32 + 1);
        let parts = owners.len().max(1) as u32;
        let elements = u64::from(parts * ELEMENTS);
        let layout = Layout::new(ElementType::F64, (1, elements), (1, parts));
        let owners = owners.iter().map(|&o| MpId(o as u32)).collect();
        let spec = layout.and_then(|layout| VariableSpec::new(name, layout));
        let variable =
            spec.and_then(|spec| Variable::new(id, spec.with_policy(policy), owners, GroupId(0)));
        self.variables.extend(variable);
        id
    }
}

/// Object `index` of a variable.
pub(super) fn object(variable: VarId, index: usize) -> ObjectId {
    ObjectId::new(variable, index as u32)
}
