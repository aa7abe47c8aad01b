//! A load generator: event managers, and memory processes that send them records of many variables.
//!
//! The event managers are the real ones with real stores, each on a thread of its own in this process; the
//! memory processes are streams that tell them what real ones would.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
use dosmos_proto::transport::{Address, Listener};
use dosmos_proto::wire::{self, ingest_reply};
use dosmos_proto::{
    AddressBook, ApId, ElementType, EmpId, GroupId, GroupPath, Layout, MpId, Nanos, ObjectId,
    Placement, Token, Topology, TopologyBuilder, VarId, Variable, VariableSpec,
};
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};

use crate::stream::Stream;

/// Memory processes of a group: their copies may be at each other's event managers.
const IN_GROUP: u32 = 8;
/// Time between two batches of a memory process, as of a real one.
const BATCH: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(60);

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) managers: u32,
    pub(crate) variables: u32,
    /// Records per second, all together.
    pub(crate) rate: u32,
}

/// What runs until this is dropped.
pub(crate) struct Load {
    pub(crate) book: AddressBook,
    pub(crate) topology: Topology,
    over: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<anyhow::Result<()>>>,
}

impl Load {
    /// Starts it; returns when every variable is known to its event manager.
    pub(crate) fn start(dir: &Path, size: Size) -> anyhow::Result<Self> {
        let topology = topology(size.managers)?;
        let book = AddressBook::new(HashMap::new(), Some(dir));
        let over = Arc::new(AtomicBool::new(false));
        let (ready, all_ready) = std::sync::mpsc::channel();
        let mut load = Self {
            book: book.clone(),
            topology: topology.clone(),
            over: over.clone(),
            threads: Vec::new(),
        };
        std::fs::create_dir_all(dir.join("addr"))?;
        for me in 0..size.managers {
            let (topology, book, over) = (topology.clone(), book.clone(), over.clone());
            let (dir, ready) = (dir.to_owned(), ready.clone());
            let run = move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                runtime.block_on(one(me, size, &topology, book, &dir, over, ready))
            };
            let thread = std::thread::Builder::new().name(format!("emp{me}"));
            load.threads.push(thread.spawn(run)?);
        }
        for _ in 0..size.managers {
            all_ready
                .recv_timeout(TIMEOUT)
                .context("an event manager did not come up")?;
        }
        Ok(load)
    }

    /// Ends it; an error of any part is told.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            match thread.join() {
                Ok(result) => result?,
                Err(_) => anyhow::bail!("an event manager's thread panicked"),
            }
        }
        Ok(())
    }
}

fn topology(managers: u32) -> anyhow::Result<Topology> {
    let groups = managers.div_ceil(IN_GROUP);
    let numbered = |what: &str, n: u32| (0..n).map(|i| format!("{what}{i}")).collect::<Vec<_>>();
    let topology = TopologyBuilder {
        name: "load".into(),
        groups: (0..groups)
            .map(|g| Group {
                path: GroupPath::top(&format!("g{g}")),
                parent: None,
            })
            .collect(),
        memory_processes: (0u32..)
            .zip(numbered("mp", managers))
            .map(|(i, name)| MemoryProcess {
                name,
                group: GroupId(i / IN_GROUP),
                event_manager: EmpId(i),
                link: false,
            })
            .collect(),
        application_processes: (0u32..)
            .zip(numbered("ap", managers))
            .map(|(i, name)| ApplicationProcess {
                name,
                memory_process: MpId(i),
            })
            .collect(),
        event_managers: numbered("emp", managers)
            .into_iter()
            .map(|name| EventManager { name })
            .collect(),
    };
    topology.build().map_err(|e| anyhow::anyhow!("{e}"))
}

/// One event manager and its memory process.
async fn one(
    me: u32,
    size: Size,
    topology: &Topology,
    book: AddressBook,
    dir: &Path,
    over: Arc<AtomicBool>,
    ready: std::sync::mpsc::Sender<()>,
) -> anyhow::Result<()> {
    let address = Address::Unix(dir.join(format!("{me}.sock")));
    let listener = Listener::bind(&address).await?;
    let config = dosmos_emp::Config {
        run: dosmos_trace::run::RunId::from_bits(1),
        topology: topology.clone(),
        me: EmpId(me),
        store: dir.join("store").join(format!("emp{me}")),
        metrics: None,
        retention: Default::default(),
        selection: Default::default(),
        companion: None,
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let token = book.require_token()?;
    let server = dosmos_emp::run(config, listener, book, async {
        let _ = stopped.await;
    });
    let client = async {
        let result = send(me, size, topology, (&address, &token), over, ready).await;
        let _ = stop.send(());
        result
    };
    let (served, sent) = tokio::join!(server, client);
    served?;
    sent
}

async fn send(
    me: u32,
    size: Size,
    topology: &Topology,
    to: (&Address, &Token),
    over: Arc<AtomicBool>,
    ready: std::sync::mpsc::Sender<()>,
) -> anyhow::Result<()> {
    let mut stream = Stream::open(to, format!("mp{me}"), topology.clone()).await?;
    let mut maker = Maker::new(me, size)?;
    stream.send(maker.first());
    while !matches!(
        stream.reply().await?,
        Some(ingest_reply::Body::Durable(1..))
    ) {}
    ready.send(())?;
    let mut beat = tokio::time::interval(BATCH);
    while !over.load(Ordering::Relaxed) {
        tokio::select! {
            _ = beat.tick() => stream.send(maker.next()),
            reply = stream.reply() => drop(reply?),
        }
    }
    Ok(())
}

/// Makes one memory process's batches.
struct Maker {
    me: u32,
    size: Size,
    sequence: u64,
    made: u64,
    random: u64,
    began: Instant,
    layout: Layout,
}

impl Maker {
    fn new(me: u32, size: Size) -> anyhow::Result<Self> {
        let layout = Layout::new(ElementType::F64, (1, 1), (1, 1));
        Ok(Self {
            layout: layout.map_err(|e| anyhow::anyhow!("{e}"))?,
            me,
            size,
            sequence: 0,
            made: 0,
            random: u64::from(me) + 1,
            began: Instant::now(),
        })
    }

    /// The variables of this process: every N-th number.
    fn own(&self) -> impl Iterator<Item = u32> + use<> {
        (self.me..self.size.variables).step_by(self.size.managers as usize)
    }

    /// Declares the variables, with an access each.
    fn first(&mut self) -> wire::Batch {
        let layout = &self.layout;
        let variables = self.own().flat_map(|v| variable(v, self.me, layout));
        let variables = variables.map(Into::into).collect();
        let own: Vec<u32> = self.own().collect();
        let records: Vec<Record> = own.into_iter().map(|v| self.record(v)).collect();
        wire::Batch {
            variables,
            ..self.batch(&records)
        }
    }

    fn next(&mut self) -> wire::Batch {
        let a_batch =
            BATCH.as_secs_f64() * f64::from(self.size.rate) / f64::from(self.size.managers);
        let mut records = Vec::new();
        for _ in 0..a_batch.round().max(1.0) as u64 {
            let many = u64::from(self.size.variables.div_ceil(self.size.managers));
            // A few are accessed much, most hardly.
            let (a, b) = (self.random(many), self.random(many));
            let at = (a * b / many) as u32 * self.size.managers + self.me;
            if at < self.size.variables {
                records.push(self.record(at));
            }
        }
        self.batch(&records)
    }

    fn random(&mut self, below: u64) -> u64 {
        // Xorshift: as good as needed, and the same every time.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below.max(1)
    }

    fn batch(&mut self, records: &[Record]) -> wire::Batch {
        self.sequence += 1;
        self.made += records.len() as u64;
        wire::Batch {
            sequence: self.sequence,
            records: Some(dosmos_trace::wire::encode(records)),
            sampling: 1.0,
            counters: Some(wire::ProcessCounters {
                requests: self.made,
                recorded: self.made,
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    fn record(&mut self, variable: u32) -> Record {
        let far = self.random(5) == 0;
        let op = [Op::Read, Op::Write][self.random(2) as usize];
        // One access in five is of another process of the group: it is the owner who tells it here.
        let requester = match far {
            true => {
                self.me / IN_GROUP * IN_GROUP + (self.me + 1) % IN_GROUP.min(self.size.managers)
            }
            false => self.me,
        };
        Record {
            start: Nanos::from(self.began.elapsed()) + Nanos(1),
            duration: Nanos(20_000),
            wait: Nanos(0),
            service: Nanos(1_000),
            op,
            side: if far { Side::Owner } else { Side::Requester },
            origin: if far { Origin::Intra } else { Origin::Local },
            flags: Flags::default(),
            object: ObjectId::new(VarId(variable), 0),
            ap: ApId(requester.min(self.size.managers - 1)),
            mp: MpId(requester.min(self.size.managers - 1)),
            peer: MpId(self.me),
            count: 1,
            bytes: 8,
            version: 0,
            range: (0, 1),
        }
    }
}

fn variable(id: u32, owner: u32, layout: &Layout) -> anyhow::Result<Variable> {
    let spec = VariableSpec::new(format!("ocean/cell.{id:06}"), *layout)?
        .with_placement(Placement::RoundRobin(None));
    let group = GroupId(owner / IN_GROUP);
    Ok(Variable::new(VarId(id), spec, vec![MpId(owner)], group)?)
}
