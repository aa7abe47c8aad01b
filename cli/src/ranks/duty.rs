//! What a rank does once everybody is there: serve, run the program, or wait; and the reports about it.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::process::ExitStatus;
use std::time::Duration;

use dosmos_trace::store::{Exit, RunMetadata};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

use super::attend::{Attendance, Heard};
use super::meeting::Report;
use super::wire::Told;
use crate::launch::{Child, RunDir};
use crate::signals::Signals;

/// How long rank 0 may take to order the end after a signal asked for it; and if the run has not begun.
const LIMIT: Duration = Duration::from_secs(20);
const LIMIT_BEFORE: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Orders and signals, in their order.
pub(super) struct Duty {
    attendance: Attendance,
    signals: Signals,
    /// Until when rank 0 may say what to do about a signal.
    limit: Option<Pin<Box<Sleep>>>,
    /// Whether the run has begun.
    begun: bool,
    /// Why no orders come any more.
    alone: Option<String>,
}

/// How a rank's work ended.
pub(super) struct Done {
    pub(super) exit: Exit,
    pub(super) words: String,
}

impl Duty {
    pub(super) fn new(attendance: Attendance, signals: Signals) -> Self {
        Self {
            attendance,
            signals,
            limit: None,
            begun: false,
            alone: None,
        }
    }

    /// The next order.
    pub(super) async fn next(&mut self) -> Heard {
        if let Some(why) = &self.alone {
            return Heard::Alone(why.clone());
        }
        loop {
            tokio::select! {
                heard = self.attendance.next() => {
                    self.begun = true;
                    if let Heard::Alone(why) = &heard {
                        self.alone = Some(why.clone());
                    }
                    return heard;
                }
                () = self.signals.first() => match self.limit {
                    None => {
                        self.attendance.report(&Report::AskedToEnd);
                        let limit = if self.begun { LIMIT } else { LIMIT_BEFORE };
                        self.limit = Some(Box::pin(sleep(limit)));
                    }
                    Some(_) => return self.without("asked to end twice".to_owned()),
                },
                () = elapsed(&mut self.limit) => {
                    return self.without("asked to end, and rank 0 says nothing".to_owned());
                }
            }
        }
    }

    fn without(&mut self, why: String) -> Heard {
        self.alone = Some(why.clone());
        Heard::Alone(why)
    }

    /// Does `work`, which ends when its sender is dropped, until it has ended; reports when `ready` is.
    pub(super) async fn serve(
        &mut self,
        end: oneshot::Sender<()>,
        work: impl Future<Output = anyhow::Result<()>>,
        ready: impl Future<Output = ()>,
        store: Option<PathBuf>,
    ) -> Done {
        let (mut work, mut ready) = (pin!(work), pin!(ready));
        let (mut end, mut is_ready) = (Some(end), false);
        let done = loop {
            tokio::select! {
                done = &mut work => break done,
                () = &mut ready, if !is_ready => {
                    is_ready = true;
                    self.attendance.report(&Report::Ready);
                }
                heard = self.next(), if end.is_some() => match heard {
                    Heard::Told(Told::Record(metadata)) => write_down(store.as_ref(), &metadata),
                    Heard::Told(Told::Start | Told::TakePlace(_) | Told::Left(_)) => {}
                    Heard::Told(Told::End | Told::Go | Told::Refused(_)) | Heard::Alone(_) => end = None,
                },
            }
        };
        match done {
            Ok(()) => Done::well(),
            Err(e) => Done {
                exit: Exit::Code(2),
                words: dosmos_client::text::with_causes(e.as_ref()),
            },
        }
    }

    /// Waits for the order to start, starts a program, and waits until it has ended; ends it if ordered to. Calls `left` with each
    /// other application process of which it hears that it has ended.
    pub(super) async fn run(
        &mut self,
        name: &str,
        start: impl FnOnce() -> anyhow::Result<Child>,
        left: impl Fn(&str),
        run_dir: &RunDir,
    ) -> (Done, Option<ExitStatus>) {
        loop {
            match self.next().await {
                Heard::Told(Told::Start) => break,
                Heard::Told(Told::TakePlace(_) | Told::Record(_)) => {}
                Heard::Told(Told::Left(name)) => left(&name),
                Heard::Told(Told::Refused(why)) | Heard::Alone(why) => {
                    return (Done::not_started(why), None);
                }
                Heard::Told(Told::End | Told::Go) => {
                    let why = "the run ended before".to_owned();
                    return (Done::not_started(why), None);
                }
            }
        }
        let mut child = match start() {
            Ok(child) => child,
            Err(e) => {
                let why = dosmos_client::text::with_causes(e.as_ref());
                return (Done::not_started(why), None);
            }
        };
        let mut ending = false;
        let status = loop {
            match child.ended() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(e) => return (Done::not_started(format!("{e:#}")), None),
            }
            tokio::select! {
                () = sleep(LOOK_AGAIN) => {}
                heard = self.next(), if !ending => match heard {
                    Heard::Told(Told::Start | Told::TakePlace(_) | Told::Record(_)) => {}
                    Heard::Told(Told::Left(name)) => left(&name),
                    _ => {
                        ending = true;
                        child.terminate();
                    }
                },
            }
        };
        child.finish().await;
        let words = run_dir.last_words(name);
        let done = Done {
            exit: match (status.code(), status.signal()) {
                (Some(code), _) => Exit::Code(code),
                (None, Some(signal)) => Exit::Signal(signal),
                (None, None) => Exit::Unknown,
            },
            words: words.unwrap_or_else(|| "it printed nothing".to_owned()),
        };
        (done, Some(status))
    }

    /// Reports the end of this rank's work, and waits until it may go. Why no order to go came, if none did.
    pub(super) async fn finish(&mut self, done: &Done) -> Result<(), String> {
        self.attendance.report(&Report::Ended {
            exit: done.exit.clone(),
            words: done.words.clone(),
        });
        loop {
            match self.next().await {
                Heard::Told(Told::Go | Told::Refused(_)) => return Ok(()),
                Heard::Told(_) => {}
                Heard::Alone(why) => return Err(why),
            }
        }
    }

    /// Waits until rank 0 has gone.
    pub(super) async fn closed(self) {
        self.attendance.closed().await;
    }
}

impl Done {
    pub(super) fn well() -> Self {
        Self {
            exit: Exit::Code(0),
            words: String::new(),
        }
    }

    /// Whether it went wrong.
    pub(super) fn failed(&self) -> bool {
        self.exit != Exit::Code(0)
    }

    fn not_started(why: String) -> Self {
        Self {
            words: why.clone(),
            exit: Exit::NotStarted(why),
        }
    }
}

async fn elapsed(limit: &mut Option<Pin<Box<Sleep>>>) {
    match limit {
        Some(limit) => limit.await,
        None => std::future::pending().await,
    }
}

/// Writes how the run goes beside the store.
fn write_down(store: Option<&PathBuf>, metadata: &str) {
    let Some(store) = store else { return };
    let written = match serde_json::from_str::<RunMetadata>(metadata) {
        Ok(metadata) => metadata.write(store).map_err(|e| e.to_string()),
        Err(e) => Err(e.to_string()),
    };
    if let Err(e) = written {
        // The run goes on without: then it counts as one whose end nobody saw.
        tracing::error!("cannot write how the run goes to {}: {e}", store.display());
    }
}
