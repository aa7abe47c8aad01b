//! What carries a session: threads, a socket and the clock of the system; or, with the feature `simulation`, a host
//! that stands for all three.

use std::future::Future;
#[cfg(feature = "simulation")]
use std::{pin::pin, sync::Arc, task};

use dosmos_proto::Nanos;
use dosmos_proto::time::Clock;

use crate::driver::Driver;
#[cfg(feature = "simulation")]
use crate::host::Host;
use crate::meter::{CpuMark, thread_cpu};
use crate::outbox::Outbox;
#[cfg(feature = "simulation")]
use crate::{driver, open_edits};

/// What carries a session.
pub(crate) enum Carrier {
    /// Threads of this program.
    Threads { driver: Driver, clock: Clock },
    /// Somebody else.
    #[cfg(feature = "simulation")]
    Host(Arc<dyn Host>),
}

impl Carrier {
    /// Threads of this program, which send what is in `outbox`.
    pub(crate) fn threads(outbox: &Outbox, within: bool) -> std::io::Result<Self> {
        Ok(Self::Threads {
            driver: Driver::new(outbox.clone(), within)?,
            clock: Clock::start(),
        })
    }

    /// The threads, if they carry it.
    pub(crate) fn driver(&self) -> Option<&Driver> {
        match self {
            Self::Threads { driver, .. } => Some(driver),
            #[cfg(feature = "simulation")]
            Self::Host(_) => None,
        }
    }

    /// The time.
    pub(crate) fn now(&self) -> Nanos {
        match self {
            Self::Threads { clock, .. } => clock.now(),
            #[cfg(feature = "simulation")]
            Self::Host(host) => host.now(),
        }
    }

    /// Processor time of the calling thread.
    pub(crate) fn cpu(&self) -> CpuMark {
        match self {
            Self::Threads { .. } => thread_cpu(),
            #[cfg(feature = "simulation")]
            Self::Host(_) => CpuMark::Mixed,
        }
    }

    /// Carries the session until `future` is done; none if this thread cannot.
    pub(crate) fn drive<F: Future>(&self, future: F) -> Option<F::Output> {
        match self {
            Self::Threads { driver, .. } => driver.drive(future),
            #[cfg(feature = "simulation")]
            Self::Host(host) => {
                let mut future = pin!(future);
                let mut unconcerned = task::Context::from_waker(task::Waker::noop());
                loop {
                    if let task::Poll::Ready(output) = future.as_mut().poll(&mut unconcerned) {
                        return Some(output);
                    }
                    open_edits::aside(|| driver::aside(|| host.wait()));
                }
            }
        }
    }

    /// See [`Driver::be_attentive`].
    pub(crate) fn be_attentive(&self) {
        if let Some(driver) = self.driver() {
            driver.be_attentive();
        }
    }

    /// See [`Driver::wait_on_executor`].
    pub(crate) fn wait_on_executor(&self) {
        if let Some(driver) = self.driver() {
            driver.wait_on_executor();
        }
    }

    /// See [`Driver::finish`].
    pub(crate) fn finish(&self) {
        if let Some(driver) = self.driver() {
            driver.finish();
        }
    }

    /// See [`Driver::submitted`]. A host looks by itself at what is to be sent.
    pub(crate) fn submitted(&self) {
        if let Some(driver) = self.driver() {
            driver.submitted();
        }
    }

    /// See [`Driver::submitted_for_soon`].
    pub(crate) fn submitted_for_soon(&self) {
        if let Some(driver) = self.driver() {
            driver.submitted_for_soon();
        }
    }

    /// See [`Driver::look`].
    pub(crate) fn look(&self) {
        if let Some(driver) = self.driver() {
            driver.look();
        }
    }

    /// See [`Driver::attend`].
    pub(crate) fn attend(&self) {
        if let Some(driver) = self.driver() {
            driver.attend();
        }
    }
}
