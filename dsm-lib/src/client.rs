//! A session with a memory process: the I/O thread's life, the calls, and the bye at its end.
//!
//! Guarantee: when the session's task ends, however it ends, every call under way is completed.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use dosmos_proto::Malformed;
use dosmos_proto::wire::{Bye, ap_reply::Body as Reply, ap_request::Body};

use crate::call::{Answer, Call};
use crate::carrier::Carrier;
use crate::counts::Counts;
use crate::driver;
use crate::operation::{Op, Operation, Target};
use crate::outbox::Outbox;
use crate::session::End;
use crate::shared::Shared;
use crate::within::Within;
use crate::{Result, Settings, io};

/// How long a program that ends waits for the memory process to say farewell.
const FAREWELL: Duration = Duration::from_secs(2);

/// A session with a memory process and the thread that carries it.
pub(crate) struct Client {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    me: Target,
}

impl Client {
    /// Starts the I/O thread, which dials at once; what is submitted waits for the connection.
    pub(crate) fn start(settings: Settings) -> Result<Self> {
        let ap = settings.ap.clone();
        let failed = |e: std::io::Error| crate::Error::NotConnected {
            ap: ap.clone(),
            why: format!("the system gives no thread or event queue: {e}"),
        };
        let outbox = Outbox::default();
        let requests = outbox.requests();
        let within = Within::read(&settings)?;
        let carrier = Carrier::threads(&outbox, within.is_some()).map_err(failed)?;
        let shared = Arc::new(Shared::new(&settings, outbox, carrier));
        let theirs = shared.clone();
        let thread = std::thread::Builder::new()
            .name("dosmos-io".into())
            .spawn(move || {
                let last = EndAtExit(theirs.clone());
                let Some(driver) = theirs.carrier.driver() else {
                    return;
                };
                let watched = driver.watched.clone();
                let (enter, life) = within.map(|w| w.begin(&watched)).unzip();
                let session = async move {
                    io::run(&last.0, &watched, &settings, requests, enter).await;
                    drop(last);
                };
                driver.carry(session, life);
            })
            .map_err(failed)?;
        Ok(Self {
            shared,
            thread: Some(thread),
            me: Target::named(&ap),
        })
    }

    /// A session that `host` carries, and what is at its other end.
    #[cfg(feature = "simulation")]
    pub(crate) fn hosted(
        settings: &Settings,
        host: Arc<dyn crate::host::Host>,
    ) -> (Self, Arc<Shared>, crate::outbox::Requests) {
        let outbox = Outbox::default();
        let requests = outbox.requests();
        let shared = Arc::new(Shared::new(settings, outbox, Carrier::Host(host)));
        let client = Self {
            shared: shared.clone(),
            thread: None,
            me: Target::named(&settings.ap),
        };
        (client, shared, requests)
    }

    /// Makes a call of a request.
    pub(crate) fn call<T: 'static>(
        &self,
        operation: Operation,
        body: Body,
        deadline: Duration,
        decode: impl FnOnce(&Operation, Reply) -> Result<T, Malformed> + Send + 'static,
    ) -> Call<T> {
        self.call_checked(operation, body, deadline, move |operation, reply| {
            decode(operation, reply).map_err(|e| crate::Error::protocol(operation, e.to_string()))
        })
    }

    /// As [`call`](Self::call), for a decoder with errors of its own.
    pub(crate) fn call_checked<T: 'static>(
        &self,
        operation: Operation,
        body: Body,
        deadline: Duration,
        decode: impl FnOnce(&Operation, Reply) -> Result<T> + Send + 'static,
    ) -> Call<T> {
        let synchronises = matches!(
            operation.op,
            Op::Release | Op::Barrier | Op::Publish | Op::Bye
        );
        let submitted = self.shared.submit(operation.clone(), body, deadline);
        let answer = Answer::new(operation.clone(), submitted, self.shared.clone());
        Call::sent(operation, answer, synchronises, decode)
    }

    pub(crate) fn me(&self) -> &Target {
        &self.me
    }

    pub(crate) fn counts(&self) -> Counts {
        self.shared.counts()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Says bye; the call is over when the memory process has said farewell.
    pub(crate) fn bye(&self) -> Call<()> {
        let deadline = self.shared.deadline.min(FAREWELL);
        let operation = Op::Bye.on(&self.me);
        self.call(
            operation,
            Body::Bye(Bye {}),
            deadline,
            |_, reply| match reply {
                Reply::Farewell(_) => Ok(()),
                _ => Err(Malformed::new("reply", "not a farewell")),
            },
        )
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.bye());
        // Bounded: the thread ends at the farewell or when that is overdue. On a thread that carries a
        // session (a waker may own the last handle) that cannot be waited for.
        if let Some(thread) = self.thread.take().filter(|_| !driver::is_driving()) {
            let _ = thread.join();
            if let Err(error) = self.shared.posted.settle() {
                tracing::warn!(%error, "an operation that was posted failed");
            }
        }
    }
}

/// Completes all calls when the session's task ends, even by a panic.
struct EndAtExit(Arc<Shared>);

impl Drop for EndAtExit {
    fn drop(&mut self) {
        self.0
            .end(End::Lost("the task that carries it ended".into()));
        self.0.carrier.finish();
    }
}
