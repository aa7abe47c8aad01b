//! A cluster of cores inside one test: messages wait in one queue a pair of neighbours (in order
//! between any two, as on a stream), and everything that happens is written to a log.
#![allow(dead_code, unreachable_pub)] // each test uses a part

#[path = "../../src/core/testing.rs"]
#[allow(missing_docs)]
mod topology;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use dosmos_memproc::core::messages::*;
use dosmos_memproc::core::replica::seat::{Config, Seat};
use dosmos_memproc::core::{Core, Settings, VariableOverride};
use dosmos_proto::{
    ApId, Cache, CopyPolicy, ElementType, Incarnation, Layout, MpId, Nanos, ObjectId, Placement,
    Refusal, Topology, VarId, Variable, VariableSpec,
};
use dosmos_trace::{Record, Side};

pub use topology::topology;

/// What an application process is told, in the order of its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The reply to this request, which is in `replies`.
    Reply(u64),
    /// A copy is void.
    Invalidate(ObjectId),
    /// A copy has this version and content now.
    Update(ObjectId, u64, Bytes),
    /// What it has of an object is of this version now.
    Confirm(ObjectId, u64),
    /// Others need an object that is delegated to it.
    Recall(ObjectId, u64, Wanted),
}

/// A process's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Skewed {
    /// When it was ahead of cluster time by `ahead_ns`.
    pub epoch: Nanos,
    pub ahead_ns: i64,
    /// What it gains, in millionths.
    pub ppm: i64,
}

impl Skewed {
    /// What it says at a cluster time.
    pub fn says(&self, cluster: Nanos) -> Nanos {
        let since = i128::from(cluster.0) - i128::from(self.epoch.0);
        let gained = since * i128::from(self.ppm) / 1_000_000;
        cluster.shifted(self.ahead_ns + gained as i64)
    }

    /// When it says that, to the nanosecond.
    pub fn true_time(&self, local: Nanos) -> Nanos {
        let since = i128::from(local.0) - i128::from(self.epoch.0) - i128::from(self.ahead_ns);
        let truly = since * 1_000_000 / (1_000_000 + i128::from(self.ppm));
        self.epoch.shifted(truly as i64)
    }
}

/// The cluster.
pub struct Cluster {
    pub topology: Arc<Topology>,
    pub cores: Vec<Core>,
    /// Messages on their way, by (from, to).
    pub links: BTreeMap<(MpId, MpId), VecDeque<Message>>,
    /// Order in which they were sent.
    order: VecDeque<(MpId, MpId)>,
    /// Directions in which nothing arrives.
    dead: BTreeSet<(MpId, MpId)>,
    /// Ends of dead links that have not noticed it, and their neighbours.
    unaware: BTreeSet<(MpId, MpId)>,
    /// Processes that do nothing until they are continued.
    pub stopped: BTreeSet<MpId>,
    overrides: Vec<VariableOverride>,
    /// Memory processes may be within application processes.
    pub in_application: bool,
    starts: u32,
    /// Nothing is written to the log: a run takes a fraction of the time.
    pub silent: bool,
    pub log: Vec<String>,
    pub now: Nanos,
    /// What the processes have for it.
    pub clocks: Vec<Skewed>,
    next_id: u64,
    pub replies: HashMap<(ApId, u64), Reply>,
    pub told: VecDeque<(ApId, Told)>,
    pub items: Vec<(MpId, Item)>,
    names: HashMap<VarId, String>,
    out: Vec<Output>,
}

impl Cluster {
    /// All processes up, all application processes connected.
    pub fn new(groups: &[&str], mps: u32, aps: u32) -> Self {
        Self::with_overrides(groups, mps, aps, &[])
    }

    pub fn with_overrides(
        groups: &[&str],
        mps: u32,
        aps: u32,
        overrides: &[VariableOverride],
    ) -> Self {
        Self::without_processes(topology(groups, mps, aps), overrides).begun()
    }

    /// All processes up, all application processes connected.
    fn begun(mut self) -> Self {
        let count = self.topology.memory_processes().len() as u32;
        self.cores = (0..count).map(|mp| self.start(MpId(mp))).collect();
        let mut c = self;
        for (a, b) in c.pairs() {
            c.up(a, b);
        }
        for ap in 0..c.topology.application_processes().len() as u32 {
            c.connect(ApId(ap)).unwrap();
        }
        c.run();
        c.log.clear();
        c
    }

    /// As [`new`](Self::new); memory processes may be within application processes.
    pub fn in_application(groups: &[&str], mps: u32, aps: u32) -> Self {
        let c = Self {
            in_application: true,
            ..Self::without_processes(topology(groups, mps, aps), &[])
        };
        c.begun()
    }

    /// Nothing up, nobody connected.
    pub fn unconnected(topology: Arc<Topology>, overrides: &[VariableOverride]) -> Self {
        let mut c = Self::without_processes(topology, overrides);
        let count = c.topology.memory_processes().len() as u32;
        c.cores = (0..count).map(|mp| c.start(MpId(mp))).collect();
        c
    }

    fn without_processes(topology: Arc<Topology>, overrides: &[VariableOverride]) -> Self {
        let count = topology.memory_processes().len() as u32;
        Self {
            cores: Vec::new(),
            topology,
            dead: BTreeSet::new(),
            unaware: BTreeSet::new(),
            stopped: BTreeSet::new(),
            overrides: overrides.to_vec(),
            in_application: false,
            starts: 0,
            links: BTreeMap::new(),
            order: VecDeque::new(),
            silent: false,
            log: Vec::new(),
            now: Nanos(1_000_000),
            clocks: vec![Skewed::default(); count as usize],
            next_id: 1,
            replies: HashMap::new(),
            told: VecDeque::new(),
            items: Vec::new(),
            names: HashMap::new(),
            out: Vec::new(),
        }
    }

    /// A process that has seen nothing yet; each start has its own incarnation.
    fn start(&mut self, me: MpId) -> Core {
        // The first start of each is the first, later ones are counted over all.
        self.starts += 1;
        let count = self.topology.memory_processes().len() as u32;
        let start = self.starts.saturating_sub(count) + 1;
        Core::new(Settings {
            topology: Arc::clone(&self.topology),
            me,
            incarnation: Incarnation::new(start, 0),
            overrides: self.overrides.clone(),
            default_timeout: Nanos::from_millis(60_000),
            in_application: self.in_application,
        })
    }

    /// A memory or link process ends and is started again, with nothing of what it knew.
    pub fn restart(&mut self, mp: MpId) {
        self.log.push(format!("{} starts again", self.mp(mp)));
        let neighbours = self.cores[mp.index()].neighbours();
        for n in &neighbours {
            self.clear(mp, *n);
            self.unaware.remove(&(mp, *n));
        }
        self.cores[mp.index()] = self.start(mp);
        for n in neighbours {
            if self.dead.contains(&(mp, n)) {
                self.notice(n, mp);
            } else {
                self.feed(n, Input::PeerDown(mp));
                self.feed(mp, Input::PeerUp(n));
                self.feed(n, Input::PeerUp(mp));
            }
        }
    }

    /// All pairs of neighbours, lower number first.
    pub fn pairs(&self) -> Vec<(MpId, MpId)> {
        let mut pairs = Vec::new();
        for (i, core) in self.cores.iter().enumerate() {
            let me = MpId(i as u32);
            let higher = core.neighbours().into_iter().filter(|n| *n > me);
            pairs.extend(higher.map(|n| (me, n)));
        }
        pairs
    }

    /// The same, and its neighbours do not notice.
    pub fn restart_unnoticed(&mut self, mp: MpId) {
        let name = self.mp(mp);
        self.log.push(format!("{name} starts again, unnoticed"));
        self.cores[mp.index()] = self.start(mp);
        for n in self.cores[mp.index()].neighbours() {
            self.clear(mp, n);
            self.feed(mp, Input::PeerUp(n));
        }
    }

    pub fn up(&mut self, a: MpId, b: MpId) {
        for (one, other) in [(a, b), (b, a)] {
            self.notice(one, other);
            self.dead.remove(&(one, other));
        }
        self.feed(a, Input::PeerUp(b));
        self.feed(b, Input::PeerUp(a));
    }

    /// The link breaks: what is on it is lost; both ends notice.
    pub fn down(&mut self, a: MpId, b: MpId) {
        self.cut_at(a, b);
        self.notice(b, a);
    }

    /// The link breaks: what is on it is lost, and what is sent from now on. Only `a` notices.
    pub fn cut_at(&mut self, a: MpId, b: MpId) {
        self.clear(a, b);
        self.dead.extend([(a, b), (b, a)]);
        self.unaware.insert((b, a));
        self.feed(a, Input::PeerDown(b));
    }

    /// `mp` notices that its link to `neighbour` is dead, if it has not.
    pub fn notice(&mut self, mp: MpId, neighbour: MpId) {
        if self.unaware.remove(&(mp, neighbour)) {
            self.feed(mp, Input::PeerDown(neighbour));
        }
    }

    /// Ends that have not noticed that a link is dead, and their neighbours.
    pub fn unaware(&self) -> Vec<(MpId, MpId)> {
        self.unaware.iter().copied().collect()
    }

    fn clear(&mut self, a: MpId, b: MpId) {
        for pair in [(a, b), (b, a)] {
            self.links.remove(&pair);
            self.order.retain(|p| *p != pair);
        }
    }

    pub fn connect(&mut self, ap: ApId) -> Result<(), Refusal> {
        let mp = self.mp_of(ap);
        let name = self.topology.ap_name(ap);
        let mut out = std::mem::take(&mut self.out);
        let now = self.clocks[mp.index()].says(self.now);
        let result = self.cores[mp.index()].connect(now, &name, &mut out);
        self.out = out;
        self.collect(mp);
        result.map(|_| ())
    }

    pub fn gone(&mut self, ap: ApId) {
        self.log
            .push(format!("{} is gone", self.topology.ap_name(ap)));
        self.feed(self.mp_of(ap), Input::ApGone(ap));
    }

    pub fn mp_of(&self, ap: ApId) -> MpId {
        self.topology.ap(ap).unwrap().memory_process
    }

    pub fn feed(&mut self, mp: MpId, input: Input) {
        let mut out = std::mem::take(&mut self.out);
        let now = self.clocks[mp.index()].says(self.now);
        self.cores[mp.index()].handle(now, input, &mut out);
        self.out = out;
        self.collect(mp);
    }

    fn collect(&mut self, mp: MpId) {
        for output in std::mem::take(&mut self.out) {
            match output {
                Output::Reply { ap, id, reply, .. } => {
                    if !self.silent {
                        let text = self.reply_text(&reply);
                        self.log_line(&format!("{} -> {}", self.mp(mp), self.ap(ap)), &text);
                    }
                    self.told.push_back((ap, Told::Reply(id)));
                    let before = self.replies.insert((ap, id), reply);
                    assert!(before.is_none(), "{ap} request {id} was answered twice");
                }
                Output::Invalidate { ap, object } => {
                    if !self.silent {
                        let text = format!("invalidate {}", self.object(object));
                        self.log_line(&format!("{} -> {}", self.mp(mp), self.ap(ap)), &text);
                    }
                    self.told.push_back((ap, Told::Invalidate(object)));
                }
                Output::Update {
                    ap,
                    object,
                    version,
                    data,
                } => {
                    let text = format!(
                        "update {} = {} v{version}",
                        self.object(object),
                        number(&data)
                    );
                    self.log_line(&format!("{} -> {}", self.mp(mp), self.ap(ap)), &text);
                    self.told
                        .push_back((ap, Told::Update(object, version, data)));
                }
                Output::Confirm {
                    ap,
                    object,
                    version,
                } => {
                    let text = format!("confirm {} v{version}", self.object(object));
                    self.log_line(&format!("{} -> {}", self.mp(mp), self.ap(ap)), &text);
                    self.told.push_back((ap, Told::Confirm(object, version)));
                }
                Output::Recall {
                    ap,
                    object,
                    delegation,
                    wanted,
                } => {
                    let what = match wanted {
                        Wanted::Elements(first, end) => format!("publish {first}..{end} of"),
                        Wanted::Everything => "recall".to_owned(),
                        Wanted::Lost => "take away".to_owned(),
                    };
                    let text = format!("{what} {} ({delegation})", self.object(object));
                    self.log_line(&format!("{} -> {}", self.mp(mp), self.ap(ap)), &text);
                    let told = Told::Recall(object, delegation, wanted);
                    self.told.push_back((ap, told));
                }
                Output::Send { to, .. } if self.dead.contains(&(mp, to)) => {}
                Output::Send { to, message } => {
                    self.order.push_back((mp, to));
                    self.links.entry((mp, to)).or_default().push_back(message);
                }
                Output::Trace(item) => {
                    if !self.silent {
                        self.item_text(mp, &item);
                    }
                    self.items.push((mp, item));
                }
            }
        }
    }

    /// Asks without waiting; gives the request's number.
    pub fn ask(&mut self, ap: u32, request: Request) -> u64 {
        self.ask_within(ap, None, request)
    }

    pub fn ask_within(&mut self, ap: u32, timeout: Option<Nanos>, request: Request) -> u64 {
        let ap = ApId(ap);
        let id = self.next_id;
        self.next_id += 1;
        let mp = self.mp_of(ap);
        if !self.silent {
            let text = self.request_text(&request);
            self.log_line(&format!("{} -> {}", self.ap(ap), self.mp(mp)), &text);
        }
        let input = Input::Request {
            ap,
            id,
            timeout,
            request,
        };
        self.feed(mp, input);
        id
    }

    /// Asks and runs until nothing moves; the reply, if there was one.
    pub fn call(&mut self, ap: u32, request: Request) -> Option<Reply> {
        let id = self.ask(ap, request);
        self.run();
        self.reply(ap, id)
    }

    pub fn reply(&self, ap: u32, id: u64) -> Option<Reply> {
        self.replies.get(&(ApId(ap), id)).cloned()
    }

    /// The refusal of a call, as text.
    pub fn refusal(&mut self, ap: u32, request: Request) -> String {
        match self.call(ap, request) {
            Some(Reply::Refused(r)) => format!("{:?}: {}", r.code, r.message),
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Delivers messages, oldest first, until none is on its way.
    pub fn run(&mut self) {
        while let Some(pair) = self.order.pop_front() {
            self.deliver(pair);
        }
    }

    /// Everything arrives, but at processes that are stopped.
    pub fn run_awake(&mut self) {
        while let Some(pair) = self.busy().first().copied() {
            self.deliver(pair);
        }
    }

    /// Delivers messages, oldest first, until something holds.
    pub fn run_until(&mut self, holds: impl Fn(&Self) -> bool) {
        while !holds(self) {
            let Some(pair) = self.order.pop_front() else {
                return;
            };
            self.deliver(pair);
        }
    }

    /// Pairs with messages on their way that can arrive.
    pub fn busy(&self) -> Vec<(MpId, MpId)> {
        let busy = self.links.iter().filter(|(_, q)| !q.is_empty());
        let pairs = busy.map(|(pair, _)| *pair);
        pairs.filter(|(_, to)| !self.stopped.contains(to)).collect()
    }

    /// Delivers the first message from one neighbour to another.
    pub fn deliver(&mut self, (from, to): (MpId, MpId)) {
        let Some(message) = self
            .links
            .get_mut(&(from, to))
            .and_then(VecDeque::pop_front)
        else {
            return;
        };
        self.now += Nanos(10);
        if !self.silent {
            let text = self.message_text(&message);
            self.log_line(&format!("{} -> {}", self.mp(from), self.mp(to)), &text);
        }
        self.feed(to, Input::Message { from, message });
    }

    /// Lets time pass everywhere.
    pub fn pass(&mut self, time: Nanos) {
        self.now += time;
        for mp in 0..self.cores.len() as u32 {
            if !self.stopped.contains(&MpId(mp)) {
                self.feed(MpId(mp), Input::Tick);
            }
        }
    }

    /// Declares a variable of `parts` objects with `elements` u64 each.
    pub fn declare(&mut self, ap: u32, spec: VariableSpec) -> Arc<Variable> {
        let reply = self.call(ap, Request::Declare(spec));
        self.log.clear();
        match reply {
            Some(Reply::Variable(v)) => v,
            other => panic!("not declared: {other:?}"),
        }
    }

    /// Declares a scalar u64 owned by `mp`.
    pub fn scalar(&mut self, name: &str, mp: u32, policy: CopyPolicy) -> ObjectId {
        let v = self.declare(0, scalar(name, &[&format!("mp{mp}")], policy));
        ObjectId::new(v.id(), 0)
    }

    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.items.iter().filter_map(|(_, i)| match i {
            Item::Record(r) => Some(r),
            _ => None,
        })
    }

    /// Checks the log since the last check, and clears it.
    #[track_caller]
    pub fn expect(&mut self, lines: &str) {
        let expected: Vec<&str> = lines
            .lines()
            .map(str::trim)
            .filter(|l| !l.is_empty())
            .collect();
        let log = std::mem::take(&mut self.log);
        let log: Vec<&str> = log.iter().map(|l| l.trim()).collect();
        assert!(
            log == expected,
            "\n--- happened ---\n{}\n--- expected ---\n{}\n",
            log.join("\n"),
            expected.join("\n")
        );
    }

    fn log_line(&mut self, who: &str, what: &str) {
        self.log.push(format!("{who} {what}"));
    }

    fn ap(&self, ap: ApId) -> String {
        self.topology.ap_name(ap)
    }
    fn mp(&self, mp: MpId) -> String {
        self.topology.mp_name(mp)
    }

    fn object(&self, object: ObjectId) -> String {
        let name = self.names.get(&object.var);
        format!(
            "{}[{}]",
            name.map_or_else(|| object.var.to_string(), Clone::clone),
            object.index
        )
    }

    fn item_text(&mut self, mp: MpId, item: &Item) {
        let text = match item {
            Item::Record(r) => self.record_text(r),
            Item::HandOver(h) => format!(
                "hand-over {} {} to {}",
                self.object(h.object),
                if h.dropped { "dropped" } else { "updated" },
                self.topology.emp_name(h.primary_emp)
            ),
            Item::Variable(v) => {
                self.names.insert(v.id(), v.spec().name().to_owned());
                format!("variable {}", v.spec().name())
            }
            Item::Barrier(b) => {
                self.names.insert(b.id, format!("barrier {}", b.name));
                format!("barrier {}", b.name)
            }
        };
        let kind = if matches!(item, Item::Record(_)) {
            "record"
        } else {
            "trace"
        };
        self.log_line(&format!("{kind}@{}", self.mp(mp)), &text);
    }

    fn record_text(&self, r: &Record) -> String {
        let side = match r.side {
            Side::Requester => "requester",
            Side::Owner => "owner",
        };
        let mut text = format!(
            "{side} {} {} by {} {} v{}",
            r.op,
            self.object(r.object),
            self.ap(r.ap),
            r.origin,
            r.version
        );
        for (flag, name) in [
            (r.flags.optimized, " optimized"),
            (r.flags.failed, " failed"),
            (r.flags.waiting, " waiting"),
            (r.wait > Nanos::ZERO, " waited"),
        ] {
            if flag {
                text.push_str(name);
            }
        }
        text
    }

    fn request_text(&self, request: &Request) -> String {
        match request {
            Request::Declare(s) => format!("declare {}", s.name()),
            Request::Open(name) => format!("open {name}"),
            Request::Access(access) | Request::Posted(access) => self.access_text(access),
            Request::Barrier { name, .. } => format!("barrier {name}"),
            Request::Publish => "publish".into(),
            Request::Cancel(id) => format!("cancel {id}"),
            Request::Bye => "bye".into(),
            Request::Report(accesses) => format!("report of {} kinds", accesses.len()),
            Request::Return(list) => {
                let texts: Vec<String> = list.iter().map(|back| self.return_text(back)).collect();
                texts.join(", ")
            }
        }
    }

    fn access_text(&self, access: &Access) -> String {
        let object = self.object(access.object);
        match &access.kind {
            AccessKind::Read { range, keep, .. } => {
                let part = match range.end {
                    Some(end) => format!(" {}..{end}", range.first),
                    None => String::new(),
                };
                let keep = match keep {
                    Keep::Nothing => "",
                    Keep::Copy => " to keep",
                    Keep::Exclusive => " to have",
                };
                format!("read {object}{part}{keep}")
            }
            AccessKind::Write { write, .. } => match write.adds {
                true => format!("add {} to {object}", number(&write.data)),
                false => format!("write {object} = {}", number(&write.data)),
            },
            AccessKind::Atomic { .. } => format!("atomic {object}"),
            AccessKind::Acquire { want_value } => match want_value {
                true => format!("acquire {object} with its value"),
                false => format!("acquire {object}"),
            },
            AccessKind::Release { write, .. } => match write {
                Some(write) => format!("release {object} = {}", number(&write.data)),
                None => format!("release {object}"),
            },
        }
    }

    fn return_text(&self, back: &Return) -> String {
        let parts: Vec<String> = back
            .parts
            .iter()
            .map(|(first, data)| format!(" {first}: {}", number(data)))
            .collect();
        let verb = if back.kept { "publish" } else { "return" };
        let section = match back.in_section {
            true => format!(", in section {}", back.epoch),
            false => String::new(),
        };
        format!(
            "{verb} {} ({}) v{}{}{section}",
            self.object(back.object),
            back.delegation,
            back.version,
            parts.concat()
        )
    }

    fn reply_text(&self, reply: &Reply) -> String {
        match reply {
            Reply::Variable(v) => format!("variable {}", v.spec().name()),
            Reply::Read {
                version,
                data,
                keep,
                delegation,
                unchanged,
            } => {
                let what = match unchanged {
                    true => "its value".to_owned(),
                    false => format!("value {}", number(data)),
                };
                let keep = match (delegation, keep) {
                    (Some(d), _) => format!(" to have ({})", d.number),
                    (None, true) => " to keep".to_owned(),
                    (None, false) => String::new(),
                };
                format!("{what} v{version}{keep}")
            }
            Reply::Written { .. } => "written".into(),
            Reply::Atomic {
                previous, stored, ..
            } => format!("was {previous}{}", if *stored { "" } else { ", kept" }),
            Reply::Granted {
                epoch,
                version,
                value,
            } => granted_text(*epoch, *version, value.as_ref()),
            Reply::Released { version } => format!("released v{version}"),
            Reply::Passed(opening) => format!("passed generation {}", opening.generation),
            Reply::Published => "published".into(),
            Reply::Farewell => "farewell".into(),
            Reply::Refused(r) => format!("refused {:?}", r.code),
        }
    }

    fn message_text(&self, m: &Message) -> String {
        match &m.body {
            Body::Request { request, .. } => self.peer_request_text(request),
            Body::Response { response, .. } => self.response_text(response),
            Body::Notice(notice) => self.notice_text(notice),
        }
    }

    fn peer_request_text(&self, request: &PeerRequest) -> String {
        let o = |object: &ObjectId| self.object(*object);
        match request {
            PeerRequest::Access {
                access,
                ap,
                want_copy,
            } => {
                let epoch = match access.kind {
                    AccessKind::Write { epoch, .. } => format!(" epoch {}", epoch.unwrap_or(0)),
                    _ => String::new(),
                };
                format!(
                    "{} by {}{epoch}{}",
                    self.access_text(access),
                    self.ap(*ap),
                    if *want_copy { " with copy" } else { "" }
                )
            }
            PeerRequest::Renew => "renew".into(),
            PeerRequest::Flush { ap } => format!("flush {}", self.ap(*ap)),
            PeerRequest::Declare { spec, creator } => {
                format!("declare {} for {}", spec.name(), self.mp(*creator))
            }
            PeerRequest::Open(name) => format!("open {name}"),
            PeerRequest::Create(v) => format!("create {}", v.spec().name()),
            PeerRequest::Names { after } if after.is_empty() => "your names?".into(),
            PeerRequest::Names { after } => format!("your names after {after}?"),
            PeerRequest::Invalidate { object, version } => {
                format!("invalidate {} v{version}", o(object))
            }
            PeerRequest::Update {
                object,
                version,
                data,
                ..
            } => {
                format!("update {} = {} v{version}", o(object), number(data))
            }
            PeerRequest::Ballot(ballot) => self.ballot_text(ballot),
            PeerRequest::Compare(c) => {
                let has = |(object, (version, _)): &(ObjectId, (u64, u64))| {
                    format!("{} v{version}", o(object))
                };
                let all: Vec<String> = c.states.iter().map(has).collect();
                format!("newer than {}?", all.join(", "))
            }
            PeerRequest::Replicate(r) => {
                let data = r.state.data.as_ref();
                let data = data.map_or_else(String::new, |d| format!(" = {}", number(d)));
                let joining = if r.joining > 0 { " to catch up" } else { "" };
                format!("keep {}{data} v{}{joining}", o(&r.object), r.state.version)
            }
        }
    }

    fn seat_text(&self, seat: Seat) -> String {
        format!("{}/{}", self.mp(seat.mp), seat.replicas)
    }

    fn config_text(&self, config: &Config) -> String {
        let members: Vec<String> = config.members.iter().map(|m| self.mp(m.0)).collect();
        let members = members.join(" ");
        format!(
            "{} term {}: {members}",
            self.seat_text(config.seat),
            config.term
        )
    }

    fn ballot_text(&self, ballot: &Ballot) -> String {
        match ballot {
            Ballot::Prepare(seat, term) => {
                format!("may I decide {} term {term}", self.seat_text(*seat))
            }
            Ballot::Accept(config) => format!("accept {}", self.config_text(config)),
            Ballot::Lead(seats) => {
                let seats = seats
                    .iter()
                    .map(|(s, term)| format!("{} term {term}", self.seat_text(*s)));
                format!("I serve {}", seats.collect::<Vec<_>>().join(", "))
            }
            Ballot::Recover => "what did I promise".into(),
        }
    }

    fn answer_text(&self, answer: &Answer) -> String {
        match answer {
            Answer::Vote(vote) => format!(
                "{} (latest {})",
                if vote.granted { "yes" } else { "no" },
                vote.accepted.term
            ),
            Answer::Led(refused) if refused.is_empty() => "go on".into(),
            Answer::Led(_) => "others decide".into(),
            Answer::Known { active, anew, .. } => format!("active {active}, anew {anew}"),
        }
    }

    fn response_text(&self, response: &Response) -> String {
        match response {
            Response::Read {
                version,
                data,
                copy,
                ..
            } => format!(
                "value {} v{version}{}",
                number(data),
                if *copy { " copy" } else { "" }
            ),
            Response::Written { .. } => "written".into(),
            Response::Atomic { previous, .. } => format!("was {previous}"),
            Response::Granted {
                epoch,
                version,
                value,
            } => granted_text(*epoch, *version, value.as_ref()),
            Response::Released { version } => format!("released v{version}"),
            Response::Renewed => "renewed".into(),
            Response::Flushed => "flushed".into(),
            Response::Variable(a) => format!("variable {}", a.variable.spec().name()),
            Response::Created => "created".into(),
            Response::Names(names) => {
                let announced = names.announced.iter().map(|a| a.variable.spec().name());
                let told = names.told.iter().map(|v| v.spec().name());
                let all: Vec<&str> = announced.chain(told).collect();
                format!("names: {}", all.join(", "))
            }
            Response::CopyAck {
                object, version, ..
            } => {
                format!("ack {} v{version}", self.object(*object))
            }
            Response::Answer(answer) => self.answer_text(answer),
            Response::Compared(c) => {
                let newer = c.newer.iter();
                let newer = newer.map(|(o, s)| format!(" {} v{}", self.object(*o), s.version));
                let older = c.older.iter().map(|o| format!(" {}", self.object(*o)));
                format!(
                    "newer:{}; lacks:{}",
                    newer.collect::<String>(),
                    older.collect::<String>()
                )
            }
            Response::Replicated => "kept".into(),
            Response::Moved(config) => format!("moved to {}", self.config_text(config)),
            Response::Refused(r) => format!("refused {:?}", r.code),
        }
    }

    fn notice_text(&self, notice: &Notice) -> String {
        match notice {
            Notice::Abandon { ap, object } => format!(
                "abandon {} by {}",
                object.map_or_else(|| "all".to_owned(), |o| self.object(o)),
                self.ap(*ap)
            ),
            Notice::BarrierArrive {
                name, generation, ..
            } => format!("arrive {name} generation {generation}"),
            Notice::BarrierWithdraw {
                name, generation, ..
            } => format!("withdraw {name} generation {generation}"),
            Notice::BarrierRelease {
                name,
                generation,
                failed,
                ..
            } => format!(
                "{} {name} generation {generation}",
                if failed.is_some() { "fail" } else { "open" }
            ),
            Notice::ApGone { ap, back } => gone_text(&self.ap(*ap), *back),
            Notice::MpGone { mp, back } => gone_text(&self.mp(*mp), *back),
            Notice::Seated(config) => format!("seated {}", self.config_text(config)),
        }
    }
}

fn granted_text(epoch: u64, version: u64, value: Option<&Bytes>) -> String {
    let value = value.map_or_else(String::new, |v| format!(" value {}", number(v)));
    format!("granted epoch {epoch} v{version}{value}")
}

fn gone_text(name: &str, back: bool) -> String {
    format!("{name} is {}", if back { "back" } else { "gone" })
}

/// Two memory processes of one group with one application process each; `x` is owned by mp0.
pub fn pair() -> (Cluster, ObjectId) {
    let mut c = Cluster::new(&["/a"], 2, 1);
    let x = c.scalar("x", 0, CopyPolicy::Invalidate);
    c.call(1, Request::Open("x".into()));
    c.log.clear();
    (c, x)
}

/// The first element, for a log.
pub fn number(data: &Bytes) -> u64 {
    let mut word = [0; 8];
    let n = data.len().min(8);
    word[..n].copy_from_slice(&data[..n]);
    u64::from_le_bytes(word)
}

pub fn bytes(value: u64) -> Bytes {
    Bytes::copy_from_slice(&value.to_le_bytes())
}

pub fn scalar(name: &str, owners: &[&str], policy: CopyPolicy) -> VariableSpec {
    vector(name, 1, 1, owners, policy)
}

/// `length` u64 in `parts` objects.
pub fn vector(
    name: &str,
    length: u64,
    parts: u32,
    owners: &[&str],
    policy: CopyPolicy,
) -> VariableSpec {
    let layout = Layout::new(ElementType::U64, (1, length), (1, parts)).unwrap();
    let spec = VariableSpec::new(name, layout).unwrap();
    let owners = Placement::explicit(owners.iter().copied()).unwrap();
    let spec = spec.with_cache(Cache::Mp);
    spec.with_placement(owners).with_policy(policy)
}

fn access(object: ObjectId, kind: AccessKind) -> Request {
    Request::Access(Access { object, kind })
}
pub fn read(object: ObjectId) -> Request {
    read_range(object, ElementRange::ALL)
}
pub fn read_in(object: ObjectId, epoch: u64) -> Request {
    let range = ElementRange::ALL;
    let epoch = Some(epoch);
    let keep = Keep::Nothing;
    access(object, AccessKind::Read { range, epoch, keep })
}
pub fn read_range(object: ObjectId, range: ElementRange) -> Request {
    let (epoch, keep) = (None, Keep::Nothing);
    access(object, AccessKind::Read { range, epoch, keep })
}
/// Of a process that would keep the object.
pub fn read_to_keep(object: ObjectId) -> Request {
    let (range, epoch, keep) = (ElementRange::ALL, None, Keep::Copy);
    access(object, AccessKind::Read { range, epoch, keep })
}
/// Of a process that would have the object to itself.
pub fn read_to_have(object: ObjectId) -> Request {
    let (range, epoch, keep) = (ElementRange::ALL, None, Keep::Exclusive);
    access(object, AccessKind::Read { range, epoch, keep })
}
pub fn write(object: ObjectId, value: u64) -> Request {
    write_bytes(object, 0, bytes(value), None)
}
pub fn accumulate(object: ObjectId, value: u64) -> Request {
    let write = WriteData {
        adds: true,
        ..written(0, bytes(value), 1)
    };
    access(object, AccessKind::Write { write, epoch: None })
}
pub fn write_in(object: ObjectId, value: u64, epoch: u64) -> Request {
    write_bytes(object, 0, bytes(value), Some(epoch))
}
pub fn write_bytes(object: ObjectId, first: u32, data: Bytes, epoch: Option<u64>) -> Request {
    access(
        object,
        AccessKind::Write {
            write: written(first, data, 1),
            epoch,
        },
    )
}
pub fn acquire(object: ObjectId) -> Request {
    access(object, AccessKind::Acquire { want_value: false })
}
pub fn release(object: ObjectId) -> Request {
    release_with(object, None, None)
}
pub fn release_in(object: ObjectId, epoch: u64) -> Request {
    release_with(object, Some(epoch), None)
}
pub fn release_with(object: ObjectId, epoch: Option<u64>, write: Option<WriteData>) -> Request {
    access(object, AccessKind::Release { epoch, write })
}
/// Elements from `first` on, which stand for `accesses` writes of the application.
pub fn written(first: u32, data: Bytes, accesses: u32) -> WriteData {
    WriteData {
        adds: false,
        first,
        runs: None,
        data,
        accesses,
    }
}
/// With the object's value.
pub fn acquire_with_value(object: ObjectId) -> Request {
    access(object, AccessKind::Acquire { want_value: true })
}
pub fn fetch_add(object: ObjectId, n: u64) -> Request {
    atomic(object, 0, ElementType::U64, AtomicOp::FetchAdd(n))
}
pub fn atomic(object: ObjectId, element: u32, element_type: ElementType, op: AtomicOp) -> Request {
    let epoch = None;
    access(
        object,
        AccessKind::Atomic {
            element,
            element_type,
            op,
            epoch,
        },
    )
}
pub fn barrier(name: &str) -> Request {
    Request::Barrier {
        scope: Scope::All,
        name: name.into(),
    }
}
