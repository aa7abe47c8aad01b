//! What rank 0 knows of all ranks, and what it orders them to do: no I/O, no clock.
//!
//! ```text
//! gathering ── all announced ──▶ starting ── all answer ──▶ running ── the program has ended ──▶ ending
//! ```
//!
//! Ranks end in the order in which no record is lost: application processes, memory and link processes, event managers.
//! Then all of them may go.

use std::collections::BTreeMap;
use std::time::Duration;

use dosmos_proto::Nanos;
use dosmos_trace::store::Exit;

use crate::config::{Role, Seat};

/// How long the others may go on after one application process failed: they usually fail of that.
const AFTER_FAILURE: Nanos = Nanos::from_millis(5_000);
/// How long a rank whose stream broke may take to come back.
const RETURN: Nanos = Nanos::from_millis(30_000);

/// How a rank introduces itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Announcement {
    pub(super) seat: Seat,
    pub(super) size: u32,
    /// The same on all streams of one process, and on no other's.
    pub(super) start: u64,
    pub(super) process: u32,
    pub(super) address: String,
    pub(super) cluster_file: u64,
}

/// What a rank says later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// It answers.
    Ready,
    /// What it had to do has ended.
    Ended { exit: Exit, words: String },
    /// A signal asks it, and so the run, to end.
    AskedToEnd,
}

/// What a rank is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// There is no run; says why.
    Refused(String),
    /// Everybody is there: take your place.
    TakePlace,
    /// The program starts.
    Start,
    /// This application process has ended: wait for it no more.
    Left(String),
    /// Write down how the run goes.
    Record,
    /// End what you do.
    End,
    /// All is written: go.
    Go,
}

/// What is to be done for a rank, or said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// Give this order to a rank.
    Order(u32, Order),
    /// Everybody is there: give them their posts with [`Meeting::posts`], or [`Meeting::refuse`].
    Complete,
    /// Tell the user.
    Note(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Gathering,
    Starting,
    Running,
    EndingProgram,
    EndingMemory,
    EndingEventManagers,
    Over,
}

#[derive(Debug)]
struct Member {
    announcement: Announcement,
    role: Role,
    name: String,
    ready: bool,
    ended: Option<(Exit, String)>,
    /// Whether it was ordered to end before it had.
    stopped: bool,
    /// Since when its stream is broken.
    away: Option<Nanos>,
}

/// All ranks of a start.
#[derive(Debug)]
pub(super) struct Meeting {
    size: u32,
    cluster_file: u64,
    /// Hosts that the launcher lists.
    hosts: Vec<String>,
    deadline: Duration,
    began: Nanos,
    failed_at: Option<Nanos>,
    /// Application processes wait for each other until all have ended: memory processes are within them.
    in_application: bool,
    /// Of a rank that is there twice.
    duplicate: Option<String>,
    phase: Phase,
    members: BTreeMap<u32, Member>,
    /// Why the run did not go as it should, beside failed application processes.
    troubles: Vec<String>,
}

impl Meeting {
    /// `size` ranks are expected, all within `deadline` from `now`.
    pub(super) fn new(
        size: u32,
        cluster_file: u64,
        hosts: Vec<String>,
        deadline: Duration,
        now: Nanos,
    ) -> Self {
        Self {
            size,
            cluster_file,
            hosts,
            deadline,
            began: now,
            failed_at: None,
            in_application: false,
            duplicate: None,
            phase: Phase::Gathering,
            members: BTreeMap::new(),
            troubles: Vec::new(),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// What went wrong, beside failed application processes.
    pub(super) fn troubles(&self) -> &[String] {
        &self.troubles
    }

    /// All seats, by rank, with the address of each.
    pub(super) fn seats(&self) -> impl Iterator<Item = (&Seat, &str)> {
        let members = self.members.values();
        members.map(|m| (&m.announcement.seat, m.announcement.address.as_str()))
    }

    /// How each application process ended, by name: its host, its exit and its last words.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = Outcome<'_>> {
        let aps = self.with_role(|r| r == Role::Application);
        aps.map(|(_, m)| Outcome {
            name: &m.name,
            host: &m.announcement.seat.host,
            ended: m.ended.as_ref(),
            stopped: m.stopped,
        })
    }

    /// A rank introduces itself, for the first time or on a new stream.
    ///
    /// # Errors
    /// Why it is refused.
    pub(super) fn announce(&mut self, of: Announcement) -> Result<Vec<Output>, String> {
        let rank = of.seat.rank;
        let gathering = self.phase == Phase::Gathering;
        // Who left before it began may be started again.
        self.members.retain(|r, m| {
            *r != rank || m.away.is_none() || m.announcement.start == of.start || !gathering
        });
        if let Some(known) = self.members.get_mut(&rank) {
            if known.announcement.start == of.start {
                known.away = None;
                return Ok(Vec::new());
            }
            let first = who(&known.announcement);
            let why = format!("rank {rank} is there twice: {first} and {}", who(&of));
            if gathering {
                self.duplicate.get_or_insert(why.clone());
            }
            return Err(why);
        }
        if self.phase != Phase::Gathering {
            return Err(match self.troubles.first() {
                Some(why) => why.clone(),
                None => format!("the run has begun without rank {rank}"),
            });
        }
        if of.size != self.size || rank >= self.size {
            return Err(format!(
                "{} has rank {rank} of {}, but rank 0 waits for {} ranks: do all belong to one start?",
                who(&of),
                of.size,
                self.size
            ));
        }
        if of.cluster_file != self.cluster_file {
            return Err(format!(
                "{} has read another cluster file than rank 0; all need the same",
                who(&of)
            ));
        }
        let member = Member {
            announcement: of,
            role: Role::Spare,
            name: String::new(),
            ready: false,
            ended: None,
            stopped: false,
            away: None,
        };
        self.members.insert(rank, member);
        if self.members.len() < self.size as usize {
            return Ok(Vec::new());
        }
        Ok(vec![Output::Complete])
    }

    /// Gives the ranks what they do: what each has to report follows from it. With memory processes `in_application`, those that run
    /// the program hear who else has ended.
    pub(super) fn posts(
        &mut self,
        posts: &[crate::config::Post],
        in_application: bool,
        now: Nanos,
    ) -> Vec<Output> {
        self.in_application = in_application;
        for post in posts {
            if let Some(member) = self.members.get_mut(&post.rank) {
                member.role = post.role;
                member.name.clone_from(&post.name);
            }
        }
        self.phase = Phase::Starting;
        self.began = now;
        self.order(|_| true, &Order::TakePlace)
    }

    /// A rank reports.
    pub(super) fn report(&mut self, rank: u32, report: Report, now: Nanos) -> Vec<Output> {
        let Some(member) = self.members.get_mut(&rank) else {
            return Vec::new();
        };
        match report {
            Report::Ready => {
                member.ready = true;
                self.start_if_all_are_ready()
            }
            Report::Ended { exit, words } => {
                if member.ended.is_some() {
                    return Vec::new();
                }
                member.ended = Some((exit, words));
                self.has_ended(rank, now)
            }
            Report::AskedToEnd if self.phase <= Phase::Starting => {
                self.refuse("the run was asked to end before it began")
            }
            Report::AskedToEnd => self.end_program("the run was asked to end"),
        }
    }

    /// The stream of a rank broke.
    pub(super) fn lost(&mut self, rank: u32, start: u64, now: Nanos) {
        let member = self.members.get_mut(&rank);
        if let Some(member) = member.filter(|m| m.announcement.start == start) {
            member.away.get_or_insert(now);
        }
    }

    /// Looks at the time.
    pub(super) fn tick(&mut self, now: Nanos) -> Vec<Output> {
        if let Some(why) = self.duplicate.take() {
            return self.refuse(&why);
        }
        let since = |then: Nanos| Duration::from_nanos(now.0.saturating_sub(then.0));
        let late = since(self.began) > self.deadline;
        match self.phase {
            Phase::Gathering if late => return self.refuse(&self.missing()),
            Phase::Starting if late => {
                let silent: Vec<String> = self
                    .with_role(serves)
                    .filter(|(_, m)| !m.ready)
                    .map(|(rank, m)| format!("{} (rank {rank}, {})", m.name, who(&m.announcement)))
                    .collect();
                let silent = silent.join(", ");
                let why = format!("{silent} did not answer within {:?}", self.deadline);
                return self.refuse(&why);
            }
            _ => {}
        }
        let mut out = Vec::new();
        if self.phase == Phase::Running
            && self
                .failed_at
                .is_some_and(|t| now.0.saturating_sub(t.0) > AFTER_FAILURE.0)
        {
            self.failed_at = None;
            out.extend(self.order_to_end(|r| r == Role::Application));
        }
        let gone = |m: &&Member| m.away.is_some_and(|t| now.0.saturating_sub(t.0) > RETURN.0);
        let gone = self
            .members
            .values()
            .filter(|m| m.ended.is_none())
            .filter(gone);
        let gone: Vec<u32> = gone.map(|m| m.announcement.seat.rank).collect();
        for rank in gone {
            let words = format!("it was not heard of for {} s", RETURN.0 / 1_000_000_000);
            let exit = Exit::Unknown;
            out.extend(self.report(rank, Report::Ended { exit, words }, now));
        }
        out
    }

    /// Whom the launcher did not start in time.
    fn missing(&self) -> String {
        let missing: Vec<u32> = (0..self.size)
            .filter(|r| !self.members.contains_key(r))
            .collect();
        let shown: Vec<String> = missing.iter().take(16).map(u32::to_string).collect();
        let more = if missing.len() > 16 { ", …" } else { "" };
        let plural = if missing.len() == 1 { "rank" } else { "ranks" };
        let mut text = format!(
            "{plural} {}{more} of {} did not come within {:?}",
            shown.join(", "),
            self.size,
            self.deadline
        );
        let came = |host: &&String| {
            self.members
                .values()
                .any(|m| m.announcement.seat.host == **host)
        };
        let silent: Vec<&str> = self
            .hosts
            .iter()
            .filter(|h| !came(h))
            .map(String::as_str)
            .collect();
        if !silent.is_empty() {
            text += &format!("; no rank came from {}", silent.join(", "));
        }
        text + "; do all read the same cluster file, and reach rank 0?"
    }

    /// Nothing comes of this run.
    pub(super) fn refuse(&mut self, why: &str) -> Vec<Output> {
        if self.phase == Phase::Over {
            return Vec::new();
        }
        self.phase = Phase::Over;
        self.troubles.push(why.to_owned());
        self.order(|_| true, &Order::Refused(why.to_owned()))
    }

    fn start_if_all_are_ready(&mut self) -> Vec<Output> {
        let waiting = self.with_role(serves).any(|(_, m)| !m.ready);
        if self.phase != Phase::Starting || waiting {
            return Vec::new();
        }
        self.phase = Phase::Running;
        let mut out = self.order(|r| r == Role::EventManager, &Order::Record);
        out.extend(self.order(|r| r == Role::Application, &Order::Start));
        out
    }

    fn has_ended(&mut self, rank: u32, now: Nanos) -> Vec<Output> {
        let Some(member) = self.members.get(&rank) else {
            return Vec::new();
        };
        let (name, role) = (member.name.clone(), member.role);
        let failed = member
            .ended
            .as_ref()
            .is_some_and(|(exit, _)| *exit != Exit::Code(0));
        let said = member
            .ended
            .as_ref()
            .map_or("", |(_, words)| words)
            .to_owned();
        let mut out = Vec::new();
        let unexpected = match role {
            Role::Application | Role::Spare => false,
            Role::Memory | Role::Link => self.phase < Phase::EndingMemory,
            Role::EventManager => self.phase < Phase::EndingEventManagers,
        };
        if unexpected && self.phase <= Phase::Starting {
            return self.refuse(&format!("{name} ended: {said}"));
        }
        if unexpected && role == Role::EventManager {
            let note = format!(
                "event manager {name} ended: the run continues, and its trace will be incomplete; {said}"
            );
            out.push(Output::Note(note));
        } else if unexpected {
            self.troubles
                .push(format!("{name} ended unexpectedly: {said}"));
            out.extend(self.end_program_now());
        }
        if role == Role::Application && failed {
            self.failed_at.get_or_insert(now);
        }
        if role == Role::Application && self.in_application {
            let left = self.with_role(|r| r == Role::Application);
            let left = left.filter(|(_, m)| m.ended.is_none());
            out.extend(left.map(|(rank, _)| Output::Order(rank, Order::Left(name.clone()))));
        }
        out.extend(self.go_on());
        out
    }

    /// The next step of the end, if the one before is done.
    fn go_on(&mut self) -> Vec<Output> {
        let mut out = Vec::new();
        loop {
            let (awaited, next): (fn(Role) -> bool, _) = match self.phase {
                Phase::Running | Phase::EndingProgram => {
                    (|r| r == Role::Application, Phase::EndingMemory)
                }
                Phase::EndingMemory => (
                    |r| matches!(r, Role::Memory | Role::Link),
                    Phase::EndingEventManagers,
                ),
                Phase::EndingEventManagers => (|r| r == Role::EventManager, Phase::Over),
                Phase::Gathering | Phase::Starting | Phase::Over => return out,
            };
            if self.with_role(awaited).any(|(_, m)| m.ended.is_none()) {
                return out;
            }
            self.phase = next;
            match next {
                Phase::EndingMemory => {
                    out.extend(self.order_to_end(|r| matches!(r, Role::Memory | Role::Link)));
                }
                Phase::EndingEventManagers => {
                    out.extend(self.order(|r| r == Role::EventManager, &Order::Record));
                    out.extend(self.order_to_end(|r| r == Role::EventManager));
                }
                _ => out.extend(self.order(|_| true, &Order::Go)),
            }
        }
    }

    fn end_program(&mut self, why: &str) -> Vec<Output> {
        if self.phase != Phase::Running {
            return Vec::new();
        }
        self.troubles.push(why.to_owned());
        self.end_program_now()
    }

    fn end_program_now(&mut self) -> Vec<Output> {
        if self.phase != Phase::Running {
            return Vec::new();
        }
        self.phase = Phase::EndingProgram;
        let mut out = self.order_to_end(|r| r == Role::Application);
        out.extend(self.go_on());
        out
    }

    fn order_to_end(&mut self, role: impl Fn(Role) -> bool) -> Vec<Output> {
        let members = self.members.iter_mut();
        let running = members.filter(|(_, m)| role(m.role) && m.ended.is_none());
        let orders = running.map(|(rank, member)| {
            member.stopped = true;
            Output::Order(*rank, Order::End)
        });
        orders.collect()
    }

    fn order(&self, role: impl Fn(Role) -> bool, order: &Order) -> Vec<Output> {
        let ranks = self.with_role(role);
        ranks
            .map(|(rank, _)| Output::Order(rank, order.clone()))
            .collect()
    }

    fn with_role(&self, role: impl Fn(Role) -> bool) -> impl Iterator<Item = (u32, &Member)> {
        let members = self.members.iter();
        members
            .filter(move |(_, m)| role(m.role))
            .map(|(rank, m)| (*rank, m))
    }
}

/// An application process, and how it ended if it has.
#[derive(Debug)]
pub(super) struct Outcome<'a> {
    pub(super) name: &'a str,
    pub(super) host: &'a str,
    pub(super) ended: Option<&'a (Exit, String)>,
    /// Whether it ended because it was told to.
    pub(super) stopped: bool,
}

fn serves(role: Role) -> bool {
    matches!(role, Role::EventManager | Role::Memory | Role::Link)
}

fn who(of: &Announcement) -> String {
    format!("process {} on {}", of.process, of.seat.host)
}

#[cfg(test)]
mod tests;
