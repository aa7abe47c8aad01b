//! What messages cost.

use dosmos_model::inputs::NetworkRecord;

use crate::change::Technology;
use crate::ids::Time;

/// Costs of messages, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Costs {
    /// Processor time of one end of a message between an application process and its memory process.
    pub end_ns: f64,
    /// The same for each byte of content.
    pub end_ns_per_byte: f64,
    /// Processor time of one end of a message between memory processes, over that of one between an application process and
    /// its memory process.
    pub between: f64,
    /// Processor time of a memory process to serve an operation, beside the messages.
    pub serve_ns: f64,
    /// On the way between an application process and its memory process, nobody's processor taken: wake-ups, wire.
    pub near_ns: f64,
    /// The same between two memory processes of a group.
    pub far_ns: f64,
    /// The same where one of them is a link process.
    pub link_ns: f64,
    /// On the way of each byte of content, on each way that it takes.
    pub way_ns_per_byte: f64,
    /// What each byte takes more between two memory processes, by another network than that of the run.
    pub network_ns_per_byte: f64,
    /// Processor time, beside that of the end, of a process that a message wakes: it had waited for longer than it waits
    /// awake (`dosmos_proto::spin`).
    pub woken_ns: f64,
    /// Until such a process runs, where a processor sleeps too; nobody's processor taken.
    pub wake_ns: f64,
    /// Processors of the machine.
    pub processors: usize,
    /// What several processors do in all while more processes are ready, over what they could: one is idle for a time, or takes a
    /// process from another, whose caches know it.
    pub shared: f64,
    /// Processor time that what lies between two processes takes on the same machine to hand a message on, such as a proxy.
    pub carried_ns: f64,
    /// The same for each byte of content.
    pub carried_ns_per_byte: f64,
}

/// What software takes in a running program, where other processes have had the processor and its caches in between, over
/// what it takes in a tight loop, as microbenchmarks measure it. Only where the memory processes of the run did not tell how
/// much processor time they took (docs/models.md#costs).
const IN_A_RUN: f64 = 2.0;

/// What a memory process takes to serve an operation, over one end of a message.
const SERVE: f64 = 0.75;

/// What an end of a message between memory processes takes, over that of one between an application process and its memory
/// process, which often are on one processor. Chosen with runs of pathologies and their cures (docs/models.md#costs).
const BETWEEN: f64 = 2.0;

/// What a process takes more if a message wakes it, over one end of a message.
const WOKEN: f64 = 1.9;

/// What several processors do in all while more processes are ready than there are of them, over what they could, where the run does
/// not tell. Chosen with runs of another number of processes (docs/models.md#other-conditions).
const SHARED: f64 = 0.9;

/// A large content.
const CONTENT_BYTES: f64 = 65_536.0;

/// What waking takes where a processor sleeps too (`dosmos_proto::spin`).
const WAKE_NS: f64 = 30_000.0;

/// One end of a message: of small messages it is the message that counts, of large ones the content.
fn end_us(record: &NetworkRecord) -> f64 {
    let first = record.network.segments.first();
    first.map_or(4.0, |s| s.total_us[0])
}

fn end_us_per_byte(record: &NetworkRecord) -> f64 {
    let last = record.network.segments.last();
    last.map_or(0.0, |s| s.total_us[1])
}

/// On the way between two memory processes, nobody's processor taken.
fn way_us(record: &NetworkRecord) -> f64 {
    record.network.interface_us * 2.0 + record.network.switch_us
}

impl Costs {
    /// Those of a machine, as `dosmos-bench network` measured it.
    pub fn of(record: &NetworkRecord) -> Self {
        let (end_us, per_byte) = (end_us(record), end_us_per_byte(record));
        let way = way_us(record);
        let near = (record.hop.read_us[0] - 4.0 * end_us) / 2.0;
        let end_ns = 1e3 * end_us * IN_A_RUN;
        Self {
            end_ns,
            end_ns_per_byte: 1e3 * per_byte,
            between: BETWEEN,
            serve_ns: end_ns * SERVE,
            near_ns: 1e3 * near.max(0.0),
            far_ns: 1e3 * way,
            link_ns: 1e3 * way,
            way_ns_per_byte: 0.0,
            network_ns_per_byte: 0.0,
            woken_ns: end_ns * WOKEN,
            wake_ns: WAKE_NS,
            processors: record.processors.max(1),
            shared: SHARED,
            carried_ns: 1e3 * record.carried_us[0],
            carried_ns_per_byte: 1e3 * record.carried_us[1],
        }
    }

    /// These costs of a run over one transport, `here`, as they are over another, `there`: what messages take more by
    /// microbenchmark they take more in the run. Between an application process and its memory process a read has four ends of
    /// messages: what it takes more is of these, but not more than an end takes more software elsewhere; the rest is on its two ways.
    /// What a byte takes more is half of what it takes more in a read or a write, each of which has two ends with content, less what
    /// takes it from one to the other: contents go other ways than other messages where processes share files.
    pub(crate) fn with_transport(&self, here: &NetworkRecord, there: &NetworkRecord) -> Self {
        let more = |of: fn(&NetworkRecord) -> f64| 1e3 * (of(there) - of(here));
        let read_ns = more(|r| r.hop.read_us[0]);
        let end_more_ns = (read_ns / 4.0).min(more(end_us).max(0.0));
        // Where others need the processors, waking who hands messages on takes as much less as everything else.
        let in_the_run = self.end_ns / (1e3 * end_us(here)).max(1.0);
        let carried_ns = more(|r| r.carried_us[0]).max(0.0) * in_the_run.min(1.0);
        let near_more_ns = ((read_ns - 4.0 * end_more_ns) / 2.0 - carried_ns).max(0.0);
        let end_ns = (self.end_ns + end_more_ns).max(1.0);
        let between_ns = self.between * self.end_ns + more(end_us);
        let way_ns = more(way_us) - carried_ns;
        let carried_byte_ns = more(|r| r.carried_us[1]).max(0.0);
        let content_ns = (more(|r| r.hop.read_us[1]) + more(|r| r.hop.write_us[1])) / 2.0;
        let byte_ns = (content_ns - carried_byte_ns) / 2.0;
        Self {
            end_ns,
            near_ns: self.near_ns + near_more_ns,
            between: between_ns.max(0.0) / end_ns,
            end_ns_per_byte: (self.end_ns_per_byte + byte_ns).max(0.0),
            far_ns: (self.far_ns + way_ns).max(0.0),
            link_ns: (self.link_ns + way_ns).max(0.0),
            carried_ns: self.carried_ns + carried_ns,
            carried_ns_per_byte: self.carried_ns_per_byte + carried_byte_ns,
            ..*self
        }
    }

    /// Processor time of one end of a message with that much content.
    pub(crate) fn end(&self, bytes: u32) -> Time {
        self.end_ns + self.end_ns_per_byte * f64::from(bytes)
    }

    /// The same of a message between memory processes.
    pub(crate) fn end_between(&self, bytes: u32) -> Time {
        self.between * self.end_ns + self.end_ns_per_byte * f64::from(bytes)
    }

    /// Processor time to hand on a message with that much content.
    pub(crate) fn carried(&self, bytes: u32) -> Time {
        self.carried_ns + self.carried_ns_per_byte * f64::from(bytes)
    }

    /// The same costs with software that takes `share` of the time.
    pub(crate) fn with_software(&self, share: f64) -> Self {
        Self {
            end_ns: self.end_ns * share,
            end_ns_per_byte: self.end_ns_per_byte * share,
            serve_ns: self.serve_ns * share,
            woken_ns: self.woken_ns * share,
            ..*self
        }
    }

    /// The same costs with other processors and links.
    pub(crate) fn with_technology(&self, technology: &Technology) -> Self {
        let longer = |ns: f64, by: f64| (ns + by).max(0.0);
        Self {
            far_ns: longer(self.far_ns, technology.way_ns),
            link_ns: longer(self.link_ns, technology.way_ns),
            network_ns_per_byte: self.network_ns_per_byte + technology.way_ns_per_byte,
            ..self.with_software(technology.software)
        }
    }

    /// The most by which a way differs.
    pub(crate) fn ways_differ_by(&self, other: &Self) -> Time {
        let ways = |c: &Self| [c.near_ns + c.wake_ns, c.far_ns, c.link_ns];
        let differ = ways(self)
            .into_iter()
            .zip(ways(other))
            .map(|(a, b)| (a - b).abs());
        let content = (self.way_ns_per_byte - other.way_ns_per_byte).abs();
        differ.fold(content * CONTENT_BYTES, Time::max)
    }

    /// The same costs with ways that take `share` of the time.
    pub(crate) fn with_ways(&self, share: f64) -> Self {
        Self {
            near_ns: self.near_ns * share,
            wake_ns: self.wake_ns * share,
            far_ns: self.far_ns * share,
            link_ns: self.link_ns * share,
            way_ns_per_byte: self.way_ns_per_byte * share,
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6 * b.abs().max(1.0)
    }

    #[test]
    fn a_longer_link_is_longer_on_the_way_and_takes_no_processor() {
        let here = NetworkRecord::typical();
        let mut there = here.clone();
        there.hop.read_us[0] += 500.0;
        there.network.switch_us += 250.0;
        let before = Costs::of(&here);
        let after = before.with_transport(&here, &there);
        assert!(near(after.near_ns, before.near_ns + 250_000.0), "{after:?}");
        assert!(near(after.far_ns, before.far_ns + 250_000.0), "{after:?}");
        assert!(near(after.end_ns, before.end_ns), "{after:?}");
        assert!(
            near(after.end_ns_per_byte, before.end_ns_per_byte),
            "{after:?}"
        );
    }

    #[test]
    fn what_hands_messages_on_takes_a_processor_and_not_of_who_sends_them() {
        let here = NetworkRecord::typical();
        let mut there = here.clone();
        there.hop.read_us[0] += 600.0;
        there.network.switch_us += 300.0;
        there.carried_us = [20.0, 0.0];
        let before = Costs::of(&here);
        let after = before.with_transport(&here, &there);
        assert!(near(after.end_ns, before.end_ns), "{after:?}");
        assert!(near(after.carried_ns, 20_000.0), "{after:?}");
        // What it takes is a part of the way.
        assert!(near(after.near_ns, before.near_ns + 280_000.0), "{after:?}");
        assert!(near(after.far_ns, before.far_ns + 280_000.0), "{after:?}");
        // A run whose messages take half of what the microbenchmark says: waking it takes half too.
        let cheap = before.with_software(0.25);
        let after = cheap.with_transport(&here, &there);
        assert!(near(after.carried_ns, 10_000.0), "{after:?}");
        assert!(near(after.near_ns, cheap.near_ns + 290_000.0), "{after:?}");
    }

    #[test]
    fn of_what_a_byte_takes_more_what_hands_it_on_takes_its_part() {
        let here = NetworkRecord::typical();
        let mut there = here.clone();
        for line in [&mut there.hop.read_us, &mut there.hop.write_us] {
            line[1] += 0.0014;
        }
        there.carried_us = [20.0, 0.0006];
        let before = Costs::of(&here);
        let after = before.with_transport(&here, &there);
        assert!(near(after.carried_ns_per_byte, 0.6), "{after:?}");
        // The rest is of two ends.
        assert!(
            near(after.end_ns_per_byte, before.end_ns_per_byte + 0.4),
            "{after:?}"
        );
        assert!(
            near(after.carried(1000), after.carried_ns + 600.0),
            "{after:?}"
        );
    }

    #[test]
    fn dearer_messages_take_processor_and_contents_what_reads_of_them_take() {
        let here = NetworkRecord::typical();
        let mut there = here.clone();
        there.hop.read_us = [here.hop.read_us[0] + 8.0, here.hop.read_us[1] + 0.0006];
        there.hop.write_us[1] += 0.0002;
        there.network.segments[0].total_us[0] += 3.0;
        let before = Costs::of(&here);
        let after = before.with_transport(&here, &there);
        // A read has four ends, and two with its content, as a write has.
        assert!(near(after.end_ns, before.end_ns + 2_000.0), "{after:?}");
        assert!(near(after.near_ns, before.near_ns), "{after:?}");
        assert!(
            near(after.end_ns_per_byte, before.end_ns_per_byte + 0.2),
            "{after:?}"
        );
    }
}
