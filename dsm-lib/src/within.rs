//! A memory process within this process: the session with it goes through no socket.
//!
//! Whoever starts the program says so (`[[mp]] in_application = true` in the cluster file), in an environment variable. The memory process
//! is then driven by whoever drives the session, and goes on after it until all application processes of the cluster have left.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use dosmos_proto::watched::Watched;
use dosmos_proto::wire::{ApReply, ApRequest};
use futures::Stream;

use crate::driver::Life;
#[cfg(feature = "within")]
use crate::ending::Ending;
use crate::settings::ENV_WITHIN;
use crate::{Error, Result, Settings};

/// What a session sends.
pub(crate) type Requests = Pin<Box<dyn Stream<Item = ApRequest> + Send>>;
/// What it receives.
pub(crate) type Replies = Pin<Box<dyn Stream<Item = ApReply> + Send>>;
/// Begins a session.
type Begin = Box<dyn FnOnce(Requests) -> Replies + Send>;

/// Where the session begins.
pub(crate) struct Enter {
    begin: Begin,
    /// Why the memory process has ended, if it failed.
    failed: Arc<OnceLock<String>>,
}

impl Enter {
    /// Begins the session.
    pub(crate) fn begin(self, requests: Requests) -> (Replies, Arc<OnceLock<String>>) {
        ((self.begin)(requests), self.failed)
    }
}

/// A memory process that this process is to be.
pub(crate) struct Within {
    #[cfg(feature = "within")]
    start: dosmos_memproc::Start,
    /// There is none then.
    #[cfg(not(feature = "within"))]
    never: std::convert::Infallible,
}

fn unusable(problem: String) -> Error {
    Error::Environment {
        variable: ENV_WITHIN,
        problem,
        expected: "the file that whoever started the program wrote for a memory process with in_application = true",
    }
}

impl Within {
    /// What the settings say, if they do.
    pub(crate) fn read(settings: &Settings) -> Result<Option<Self>> {
        let Some(file) = &settings.within else {
            return Ok(None);
        };
        #[cfg(not(feature = "within"))]
        return Err(unusable(format!(
            "is {}, and this program was built without memory processes within it: add the feature `within` of dsm-lib, or take \
             in_application out of the cluster file",
            file.display()
        )));
        #[cfg(feature = "within")]
        match dosmos_memproc::Start::read(file) {
            Ok(start) => Ok(Some(Self { start })),
            Err(e) => Err(unusable(format!(
                "is {}, which cannot be used: {e}",
                file.display()
            ))),
        }
    }

    /// Where the session begins, and the memory process's life.
    #[cfg(feature = "within")]
    pub(crate) fn begin(self, watched: &Arc<Watched>) -> (Enter, Life) {
        let (entrance, within) = dosmos_memproc::within(Arc::clone(watched));
        let failed = Arc::<OnceLock<String>>::default();
        let why = Arc::clone(&failed);
        let life = async move {
            let ending = Ending::listen();
            let ran = dosmos_memproc::run_within(self.start, within, ending.asked()).await;
            if let Err(error) = ran {
                tracing::error!("{error}");
                let _ = why.set(error.to_string());
            }
            drop(ending);
        };
        let begin: Begin = Box::new(move |requests| Box::pin(entrance.enter(requests)));
        (Enter { begin, failed }, Box::pin(life))
    }

    #[cfg(not(feature = "within"))]
    pub(crate) fn begin(self, _: &Arc<Watched>) -> (Enter, Life) {
        match self.never {}
    }
}
