//! The state machines of two memory processes with an application process each, without sockets and threads.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Context, bail};
use bytes::Bytes;
use dosmos_memproc::core::messages::{
    Access, AccessKind, ElementRange, Input, Keep, Message, Output, Reply, Request, WriteData,
};
use dosmos_memproc::core::{Core, Settings};
use dosmos_proto::topology::ApplicationProcess;
use dosmos_proto::{
    ApId, ElementType, Incarnation, Layout, MpId, Nanos, ObjectId, Placement, TopologyBuilder,
    VariableSpec,
};

use crate::verify::topology;

const FIRST: MpId = MpId(0);
const SECOND: MpId = MpId(1);
/// Two memory processes, and objects of the first.
pub(crate) struct Pair {
    cores: Vec<Core>,
    under_way: VecDeque<(MpId, MpId, Message)>,
    out: Vec<Output>,
    now: Nanos,
    requests: u64,
    /// Who works.
    ap: ApId,
    object: ObjectId,
    replied: Option<Reply>,
}

impl Pair {
    /// The application process at memory process `mp` works.
    pub(crate) fn new(mp: u32) -> anyhow::Result<Self> {
        Self::made(mp, topology(2), 1)
    }

    /// The second memory process has `others` application processes more, and the first `objects` objects, all read once by the
    /// application process at memory process `mp`.
    pub(crate) fn with_objects(mp: u32, objects: u32, others: u32) -> anyhow::Result<Self> {
        let mut topology = topology(2);
        for n in 0..others {
            topology.application_processes.push(ApplicationProcess {
                name: format!("other{n}"),
                memory_process: SECOND,
            });
        }
        let mut pair = Self::made(mp, topology, objects)?;
        for index in 0..objects {
            pair.object.index = index;
            pair.read()?;
        }
        Ok(pair)
    }

    fn made(mp: u32, topology: TopologyBuilder, objects: u32) -> anyhow::Result<Self> {
        let topology = Arc::new(topology.build()?);
        let core = |me| {
            Core::new(Settings {
                topology: Arc::clone(&topology),
                me: MpId(me),
                incarnation: Incarnation::new(1, 0),
                overrides: Vec::new(),
                default_timeout: Nanos::from_millis(60_000),
                in_application: false,
            })
        };
        let mut pair = Self {
            cores: vec![core(0), core(1)],
            under_way: VecDeque::new(),
            out: Vec::new(),
            now: Nanos(1_000_000),
            requests: 0,
            ap: ApId(mp),
            object: ObjectId::default(),
            replied: None,
        };
        for me in [0, 1] {
            pair.feed(MpId(me), Input::PeerUp(MpId(1 - me)));
        }
        for ap in [0, 1] {
            let name = format!("ap{ap}");
            let core = &mut pair.cores[ap];
            core.connect(pair.now, &name, &mut pair.out)
                .map_err(|refusal| anyhow::anyhow!(refusal.message))?;
            pair.collect(MpId(ap as u32));
        }
        let layout = Layout::new(ElementType::U64, (1, objects.into()), (1, objects))?;
        let spec = VariableSpec::new("x", layout)?.with_placement(Placement::explicit(["mp0"])?);
        match pair.ask(Request::Declare(spec))? {
            Reply::Variable(variable) => pair.object = ObjectId::new(variable.id(), 0),
            other => bail!("not declared: {other:?}"),
        }
        Ok(pair)
    }

    pub(crate) fn repeat(
        mut self,
        operations: u64,
        operation: impl Fn(&mut Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        (0..operations).try_for_each(|_| operation(&mut self))
    }

    /// The first memory process loses the second, and has it back.
    pub(crate) fn lose(&mut self) -> anyhow::Result<()> {
        self.feed(FIRST, Input::PeerDown(SECOND));
        self.feed(FIRST, Input::PeerUp(SECOND));
        self.under_way.clear();
        Ok(())
    }

    pub(crate) fn read(&mut self) -> anyhow::Result<()> {
        let kind = AccessKind::Read {
            range: ElementRange::ALL,
            epoch: None,
            keep: Keep::Nothing,
        };
        match self.access(kind)? {
            Reply::Read { .. } => Ok(()),
            other => bail!("not read: {other:?}"),
        }
    }

    pub(crate) fn write(&mut self) -> anyhow::Result<()> {
        let kind = AccessKind::Write {
            write: WriteData {
                first: 0,
                runs: None,
                data: Bytes::from_static(&[1; 8]),
                accesses: 1,
                adds: false,
            },
            epoch: None,
        };
        match self.access(kind)? {
            Reply::Written { .. } => Ok(()),
            other => bail!("not written: {other:?}"),
        }
    }

    /// Acquire and release.
    pub(crate) fn section(&mut self) -> anyhow::Result<()> {
        let granted = self.access(AccessKind::Acquire { want_value: true })?;
        let Reply::Granted { epoch, .. } = granted else {
            bail!("not granted: {granted:?}");
        };
        let epoch = Some(epoch);
        match self.access(AccessKind::Release { epoch, write: None })? {
            Reply::Released { .. } => Ok(()),
            other => bail!("not released: {other:?}"),
        }
    }

    fn access(&mut self, kind: AccessKind) -> anyhow::Result<Reply> {
        let object = self.object;
        self.ask(Request::Access(Access { object, kind }))
    }

    /// Asks, and lets all messages arrive.
    fn ask(&mut self, request: Request) -> anyhow::Result<Reply> {
        self.requests += 1;
        let input = Input::Request {
            ap: self.ap,
            id: self.requests,
            timeout: None,
            request,
        };
        self.feed(MpId(self.ap.0), input);
        while let Some((from, to, message)) = self.under_way.pop_front() {
            self.feed(to, Input::Message { from, message });
        }
        self.replied.take().context("no reply")
    }

    fn feed(&mut self, mp: MpId, input: Input) {
        self.now += Nanos(100);
        self.cores[mp.index()].handle(self.now, input, &mut self.out);
        self.collect(mp);
    }

    fn collect(&mut self, mp: MpId) {
        for output in self.out.drain(..) {
            match output {
                Output::Reply { reply, .. } => self.replied = Some(reply),
                Output::Send { to, message } => self.under_way.push_back((mp, to, message)),
                other => drop(black_box(other)),
            }
        }
    }
}
