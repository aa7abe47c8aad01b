//! Costs such that the replay of the run as it was takes as long as the run.
//!
//! What a message costs is measured on the machine, or that of a typical one; what it cost in this run depends on what
//! else went on. So software takes as much as memory processes say that it took, where they do; processors that more processes
//! share do as much less as the run was longer; and the ways are adjusted:
//! those between memory processes until reads and writes take as long in the replay as they did, by origin; that between an
//! application process and its memory process until the whole does. That hop is first of all waking who sleeps, which takes
//! nothing where the next message comes soon. Where the replay is too long without any time on the ways, software takes
//! less. How far the replay was off before the ways were adjusted is kept, and so is what would be gained with the ways as
//! they were: the gain lies between the two.

use dosmos_model::inputs::NetworkRecord;
use dosmos_proto::Nanos;
use dosmos_trace::record::Origin;
use serde::Serialize;

use crate::change::{Change, Technology};
use crate::costs::Costs;
use crate::engine::Outcome;
use crate::scale::Scale;
use crate::script::Script;
use crate::thread::Thread;

/// A script with costs that fit it.
#[derive(Clone, Debug)]
pub struct Calibrated {
    script: Script,
    /// With software as the run had it.
    given: Costs,
    /// Those that fit.
    costs: Costs,
    /// Length of the replay with the costs as they were, and with those that fit.
    plain: f64,
    fit: f64,
    /// Messages in the latter.
    messages: u64,
}

/// What a change would save.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// Fraction of the length of the run; below 0 if it costs.
    pub gain: f64,
    /// The least and the most of it, over the costs that messages may have had.
    pub least: f64,
    /// See `least`.
    pub most: f64,
    /// Whether anything is otherwise: if not, what would be is not in the script.
    pub differs: bool,
}

/// Rounds of fitting the ways, and of the hop alone.
const ROUNDS: usize = 5;
const LAST_ROUNDS: usize = 12;

/// The least that processors which are shared are taken to do, over what they could.
const LEAST_SHARED: f64 = 0.6;

/// By how much longer processors that are shared take, if all is computing, and the more of their time memory processes take. Fitted to
/// runs of the applications with more processes than processors (docs/models.md#other-conditions).
const FOR_COMPUTING: f64 = 0.04;
const FOR_MESSAGES: f64 = 0.4;

/// What an end of a message takes for each byte, over the same in the microbenchmark: some messages have contents that both processes
/// see in one file. Chosen with the same runs.
const CONTENT: f64 = 0.6;

/// Rounds of fitting the software.
const SERVED_ROUNDS: usize = 2;

/// What one end of a message takes in a running program, to begin with: processor time of whole runs (docs/models.md#costs).
const IN_A_RUN_NS: f64 = 8_000.0;

/// Ways that change by less have settled.
const SETTLED_NS: f64 = 300.0;

/// A replay this near to the run fits.
const NEAR: f64 = 0.005;

/// Where contents are larger than this, what is missing is taken to be theirs.
const LARGE_BYTES: f64 = 8192.0;

/// Accesses that are a smaller part of all operations say nothing of the ways of others: they are those with which a run begins.
const RARE: f64 = 0.05;

/// What a way to or from a link process takes over one between memory processes, where no message of the run took one: link
/// processes have less to do (median of 22 runs of applications on two groups).
const OVER_LINKS: f64 = 0.7;

/// The longest that waking a process is taken to take: what a hop takes beyond is on the way.
const MOST_WAKE_NS: f64 = 75_000.0;

/// The longest that a way between two processes is taken to be: beyond, something else is wrong.
const LONGEST_NS: f64 = 50e6;

impl Calibrated {
    /// Fits `costs` to the run; none if its replay does not come to an end (records are missing).
    pub fn new(mut script: Script, costs: &Costs) -> Option<Self> {
        let given = shared(&script, as_served(&script, costs)?)?;
        let outcome = replayed(&script, &given)?;
        sleep(&mut script, &outcome);
        let plain = replayed(&script, &given)?.length.0 as f64;
        let mut fitted = given.with_ways(0.0);
        for _ in 0..ROUNDS {
            let outcome = replayed(&script, &fitted)?;
            let next = nearer(&script, &given, &fitted, &outcome);
            let settled = next.ways_differ_by(&fitted) < SETTLED_NS;
            fitted = next;
            if settled {
                break;
            }
        }
        let (fitted, outcome) = as_long(&script, fitted)?;
        Some(Self {
            given,
            plain,
            script,
            costs: fitted,
            fit: outcome.length.0 as f64,
            messages: outcome.messages,
        })
    }

    /// What is replayed.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// The costs that fit.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Replay over run, less one: with the costs as they were, and with those that fit.
    pub fn errors(&self) -> (f64, f64) {
        let measured = self.script.measured;
        (self.plain / measured - 1.0, self.fit / measured - 1.0)
    }

    /// What `change` would save; none if the changed run does not come to an end.
    pub fn gain(&self, change: &Change) -> Option<Gain> {
        let replay = |costs: &Costs| {
            let outcome = self.script.replay(costs, change);
            outcome.is_whole().then_some(outcome)
        };
        let changed = replay(&self.costs)?;
        let gain = 1.0 - changed.length.0 as f64 / self.fit;
        let other = 1.0 - replay(&self.given)?.length.0 as f64 / self.plain;
        let [least, most] = [gain.min(other), gain.max(other)];
        Some(Gain {
            gain,
            least,
            most,
            differs: (least, most) != (0.0, 0.0) || changed.messages != self.messages,
        })
    }

    /// The same run of another number of processes or on more data, by [laws](Scale); none where they do not say what happens.
    pub fn scaled(&self, scale: &Scale) -> Option<Self> {
        let script = self.script.scaled(scale)?;
        let mut costs = self.costs;
        if self.script.threads.len() <= costs.processors {
            costs = by_messages(&script, costs)?;
        }
        Some(Self {
            script,
            costs,
            ..self.clone()
        })
    }

    /// The same run on other processors and links.
    pub fn with_technology(&self, technology: &Technology) -> Self {
        let costs = |costs: &Costs| costs.with_technology(technology);
        Self {
            script: self.script.faster(technology.speed),
            given: costs(&self.given),
            costs: costs(&self.costs),
            ..*self
        }
    }

    /// The expected length of the run after `change`, where messages cost what `there` says instead of what `here` says.
    pub fn expected(
        &self,
        change: &Change,
        here: &NetworkRecord,
        there: &NetworkRecord,
    ) -> Option<Nanos> {
        let costs = self.costs.with_transport(here, there);
        let outcome = self.script.replay(&costs, change);
        let length = outcome.length.0 as f64 * self.script.measured / self.fit;
        outcome.is_whole().then_some(Nanos(length as u64))
    }
}

/// Costs with so much software that memory processes take about as much processor time as they say that they took.
fn as_served(script: &Script, costs: &Costs) -> Option<Costs> {
    let Some(serving) = script.serving else {
        // Those of the machine are of messages between memory processes, which no others exceed.
        return Some(Costs {
            between: 1.0,
            ..*costs
        });
    };
    let mut served = Costs {
        // Contents wake nobody: a microbenchmark that waits for each message measures them as they are in a run.
        end_ns_per_byte: costs.end_ns_per_byte * CONTENT,
        ..costs.with_software(IN_A_RUN_NS / costs.end_ns.max(1.0))
    };
    // Who has to be woken how often depends on how long everything takes; but two ways to divide the time are as good as one
    // another where most of it is software, so not to the end.
    for _ in 0..SERVED_ROUNDS {
        let replayed = replayed(script, &served)?.serving;
        if replayed > 0.0 {
            served = served.with_software(serving / replayed);
        }
    }
    Some(served)
}

fn replayed(script: &Script, costs: &Costs) -> Option<Outcome> {
    let outcome = script.replay(costs, &Change::default());
    outcome.is_whole().then_some(outcome)
}

/// What processors do in all that more application processes share than there are: so much that the replay is as long as the run,
/// if messages cost what they do elsewhere. Of a run in which each has a processor nothing is known of that.
fn shared(script: &Script, costs: Costs) -> Option<Costs> {
    if costs.processors < 2 || script.threads.len() <= costs.processors {
        return Some(costs);
    }
    let slower = |by: f64| Costs {
        shared: 1.0 / (1.0 + by),
        ..costs
    };
    if is_too_long(script, &slower(0.0))? {
        return Some(slower(0.0));
    }
    let most = 1.0 / LEAST_SHARED - 1.0;
    let (fitted, _) = bisected(script, 0.0, [most, most], slower)?;
    Some(fitted)
}

/// What processors do in all that more processes share than there are, of a run of which no other one tells it: the less, the more of
/// the time goes into messages, since who waits for one leaves its processor to another process.
fn by_messages(script: &Script, costs: Costs) -> Option<Costs> {
    let outcome = replayed(script, &costs)?;
    let messages = outcome.serving / (outcome.processor.0 as f64).max(1.0);
    Some(Costs {
        shared: 1.0 / (1.0 + FOR_COMPUTING + FOR_MESSAGES * messages),
        ..costs
    })
}

/// Of the time that each process was without a processor, it slept as much as the replay does not make.
fn sleep(script: &mut Script, outcome: &Outcome) {
    for (thread, made) in script.threads.iter_mut().zip(&outcome.without) {
        let told = thread.without().max(1.0);
        thread.sleep((1.0 - made / told).max(0.0));
    }
}

/// Whether the replay with these costs is longer than the run.
fn is_too_long(script: &Script, costs: &Costs) -> Option<bool> {
    let length = replayed(script, costs)?.length.0 as f64;
    Some(length > script.measured * (1.0 + NEAR))
}

/// Costs with which the replay is as long as the run, and that replay: by the hop to and from the own memory process;
/// where the replay is too long without one, by the other ways; and where it is too long without any, by less software.
fn as_long(script: &Script, costs: Costs) -> Option<(Costs, Outcome)> {
    let by_hop = |hop: f64| with_hop(&costs, hop);
    let without_hop = by_hop(0.0);
    if !is_too_long(script, &without_hop)? {
        let hop = costs.near_ns + costs.wake_ns;
        return bisected(script, hop, [(2.0 * hop).max(50_000.0), LONGEST_NS], by_hop);
    }
    let without_ways = without_hop.with_ways(0.0);
    if !is_too_long(script, &without_ways)? {
        return bisected(script, 1.0, [1.0, 1.0], |share| {
            without_hop.with_ways(share)
        });
    }
    bisected(script, 1.0, [1.0, 1.0], |share| {
        without_ways.with_software(share)
    })
}

/// The costs of some number with which the replay is nearest to the run, and that replay. The greater the number, the longer it
/// takes; it is at most `high`, which grows up to `highest` where that is too little.
fn bisected(
    script: &Script,
    first: f64,
    [mut high, highest]: [f64; 2],
    of: impl Fn(f64) -> Costs,
) -> Option<(Costs, Outcome)> {
    let tried = |number: f64| {
        let costs = of(number);
        Some((costs, replayed(script, &costs)?))
    };
    let off = |outcome: &Outcome| (outcome.length.0 as f64 / script.measured - 1.0).abs();
    let mut low = 0.0;
    let mut best = tried(first)?;
    for _ in 0..LAST_ROUNDS {
        if off(&best.1) < NEAR {
            break;
        }
        let middle = (low + high) / 2.0;
        let tried = tried(middle)?;
        match tried.1.length.0 as f64 > script.measured {
            true => high = middle,
            false if middle > 0.9 * high && high < highest => high *= 2.0,
            false => low = middle,
        }
        if off(&tried.1) < off(&best.1) {
            best = tried;
        }
    }
    Some(best)
}

/// The hop to and from the own memory process takes that long: because a process has to be woken, as far as that can be,
/// and on the way.
fn with_hop(costs: &Costs, hop: f64) -> Costs {
    let hop = hop.clamp(0.0, LONGEST_NS);
    Costs {
        wake_ns: hop.min(MOST_WAKE_NS),
        near_ns: (hop - MOST_WAKE_NS).max(0.0),
        ..*costs
    }
}

/// Ways with which the replay should be nearer to the run than `outcome` is, which was replayed with `costs`. What no access of the
/// run tells of ways between memory processes, the microbenchmark does (`given`): by how much longer they are than others.
fn nearer(script: &Script, given: &Costs, costs: &Costs, outcome: &Outcome) -> Costs {
    let all = script.threads.iter().flat_map(|t| &t.steps);
    let messages = all.filter(|s| !s.in_process).count() as f64;
    let longer = |origin: Origin, ways: f64| {
        if script.remote[origin].count() < RARE * messages {
            return None;
        }
        let recorded = script.remote[origin].get()?;
        Some((recorded - outcome.data[origin].get()?) / ways)
    };
    let way = |now: f64, by: f64| (now + by).clamp(0.0, LONGEST_NS);
    let hop = costs.near_ns + costs.wake_ns + missing(script, outcome) / 2.0;
    let mut next = with_hop(costs, hop);
    // There and back; between groups over two link processes, mostly.
    let content = script.content.get().filter(|bytes| *bytes > LARGE_BYTES);
    match content {
        Some(bytes) => {
            let by = longer(Origin::Intra, bytes).unwrap_or(0.0);
            next.way_ns_per_byte = way(costs.way_ns_per_byte, by);
            next.far_ns = next.near_ns;
        }
        None => {
            let longer = longer(Origin::Intra, 2.0);
            let farther = (given.far_ns - given.near_ns).max(0.0);
            next.far_ns = longer.map_or(next.near_ns + farther, |by| way(costs.far_ns, by));
        }
    }
    next.link_ns = match longer(Origin::Inter, 6.0) {
        Some(by) => way(costs.link_ns, by),
        None => next.far_ns * OVER_LINKS,
    };
    next
}

/// What an operation of the process with most of them would have to take longer for the replay to be as long as the run.
fn missing(script: &Script, outcome: &Outcome) -> f64 {
    let blocking = |t: &Thread| {
        t.steps
            .iter()
            .filter(|s| !s.in_process && !s.asked_ahead && s.ahead == 0)
            .count()
    };
    let most = script.threads.iter().map(blocking).max().unwrap_or(0);
    (script.measured - outcome.length.0 as f64) / most.max(1) as f64
}
