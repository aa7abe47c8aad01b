//! DSM operations: diff fault, cold (empty) fault, lock acquisition, and serving them.
//!
//! Each operation has its total with components (Tables 3–6), its cost when prefetched, and a fault
//! what it costs the processor that serves it. Sizes in bytes, everything else in microseconds; fields
//! that an operation was measured with are as measured, the technology scales them.

use serde::{Deserialize, Serialize};

use super::costs::Costs;
use crate::error::{ModelError, finite_result, invalid, non_negative};

/// Delivery of a signal to a remote processor, as measured.
fn default_signal() -> f64 {
    40.0
}

/// A multipart diff fault: n processors are asked for their changes to a page.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// n ≥ 1, processors asked.
    pub parts: u32,
    /// Bytes of a request, 12 in the paper.
    pub request: f64,
    /// Bytes of a reply.
    pub reply: f64,
    /// Extra system call time of one send at the faulting processor.
    #[serde(default)]
    pub extra_send: f64,
    /// Extra system call time of one receive there.
    #[serde(default)]
    pub extra_recv: f64,
    /// Fault handler at the faulting processor, over all parts.
    #[serde(default)]
    pub handler: f64,
    /// Signal delivery at a remote processor.
    #[serde(default = "default_signal")]
    pub signal: f64,
    /// Computation at a remote processor.
    #[serde(default)]
    pub remote_compute: f64,
    /// Extra system call time at a remote processor.
    #[serde(default)]
    pub extra_dest: f64,
    /// Delay until a remote processor serves the request.
    #[serde(default)]
    pub delay: f64,
}

/// The stage of the pipeline over the parts of a fault that is slowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Sending requests.
    Send,
    /// Receiving replies.
    Recv,
    /// The wire.
    Wire,
}

/// Cost of a diff fault.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FaultCost {
    /// Sends at the source: n of them if they are the slowest stage, else one.
    pub send: f64,
    /// Receives at the source, likewise.
    pub recv: f64,
    /// Wire, likewise.
    pub wire: f64,
    /// Hardware latency of two messages.
    pub latency: f64,
    /// Fault handler.
    pub handler: f64,
    /// Signal delivery.
    pub signal: f64,
    /// Computation at the destination.
    pub remote_compute: f64,
    /// Message software at the destination.
    pub soft_dest: f64,
    /// Extra system call time at the destination.
    pub extra_dest: f64,
    /// Delay at the destination.
    pub delay: f64,
    /// The sum.
    pub total: f64,
    /// The slowest stage.
    pub limit: Stage,
}

impl Fault {
    /// Checks every field; `at` is put before their names.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] naming the field.
    pub fn validate(&self, at: &str) -> Result<(), ModelError> {
        if self.parts == 0 {
            return Err(invalid(format!("{at}parts"), 0.0, "at least 1"));
        }
        for (name, value) in [
            ("request", self.request),
            ("reply", self.reply),
            ("extra_send", self.extra_send),
            ("extra_recv", self.extra_recv),
            ("handler", self.handler),
            ("signal", self.signal),
            ("remote_compute", self.remote_compute),
            ("extra_dest", self.extra_dest),
            ("delay", self.delay),
        ] {
            non_negative(&format!("{at}{name}"), value)?;
        }
        Ok(())
    }

    /// One send, one receive, one request and reply on the wire.
    fn stages(&self, costs: &Costs) -> [f64; 3] {
        [
            costs.soft(self.request) + costs.extra(self.extra_send),
            costs.soft(self.reply) + costs.extra(self.extra_recv),
            costs.wire(self.request) + costs.wire(self.reply),
        ]
    }

    /// Cost to the faulting processor (Tables 4 and 5): the slowest of send, receive and wire is paid
    /// n times, the others once.
    ///
    /// # Errors
    /// As [`Fault::validate`].
    pub fn cost(&self, costs: &Costs) -> Result<FaultCost, ModelError> {
        self.validate("")?;
        let cost = self.checked_cost(costs);
        finite_result("total", cost.total)?;
        Ok(cost)
    }

    pub(super) fn checked_cost(&self, costs: &Costs) -> FaultCost {
        let [mut send, mut recv, mut wire] = self.stages(costs);
        let parts = f64::from(self.parts);
        let limit = if send >= recv && send >= wire {
            send *= parts;
            Stage::Send
        } else if recv >= wire {
            recv *= parts;
            Stage::Recv
        } else {
            wire *= parts;
            Stage::Wire
        };
        let mut cost = FaultCost {
            send,
            recv,
            wire,
            latency: costs.latency(2.0),
            handler: costs.dsm(self.handler),
            signal: costs.signal(self.signal),
            remote_compute: costs.dsm(self.remote_compute),
            soft_dest: costs.soft(self.request) + costs.soft(self.reply),
            extra_dest: costs.extra(self.extra_dest),
            delay: costs.dsm(self.delay),
            total: 0.0,
            limit,
        };
        cost.total = cost.send
            + cost.recv
            + cost.wire
            + cost.latency
            + cost.handler
            + cost.signal
            + cost.remote_compute
            + cost.soft_dest
            + cost.extra_dest
            + cost.delay;
        cost
    }

    /// The alternative total from the measured maximum of the destinations' signal handling times
    /// (last rows of Tables 4 and 5): every source term once, as the maximum is measured from the
    /// first send. `max_signal_handling` is taken as it is, not scaled.
    ///
    /// # Errors
    /// As [`Fault::validate`]; also `max_signal_handling`.
    pub fn max_dest_total(
        &self,
        costs: &Costs,
        max_signal_handling: f64,
    ) -> Result<f64, ModelError> {
        self.validate("")?;
        non_negative("max_signal_handling", max_signal_handling)?;
        let sources: f64 = self.stages(costs).iter().sum();
        Ok(sources
            + costs.latency(2.0)
            + costs.dsm(self.handler)
            + costs.signal(self.signal)
            + max_signal_handling)
    }

    /// Cost when prefetched: all sends, receives and the handler, nothing waited for.
    #[must_use]
    pub fn prefetched(&self, costs: &Costs) -> f64 {
        let [send, recv, _] = self.stages(costs);
        f64::from(self.parts) * (send + recv) + costs.dsm(self.handler)
    }

    /// Time taken from a processor that serves one part (SIGIO time).
    #[must_use]
    pub fn service(&self, costs: &Costs) -> f64 {
        costs.signal(self.signal)
            + costs.soft(self.request)
            + costs.soft(self.reply)
            + costs.extra(self.extra_dest)
            + costs.dsm(self.remote_compute)
    }
}

/// A cold fault: a whole page is fetched from one processor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Empty {
    /// Bytes of the request, 12 in the paper.
    pub request: f64,
    /// Bytes of the reply, 4096 in the paper.
    pub reply: f64,
    /// Extra system call time, all ends.
    #[serde(default)]
    pub extra: f64,
    /// Fault handler.
    #[serde(default)]
    pub handler: f64,
    /// Signal delivery.
    #[serde(default = "default_signal")]
    pub signal: f64,
    /// Computation at the remote processor.
    #[serde(default)]
    pub remote_compute: f64,
    /// Delay at the remote processor.
    #[serde(default)]
    pub delay: f64,
}

/// Cost of a cold fault.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EmptyCost {
    /// Message software, all four ends.
    pub soft: f64,
    /// Extra system call time.
    pub extra: f64,
    /// Wire, both messages.
    pub wire: f64,
    /// Hardware latency of two messages.
    pub latency: f64,
    /// Signal delivery.
    pub signal: f64,
    /// Fault handler.
    pub handler: f64,
    /// Computation at the remote processor.
    pub remote_compute: f64,
    /// Delay at the remote processor.
    pub delay: f64,
    /// The sum.
    pub total: f64,
}

impl Empty {
    /// Checks every field; `at` is put before their names.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] naming the field.
    pub fn validate(&self, at: &str) -> Result<(), ModelError> {
        for (name, value) in [
            ("request", self.request),
            ("reply", self.reply),
            ("extra", self.extra),
            ("handler", self.handler),
            ("signal", self.signal),
            ("remote_compute", self.remote_compute),
            ("delay", self.delay),
        ] {
            non_negative(&format!("{at}{name}"), value)?;
        }
        Ok(())
    }

    /// Cost to the faulting processor (Table 3). All four ends are counted; the printed Fast Ethernet
    /// software entry is smaller and not derivable.
    ///
    /// # Errors
    /// As [`Empty::validate`].
    pub fn cost(&self, costs: &Costs) -> Result<EmptyCost, ModelError> {
        self.validate("")?;
        let cost = self.checked_cost(costs);
        finite_result("total", cost.total)?;
        Ok(cost)
    }

    pub(super) fn checked_cost(&self, costs: &Costs) -> EmptyCost {
        let mut cost = EmptyCost {
            soft: 2.0 * (costs.soft(self.request) + costs.soft(self.reply)),
            extra: costs.extra(self.extra),
            wire: costs.wire(self.request) + costs.wire(self.reply),
            latency: costs.latency(2.0),
            signal: costs.signal(self.signal),
            handler: costs.dsm(self.handler),
            remote_compute: costs.dsm(self.remote_compute),
            delay: costs.dsm(self.delay),
            total: 0.0,
        };
        cost.total = cost.soft
            + cost.extra
            + cost.wire
            + cost.latency
            + cost.signal
            + cost.handler
            + cost.remote_compute
            + cost.delay;
        cost
    }

    /// Cost when prefetched: one end of each message, its half of the extra time, the handler.
    #[must_use]
    pub fn prefetched(&self, costs: &Costs) -> f64 {
        costs.soft(self.request)
            + costs.soft(self.reply)
            + costs.extra(self.extra) / 2.0
            + costs.dsm(self.handler)
    }
}

/// A lock acquisition: 2 messages if the manager holds the lock, 3 if it forwards the request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// m ≥ 2, messages: m−1 requests and the reply.
    pub messages: u32,
    /// Bytes of a request, 24 in the paper.
    pub request: f64,
    /// Bytes of the reply, 4 in the paper.
    pub reply: f64,
    /// Extra system call time, all ends.
    #[serde(default)]
    pub extra: f64,
    /// Computation at the acquiring processor.
    #[serde(default)]
    pub compute: f64,
    /// One signal delivery; each request costs one.
    #[serde(default = "default_signal")]
    pub signal: f64,
    /// Computation at the remote processors.
    #[serde(default)]
    pub remote_compute: f64,
    /// Delay at the remote processors.
    #[serde(default)]
    pub delay: f64,
}

/// Cost of a lock acquisition.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LockCost {
    /// Message software, all ends.
    pub soft: f64,
    /// Extra system call time.
    pub extra: f64,
    /// Wire, all messages.
    pub wire: f64,
    /// Hardware latency, all messages.
    pub latency: f64,
    /// Computation at the acquiring processor.
    pub compute: f64,
    /// Signal deliveries.
    pub signal: f64,
    /// Computation at the remote processors.
    pub remote_compute: f64,
    /// Delay at the remote processors.
    pub delay: f64,
    /// The sum.
    pub total: f64,
}

impl Lock {
    /// Checks every field; `at` is put before their names.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] naming the field.
    pub fn validate(&self, at: &str) -> Result<(), ModelError> {
        if self.messages < 2 {
            return Err(invalid(
                format!("{at}messages"),
                f64::from(self.messages),
                "at least 2",
            ));
        }
        for (name, value) in [
            ("request", self.request),
            ("reply", self.reply),
            ("extra", self.extra),
            ("compute", self.compute),
            ("signal", self.signal),
            ("remote_compute", self.remote_compute),
            ("delay", self.delay),
        ] {
            non_negative(&format!("{at}{name}"), value)?;
        }
        Ok(())
    }

    /// Cost to the acquiring processor (Table 6).
    ///
    /// # Errors
    /// As [`Lock::validate`].
    pub fn cost(&self, costs: &Costs) -> Result<LockCost, ModelError> {
        self.validate("")?;
        let cost = self.checked_cost(costs);
        finite_result("total", cost.total)?;
        Ok(cost)
    }

    pub(super) fn checked_cost(&self, costs: &Costs) -> LockCost {
        let requests = f64::from(self.messages - 1);
        let mut cost = LockCost {
            soft: 2.0 * (requests * costs.soft(self.request) + costs.soft(self.reply)),
            extra: costs.extra(self.extra),
            wire: requests * costs.wire(self.request) + costs.wire(self.reply),
            latency: costs.latency(f64::from(self.messages)),
            compute: costs.dsm(self.compute),
            signal: requests * costs.signal(self.signal),
            remote_compute: costs.dsm(self.remote_compute),
            delay: costs.dsm(self.delay),
            total: 0.0,
        };
        cost.total = cost.soft
            + cost.extra
            + cost.wire
            + cost.latency
            + cost.compute
            + cost.signal
            + cost.remote_compute
            + cost.delay;
        cost
    }

    /// Cost when not waited for: one send, one receive, one message's extra time, the computation.
    #[must_use]
    pub fn prefetched(&self, costs: &Costs) -> f64 {
        costs.soft(self.request)
            + costs.soft(self.reply)
            + costs.extra(self.extra) / f64::from(self.messages)
            + costs.dsm(self.compute)
    }
}
